"""swsdist fuse: anybody's lists, and what is odd about them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from commands import Command

from swsdist.calibrate.steps.logistic import fusions_in
from swsdist.chains.fuse.inputs import FuseOptions
from swsdist.core.codes import fuse as codes
from swsdist.evaluation.calibration import FusionRequest
from tests.support.coded import says

HEAD = "query_id,doc_id,start,end,score\n"
#: Two queries: the first is found by both systems, the second by one; the third occurs and is not found.
ONE = HEAD + "".join(
    f"q{q},d{d},{d}.0,{d}.5,{score}\n"
    for q, d, score in [(1, 1, 3.0), (1, 2, 2.5), (1, 3, 0.5), (1, 4, 0.2), (2, 1, 2.0), (2, 2, 1.0), (2, 5, 0.1)]
)
TWO = HEAD + "".join(
    f"q1,d{d},{d}.1,{d}.5,{score}\n" for d, score in [(1, 30.0), (2, 20.0), (3, 12.0), (4, 3.0), (6, 2.0)]
)
TRUE = "query_id,doc_id,start,end\nq1,d1,1.0,1.5\nq1,d2,2.0,2.5\nq2,d1,1.0,1.5\nq3,d9,1.0,1.5\n"


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    for name, text in (("one", ONE), ("two", TWO), ("true", TRUE), ("empty", HEAD)):
        (tmp_path / f"{name}.csv").write_text(text)
    return tmp_path


def fuse(swsdist: Command, lists: Path, *arguments: str, code: int = 0) -> str:
    ended = swsdist("fuse", *arguments, cwd=lists, code=code)
    return ended.out if code == 0 else ended.err


TASK = ("--references", "true.csv", "--seconds", "1000")


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_without_references_all_systems_weigh_the_same(swsdist: Command, lists: Path) -> None:
    said = fuse(swsdist, lists, "one.csv", "two.csv", "--out", "fused.csv")
    assert "NOTHING WAS FITTED" in said
    assert "joined: 8 places, 4 of them found by more than one system" in said
    found = rows(lists / "fused.csv")
    assert len(found) == 8
    assert {row["decision"] for row in found} == {""}
    assert float(found[0]["score"]) > float(found[-1]["score"]) or found[0]["query_id"] != found[-1]["query_id"]
    again = fuse(swsdist, lists, "two.csv", "one.csv", "--out", "turned.csv")
    assert "8 places" in again
    assert (lists / "turned.csv").read_text() == (lists / "fused.csv").read_text()


def test_what_is_not_fitted_is_not_saved(swsdist: Command, lists: Path) -> None:
    """It is said before the lists are read, one of which is not there."""
    for how in ((), ("--fit", "none", *TASK)):
        told = fuse(swsdist, lists, "one.csv", "gone.csv", "--out", "none.csv", "--save", "none.json", *how, code=2)
        assert "--save none.json: nothing is fitted, so there is nothing to save [unused-option]\n  remedy: " in told
    (lists / "likely.csv").write_text(HEAD + "q1,d1,1.0,1.5,0.5\n")
    for how in (("none",), ("kst",), ("sto", "--fit", "none")):
        arguments = (
            "-s",
            "likely.csv",
            "--seconds",
            "1000",
            "--out",
            "none.csv",
            "--save",
            "none.json",
            "--method",
            *how,
        )
        told = swsdist("calibrate", *arguments, cwd=lists, code=2).err
        assert "[unused-option]" in told
    assert not (lists / "none.csv").exists()


def test_queries_that_are_not_of_the_task(swsdist: Command, lists: Path) -> None:
    # A query without a reference is fused as all others are, and pushes out nothing; it only teaches the weights nothing.
    strange = ONE + "".join(f"x{q},d{q},{q}.0,{q}.5,99\n" for q in range(1, 5))
    (lists / "strange.csv").write_text(strange)
    for name in ("one", "strange"):
        told = swsdist(
            "fuse", f"a={name}.csv", "b=two.csv", *TASK, "-o", f"of-{name}.csv", "--fit", "oracle", cwd=lists
        ).err
        assert ("[unlisted]" in told) == (name == "strange")
    alone, together = (rows(lists / f"of-{name}.csv") for name in ("one", "strange"))
    assert [row for row in together if row["query_id"][0] != "x"] == alone
    assert len([row for row in together if row["query_id"][0] == "x" and row["decision"]]) == 4
    (lists / "others.csv").write_text(TWO.replace("q1", "z1"))
    told = fuse(swsdist, lists, "one.csv", "others.csv", "--out", "x.csv", code=2)
    assert "[mismatch]" in told
    assert not (lists / "x.csv").exists()


def test_weights_are_fitted_saved_and_applied(swsdist: Command, lists: Path) -> None:
    said = fuse(
        swsdist, lists, "a=one.csv", "b=two.csv", *TASK, "--out", "fused.csv", "--save", "f.json", "--fit", "oracle"
    )
    assert "ORACLE, fitted on what is decided, so optimistic" in said
    assert "other queries" not in said
    (model,) = fusions_in(json.loads((lists / "f.json").read_text()))
    assert model.systems == ("a", "b")
    assert json.loads((lists / "f.json").read_text())["trained_on"]["lists"] == {"a": "one.csv", "b": "two.csv"}
    assert {row["decision"] for row in rows(lists / "fused.csv")} == {"true", "false"}
    said = fuse(swsdist, lists, "a=one.csv", "b=two.csv", "--fit", "f.json", "--out", "applied.csv")
    assert "fusion: file" in said
    said = fuse(swsdist, lists, "a=one.csv", "b=two.csv", *TASK, "--fit", "f.json", "--out", "again.csv")
    assert "fusion: ORACLE, fitted on what is decided" in said
    assert (lists / "applied.csv").read_text() == (lists / "fused.csv").read_text()
    said = fuse(swsdist, lists, "a=one.csv", "c=two.csv", "--fit", "f.json", "--out", "x.csv", code=2)
    assert "fitted for a, b, " in said
    assert "[mismatch]" in said
    marked = fuse(swsdist, lists, "a=one.csv", "b=two.csv", *TASK, "--out", "m.xml", "--fit", "oracle", "--marks")
    assert "where it found nothing" in marked
    assert swsdist("score", "-s", "m.xml", *TASK, cwd=lists).out


def test_overlaps_between_queries_stay_unless_it_is_asked_for(swsdist: Command, lists: Path) -> None:
    """One name in the command, in the chain and in Python; what it costs is said."""
    assert not FuseOptions().between_queries
    assert not FusionRequest().between_queries
    fuse(swsdist, lists, "one.csv", "two.csv", "--out", "all.csv")
    said = fuse(swsdist, lists, "one.csv", "two.csv", "--out", "best.csv", "--between-queries")
    assert "2 detections overlap one of another query with a higher score, and are left out: what is decided" in said
    assert (len(rows(lists / "all.csv")), len(rows(lists / "best.csv"))) == (8, 6)


def test_one_query_that_occurs_cannot_be_crossfit(swsdist: Command, lists: Path) -> None:
    (lists / "once.csv").write_text("\n".join(TRUE.splitlines()[:3]) + "\n")
    arguments = ("a=one.csv", "b=two.csv", "--references", "once.csv", "--seconds", "200", "--protocol", "sws2013")
    for name in ("one", "two"):
        text = (lists / f"{name}.csv").read_text().splitlines()
        (lists / f"{name}.csv").write_text("\n".join(line for line in text if not line.startswith("q2")) + "\n")
    told = fuse(swsdist, lists, *arguments, "--out", "f.csv", code=2)
    assert "[nothing-to-fit]" in told
    assert "remedy: give references of more queries" in told


def test_lists_that_have_nothing_in_common(swsdist: Command, lists: Path) -> None:
    (lists / "far.csv").write_text(HEAD + "q1,d1,900.0,900.5,1.0\nq9,d1,1.0,1.5,2.0\n")
    ended = swsdist("fuse", "one.csv", "far.csv", "two.csv", "--out", "f.csv", cwd=lists)
    assert "10 places, 4 of them found by more than one system" in ended.out
    assert "warning: 2 pairs of systems " in ended.err
    assert "(first: far and one, far and two); " in ended.err
    assert says(ended.err, codes.DISJOINT_SYSTEMS)
    strict = ("one.csv", "far.csv", "--out", "x.csv", "--strict")
    stopped = swsdist("fuse", *strict, cwd=lists, code=4).err
    assert "far and one: 1 pair of systems " in stopped
    assert says(stopped, codes.DISJOINT_SYSTEMS)
    assert not (lists / "x.csv").exists()
    assert "pairs" not in swsdist("fuse", "one.csv", "two.csv", "--out", "f.csv", cwd=lists).err
    # A query that nobody asked for is told, as when the list is scored.
    told = swsdist("fuse", "one.csv", "far.csv", *TASK, "--fit", "oracle", "--out", "f.csv", cwd=lists)
    assert told.code == 0


def test_an_empty_list_and_only_empty_lists(swsdist: Command, lists: Path) -> None:
    ended = swsdist(*("fuse", "one.csv", "empty.csv", "--out", "f.csv", "--scores", "as-given"), cwd=lists)
    assert ended.err.startswith("warning: 1 list ")
    assert "(first: empty)" in ended.err
    assert "[empty-lists]" in ended.err
    assert ended.err.count("\n") == 1
    said = ended.out
    assert "empty: 0 detections of 0 queries" in said
    assert sorted(float(row["score"]) for row in rows(lists / "f.csv")) == [0.1, 0.2, 0.5, 1.0, 2.0, 2.5, 3.0]
    assert "[empty-input]" in fuse(swsdist, lists, "a=empty.csv", "b=empty.csv", "--out", "f.csv", code=2)


def test_duplicates_of_one_list_are_left_out(swsdist: Command, lists: Path) -> None:
    (lists / "twice.csv").write_text(ONE + "q1,d1,1.0,1.5,2.9\nq1,d1,1.0,1.5,3.0\n")
    said = fuse(swsdist, lists, "twice.csv", "--out", "f.csv", "--scores", "as-given")
    assert "2 places overlap a better one of their query, and are left out" in said
    kept = [row for row in rows(lists / "f.csv") if (row["query_id"], row["doc_id"]) == ("q1", "d1")]
    assert [float(row["score"]) for row in kept] == [3.0]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("one.csv", "one.csv", "--out", "f.csv"), "[duplicate-name]"),
        (("one.csv", "none.csv", "--out", "f.csv"), "there is no such file"),
        (
            ("one.csv", "two.csv", "--fit", "crossfit", "--out", "f.csv"),
            "no references are given (--fit crossfit) [missing-input]",
        ),
        (("one.csv", "two.csv", "--fit", "gone.json", "--out", "f.csv"), "[missing-file]"),
        (("one.csv", "two.csv", "--fit", "true.csv", "--out", "f.csv"), "[not-fitted-steps]"),
        (("one.csv", "two.csv", "--overlap", "1", "--out", "f.csv"), "[invalid-value]"),
        (("one.csv", "two.csv", *TASK, "--folds", "1", "--out", "f.csv"), "[too-few]"),
        (("one.csv", "two.csv", *TASK, "--method", "fusoin", "--out", "f.csv"), "[unknown-name]"),
        (
            ("one.csv", "two.csv", *TASK, "--method", "logistic", "--marks", "--out", "f.csv", "--threshold", "fitted"),
            "--marks belongs to the step fusion, which is not among the steps [unused-option]",
        ),
        (
            (
                "one.csv",
                "two.csv",
                *TASK,
                "--method",
                "logistic",
                "--prior",
                "0.1",
                "--out",
                "f.csv",
                "--threshold",
                "fitted",
            ),
            "--prior belongs to the step fusion, which is not among the steps [unused-option]",
        ),
        (("two.csv", *TASK, "--out", "f.csv"), "the labelled detections contain no hit [nothing-to-fit]"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_mistakes(swsdist: Command, lists: Path, arguments: tuple[str, ...], complaint: str) -> None:
    assert complaint in fuse(swsdist, lists, *arguments, code=2)


def test_a_name_that_is_none(swsdist, tmp_path: Path) -> None:
    """`=list.csv` names nothing; and a folder may have an equals sign in its name."""
    (tmp_path / "x=y").mkdir()
    text = "query_id,doc_id,start,end,score\nq1,d1,1.0,1.5,3.0\nq1,d2,2.0,2.5,1.0\n"
    for name in ("x=y/d.csv", "one.csv"):
        (tmp_path / name).write_text(text)
    assert "[missing-input]" in swsdist("fuse", "=one.csv", "x=y/d.csv", "-o", "f.csv", cwd=tmp_path, code=2).err
    assert "\nd: 2 detections" in f"\n{swsdist('fuse', 'one.csv', 'x=y/d.csv', '-o', 'f.csv', cwd=tmp_path).out}"
    (tmp_path / "none.csv").write_text("query_id,doc_id,start,end\n")
    task = ("--references", "none.csv", "--seconds", "100")
    told = swsdist("fuse", "one.csv", "x=y/d.csv", "-o", "g.csv", *task, cwd=tmp_path, code=5).err
    assert "[unlisted]" in told


def test_a_run_folder_is_no_list(swsdist: Command, place: Path, tmp_path: Path) -> None:
    """Its list is named; or how to write it, where it has none."""
    listed = place / "run/exports/detections.csv"
    out = ("--out", tmp_path / "f.csv")
    told = swsdist("fuse", listed, f"b={place}/run", *out, code=2).err
    assert f"{place}/run: " in told
    assert f"[wrong-kind]\n  remedy: name its list: {listed}\n" in told
    assert "this is a run folder" in swsdist("calibrate", "-s", f"{place}/run/", "--method", "none", *out, code=2).err
    task = ("--references", place / "corpus/refs.csv", "--seconds", "60")
    assert "this is a run folder" in swsdist("score", "-s", place / "run", *task, code=2).err
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("plan.json", "config.yaml"):
        (bare / name).write_bytes((place / "run" / name).read_bytes())
    told = swsdist("fuse", listed, f"b={bare}", *out, code=2).err
    assert f"swsdist export {bare}/config.yaml --set 'report.exports=[csv]'; then name its list" in told


def test_steps_may_come_after_the_fusion(swsdist: Command, lists: Path) -> None:
    """Posteriors of the fused ratios, decided at 1/2: what ln(beta) decides of the ratios; and applied from the file."""
    task = ("a=one.csv", "b=two.csv", *TASK, "--fit", "oracle", "--out")
    fuse(swsdist, lists, *task, "ratios.csv")
    fuse(swsdist, lists, *task, "p.csv", "--method", "fusion,at-prior", "--save", "p.json")
    ratios, posteriors = rows(lists / "ratios.csv"), rows(lists / "p.csv")
    assert [row["decision"] for row in posteriors] == [row["decision"] for row in ratios]
    assert all((float(row["score"]) >= 0.5) == (row["decision"] == "true") for row in posteriors)
    again = ("a=one.csv", "b=two.csv", "--fit", "p.json", "--method", "fusion,at-prior", "--out", "again.csv")
    fuse(swsdist, lists, *again)
    assert (lists / "again.csv").read_text() == (lists / "p.csv").read_text()
    told = fuse(swsdist, lists, *task, "x.csv", "--method", "logistic,fusion", code=2)
    assert "it must come first, not after logistic" in told
    told = fuse(swsdist, lists, *task, "x.csv", "--method", "fusion,logistic", code=2)
    assert "[undecided]" in told
