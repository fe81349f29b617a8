"""Thresholds: fitted on other queries, applied, written and read back."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.calibrate.procedure import Procedure, decide, fit_procedure, fold_of
from swsdist.calibrate.steps.interface import STEPS_SCHEMA, TwvParameters
from swsdist.core.codes import score as codes
from swsdist.core.fingerprint import stable_hash
from swsdist.core.types import DETECTIONS, TRIALS
from tests.oracles import reduce as oracle
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


def test_folds_are_stable() -> None:
    """By the id alone, the same on every machine and for ever."""
    assert [fold_of(f"q{k:03d}", 5) for k in range(10)] == [stable_hash(f"fold q{k:03d}") % 5 for k in range(10)]
    assert [fold_of(f"q{k:03d}", 5) for k in range(1, 9)] == [0, 3, 4, 4, 3, 3, 1, 2]
    assert {fold_of(f"q{k}", 5) for k in range(100)} == set(range(5))
    assert fold_of("anything", 1) == 0


def test_one_threshold_on_all_and_none_without_others() -> None:
    trials = table([trial("a", 3.0, True), trial("a", 2.0, False), trial("b", 2.5, True), trial("b", 1.0, False)])
    found = fitted(trials, 1)
    assert (found.fit, found.thresholds) == ("oracle", (2.5,))
    assert found.apply(trials)["decision"].to_pylist() == [True, False, True, False]
    # A single query: its own fold has nobody to learn from, the others have it.
    found = fitted(trials.slice(0, 2), 5)
    assert found.fit == "crossfit"
    assert [value is None for value in found.thresholds] == [fold == fold_of("a", 5) for fold in range(5)]
    assert found.apply(trials.slice(0, 2))["decision"].to_pylist() == [False, False]


def test_decide_leaves_all_else() -> None:
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


# -- the file ---------------------------------------------------------------------------------------------------------


def test_a_run_reads_its_own_file_and_others_the_mean() -> None:
    given = {"queries": 3, "protocol": "sws2013"}
    one = Procedure((), thresholds=(1.5, None, float(np.nextafter(2.0, 3.0))), fit="crossfit", trained_on=given)
    assert Procedure.from_run(one.to_json()) == one
    assert json.loads(one.to_json())["schema"] == STEPS_SCHEMA
    one = Procedure((), thresholds=(1.0, None, 2.0), fit="crossfit", trained_on={"queries": 3})
    found = Procedure(()).with_file(one.to_json(), "there.json", thresholds=True)
    assert (found.fit, found.thresholds, found.trained_on) == ("file", (1.5,), {"queries": 3})


def test_wrong_files_are_refused() -> None:
    good = {"schema": STEPS_SCHEMA, "fit": "oracle", "steps": [], "thresholds": [1.0], "trained_on": {}}
    Procedure(()).with_file(json.dumps(good).encode(), "good.json", thresholds=True)
    thresholds: list[Any] = [[None, None], [], ["high"], 3, [float("nan")], [float("inf"), 1.0]]
    wrong = [json.dumps({**good, "thresholds": value}).encode() for value in thresholds]
    wrong += [json.dumps({**good, "schema": "swsdist-steps/2"}).encode(), b"", b"\xff", b"[1, 2]", b"{}"]
    wrong.append(json.dumps({key: value for key, value in good.items() if key != "trained_on"}).encode())
    for data in wrong:
        with raises(codes.NOT_FITTED_STEPS, where="wrong.json"):
            Procedure(()).with_file(data, "wrong.json", thresholds=True)
