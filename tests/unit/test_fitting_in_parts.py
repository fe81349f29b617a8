"""Counts of parts give the thresholds of counts in memory, to the last bit; coarse rows add in any order."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from swsdist.calibrate.procedure import Procedure, by_fold, count, fit_procedure, from_bytes, threshold_of, to_bytes
from swsdist.calibrate.steps.interface import TwvParameters
from swsdist.core.types import TRIALS
from swsdist.kernels import regression
from swsdist.kernels.regression import LABELLED_ROWS, Labelled
from swsdist.score.events import of_table
from swsdist.score.measures.curve import Counts, total
from tests.oracles.thresholds import fit_threshold


def _aligned(queries: int, rows: int, seed: int, decimals: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    size = queries * rows
    true = rng.random(size) < 0.1
    score = np.round(np.where(true, rng.beta(4, 2, size), rng.beta(2, 4, size)), decimals)
    names, needed = [f"q{seed}-{k % queries}" for k in range(size)], {"doc_id": "d", "channel": 1}
    places = [0.0 if hit else None for hit in true]
    columns = [pa.array(names), pa.array(score), pa.array(places, pa.float64())]
    table = pa.table(columns, names=["query_id", "score", "ref_start"]).to_pylist()
    return pa.Table.from_pylist([needed | row for row in table], TRIALS)


@pytest.mark.parametrize(("decimals", "folds"), [(2, 4), (15, 1), (15, 4)])
def test_thresholds_are_those_of_counts_in_memory(decimals: int, folds: int) -> None:
    tables = [_aligned(6, 40, seed, decimals) for seed in range(24)]
    memory: dict[int, Counts] = {}
    for table in tables:
        for fold, rows in by_fold(table, folds):
            memory[fold] = memory.get(fold, Counts.zero()) + Counts.of(rows)
    for beta in (0.5, 20.0, 1e6):
        others = [total(counts for k, counts in memory.items() if folds == 1 or k != fold) for fold in range(folds)]
        expected = tuple(fit_threshold(counts, trials=100_000, beta=beta) for counts in others)
        how: dict[str, Any] = {
            "own_threshold": True,
            "point": TwvParameters(100_000, beta),
            "trained_on": {"of": "these"},
        }
        found = fit_procedure(lambda: tables, Procedure(()), folds=folds, **how)
        assert found.thresholds == expected
        assert found.trained_on == {"of": "these", "queries": 6 * len(tables)}


def test_nothing_to_learn_from() -> None:
    for trials in (10, 1):
        assert threshold_of([], [], TwvParameters(trials, 1.0)) is None
    empty = fit_procedure(list, Procedure(()), folds=2, own_threshold=True, point=TwvParameters(10, 1.0), trained_on={})
    assert empty.thresholds == (None, None)
    table = _aligned(1, 3, 0, 2)
    silent = table.set_column(table.schema.get_field_index("score"), "score", pa.nulls(3, pa.float64()))
    silent = silent.set_column(silent.schema.get_field_index("ref_start"), "ref_start", pa.array([0.0] * 3))
    ((events, classes),) = count(silent, Procedure(()), 1).counts
    assert threshold_of([of_table(events)], [of_table(classes)], TwvParameters(10, 1.0)) is None


@pytest.mark.parametrize("most", [10, 100, 1000])
def test_coarse_rows_depend_on_their_sum_only(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(regression, "MOST", most)
    tables = [_aligned(6, 40, seed, 15) for seed in range(8)]
    columns = [np.stack([table["score"].to_numpy(), -np.sqrt(table["score"].to_numpy())], axis=1) for table in tables]
    parts = [Labelled.of(table, column).coarse() for table, column in zip(tables, columns, strict=True)]
    whole = Labelled.of(pa.concat_tables(tables), np.concatenate(columns)).coarse()
    for sums in (
        reduce(add, parts),
        reduce(add, parts[::-1]),
        (parts[0] + parts[3]) + reduce(add, parts[4:] + parts[1:3]),
    ):
        assert all(np.array_equal(getattr(sums, name), getattr(whole, name)) for name in (*LABELLED_ROWS, "bits"))
    assert (len(whole.columns) <= most, whole.hits.sum()) == (True, sum(part.hits.sum() for part in parts))
    fitted = Labelled.total(parts).columns
    assert len(np.unique(fitted, axis=0)) == len(fitted)
    again = from_bytes(to_bytes({(0, 1): whole}))[0, 1]
    assert again.coarse(again.bits).columns.tobytes() == whole.columns.tobytes()
    assert vars(again).keys() == vars(whole).keys()


def test_middles_are_near(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.array([[-3.14159], [0.0], [1e-9], [2.5], [1e7]])
    table = _aligned(1, 5, 0, 2)
    found = Labelled.total([Labelled.of(table, values).coarse()]).columns
    assert found == pytest.approx(np.sort(values, axis=0), rel=2**-13)
    assert found[1] == 0.0
