"""Fits steps of calibration and thresholds on aligned lists, each fold of queries on the others.

The threshold of a fold is that of best TWV on the other folds, with the scores of that fold's steps, so no query influences
its own decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.calibrate.procedure import AnyStep, Procedure
from swsdist.calibrate.steps.interface import Addable, Json, TwvParameters
from swsdist.calibrate.threshold import by_fold, check_folds
from swsdist.core.errors import UserError
from swsdist.core.types import TRIALS
from swsdist.registry.registries import CALIBRATION
from swsdist.score import Counts, score_limits
from swsdist.score.parts.spilled import LIMIT, SpilledCounts, threshold_of

Parts = Callable[[], Iterable[pa.Table]]


def fit_procedure(
    parts: Parts,
    procedure: Procedure,
    *,
    folds: int,
    own: bool,
    point: TwvParameters,
    trained_on: Mapping[str, object],
    query_ids: Iterable[str] = (),
) -> Procedure:
    """Fit steps, and thresholds unless the last step's threshold decides.

    Args:
        parts: yields the aligned lists (schema TRIALS), each with all rows of its queries; called a few times.
        procedure: the steps; the first is fitted on the lists' unchanged scores.
        folds: 1 fits and decides on all (oracle).
        own: decide by the last step's threshold, if it has one.
        point: of the threshold.
        trained_on: provenance for the file; the number of queries is added.
        query_ids: ids of all searched queries. The lists do not name those without detections and true occurrences, but
            their trials count, too.

    Raises:
        UserError: there is too little training data.
    """
    fitted = fit_models(parts, procedure, folds=folds, trained_on=trained_on, query_ids=query_ids)
    return fit_thresholds(fitted, parts, folds=folds, own=own, point=point)


def fit_models(
    parts: Parts,
    procedure: Procedure,
    *,
    folds: int,
    trained_on: Mapping[str, object],
    query_ids: Iterable[str] = (),
) -> Procedure:
    """Fit steps without thresholds; arguments as in `fit_procedure`."""
    seen, true, schema = set[str](), set[str](), TRIALS
    for table in parts():
        schema = table.schema
        seen.update(table["query_id"].unique().to_pylist())
        true.update(table.filter(pc.is_valid(table["ref_start"]))["query_id"].unique().to_pylist())
    silent = [{"query_id": query, "doc_id": "", "channel": 0} for query in sorted(set(query_ids) - seen)]
    rest = [pa.Table.from_pylist(silent, schema)] if silent else []
    if any(CALIBRATION[step.name].fits for step in procedure.steps):
        check_folds(true, folds)
    models: list[tuple[Json, ...]] = []
    for number, step in enumerate(procedure.steps):
        if CALIBRATION[step.name].fits:
            before = replace(procedure, models=tuple(models)).before(number)
            models.append(tuple(_fitted(lambda: chain(parts(), rest), before, step, folds)))
        else:
            models.append(())
    fit = "oracle" if folds == 1 else "crossfit"
    return replace(procedure, models=tuple(models), fit=fit, trained_on={**trained_on, "queries": len(seen)})


def _fitted(parts: Parts, before: Procedure, step: AnyStep, folds: int) -> Iterable[Json]:
    """The models of each fold, fitted on the other folds' scores from the preceding steps."""
    # Without preceding fitted steps the scores are the same for each fold, and are gathered once.
    views = 1 if not any(before.models) else folds
    gathered: dict[tuple[int, int], Addable] = {}
    for table in parts():
        for fold, rows in by_fold(table, folds):
            for view in range(views):
                if views == 1 or folds == 1 or view != fold:
                    scored = before.of_fold(view).scores(rows) if views > 1 else before.scores(rows)
                    examples = step.gather(scored, before.statistics_for(step), before.point)
                    previous = gathered.get((view, fold))
                    gathered[view, fold] = examples if previous is None else previous + examples
    for k in range(folds):
        view = k if views > 1 else 0
        others = [gathered[key] for key in sorted(gathered) if key[0] == view and (folds == 1 or key[1] != k)]
        model = step.fit(others)
        assert model is not None  # the entry demands a fit
        yield model


def fit_thresholds(procedure: Procedure, parts: Parts, *, folds: int, own: bool, point: TwvParameters) -> Procedure:
    """Set score limits, and thresholds unless already set; arguments as in `fit_procedure`."""
    thresholds_kept = procedure.thresholds
    last_threshold = procedure.own_threshold
    if not thresholds_kept and own and last_threshold is not None:
        thresholds_kept = (last_threshold,)
    low, high = score_limits([])
    alike = folds == 1 or not any(procedure.models)  # all folds have the same scores, counted once
    with ExitStack() as stack:
        counts = [stack.enter_context(SpilledCounts(LIMIT // folds)) for _ in range(0 if thresholds_kept else folds)]
        for table in parts():
            scored = procedure.scores(table)
            low, high = score_limits(scored["score"].drop_null(), low, high)
            for fold, rows in by_fold(scored if alike else table, folds) if counts else ():
                for k in (fold,) if alike else (k for k in range(folds) if k != fold):
                    counts[k].add(Counts.of(rows if alike else procedure.of_fold(k).scores(rows)))
        learnt = [
            [item for j, item in enumerate(counts) if folds == 1 or j != k] if alike else [last_threshold]
            for k, last_threshold in enumerate(counts)
        ]
        thresholds = thresholds_kept or tuple(_threshold(some, point) for some in learnt)
    return replace(procedure, thresholds=thresholds, low=low, high=high)


def _threshold(counts: Sequence[SpilledCounts], point: TwvParameters) -> float | None:
    try:
        return threshold_of(counts, trials=point.trials, beta=point.beta)
    except UserError:
        return None  # no training data: the fold decides NO
