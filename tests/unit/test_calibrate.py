"""Thresholds, probabilities, KST and STO: fitted on other queries, applied, in a run and alone, written and read back."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

import swsdist
from swsdist.api import RunResult
from swsdist.calibrate.procedure import Procedure, by_fold, decide, fit_procedure, fold_of, make_steps
from swsdist.calibrate.steps.by_term import Thresholding
from swsdist.calibrate.steps.interface import STEPS_SCHEMA, TwvParameters
from swsdist.calibrate.steps.logistic import Logistic, LogisticStep, fit_logistic
from swsdist.config import config_from_dict
from swsdist.core.codes import config as registry_codes
from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.fingerprint import stable_hash
from swsdist.core.types import DETECTIONS, TRIALS
from swsdist.kernels.regression import Labelled
from swsdist.registry.entries import StepEntry, decision_dependencies, misfit
from swsdist.registry.registries import CALIBRATION
from swsdist.score.measures.curve import Counts
from tests.oracles import reduce as oracle
from tests.oracles.thresholds import fit_threshold
from tests.support.coded import raises

NUMBER_OF_TRIALS, BETA = 1000, 50.0


def trial(query_id: str, score: float | None, true: bool) -> dict[str, Any]:
    span = {"start": 0.0, "end": 1.0} if score is not None else {}
    reference = {"ref_start": 0.0, "ref_end": 1.0} if true else {}
    row = dict.fromkeys(TRIALS.names) | {"query_id": query_id, "doc_id": "d", "channel": 1, "score": score}
    return {**row, **span, **reference}


def table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, TRIALS)


def fitted(trials: pa.Table, folds: int) -> Procedure:
    point = TwvParameters(NUMBER_OF_TRIALS, BETA)
    return fit_procedure(lambda: [trials], Procedure(()), folds=folds, own_threshold=True, point=point, trained_on={})


@st.composite
def lists(draw: st.DrawFn) -> list[dict[str, Any]]:
    rows = []
    for k in range(draw(st.integers(1, 12))):
        for score, true in draw(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), max_size=6)):
            rows.append(trial(f"q{k}", score / 2, true))
        rows += [trial(f"q{k}", None, True)] * draw(st.integers(0, 2))
    return rows


@settings(max_examples=100, deadline=None)
@given(rows=lists(), folds=st.integers(2, 6))
def test_crossfit_is_the_oracle(rows: list[dict[str, Any]], folds: int) -> None:
    trials = table(rows)
    found = fitted(trials, folds).apply(trials)["decision"].to_pylist()
    assert found == oracle.crossfit_decisions(rows, folds, number_of_trials=NUMBER_OF_TRIALS, beta=BETA)


@settings(max_examples=40, deadline=None)
@given(rows=lists(), folds=st.integers(2, 6))
def test_a_fold_learns_nothing_from_itself(rows: list[dict[str, Any]], folds: int) -> None:
    """Whatever is true of a fold's own queries, its threshold stays."""
    before = fitted(table(rows), folds)
    for fold in range(folds):
        turned = [
            trial(row["query_id"], row["score"], row["ref_start"] is None or row["score"] is None)
            if fold_of(row["query_id"], folds) == fold
            else row
            for row in rows
        ]
        assert fitted(table(turned), folds).thresholds[fold] == before.thresholds[fold]


