"""`swsdist calibrate`, and `swsdist sweep` over lists, as a user types them, and that Python gives the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Command, Ended

from swsdist.calibrate.procedure import Procedure, make_steps
from swsdist.calibrate.steps.by_term import Thresholding
from swsdist.calibrate.steps.interface import Options, Step, TwvParameters, scores_of
from swsdist.core.types import DETECTIONS
from swsdist.io.nist.systemlist import read_systemlist
from swsdist.io.tables import read_table
from swsdist.registry.entries import StepEntry
from swsdist.registry.registries import CALIBRATION

SECONDS = 3600
TASK = ("--references", "refs.csv", "--seconds", str(SECONDS), "--protocol", "sws2013")
BETA = 1 / 100 * (1 / 0.00015 - 1)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """References of 20 queries, and lists: `scores.csv` (any scores), `other.csv`, `posteriors.csv` (probabilities)."""
    root = tmp_path_factory.mktemp("calibrating")
    rng = np.random.default_rng(5)
    refs, lists = ["query_id,doc_id,start,end"], {"scores": [], "other": [], "posteriors": []}
    for k in range(20):
        query, many = f"q{k:02d}", int(rng.integers(1, 8))
        for n in range(many):
            refs.append(f"{query},d{n % 3},{10 * n}.0,{10 * n}.6")
        for n in range(40):
            right = n < many and rng.random() < 0.8
            start = 10 * n + 0.1 if right else 10 * n + 5
            for name, spread in (("scores", 1.0), ("other", 1.6)):
                lists[name].append(f"{query},d{n % 3},{start},{start + 0.5},{rng.normal(3.0 * right, spread):.4f}")
            lists["posteriors"].append(f"{query},d{n % 3},{start},{start + 0.5},{rng.beta(4 if right else 0.3, 3):.6f}")
    (root / "refs.csv").write_text("\n".join(refs) + "\n")
    for name, rows in lists.items():
        (root / f"{name}.csv").write_text("\n".join(["query_id,doc_id,start,end,score", *rows]) + "\n")
    return root


def listed(path: Path) -> pa.Table:
    columns = ("query_id", "doc_id", "channel", "start", "end", "score", "decision")
    return read_table(str(path), pa.schema([DETECTIONS.field(name) for name in columns]))


def scored(swsdist: Command, place: Path, name: str) -> dict[str, float]:
    values: dict[str, float] = json.loads(swsdist("score", "-s", name, *TASK, "--json", cwd=place).out)["measures"]
    return values


def test_kst_of_any_scores(place: Path, swsdist: Command) -> None:
    """A logistic first, crossfit; then what the functions give; the XML and the CSV hold the same list."""
    arguments = ("calibrate", "-s", "scores.csv", "--method", "kst", "--alpha", "1.2", *TASK)
    said = swsdist(*arguments, "--out", "kst.xml", "--save", "fitted.json", cwd=place).out
    assert "logistic: crossfit, p = sigmoid(" in said
    assert f"kst: alpha 1.2, beta {BETA:.5g}, T {SECONDS}" in said
    assert "kst.xml: written (stdlist)" in said
    swsdist(*arguments, "--out", "kst.csv", cwd=place)

    fitted = Procedure.from_run((place / "fitted.json").read_bytes())
    assert ([step.name for step in fitted.steps], len(fitted.models[0])) == (["logistic", "kst"], 5)
    probable = fitted.before(1).scores(listed(place / "scores.csv"))
    expected = Thresholding("kst", SECONDS, BETA, 1.2).apply(probable)
    found = listed(place / "kst.csv")
    assert found.equals(expected)
    xml = read_systemlist(str(place / "kst.xml")).detections
    columns = ["query_id", "doc_id", "channel", "start", "end", "score", "decision"]
    text = xml.select(columns).cast(pa.schema([found.schema.field(name) for name in columns]))
    order = [("query_id", "ascending"), ("start", "ascending")]
    assert text.sort_by(order).to_pylist() == found.sort_by(order).to_pylist()
    assert scored(swsdist, place, "kst.xml")["atwv"] == scored(swsdist, place, "kst.csv")["atwv"] > 0.2


def test_probabilities_need_no_logistic_and_no_references(place: Path, swsdist: Command) -> None:
    arguments = ("calibrate", "-s", "posteriors.csv", "--method", "sto", "--seconds", SECONDS, "--protocol", "sws2013")
    said = swsdist(*arguments, "--out", "sto.parquet", cwd=place).out
    assert "logistic" not in said
    assert "sto.parquet: written (parquet)" in said
    expected = Thresholding("sto", SECONDS, BETA).apply(listed(place / "posteriors.csv"))
    assert listed(place / "sto.parquet").equals(expected)
    swsdist(*arguments, "--keep-scores", "--out", "decided.csv", cwd=place)
    decided = listed(place / "decided.csv")
    assert decided["decision"].equals(expected["decision"])
    assert decided["score"].equals(listed(place / "posteriors.csv")["score"])


def test_oracle_kst_says_that_it_is(place: Path, swsdist: Command) -> None:
    said = swsdist(
        *("calibrate", "-s", "posteriors.csv", "--method", "oracle-kst", *TASK, "--out", "oracle.csv"), cwd=place
    ).out
    assert "ORACLE" in said
    said = swsdist(
        *("calibrate", "-s", "scores.csv", "--method", "kst", "--fit", "oracle", *TASK, "--out", "o.csv"), cwd=place
    ).out
    assert "logistic: ORACLE, fitted on what is decided" in said


def test_a_finished_run_is_taken_for_its_file(
    place: Path, swsdist: Command, first_run: object, corpus: Path, tmp_path: Path
) -> None:
    arguments = ("calibrate", "-s", "scores.csv", "--method", "threshold", *TASK)
    swsdist(*arguments, "--fit", f"{corpus}/run", "--out", tmp_path / "by_run.csv", cwd=place)
    (file,) = (corpus / "run" / "calibration").glob("*.json")
    swsdist(*arguments, "--fit", file, "--out", tmp_path / "by_file.csv", cwd=place)
    assert (tmp_path / "by_run.csv").read_bytes() == (tmp_path / "by_file.csv").read_bytes()
    told = swsdist(*arguments, "--fit", ".", "--out", tmp_path / "x.csv", cwd=place, code=2).err
    assert "--fit .: " in told
    assert "[wrong-kind]" in told


def test_a_file_takes_a_logistic_elsewhere(place: Path, swsdist: Command) -> None:
    swsdist(
        *("calibrate", "-s", "scores.csv", "--method", "logistic", *TASK, "--out", "p.csv", "--save", "l.json"),
        cwd=place,
    )
    swsdist(*("calibrate", "-s", "other.csv", "--method", "logistic", "--fit", "l.json", "--out", "q.csv"), cwd=place)
    steps = Procedure(make_steps(["logistic"], {}))
    mean = steps.with_file((place / "l.json").read_bytes(), "l.json", thresholds=False)
    assert listed(place / "q.csv").equals(mean.scores(listed(place / "other.csv")))


def test_a_file_that_was_fitted_on_what_is_scored_is_an_oracle(place: Path, swsdist: Command) -> None:
    """Of another list too, for it was fitted on the same occurrences; of other occurrences it is a file."""
    for method in ("logistic", "threshold"):
        fitted = ("calibrate", "-s", "scores.csv", "--method", method, "--out", "o.csv")
        swsdist(*fitted, *TASK, "--save", "of.json", cwd=place)
        for name in ("scores.csv", "other.csv"):
            applied = ("calibrate", "-s", name, "--method", method, "--out", "o.csv", "--fit", "of.json")
            said = swsdist(*applied, *TASK, cwd=place).out
            assert f"{method}: ORACLE, fitted on what is decided" in said
        text = (place / "refs.csv").read_text()
        (place / "elsewhere.csv").write_text(text.replace(",d", ",e").replace(",eoc_id", ",doc_id"))
        elsewhere = (*TASK[:1], "elsewhere.csv", *TASK[2:])
        assert f"{method}: file" in swsdist(*applied, *elsewhere, cwd=place).out
        assert f"{method}: file" in swsdist(*applied, cwd=place).out


class Doubled(Step[Options]):
    """Twice the score, decided from 1 on."""

    name = "doubled"
    version = 1

    def threshold(self, point: TwvParameters) -> float:
        return 1.0

    def apply(self, table: pa.Table, *_: Any) -> Any:
        return scores_of(table) * 2


@pytest.fixture
def doubled() -> Iterator[None]:
    CALIBRATION.add("doubled", StepEntry(f"{__name__}:Doubled", 1, own_threshold=True))
    yield
    CALIBRATION.remove("doubled")


@pytest.mark.usefixtures("doubled")
def test_any_registered_step_calibrates_a_list(place: Path, swsdist: Command) -> None:
    """One of a stranger's package, alone and behind a fitted one, as `Procedure` does it in a run."""
    seconds = ("--seconds", SECONDS, "--protocol", "sws2013")
    said = swsdist("calibrate", "-s", "scores.csv", "--method", "doubled", *seconds, "--out", "d.csv", cwd=place).out
    assert "threshold: doubled's own, 1\n" in said
    given, found = (listed(place / name)["score"].to_numpy() for name in ("scores.csv", "d.csv"))
    assert (found == 2 * given).all()
    assert listed(place / "d.csv")["decision"].to_pylist() == (found >= 1).tolist()
    arguments = ("calibrate", "-s", "scores.csv", "--method", "llr,doubled", *TASK, "--out", "e.csv")
    said = swsdist(*arguments, "--set", "llr.curve=rising", "--save", "e.json", cwd=place).out
    assert "llr: crossfit" in said
    fitted = Procedure.from_run((place / "e.json").read_bytes())
    assert fitted.steps[0].options.curve == "rising"
    assert (len(fitted.models[0]), fitted.models[1], fitted.thresholds) == (5, (), (1.0,))
    assert listed(place / "e.csv").equals(fitted.apply(listed(place / "scores.csv")))


