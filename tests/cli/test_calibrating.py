"""`swsdist calibrate`, and `swsdist sweep` over lists, as a user types them, and that Python gives the same."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Command, Ended, untold

from swsdist.calibrate.procedure import Procedure
from swsdist.calibrate.steps.by_term import Thresholding
from swsdist.calibrate.steps.interface import Options, Step, TwvParameters, scores_of
from swsdist.core.codes import families
from swsdist.core.types import DETECTIONS
from swsdist.io.nist.systemlist import read_systemlist
from swsdist.io.tables import read_table
from swsdist.registry.entries import StepEntry
from swsdist.registry.registries import CALIBRATION
from tests.support.coded import says

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
    arguments = ("calibrate", "-s", "scores.csv", "--method", "kst", "--alpha", "1.2", *TASK)
    said = swsdist(*arguments, "--out", "kst.xml", "--save", "fitted.json", cwd=place).out
    for part in ("logistic: crossfit, p = sigmoid(", f"kst: alpha 1.2, beta {BETA:.5g}, T {SECONDS}", "(stdlist)"):
        assert part in said
    swsdist(*arguments, "--out", "kst.csv", cwd=place)
    fitted = Procedure.from_run((place / "fitted.json").read_bytes())
    assert ([step.name for step in fitted.steps], len(fitted.models[0])) == (["logistic", "kst"], 5)
    probable = fitted.before(1).scores(listed(place / "scores.csv"))
    found = listed(place / "kst.csv")
    assert found.equals(Thresholding("kst", SECONDS, BETA, 1.2).apply(probable))
    xml = read_systemlist(str(place / "kst.xml")).detections.select(found.column_names).cast(found.schema)
    order = [("query_id", "ascending"), ("start", "ascending")]
    assert xml.sort_by(order).to_pylist() == found.sort_by(order).to_pylist()
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
    swsdist("calibrate", "-s", "decided.csv", "--method", "none", "--out", "same.parquet", cwd=place)
    assert listed(place / "same.parquet").equals(decided)


def test_what_was_fitted_on_what_is_decided_is_an_oracle(place: Path, swsdist: Command) -> None:
    """An own file, too, of another list also, for it was fitted on the same occurrences; of other occurrences it is a file."""
    for name, how in (("posteriors.csv", ("oracle-kst",)), ("scores.csv", ("kst", "--fit", "oracle"))):
        said = swsdist("calibrate", "-s", name, "--method", *how, *TASK, "--out", "oracle.csv", cwd=place).out
        assert "ORACLE" in said
    text = (place / "refs.csv").read_text()
    (place / "elsewhere.csv").write_text(text.replace(",d", ",e").replace(",eoc_id", ",doc_id"))
    elsewhere = (*TASK[:1], "elsewhere.csv", *TASK[2:])
    for method in ("logistic", "threshold"):
        fitted = ("calibrate", "-s", "scores.csv", "--method", method, "--out", "o.csv")
        swsdist(*fitted, *TASK, "--save", "of.json", cwd=place)
        for name in ("scores.csv", "other.csv"):
            applied = ("calibrate", "-s", name, "--method", method, "--out", "o.csv", "--fit", "of.json")
            assert f"{method}: ORACLE" in swsdist(*applied, *TASK, cwd=place).out
        assert f"{method}: file" in swsdist(*applied, *elsewhere, cwd=place).out
        assert f"{method}: file" in swsdist(*applied, cwd=place).out


def test_a_run_is_taken_for_its_file(
    place: Path, swsdist: Command, first_run: object, corpus: Path, tmp_path: Path
) -> None:
    arguments = ("calibrate", "-s", "scores.csv", "--method", "threshold", *TASK)
    swsdist(*arguments, "--fit", f"{corpus}/run", "--out", tmp_path / "by_run.csv", cwd=place)
    (file,) = (corpus / "run" / "calibration").glob("*.json")
    swsdist(*arguments, "--fit", file, "--out", tmp_path / "by_file.csv", cwd=place)
    assert (tmp_path / "by_run.csv").read_bytes() == (tmp_path / "by_file.csv").read_bytes()
    told = swsdist(*arguments, "--fit", ".", "--out", tmp_path / "x.csv", cwd=place, code=2).err
    assert says(told, families.WRONG_KIND)


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


def test_a_threshold_decides_behind_steps_or_alone(place: Path, swsdist: Command) -> None:
    """Alone it leaves the scores, and is applied from its file."""
    arguments = ("calibrate", "-s", "scores.csv", "--fit", "oracle", *TASK)
    said = swsdist(*arguments, "--method", "logistic,threshold", "--save", "b.json", "--out", "b.csv", cwd=place).out
    assert "threshold: ORACLE" in said
    fitted = Procedure.from_run((place / "b.json").read_bytes())
    assert listed(place / "b.csv").equals(fitted.apply(listed(place / "scores.csv")))
    alone = ("--method", "threshold", "--out", "t.xml", "--format", "kwslist", "--save", "t.json")
    swsdist(*arguments, *alone, cwd=place)
    for name in ("b.csv", "t.xml"):
        values = scored(swsdist, place, name)
        assert values["atwv"] == pytest.approx(values["mtwv"], abs=1e-12)
    swsdist(*("calibrate", "-s", "t.xml", "--method", "threshold", "--fit", "t.json", "--out", "again.xml"), cwd=place)
    assert (place / "again.xml").read_bytes() == (place / "t.xml").read_bytes()


def test_mistakes_are_told(place: Path, swsdist: Command) -> None:
    task = "--references refs.csv --seconds 3600 --protocol sws2013"
    cases = {
        "kst --seconds 3600": "[missing-input]",
        "kst --fit gone.json --seconds 1": "[missing-file]",
        "logistic --fit none": "neither fitted nor read",
        "threshold": "a threshold is fitted on true occurrences",
        f"threshold {task} --out x.txt": "[unknown-name]",
        f"q-norm {task}": "[needs-search]",
        f"fusion {task}": "fusion is of the scores of several systems",
        f"llr,kst {task}": "kst takes scores of the kind posterior, but comes after llr",
        f"kst,logistic {task}": "[not-probabilities]",
        f"llr --set llr.covariates=[mean] {task}": "cost-sums of the search",
        f"llr --set kst.alpha=2 {task}": "options are given for kst",
        f"llr --set llr.curv=line {task}": "its options: covariates, curve",
        "kst -s posteriors.csv": "[missing-input]",
        "oracle-kst -s posteriors.csv --seconds 36": "oracle-kst needs the true occurrences",
    }
    typed = {f"calibrate -s scores.csv --out x.csv --method {words}": parts for words, parts in cases.items()}
    assert untold(swsdist, typed, place) == {}
    assert not list(place.glob("*.partial")) + list(place.glob(".*.partial"))


RESULTS = """\
KW-1 1 100 150 0.25
KW-1 2 30 72 2.5
KW-1 2 31 70 3.0
KW-2 2 31 71 0.75
"""
PLACES = ("--kaldi-utter-id", "utter_id", "--kaldi-segments", "segments", "--kaldi-utter-map", "utter_map")


@pytest.fixture
def kaldi(tmp_path: Path) -> Path:
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
    assert "0 YES, 0 NO, 4 without decision" in said
    read = read_systemlist(str(kaldi / "kwslist.xml"))
    assert read.attributes["kwlist_filename"] == "kwlist.xml"
    names = ("doc_id", "channel", "start", "duration", "score")
    first, second = ([row[name] for name in names] for row in read.detections.to_pylist()[:2])
    assert (first, second[2:4]) == (["talk", 2, 1.0, 0.5, np.exp(-0.25)], [12.64, 0.42])
    back = ("calibrate", "-s", "kwslist.xml", *PLACES, "--method", "none", "--format", "kaldi", "--out", "again")
    swsdist(*back, cwd=kaldi)
    assert (kaldi / "again").read_text() == RESULTS


def test_results_as_kaldi_decides_them(kaldi: Path, swsdist: Command) -> None:
    """Thresholds are of sums with duplicates; the poorer duplicate goes."""
    arguments = ("-s", "results", *PLACES, "--method", "kaldi", "--seconds", "3600", "--protocol", "openkws13")
    said = swsdist("calibrate", *arguments, "--out", "kaldi.csv", cwd=kaldi).out
    assert "kaldi: Ntrue scale 1, beta 999.9, T 3600; 1 duplicates removed" in said
    found = listed(kaldi / "kaldi.csv").to_pylist()
    assert [(row["query_id"], row["start"]) for row in found] == [("KW-1", 1.0), ("KW-1", 12.64), ("KW-2", 12.65)]
    total, p = sum(np.exp([-0.25, -2.5, -3.0])), np.exp(-0.25)
    limit = total / (3600 / 999.9 + 998.9 / 999.9 * total)
    assert found[0]["score"] == pytest.approx((1 - limit) * p / ((1 - limit) * p + limit * (1 - p)))
    assert [row["decision"] for row in found] == [True, False, True]
    scores = []
    for more in (("--keep-scores",), ("--alpha", "9")):
        swsdist("calibrate", *arguments, *more, "--out", "more.csv", cwd=kaldi)
        scores.append([row["score"] for row in listed(kaldi / "more.csv").to_pylist()])
    assert scores[0] == pytest.approx(np.exp([-0.25, -2.5, -0.75]))
    assert sum(scores[1]) < sum(row["score"] for row in found)


def test_mistakes_with_results(kaldi: Path, swsdist: Command) -> None:
    (kaldi / "plain.csv").write_text("query_id,doc_id,start,end,score\nKW-1,talk,1,2,7\n")
    broken = {"-s plain.csv --from kaldi --method none": "[malformed-line]"}
    wrong = {
        "-s plain.csv --kaldi-segments segments --method none": "plain.csv",
        "-s results --kaldi-frame-shift 0 --method none": "the frame shift is 0.0 s",
        "-s results --method none --fit oracle": "fits nothing",
        "-s results --method kaldi": "[missing-input]",
    }
    for code, cases in ((3, broken), (2, wrong)):
        typed = {f"calibrate {words} --out x.csv": parts for words, parts in cases.items()}
        assert untold(swsdist, typed, kaldi, code) == {}
    assert not (kaldi / "x.csv").exists()


def study_of(place: Path, swsdist: Command, lists: str, points: str = "", code: int = 0, more: str = "") -> Ended:
    text = f"run: swept\nlists:\n  protocol: sws2013\n  {lists}\nmeasures: [atwv, atwv_pmiss, atwv_pfa]\nreport: kst\n"
    grid = points or "{calibrate.steps: [[kst], [sto]], calibrate.alpha: {from: 1, to: 3, step: 0.1}}"
    (place / "sweep.yaml").write_text(f"{text}oracle_kst: true\n{more}points:\n  grid: {grid}\n")
    return swsdist("sweep", "sweep.yaml", cwd=place, code=code)


def studied(place: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((place / "swept/sweeps/sweep/study/study.json").read_text())
    return values


ONE = "tasks: {one: {references: refs.csv, seconds: 3600, systems: {"


def test_a_study_of_three(place: Path, swsdist: Command) -> None:
    two = "two: {references: refs.csv, seconds: 7200, systems: {a: posteriors.csv}}}"
    said = study_of(place, swsdist, f"{ONE}scores: scores.csv, second: other.csv}}}}, {two}").out
    names = {"study.json", *(f"fig{k}.svg" for k in range(2, 9))}
    assert {path.name for path in (place / "swept/sweeps/sweep/study").iterdir()} == names
    values = studied(place)
    found = [(one["name"], one["logistic"], one["task"], one["trials"]) for one in values["systems"]]
    of_one = [(f"one/{name}", "crossfit", "one", 3600) for name in ("scores", "second")]
    assert found == [*of_one, ("two/a", "none", "two", 7200)]
    assert values["over_systems"]["wilcoxon"]["n"] == 3
    assert f"{values['atwv']['kst']:.4f}" in said
    table = pq.read_table(place / "swept/sweeps/sweep/points.parquet").to_pylist()
    assert len(table) == 3 * (2 * 21 + 1)
    assert [row["system"] for row in table if row["oracle"]] == ["one/scores", "one/second", "two/a"]
    # At one alpha the table is of that.
    study_of(place, swsdist, f"{ONE}mine: scores.csv}}}}}}", more="report_alpha: 1.5\n")
    assert studied(place)["best_alpha"] == {"kst": 1.5, "sto": 1.5}


@pytest.mark.usefixtures("doubled")
def test_points_of_lists_take_any_registered_step(place: Path, swsdist: Command) -> None:
    names = ("atwv", "atwv_pmiss", "atwv_pfa")
    steps = {"llr": "", "logistic,power,sto": ", calibrate.options.power.gamma: 0.5", "logistic": "", "doubled": ""}
    points = [f"  - {{calibrate.steps: [{name}], score.beta: 50{more}}}\n" for name, more in steps.items()]
    (place / "any.yaml").write_text(
        f"run: any\nlists:\n  protocol: sws2013\n  {ONE}mine: scores.csv}}}}}}\n"
        f"measures: [{', '.join(names)}]\npoints:\n  list:\n{''.join(points)}"
    )
    swsdist("sweep", "any.yaml", cwd=place)
    rows = pq.read_table(place / "any/sweeps/any/points.parquet").to_pylist()
    task = (*TASK, "--beta", "50")
    for name, row in zip(steps, rows, strict=True):
        method = f"{name},threshold" if name == "logistic" else name
        more = ("--set", "power.gamma=0.5") if "power" in name else ()
        swsdist("calibrate", "-s", "scores.csv", "--method", method, *more, *task, "--out", "any.xml", cwd=place)
        values = json.loads(swsdist("score", "-s", "any.xml", *task, "--json", cwd=place).out)["measures"]
        assert [row[key] for key in names] == pytest.approx([values[key] for key in names], abs=1e-15)
        assert row["fit"] == ("none" if name == "doubled" else "crossfit")


def test_mistakes_of_a_sweep_over_lists(place: Path, swsdist: Command) -> None:
    likely, scores = f"{ONE}mine: posteriors.csv}}}}}}", f"{ONE}mine: scores.csv}}}}}}"
    zero = "{calibrate.steps: [[kst]], calibrate.alpha: [0]}"
    for lists, points, complaint in (
        ("tasks: {}", "", "lists.tasks: the setting is refused: Dictionary should have at least 1"),
        ("tasks: {a: {systems: {x: y}, rtm: z}}", "", "did you mean rttm? [unknown-key]"),
        (likely, "{calibrate.alpha: [1, 2]}", "there is no calibrate.steps [missing-input]"),
        (likely, "{search.distance: [cosine]}", "search.distance [unused-option]"),
        (likely, zero, "0 is not allowed [invalid-value]"),
        (f"{scores}\n  fit: none", "", "[not-probabilities]"),
        (scores, "{calibrate.steps: [[q-norm, logistic, kst]]}", "[needs-search]"),
        (f"{ONE}mine: gone.csv}}}}}}", "", "gone.csv"),
    ):
        told = study_of(place, swsdist, lists, points, code=2).err
        assert complaint in told
        assert "remedy: " in told