def test_folds_are_stable_and_decide_leaves_all_else() -> None:
    """By the id alone, the same on every machine and for ever."""
    assert [fold_of(f"q{k:03d}", 5) for k in range(10)] == [stable_hash(f"fold q{k:03d}") % 5 for k in range(10)]
    assert [fold_of(f"q{k:03d}", 5) for k in range(1, 9)] == [0, 3, 4, 4, 3, 3, 1, 2]
    assert {fold_of(f"q{k}", 5) for k in range(100)} == set(range(5))
    assert fold_of("anything", 1) == 0
    trials = table([trial("a", 3.0, True), trial("a", 2.0, False), trial("b", 2.5, True), trial("b", 1.0, False)])
    found = fitted(trials, 1)
    assert (found.fit, found.thresholds) == ("oracle", (2.5,))
    assert found.apply(trials)["decision"].to_pylist() == [True, False, True, False]
    # A single query: its own fold has nobody to learn from, the others have it.
    found = fitted(trials.slice(0, 2), 5)
    assert found.fit == "crossfit"
    assert [value is None for value in found.thresholds] == [fold == fold_of("a", 5) for fold in range(5)]
    assert found.apply(trials.slice(0, 2))["decision"].to_pylist() == [False, False]
    trials = table([trial("a", 1.0, True), trial("a", None, True), trial("b", -1.0, False)])
    found = decide(trials, (0.0,))
    assert found.schema.equals(TRIALS)
    assert found.drop_columns("decision").equals(trials.drop_columns("decision"))
    given = [decide(found, limits)["decision"].to_pylist() for limits in ((0.0,), (1.0,), None)]
    assert given == [[True, None, False], [True, None, False], [None, None, None]]
    found = [trial("a", score, False) for score in (0.5, -0.5)]
    rows = [{name: row.get(name) for name in DETECTIONS.names} for row in found]
    detections = pa.Table.from_pylist(rows, DETECTIONS)
    assert decide(detections, (0.0,))["decision"].to_pylist() == [True, False]
    for limits in ((0.0,), None):
        assert decide(DETECTIONS.empty_table(), limits).schema.equals(DETECTIONS)


def test_a_run_reads_its_own_file_others_the_mean_and_no_wrong_one() -> None:
    given = {"queries": 3, "protocol": "sws2013"}
    one = Procedure((), thresholds=(1.5, None, float(np.nextafter(2.0, 3.0))), fit="crossfit", trained_on=given)
    assert Procedure.from_run(one.to_json()) == one
    assert json.loads(one.to_json())["schema"] == STEPS_SCHEMA
    one = Procedure((), thresholds=(1.0, None, 2.0), fit="crossfit", trained_on={"queries": 3})
    found = Procedure(()).with_file(one.to_json(), "there.json", thresholds=True)
    assert (found.fit, found.thresholds, found.trained_on) == ("file", (1.5,), {"queries": 3})
    good = {"schema": STEPS_SCHEMA, "fit": "oracle", "steps": [], "thresholds": [1.0], "trained_on": {}}
    Procedure(()).with_file(json.dumps(good).encode(), "good.json", thresholds=True)
    thresholds: list[Any] = [[None, None], [], ["high"], 3, [float("nan")], [float("inf"), 1.0]]
    wrong = [json.dumps({**good, "thresholds": value}).encode() for value in thresholds]
    wrong += [json.dumps({**good, "schema": "swsdist-steps/2"}).encode(), b"", b"\xff", b"[1, 2]", b"{}"]
    wrong.append(json.dumps({key: value for key, value in good.items() if key != "trained_on"}).encode())
    for data in wrong:
        with raises(codes.NOT_FITTED_STEPS, where="wrong.json"):
            Procedure(()).with_file(data, "wrong.json", thresholds=True)


# On a corpus as small as this some folds learn that higher scores are less likely.
pytestmark = [pytest.mark.filterwarnings("ignore:.*negative-slope"), pytest.mark.xdist_group("calibrate-steps")]