def test_a_threshold_may_be_fitted_behind_steps(place: Path, swsdist: Command) -> None:
    arguments = ("calibrate", "-s", "scores.csv", "--fit", "oracle", *TASK, "--out", "b.csv")
    said = swsdist(*arguments, "--method", "logistic,threshold", "--save", "b.json", cwd=place).out
    assert "threshold: ORACLE" in said
    fitted = Procedure.from_run((place / "b.json").read_bytes())
    assert listed(place / "b.csv").equals(fitted.apply(listed(place / "scores.csv")))
    values = scored(swsdist, place, "b.csv")
    assert values["atwv"] == pytest.approx(values["mtwv"], abs=1e-12)


def test_a_threshold_decides_and_leaves_scores(place: Path, swsdist: Command) -> None:
    said = swsdist(
        *("calibrate", "-s", "scores.csv", "--method", "threshold", "--fit", "oracle", *TASK, "--out", "t.xml"),
        *("--format", "kwslist", "--save", "t.json"),
        cwd=place,
    ).out
    assert "t.xml: written (kwslist)" in said
    values = scored(swsdist, place, "t.xml")
    assert values["atwv"] == pytest.approx(values["mtwv"], abs=1e-12)
    swsdist(*("calibrate", "-s", "t.xml", "--method", "threshold", "--fit", "t.json", "--out", "again.xml"), cwd=place)
    assert (place / "again.xml").read_bytes() == (place / "t.xml").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--method", "kst", "--seconds", "3600", "--out", "x.csv"), "[missing-input]"),
        (
            ("--method", "kst", "--fit", "none", "--seconds", "3600", "--out", "x.csv"),
            "800 scores are not probabilities",
        ),
        (("--method", "kst", "--fit", "gone.json", "--seconds", "1", "--out", "x.csv"), "[missing-file]"),
        (("--method", "logistic", "--fit", "none", "--out", "x.csv"), "neither fitted nor read"),
        (("--method", "threshold", "--out", "x.csv"), "a threshold is fitted on true occurrences"),
        (("--method", "threshold", *TASK, "--out", "x.txt"), "[unknown-name]"),
        (("--method", "kst", *TASK, "--folds", "1", "--out", "x.csv"), "1 folds"),
        (("--method", "q-norm", *TASK, "--out", "x.csv"), "[needs-search]"),
        (("--method", "fusion", *TASK, "--out", "x.csv"), "fusion is of the scores of several systems"),
        (
            ("--method", "llr,kst", *TASK, "--out", "x.csv"),
            "kst takes scores of the kind posterior, but comes after llr",
        ),
        (("--method", "ksd", *TASK, "--out", "x.csv"), "ksd"),
        (("--method", "kst,logistic", *TASK, "--out", "x.csv"), "[not-probabilities]"),
        (("--method", "llr", "--fit", "none", *TASK, "--out", "x.csv"), "llr is neither fitted nor read"),
        (("--method", "llr", "--out", "x.csv"), "[missing-input]"),
        (("--method", "llr", "--set", "llr.covariates=[mean]", *TASK, "--out", "x.csv"), "cost-sums of the search"),
        (("--method", "llr", "--set", "kst.alpha=2", *TASK, "--out", "x.csv"), "options are given for kst"),
        (("--method", "llr", "--set", "llr.curv=line", *TASK, "--out", "x.csv"), "its options: covariates, curve"),
    ],
)
def test_mistakes_are_told(place: Path, swsdist: Command, arguments: tuple[str, ...], complaint: str) -> None:
    ended = swsdist("calibrate", "-s", "scores.csv", *arguments, cwd=place, code=2)
    assert complaint in ended.err
    assert "remedy: " in ended.err
    assert not list(place.glob("*.partial")) + list(place.glob(".*.partial"))


