"""Counts in files give the thresholds of counts in memory, to the last bit."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pyarrow as pa
import pytest

from swsdist.calibrate.fitting import fit_procedure
from swsdist.calibrate.procedure import Procedure
from swsdist.calibrate.steps.interface import TwvParameters
from swsdist.calibrate.threshold import by_fold
from swsdist.core.codes import score as codes
from swsdist.core.errors import UserError
from swsdist.core.types import TRIALS
from swsdist.score import Counts, total
from swsdist.score.parts import spilled
from swsdist.score.parts.spilled import SpilledCounts, threshold_of
from tests.oracles.thresholds import fit_threshold
from tests.support.coded import raises


def _aligned(queries: int, rows: int, seed: int, decimals: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    size = queries * rows
    true = rng.random(size) < 0.1
    score = np.round(np.where(true, rng.beta(4, 2, size), rng.beta(2, 4, size)), decimals)
    values = {
        "query_id": pa.array([f"q{seed}-{k % queries}" for k in range(size)]),
        "doc_id": pa.array([f"d{k}" for k in range(size)]),
        "channel": np.ones(size, np.int32),
        "score": score,
        "ref_start": pa.array(np.zeros(size), mask=~true),
    }
    columns = [
        pa.array(values[f.name])
        if f.name in values
        else pa.nulls(size, f.type)
        if f.nullable
        else pa.array([0.0] * size)
        for f in TRIALS
    ]
    return pa.table([c.cast(f.type) for c, f in zip(columns, TRIALS, strict=True)], names=TRIALS.names)


@pytest.mark.slow
@pytest.mark.parametrize("decimals", [2, 15])
@pytest.mark.parametrize("folds", [1, 4])
def test_thresholds_are_those_of_counts_in_memory(monkeypatch: pytest.MonkeyPatch, decimals: int, folds: int) -> None:
    monkeypatch.setattr(spilled, "_MANY", 3)  # so that files of files come, too
    monkeypatch.setattr(spilled, "_PIECE", 64)
    tables = [_aligned(6, 40, seed, decimals) for seed in range(24)]
    memory: dict[int, Counts] = {}
    with ExitStack() as held:
        parts = [held.enter_context(SpilledCounts(limit=100)) for _ in range(folds)]
        for table in tables:
            for fold, rows in by_fold(table, folds):
                memory[fold] = memory.get(fold, Counts.zero()) + Counts.of(rows)
                parts[fold].add(Counts.of(rows))
        folder = parts[0]._folder
        assert folder is not None
        assert 1 < len(list(folder.iterdir())) < 3 * 4
        for beta in (0.5, 20.0, 1e6):
            others = [total(counts for k, counts in memory.items() if folds == 1 or k != fold) for fold in range(folds)]
            expected = tuple(fit_threshold(counts, trials=100_000, beta=beta) for counts in others)
            kept = [[part for k, part in enumerate(parts) if folds == 1 or k != fold] for fold in range(folds)]
            assert tuple(threshold_of(some, trials=100_000, beta=beta) for some in kept) == expected
            point = TwvParameters(100_000, beta)
            found = fit_procedure(
                lambda: tables, Procedure(()), folds=folds, own_threshold=True, point=point, trained_on={"of": "these"}
            )
            assert found.thresholds == expected
            assert found.trained_on == {"of": "these", "queries": 6 * len(tables)}
    assert not folder.exists()


def test_nothing_to_learn_from() -> None:
    with SpilledCounts() as none:
        for trials in (10, 1):
            with pytest.raises(UserError):
                threshold_of([none], trials=trials, beta=1.0)
    empty = fit_procedure(list, Procedure(()), folds=2, own_threshold=True, point=TwvParameters(10, 1.0), trained_on={})
    assert empty.thresholds == (None, None)
    table = _aligned(1, 3, 0, 2)
    silent = table.set_column(table.schema.get_field_index("score"), "score", pa.nulls(3, pa.float64()))
    with SpilledCounts() as some:
        some.add(
            Counts.of(silent.set_column(silent.schema.get_field_index("ref_start"), "ref_start", pa.array([0.0] * 3)))
        )
        with raises(codes.NO_FITTABLE_DETECTION):
            threshold_of([some], trials=10, beta=1.0)