RATE = 8000


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Eight queries of coloured noise, each planted in two of six documents, loudly or faintly."""
    root = tmp_path_factory.mktemp("chain")
    rng = np.random.default_rng(8)
    words = [np.cumsum(rng.normal(size=round(0.4 * RATE))) * 0.003 for _ in range(8)]
    documents = [rng.normal(scale=0.05, size=3 * RATE) for _ in range(6)]
    refs = ["query_id,doc_id,start,end"]
    for k, word in enumerate(words):
        soundfile.write(root / f"q{k}.wav", word.clip(-1, 1), RATE)
        for d, start, loudness in ((k % 6, 0.2 + 0.6 * (k % 4), 1.0), ((k + 2) % 6, 0.5 + 0.6 * (k % 4), 0.2)):
            first = round(start * RATE)
            documents[d][first : first + len(word)] += word * loudness
            refs.append(f"q{k},d{d},{start:.1f},{start + 0.4:.1f}")
    for d, samples in enumerate(documents):
        soundfile.write(root / f"d{d}.wav", samples.clip(-1, 1), RATE)
    (root / "docs.csv").write_text("doc_id,path\n" + "".join(f"d{d},d{d}.wav\n" for d in range(6)))
    (root / "queries.csv").write_text("query_id,path\n" + "".join(f"q{k},q{k}.wav\n" for k in range(8)))
    (root / "refs.csv").write_text("\n".join(refs) + "\n")
    return root


def run(place: Path, *sets: str, references: bool = True, protocol: str = "sws2013", **calibrate: Any) -> RunResult:
    config: dict[str, Any] = {
        "run": str(place / "run"),
        "corpus": {"documents": str(place / "docs.csv"), "queries": str(place / "queries.csv")},
        "queries": {"trim": "none"},  # made-up noise is no speech
        "features": {"options": {"sample_rate": RATE, "n_fft": 256, "win_length": 200, "hop_length": 80}},
        "calibrate": calibrate,
        "score": {"beta": 1.0, "protocol": protocol},
        "report": {"exports": ["stdlist"]},
        "executor": {"kind": "serial"},
    }
    if references:
        config["corpus"]["references"] = str(place / "refs.csv")
    return swsdist.run(config, sets=sets)


STEPS = {"none": [], "q-norm": ["q-norm"], "logistic": ["q-norm", "logistic"]}
STEPS |= {"kst": [*STEPS["logistic"], "kst"], "sto": [*STEPS["logistic"], "sto"]}


def calibration_file(result: RunResult) -> Path:
    (receipt,) = result.outcome.chain_run.outcomes["fit"].receipts
    return Path(result.folder) / receipt.outputs[0].name


def decided(result: RunResult) -> set[tuple[Any, ...]]:
    frame = result.detections()
    return set(zip(frame["query_id"], frame["score"], frame["decision"], strict=True))


def test_a_report_says_what_decisions_looked_at(place: Path) -> None:
    for fit, references, seen in (
        ("none", True, ("own query",)),
        ("crossfit", True, ("own query", "other queries", "references")),
        ("crossfit", False, ("own query",)),  # nothing was fitted
    ):
        (place / "run" / "report.json").unlink(missing_ok=True)  # an earlier one, of the same config, would stay
        result = run(place, fit=fit, references=references)
        assert result.report is not None
        assert result.report.looked_at == seen
        assert json.loads((place / "run" / "report.json").read_text())["looked_at"] == list(seen)
        if fit == "none":
            assert {decision for _, _, decision in decided(result)} == {None}
            assert (result.measures()["atwv"], result.measures()["mtwv"] > 0) == (None, True)
    assert {decision for _, _, decision in decided(result)} == {None}
    assert result.measures() == {}


@pytest.mark.slow
def test_a_file_decides_as_it_was_fitted(place: Path, tmp_path: Path) -> None:
    """An oracle's file gives the same decisions; a crossfit's its mean; references are not needed."""
    oracle = run(place, fit="oracle")
    measures = oracle.measures()
    assert (measures["calibration"], measures["atwv"]) == ("oracle", pytest.approx(measures["mtwv"], abs=1e-12))
    assert {decision for _, _, decision in decided(oracle)} == {True, False}
    kept = tmp_path / "kept.json"
    kept.write_bytes(calibration_file(oracle).read_bytes())
    by_file = run(place, fit=str(kept))
    # Of what is scored, and so called; else it is "file".
    assert by_file.measures()["calibration"] == "oracle"
    bare = run(place, fit=str(kept), references=False)
    assert decided(by_file) == decided(bare) == decided(oracle)
    crossfit = json.loads(calibration_file(run(place, fit="crossfit")).read_bytes())
    (tmp_path / "folds.json").write_text(json.dumps(crossfit))
    mean = np.mean([value for value in crossfit["thresholds"] if value is not None])
    assert run(place, fit=str(tmp_path / "folds.json")).measures()["atwv_thresholds"] == [pytest.approx(mean)]
    given = {"schema": "swsdist-steps/1", "fit": "oracle", "steps": [], "trained_on": {}}
    for threshold, yes in ((-1e9, {True}), (1e9, {False})):  # a changed file decides anew
        kept.write_text(json.dumps({**given, "thresholds": [threshold]}))
        assert {decision for _, _, decision in decided(run(place, fit=str(kept)))} == yes


def test_what_cannot_be_fitted_is_told_at_the_door(place: Path) -> None:
    (place / "wrong.json").write_text('{"schema": "swsdist-calibration/1"}')
    first, *_ = (place / "refs.csv").read_text().splitlines()
    (place / "none.csv").write_text(f"{first}\n")
    for code, how, sets in (
        (families.UNFITTED, {"steps": STEPS["kst"], "fit": "none"}, []),
        (families.UNFITTED, {"steps": STEPS["sto"], "references": False}, []),
        (codes.NOT_FITTED_STEPS, {"steps": STEPS["sto"], "fit": str(place / "wrong.json")}, []),
        (codes.NOT_FITTED_STEPS, {"fit": str(place / "wrong.json")}, []),
        (families.MISSING_FILE, {"fit": str(place / "gone.json")}, []),
        (families.NOTHING_TO_FIT, {"steps": STEPS["kst"]}, [f"corpus.references={place / 'none.csv'}"]),
    ):
        with raises(code):
            run(place, *sets, **how)


def aligned(seed: int) -> pa.Table:
    """Scores of twelve queries, hits higher by two."""
    rng = np.random.default_rng(seed)
    rows = []
    for query in range(12):
        for hit in rng.random(20) < 0.3:
            score = round(float(rng.normal(2.0 * hit, 1.0)), 3)
            row = {"query_id": f"q{query}", "doc_id": "d", "channel": 1, "start": 1.0, "end": 2.0, "score": score}
            rows.append({**row, "ref_start": 1.0 if hit else None})
    return pa.Table.from_pylist(rows, TRIALS)


def test_nothing_of_a_query_reaches_its_own_threshold_whatever_the_order_of_parts() -> None:
    """A fold's threshold is fitted on the others' scores as its own logistic, fitted on the others, makes them."""
    whole = aligned(1)
    parts = dict(by_fold(whole, 4))

    def each() -> Iterator[pa.Table]:
        yield from parts.values()

    how, point = Thresholding("kst", 3000, 20.0), TwvParameters(3000, 20.0)
    found = fit_procedure(each, procedure("logistic", "kst"), folds=4, own_threshold=False, point=point, trained_on={})
    for fold in parts:
        others = pa.concat_tables([rows for k, rows in parts.items() if k != fold])
        logistic = fit_logistic(Labelled.of(others))
        assert found.models[0][fold] == {"slope": logistic.slope, "offset": logistic.offset}
        scores = how.apply(through(logistic, others))
        assert found.thresholds[fold] == fit_threshold(Counts.of(scores), trials=3000, beta=20.0)
    assert found.trained_on == {"queries": 12}
    scores = found.apply(whole)["score"].to_numpy()
    assert (found.low, found.high) == (scores.min(), scores.max())
    assert Procedure.from_run(found.to_json()).to_json() == found.to_json()
    assert Procedure.from_run(found.to_json()).apply(whole).equals(found.apply(whole))
    parts, point = [rows for _, rows in by_fold(aligned(2), 4)], TwvParameters(3000, 20.0)
    how: dict[str, Any] = {"folds": 4, "own_threshold": True, "point": point, "trained_on": {}}
    found = [fit_procedure(lambda way=way: iter(parts[::way]), procedure("logistic"), **how) for way in (1, -1)]
    assert found[0].to_json() == found[1].to_json()
    assert len(found[0].thresholds) == 4


def through(logistic: Logistic, table: pa.Table) -> pa.Table:
    """A list with probabilities in the place of its scores; misses stay."""
    place, scores = table.schema.get_field_index("score"), table["score"].to_pylist()
    values = [None if score is None else float(logistic.probability(score)) for score in scores]
    return table.set_column(place, table.schema.field(place), pa.array(values, pa.float64()))


def procedure(*names: str, **options: Any) -> Procedure:
    return Procedure(make_steps(names, options), TwvParameters(3000, 20.0))


def test_a_second_fitted_step_learns_what_the_first_makes_of_others() -> None:
    """A step that is fitted on what another one gives sees, for a fold, the others as that fold's first step makes them."""
    whole, point = aligned(3), TwvParameters(3000, 20.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LogisticStep, "name", "again")
        CALIBRATION.add("again", CALIBRATION["logistic"])
        try:
            steps = procedure("logistic").steps + procedure("again").steps
        finally:
            CALIBRATION.remove("again")
    found = fit_procedure(lambda: [whole], Procedure(steps), folds=3, own_threshold=True, point=point, trained_on={})
    for fold in range(3):
        others = pa.concat_tables([rows for k, rows in by_fold(whole, 3) if k != fold])
        first = fit_logistic(Labelled.of(others))
        second = fit_logistic(Labelled.of(through(first, others)))
        assert found.models[1][fold] == {"slope": second.slope, "offset": second.offset}