def test_probabilities_of_an_unknown_amount_of_audio(place: Path, swsdist: Command) -> None:
    ended = swsdist("calibrate", "-s", "posteriors.csv", "--method", "kst", "--out", "x.csv", cwd=place, code=2)
    assert "[missing-input]" in ended.err
    ended = swsdist(
        *("calibrate", "-s", "posteriors.csv", "--method", "oracle-kst", "--seconds", 36, "--out", "x.csv"),
        cwd=place,
        code=2,
    )
    assert "oracle-kst needs the true occurrences" in ended.err


RESULTS = """\
KW-1 1 100 150 0.25
KW-1 2 30 72 2.5
KW-1 2 31 70 3.0
KW-2 2 31 71 0.75
"""
PLACES = ("--kaldi-utter-id", "utter_id", "--kaldi-segments", "segments", "--kaldi-utter-map", "utter_map")


@pytest.fixture
def kaldi(tmp_path: Path) -> Path:
    """A folder with `results`, and where their utterances lie."""
    files = {
        "results": RESULTS,
        "utter_id": "talk-0001 1\ntalk-0002 2\n",
        "segments": "talk-0001 rec1 0.00 9.50\ntalk-0002 rec1 12.34 20.00\n",
        "utter_map": "rec1 talk B\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_results_of_kaldi_are_converted_and_back(kaldi: Path, swsdist: Command) -> None:
    said = swsdist("calibrate", "-s", "results", *PLACES, "--method", "none", "--out", "kwslist.xml", cwd=kaldi).out
    assert "results: 4 detections of 2 queries" in said
    assert "0 YES, 0 NO, 4 without decision" in said
    assert "kwslist.xml: written (kwslist, undecided detections as NO)" in said
    read = read_systemlist(str(kaldi / "kwslist.xml"))
    assert read.attributes["kwlist_filename"] == "kwlist.xml"
    first, second = read.detections.to_pylist()[:2]
    assert (first["doc_id"], first["channel"], first["start"], first["duration"]) == ("talk", 2, 1.0, 0.5)
    assert first["score"] == np.exp(-0.25)
    assert (second["start"], second["duration"]) == (12.64, 0.42)
    swsdist(
        *("calibrate", "-s", "kwslist.xml", *PLACES, "--method", "none", "--format", "kaldi", "--out", "again"),
        cwd=kaldi,
    )
    assert (kaldi / "again").read_text() == RESULTS


def test_results_as_kaldi_decides_them(kaldi: Path, swsdist: Command) -> None:
    """T 3600 and beta 999.9: thr = S / (T / beta + (beta - 1) / beta S), S with duplicates; the poorer duplicate goes."""
    arguments = ("-s", "results", *PLACES, "--method", "kaldi", "--seconds", "3600", "--protocol", "openkws13")
    said = swsdist("calibrate", *arguments, "--out", "kaldi.csv", cwd=kaldi).out
    assert "kaldi: Ntrue scale 1, beta 999.9, T 3600; 1 duplicates removed" in said
    found = listed(kaldi / "kaldi.csv").to_pylist()
    assert [(row["query_id"], row["start"]) for row in found] == [("KW-1", 1.0), ("KW-1", 12.64), ("KW-2", 12.65)]
    costs = {"KW-1": [0.25, 2.5, 3.0], "KW-2": [0.75]}
    for row, cost in zip(found, (0.25, 2.5, 0.75), strict=True):
        total = sum(np.exp(-one) for one in costs[row["query_id"]])
        limit, p = total / (3600 / 999.9 + 998.9 / 999.9 * total), np.exp(-cost)
        assert row["score"] == pytest.approx((1 - limit) * p / ((1 - limit) * p + limit * (1 - p)))
        assert row["decision"] == (p > limit)
    swsdist("calibrate", *arguments, "--keep-scores", "--out", "kept.csv", cwd=kaldi)
    assert [row["score"] for row in listed(kaldi / "kept.csv").to_pylist()] == pytest.approx(
        np.exp([-0.25, -2.5, -0.75])
    )
    swsdist("calibrate", *arguments, "--alpha", "9", "--out", "nine.csv", cwd=kaldi)
    assert sum(row["score"] for row in listed(kaldi / "nine.csv").to_pylist()) < sum(row["score"] for row in found)


def test_results_go_through_every_method(kaldi: Path, swsdist: Command) -> None:
    arguments = ("-s", "results", "--seconds", "3600", "--protocol", "openkws13")
    swsdist("calibrate", *arguments, "--method", "kst", "--out", "kst.csv", cwd=kaldi)
    swsdist("calibrate", *arguments, "--method", "none", "--out", "plain.csv", cwd=kaldi)
    expected = Thresholding("kst", 3600, 999.9).apply(listed(kaldi / "plain.csv"))
    found = listed(kaldi / "kst.csv")
    assert found["decision"].equals(expected["decision"])
    assert found["score"].to_pylist() == pytest.approx(expected["score"].to_pylist(), rel=1e-12)
    assert set(expected["doc_id"].to_pylist()) == {"1", "2"}  # without files an utterance is a document


@pytest.mark.parametrize(
    ("code", "arguments", "complaint"),
    [
        (
            3,
            ("-s", "results", "--kaldi-segments", "segments", "--method", "none"),
            "results, line 1: utterance '1' is not",
        ),
        (2, ("-s", "plain.csv", "--kaldi-segments", "segments", "--method", "none"), "plain.csv"),
        (3, ("-s", "plain.csv", "--from", "kaldi", "--method", "none"), "[malformed-line]"),
        (2, ("-s", "results", "--kaldi-frame-shift", "0", "--method", "none"), "the frame shift is 0.0 s"),
        (2, ("-s", "results", "--method", "none", "--fit", "oracle"), "fits nothing"),
        (2, ("-s", "results", "--method", "kaldi"), "[missing-input]"),
        (3, ("-s", "plain.csv", "--method", "none", "--format", "kaldi"), "has the score 7.0"),
    ],
)
def test_mistakes_with_results(
    kaldi: Path, swsdist: Command, code: int, arguments: tuple[str, ...], complaint: str
) -> None:
    (kaldi / "plain.csv").write_text("query_id,doc_id,start,end,score\nKW-1,talk,1,2,7\n")
    ended = swsdist("calibrate", *arguments, "--out", "x.csv", cwd=kaldi, code=code)
    assert complaint in ended.err
    assert "remedy: " in ended.err
    assert not (kaldi / "x.csv").exists()


def test_converting_keeps_decisions(place: Path, swsdist: Command) -> None:
    arguments = ("calibrate", "-s", "posteriors.csv", "--method", "sto", "--seconds", SECONDS, "--protocol", "sws2013")
    swsdist(*arguments, "--out", "decided.parquet", cwd=place)
    swsdist("calibrate", "-s", "decided.parquet", "--method", "none", "--out", "converted.csv", cwd=place)
    assert listed(place / "converted.csv").equals(listed(place / "decided.parquet"))


def study_of(place: Path, swsdist: Command, lists: str, points: str = "", code: int = 0, more: str = "") -> Ended:
    """Sweep over lists, with the study of KST and STO."""
    text = f"run: swept\nlists:\n  protocol: sws2013\n  {lists}\nmeasures: [atwv, atwv_pmiss, atwv_pfa]\nreport: kst\n"
    grid = points or "{calibrate.steps: [[kst], [sto]], calibrate.alpha: {from: 1, to: 3, step: 0.1}}"
    (place / "sweep.yaml").write_text(f"{text}oracle_kst: true\n{more}points:\n  grid: {grid}\n")
    return swsdist("sweep", "sweep.yaml", cwd=place, code=code)


def studied(place: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((place / "swept/sweeps/sweep/study/study.json").read_text())
    return values


ONE = "tasks: {one: {references: refs.csv, seconds: 3600, systems: {"


def test_a_study_of_three(place: Path, swsdist: Command) -> None:
    said = study_of(place, swsdist, f"{ONE}scores: scores.csv, second: other.csv, posteriors: posteriors.csv}}}}}}").out
    assert "average of 3" in said
    assert "Scores of 2 of 3 systems became probabilities by a logistic: crossfit" in said
    names = {"study.json", *(f"fig{k}.svg" for k in range(2, 9))}
    assert {path.name for path in (place / "swept/sweeps/sweep/study").iterdir()} == names
    values = studied(place)
    assert [one["name"] for one in values["systems"]] == ["scores", "second", "posteriors"]
    assert [one["logistic"] for one in values["systems"]] == ["crossfit", "crossfit", "none"]
    assert values["over_systems"]["wilcoxon"]["n"] == 3
    assert f"{values['atwv']['kst']:.4f}" in said
    table = pq.read_table(place / "swept/sweeps/sweep/points.parquet").to_pylist()
    assert len(table) == 3 * (2 * 21 + 1)
    assert [row["system"] for row in table if row["oracle"]] == ["scores", "second", "posteriors"]


def test_table_1_at_one_alpha_beside_the_curves(place: Path, swsdist: Command) -> None:
    tasks = f"{ONE}mine: scores.csv}}}}}}"
    study_of(place, swsdist, tasks, "{calibrate.steps: [[kst], [sto]], calibrate.alpha: [1.5]}")
    alone = studied(place)
    said = study_of(place, swsdist, tasks, more="report_alpha: 1.5\n").out
    values = studied(place)
    assert values["alpha_was_given"]
    assert values["best_alpha"] == {"kst": 1.5, "sto": 1.5}
    assert values["atwv"] == alone["atwv"]
    assert len(values["alphas"]) == len(values["atwv_by_alpha"]["kst"]) == 21
    assert values["systems"][0]["atwv"] == alone["systems"][0]["atwv"]
    assert f"{values['atwv']['kst']:.4f}" in said
    # The best of the curve is another one.
    assert max(values["atwv_by_alpha"]["kst"]) > values["atwv"]["kst"]


def test_a_sweep_over_a_list_and_calibrate_agree(place: Path, swsdist: Command) -> None:
    """Each point's ATWV is that of the list which `calibrate` writes, aligned anew and scored."""
    study_of(
        place, swsdist, f"{ONE}mine: scores.csv}}}}}}", "{calibrate.steps: [[kst], [sto]], calibrate.alpha: [1.3]}"
    )
    values = studied(place)
    assert values["best_alpha"] == {"kst": 1.3, "sto": 1.3}
    rows = pq.read_table(place / "swept/sweeps/sweep/points.parquet").to_pylist()
    swept = dict(zip(("kst", "sto", "oracle-kst"), (row["atwv"] for row in rows), strict=True))
    assert swept == values["atwv"]
    for method in swept:
        out = f"agree-{method}.xml"
        swsdist(*("calibrate", "-s", "scores.csv", "--method", method, "--alpha", 1.3, *TASK, "--out", out), cwd=place)
        assert scored(swsdist, place, out)["atwv"] == swept[method]


def test_a_study_of_two_tasks(place: Path, swsdist: Command) -> None:
    lists = (
        "tasks:\n"
        "    one: {references: refs.csv, seconds: 3600, systems: {a: scores.csv, b: other.csv}}\n"
        "    two: {references: refs.csv, seconds: 7200, systems: {a: posteriors.csv}}"
    )
    study_of(place, swsdist, lists)
    found = [(one["name"], one["task"], one["trials"]) for one in studied(place)["systems"]]
    assert found == [("one/a", "one", 3600), ("one/b", "one", 3600), ("two/a", "two", 7200)]


def test_a_study_of_one_says_what_is_not_defined(place: Path, swsdist: Command) -> None:
    said = study_of(place, swsdist, f"{ONE}mine: posteriors.csv}}}}}}").out
    assert "systems" in said
    assert "not defined (fewer than two pairs)" in said


@pytest.mark.usefixtures("doubled")
def test_points_of_lists_take_any_registered_step(place: Path, swsdist: Command) -> None:
    """And agree with `calibrate` and `score`, at the point's own beta too."""
    sweep = f"run: any\nlists:\n  protocol: sws2013\n  {ONE}mine: scores.csv}}}}}}\n"
    both = "measures: [atwv, atwv_pmiss, atwv_pfa]\npoints:\n  list:\n"
    steps = {"llr": "", "logistic,power,sto": ", calibrate.options.power.gamma: 0.5", "logistic": "", "doubled": ""}
    lines = [f"  - {{calibrate.steps: [{name}], score.beta: 50{more}}}\n" for name, more in steps.items()]
    (place / "any.yaml").write_text(sweep + both + "".join(lines))
    swsdist("sweep", "any.yaml", cwd=place)
    rows = pq.read_table(place / "any/sweeps/any/points.parquet").to_pylist()
    task = (*TASK, "--beta", "50")
    for name, row in zip(steps, rows, strict=True):
        method = f"{name},threshold" if name == "logistic" else name
        more = ("--set", "power.gamma=0.5") if "power" in name else ()
        swsdist("calibrate", "-s", "scores.csv", "--method", method, *more, *task, "--out", "any.xml", cwd=place)
        values = json.loads(swsdist("score", "-s", "any.xml", *task, "--json", cwd=place).out)["measures"]
        assert [row[key] for key in ("atwv", "atwv_pmiss", "atwv_pfa")] == pytest.approx(
            [values[key] for key in ("atwv", "atwv_pmiss", "atwv_pfa")], abs=1e-15
        )
        assert row["fit"] == ("none" if name == "doubled" else "crossfit")


@pytest.mark.parametrize(
    ("lists", "points", "complaint"),
    [
        ("tasks: {}", "", "lists.tasks: the setting is refused: Dictionary should have at least 1"),
        ("tasks: {a: {ecf: z}}", "", "lists.tasks.a.systems: missing key [missing-key]"),
        ("tasks: {a: {systems: {x: y}, rtm: z}}", "", "did you mean rttm? [unknown-key]"),
        (
            f"{ONE}mine: posteriors.csv}}}}}}",
            "{calibrate.alpha: [1, 2]}",
            "there is no calibrate.steps [missing-input]",
        ),
        (f"{ONE}mine: posteriors.csv}}}}}}", "{calibrate.alpa: [1, 2]}", "did you mean calibrate.alpha?"),
        (f"{ONE}mine: posteriors.csv}}}}}}", "{search.distance: [cosine]}", "search.distance [unused-option]"),
        (
            f"{ONE}mine: posteriors.csv}}}}}}",
            "{calibrate.steps: [[kst]], calibrate.alpha: [0]}",
            "0 is not allowed [invalid-value]",
        ),
        (f"{ONE}mine: scores.csv}}}}}}\n  fit: none", "", "[not-probabilities]"),
        (f"{ONE}mine: scores.csv}}}}}}", "{calibrate.steps: [[q-norm, logistic, kst]]}", "[needs-search]"),
        (f"{ONE}mine: gone.csv}}}}}}", "", "gone.csv"),
    ],
)
def test_mistakes_of_a_sweep_over_lists(place: Path, swsdist: Command, lists: str, points: str, complaint: str) -> None:
    ended = study_of(place, swsdist, lists, points, code=2)
    assert complaint in ended.err
    assert "remedy: " in ended.err
