"""swsdist fuse: anybody's lists, and what is odd about them."""

import json
from pathlib import Path

import pytest
from commands import Command, untold
from lists_of_others import rows

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
TWO = HEAD + "".join(f"q1,d{d},{d}.1,{d}.5,{score}\n" for d, score in [(1, 30), (2, 20), (3, 12), (4, 3), (6, 2)])
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


def test_without_references_all_systems_weigh_the_same(swsdist: Command, lists: Path) -> None:
    """One name of `between_queries` in the command, in the chain and in Python; what it costs is said."""
    said = fuse(swsdist, lists, "one.csv", "two.csv", "--out", "fused.csv")
    assert "NOTHING WAS FITTED" in said
    assert "joined: 8 places, 4 of them found by more than one system" in said
    found = rows(lists / "fused.csv")
    assert len(found) == 8
    assert {row["decision"] for row in found} == {""}
    fuse(swsdist, lists, "two.csv", "one.csv", "--out", "turned.csv")
    assert (lists / "turned.csv").read_text() == (lists / "fused.csv").read_text()
    assert not FuseOptions().between_queries
    assert not FusionRequest().between_queries
    said = fuse(swsdist, lists, "one.csv", "two.csv", "--out", "best.csv", "--between-queries")
    assert "2 detections overlap one of another query with a higher score, and are left out" in said
    assert len(rows(lists / "best.csv")) == 6


def test_queries_that_are_not_of_the_task(swsdist: Command, lists: Path) -> None:
    # A query without a reference is fused as all others are, and pushes out nothing; it only teaches the weights nothing.
    strange = ONE + "".join(f"x{q},d{q},{q}.0,{q}.5,99\n" for q in range(1, 5))
    (lists / "strange.csv").write_text(strange)
    for name in ("one", "strange"):
        given = ("fuse", f"a={name}.csv", "b=two.csv", *TASK, "-o", f"of-{name}.csv", "--fit", "oracle")
        told = swsdist(*given, cwd=lists).err
        assert ("[unlisted]" in told) == (name == "strange")
    alone, together = (rows(lists / f"of-{name}.csv") for name in ("one", "strange"))
    assert [row for row in together if row["query_id"][0] != "x"] == alone
    assert len([row for row in together if row["query_id"][0] == "x" and row["decision"]]) == 4


def test_weights_are_fitted_saved_and_applied(swsdist: Command, lists: Path) -> None:
    both = ("a=one.csv", "b=two.csv")
    said = fuse(swsdist, lists, *both, *TASK, "--out", "fused.csv", "--save", "f.json", "--fit", "oracle")
    assert "ORACLE, fitted on what is decided, so optimistic" in said
    saved = json.loads((lists / "f.json").read_text())
    (model,) = fusions_in(saved)
    assert model.systems == ("a", "b")
    assert saved["trained_on"]["lists"] == {"a": "one.csv", "b": "two.csv"}
    assert {row["decision"] for row in rows(lists / "fused.csv")} == {"true", "false"}
    assert "fusion: file" in fuse(swsdist, lists, *both, "--fit", "f.json", "--out", "applied.csv")
    assert "fusion: ORACLE" in fuse(swsdist, lists, *both, *TASK, "--fit", "f.json", "--out", "again.csv")
    assert (lists / "applied.csv").read_text() == (lists / "fused.csv").read_text()
    other = "fuse a=one.csv c=two.csv --fit f.json --out x.csv"
    assert untold(swsdist, {other: "fitted for a, b,  .. [mismatch]"}, lists) == {}
    marked = fuse(swsdist, lists, *both, *TASK, "--out", "m.xml", "--fit", "oracle", "--marks")
    assert "where it found nothing" in marked
    assert swsdist("score", "-s", "m.xml", *TASK, cwd=lists).out


def test_lists_that_have_nothing_in_common(swsdist: Command, lists: Path) -> None:
    (lists / "far.csv").write_text(HEAD + "q1,d1,900.0,900.5,1.0\nq9,d1,1.0,1.5,2.0\n")
    stopped = swsdist("fuse", "one.csv", "far.csv", "--out", "x.csv", "--strict", cwd=lists, code=4).err
    assert says(stopped, codes.DISJOINT_SYSTEMS)
    assert not (lists / "x.csv").exists()
    assert "pairs" not in swsdist("fuse", "one.csv", "two.csv", "--out", "f.csv", cwd=lists).err