def test_thresholds_of_a_file() -> None:
    one = {"slope": 1.0, "offset": 0.0}
    steps = replace(procedure("logistic", "kst"), models=((one,), ()), thresholds=(0.4, None, 0.6))
    again = procedure("logistic", "kst").with_file(steps.to_json(), "there", thresholds=True)
    assert again.thresholds == (0.5,)
    assert (again.fit, again.models) == ("file", ((one,), ()))
    with raises(codes.NOT_FITTED_STEPS, reason="no threshold"):
        steps.with_file(replace(steps, thresholds=()).to_json(), "there", thresholds=True)
    with raises(families.MISMATCH, fitted="logistic, kst (alpha 1.5)", steps="logistic, kst (alpha 2.0)"):
        procedure("logistic", "kst", kst={"alpha": 2.0}).with_file(steps.to_json(), "there", thresholds=True)
    folds = ({"slope": 1.0, "offset": 0.0}, {"slope": 3.0, "offset": -1.0})
    saved = replace(procedure("logistic"), models=(folds,)).to_json()
    with raises(families.MISMATCH, fitted="logistic", steps="logistic, kst (alpha 1.5)"):
        steps.with_file(saved, "there", thresholds=True)
    assert steps.with_file(saved, "there", thresholds=False).models[0] == ({"slope": 2.0, "offset": -0.5},)