def test_an_empty_list_and_duplicates_of_a_list(swsdist: Command, lists: Path) -> None:
    ended = swsdist("fuse", "one.csv", "empty.csv", "--out", "f.csv", "--scores", "as-given", cwd=lists)
    assert ended.err.startswith("warning: 1 list ")
    assert "[empty-lists]" in ended.err
    assert ended.err.count("\n") == 1
    assert sorted(float(row["score"]) for row in rows(lists / "f.csv")) == [0.1, 0.2, 0.5, 1.0, 2.0, 2.5, 3.0]
    (lists / "twice.csv").write_text(ONE + "q1,d1,1.0,1.5,2.9\nq1,d1,1.0,1.5,3.0\n")
    said = fuse(swsdist, lists, "twice.csv", "--out", "f.csv", "--scores", "as-given")
    assert "2 places overlap a better one of their query, and are left out" in said
    kept = [row for row in rows(lists / "f.csv") if (row["query_id"], row["doc_id"]) == ("q1", "d1")]
    assert [float(row["score"]) for row in kept] == [3.0]


def test_mistakes(swsdist: Command, lists: Path) -> None:
    task = "--references true.csv --seconds 1000"
    cases = {
        "one.csv one.csv": "[duplicate-name]",
        "one.csv two.csv --fit crossfit": "no references are given (--fit crossfit) [missing-input]",
        "one.csv two.csv --fit gone.json": "[missing-file]",
        "one.csv two.csv --fit true.csv": "[not-fitted-steps]",
        "one.csv two.csv --overlap 1": "[invalid-value]",
        f"one.csv two.csv {task} --method fusoin": "[unknown-name]",
        f"one.csv two.csv {task} --method logistic --threshold fitted --marks": "--marks .. [unused-option]",
        f"one.csv two.csv {task} --method logistic --threshold fitted --prior 0.1": "--prior .. [unused-option]",
        f"two.csv {task}": "the labelled detections contain no hit [nothing-to-fit]",
        "a=empty.csv b=empty.csv": "[empty-input]",
        "one.csv others.csv " + task: "[mismatch]",
        f"one.csv gone.csv --save none.json --fit none {task}": "[unused-option]",
    }
    (lists / "others.csv").write_text(TWO.replace("q1", "z1"))
    assert untold(swsdist, {f"fuse {words} --out f.csv": told for words, told in cases.items()}, lists) == {}
    (lists / "likely.csv").write_text(HEAD + "q1,d1,1.0,1.5,0.5\n")
    calibrate = "calibrate -s likely.csv --seconds 1000 --out f.csv --save none.json --method"
    cases = {f"{calibrate} {how}": "[unused-option]" for how in ("none", "kst", "sto --fit none")}
    assert untold(swsdist, cases, lists) == {}
    assert not (lists / "f.csv").exists()


def test_a_name_that_is_none(swsdist, lists: Path) -> None:
    """`=list.csv` names nothing; and a folder may have an equals sign in its name."""
    (lists / "x=y").mkdir()
    (lists / "x=y/d.csv").write_text(HEAD + "q1,d1,1.0,1.5,3.0\nq1,d2,2.0,2.5,1.0\n")
    assert untold(swsdist, {"fuse =one.csv x=y/d.csv -o f.csv": "[missing-input]"}, lists) == {}
    assert "\nd: 2 detections" in f"\n{swsdist('fuse', 'one.csv', 'x=y/d.csv', '-o', 'f.csv', cwd=lists).out}"
    (lists / "none.csv").write_text("query_id,doc_id,start,end\n")
    none = {"fuse one.csv x=y/d.csv -o g.csv --references none.csv --seconds 100": "[unlisted]"}
    assert untold(swsdist, none, lists, code=5) == {}


def test_a_run_folder_is_no_list(swsdist: Command, place: Path, tmp_path: Path) -> None:
    listed, bare = place / "run/exports/detections.csv", tmp_path / "bare"
    bare.mkdir()
    for name in ("plan.json", "config.yaml"):
        (bare / name).write_bytes((place / "run" / name).read_bytes())
    export = f"swsdist export {bare}/config.yaml --set 'report.exports=[csv]'; then name its list"
    cases = {
        f"fuse {listed} b={place}/run --out f.csv": f"[wrong-kind]\n  remedy: name its list: {listed}\n",
        f"calibrate -s {place}/run/ --method none --out f.csv": "this is a run folder",
        f"score -s {place}/run --references {place}/corpus/refs.csv --seconds 60": "this is a run folder",
        f"fuse {listed} b={bare} --out f.csv": export,
    }
    assert untold(swsdist, cases, tmp_path) == {}


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
    for method, told in (("logistic,fusion", "it must come first"), ("fusion,logistic", "[undecided]")):
        assert told in fuse(swsdist, lists, *task, "x.csv", "--method", method, code=2)