def entries(*names: str) -> dict[str, StepEntry]:
    return {name: CALIBRATION[name] for name in names}


def test_steps_fit_together_and_say_what_they_want() -> None:
    def fits(*steps: str, score: Any = "cost") -> bool:
        return misfit(steps, entries(*steps), score) is None

    assert fits()
    assert fits("q-norm", "logistic", "kst")
    assert fits("logistic", "sto", score="llr")
    assert fits("kst", score="posterior")
    assert fits("kst", "logistic", score="posterior")
    assert not fits("kst")  # which takes posteriors
    assert not fits("kst", "sto", score="posterior")
    assert not fits("q-norm", "kst", score="posterior")
    assert not fits("logistic", "q-norm")  # which is of the scores that the search gave
    assert not fits("logistic", "logistic")

    def seen(*steps: str, fit: str = "crossfit", threshold: Any = "own") -> tuple[str, ...]:
        return decision_dependencies(steps, entries(*steps), fit=fit, threshold=threshold)

    everything = ("own query", "other queries", "references")
    assert seen("q-norm") == everything  # the threshold
    assert seen("q-norm", fit="none") == seen("q-norm", fit="a.json") == ("own query",)
    assert seen("kst") == ("own query",)
    assert seen("kst", threshold="fitted") == everything
    assert seen("q-norm", "logistic", "kst") == everything
    assert seen("q-norm", "logistic", "kst", fit="a.json") == ("own query",)

    def calibrate(**given: Any) -> Any:
        least = {"run": "r", "corpus": {"documents": "d.csv", "references": "r.csv"}}
        return config_from_dict({**least, "calibrate": given}, ".").calibrate

    for new in STEPS.values():
        config = calibrate(steps=new)
        assert (config.steps, config.unfitted) == (tuple(new), tuple(new[:1]))
        assert config.statistics == (("cost-sums",) if new else ())
    with raises(families.UNKNOWN_NAME, step="qnorm", meant="; did you mean q-norm?"):
        calibrate(steps=["qnorm"])
    for field in ("znorm", "z-norm", "Z_norm"):
        with raises(families.UNKNOWN_NAME, step=field) as caught:
            calibrate(steps=[field])
        assert "q-norm (z-norm per query), or zt-norm" in str(caught.value.values["meant"])
    with raises(families.UNUSED_OPTION, step="sto"):
        calibrate(options={"sto": {"alpha": 2}})
    assert make_steps(["kst"], {"kst": {"alpha": 3}}, alpha=2.0)[0].options.alpha == 3
    assert make_steps(["kst"], {}, alpha=2.0)[0].options.alpha == 2
    with raises(registry_codes.UNKNOWN_ENTRY_OPTION, name="kst", option="alhpa", options="alpha"):
        make_steps(["kst"], {"kst": {"alhpa": 3}})
