"""Fits steps of calibration and thresholds on aligned lists, each fold of queries on the others.

The threshold of a fold is that of best TWV on the other folds, with the scores of that fold's steps, so no query influences
its own decisions.

A list may come in parts, each with all rows of its queries. What is learnt of a part (`gather`, `count`) is added up
(`with_models`, `threshold_of`), so parts may be processed anywhere. Of a list of more than `MOST` rows, steps are fitted on
coarse rows (`swsdist.kernels.regression.Labelled`); thresholds are exact.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain
from operator import add
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.calibrate.procedure import Procedure, by_fold, check_folds, folds_of
from swsdist.calibrate.steps.interface import Json, TwvParameters
from swsdist.core.errors import UserError
from swsdist.core.types import TRIALS
from swsdist.kernels.regression import LABELLED_ROWS, MOST, Labelled
from swsdist.registry.registries import CALIBRATION
from swsdist.score import score_limits
from swsdist.score.events import (
    CLASSES,
    EVENTS,
    Merged,
    Source,
    check_part,
    count_classes,
    count_events,
    event_blocks,
    of_table,
)
from swsdist.score.measures.curve import Classes, best_point, curve_blocks

Parts = Callable[[], Iterable[pa.Table]]

#: Training data of a step, by view and fold: a view is the scores as one fold's preceding steps make them; if none of these is
#: fitted, all folds have one view, 0.
Examples = Mapping[tuple[int, int], Labelled]


def fit_procedure(
    parts: Parts,
    procedure: Procedure,
    *,
    folds: int,
    own_threshold: bool,
    point: TwvParameters,
    trained_on: Mapping[str, object],
    query_ids: Iterable[str] = (),
) -> Procedure:
    """Fit steps, and thresholds unless the last step's threshold decides.

    Args:
        parts: yields the aligned lists (schema TRIALS), each with all rows of its queries; called a few times.
        procedure: the steps; the first is fitted on the lists' unchanged scores.
        folds: 1 fits and decides on all (oracle).
        own_threshold: decide by the last step's threshold, if it has one.
        point: of the threshold.
        trained_on: provenance for the file; the number of queries is added.
        query_ids: ids of all searched queries. The lists do not name those without detections and true occurrences, but
            their trials count, too.

    Raises:
        UserError: there is too little training data.
    """
    fitted = fit_models(parts, procedure, folds=folds, trained_on=trained_on, query_ids=query_ids)
    return fit_thresholds(fitted, parts, folds=folds, own_threshold=own_threshold, point=point)


def fit_models(
    parts: Parts,
    procedure: Procedure,
    *,
    folds: int,
    trained_on: Mapping[str, object],
    query_ids: Iterable[str] = (),
) -> Procedure:
    """Fit steps without thresholds; arguments as in `fit_procedure`."""
    seen, rows, schema = set[str](), 0, TRIALS
    for table in parts():
        seen.update(table["query_id"].unique().to_pylist())
        rows, schema = rows + table.num_rows, table.schema
    rest = silent(set(query_ids) - seen, schema)
    for number in fitted_steps(procedure):
        tables, coarse = chain(parts(), [rest]), rows > MOST
        procedure = with_models(
            procedure, number, [gather(table, procedure, number, folds, coarse=coarse) for table in tables], folds
        )
    return finished(procedure, folds, {**trained_on, "queries": len(seen)})


def finished(procedure: Procedure, folds: int, trained_on: Mapping[str, object]) -> Procedure:
    """A procedure whose steps are fitted."""
    models = procedure.models or ((),) * len(procedure.steps)
    return replace(procedure, models=models, fit="oracle" if folds == 1 else "crossfit", trained_on=trained_on)


def fitted_steps(procedure: Procedure) -> list[int]:
    """Numbers of the steps that are fitted."""
    return [number for number, step in enumerate(procedure.steps) if CALIBRATION[step.name].fits]


def silent(query_ids: Iterable[str], schema: pa.Schema) -> pa.Table:
    """Rows of searched queries with neither a detection nor a true occurrence."""
    return pa.Table.from_pylist([{"query_id": name, "doc_id": "", "channel": 0} for name in sorted(query_ids)], schema)


def gather(table: pa.Table, procedure: Procedure, number: int, folds: int, *, coarse: bool) -> Examples:
    """Training data of a list for a step, with scores from the preceding steps, which are fitted."""
    before, step = procedure.before(number), procedure.steps[number]
    views = range(folds if any(before.models) else 1)
    found = {}
    for fold, rows in by_fold(table, folds):
        for view in views:
            if len(views) == 1 or view != fold:
                scored = before.of_fold(view).scores(rows) if len(views) > 1 else before.scores(rows)
                examples = step.gather(scored, before.statistics_for(step), before.point)
                found[view, fold] = examples.coarse() if coarse else examples
    return found


def with_models(procedure: Procedure, number: int, gathered: Iterable[Examples], folds: int) -> Procedure:
    """A procedure with the models of a step, one for each fold, fitted on the other folds of all parts.

    Raises:
        UserError: there is too little training data.
    """
    sums: dict[tuple[int, int], list[tuple[int, Labelled]]] = {}
    for some in gathered:
        for key, examples in some.items():
            # Adds equal numbers of parts, as a binary counter: each row is sorted a few times.
            levels, level = sums.setdefault(key, []), 0
            while levels and levels[-1][0] == level:
                examples, level = levels.pop()[1] + examples, level + 1
            levels.append((level, examples))
    totals = {key: reduce(add, (one for _, one in levels)) for key, levels in sorted(sums.items())}
    check_folds({fold: one.occurring for (_, fold), one in totals.items()}, folds)
    several = any(procedure.before(number).models)
    models: list[Json] = []
    for k in range(folds):
        view = k if several else 0
        others = [one for key, one in totals.items() if key[0] == view and (folds == 1 or key[1] != k)]
        model = procedure.steps[number].fit(others, procedure.point)
        assert model is not None  # the entry demands a fit
        models.append(model)
    kept = list(procedure.models or ((),) * len(procedure.steps))
    kept[number] = tuple(models)
    return replace(procedure, models=tuple(kept))


def to_bytes(examples: Examples) -> bytes:
    """The content of a file of training data: NumPy's arrays."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    rest = []
    for place, (key, one) in enumerate(examples.items()):
        arrays |= {f"{place} {name}": getattr(one, name) for name in LABELLED_ROWS}
        rest.append([key, {name: value for name, value in vars(one).items() if name not in LABELLED_ROWS}])
    out = io.BytesIO()
    np.savez(out, allow_pickle=False, rest=np.frombuffer(json.dumps(rest).encode(), np.uint8), **arrays)
    return out.getvalue()


def from_bytes(data: bytes) -> Examples:
    """What `to_bytes` wrote."""
    examples = {}
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        for place, ((view, fold), values) in enumerate(json.loads(arrays["rest"].tobytes())):
            rows = (arrays[f"{place} {name}"] for name in LABELLED_ROWS)
            examples[view, fold] = Labelled(*rows, **{**values, "systems": tuple(values["systems"])})
    return examples


class Counted(NamedTuple):
    """What is learnt of a part for thresholds.

    Attributes:
        low, high: least and greatest score.
        counts: by number, the tables EVENTS and CLASSES: of each fold where all folds have the same scores, otherwise of all
            other folds with that fold's scores.
    """

    low: float
    high: float
    counts: list[tuple[pa.Table, pa.Table]]


def count(table: pa.Table, procedure: Procedure, folds: int) -> Counted:
    """Count an aligned list for so many folds; 0: only find the limits."""
    alike, scored = _alike(procedure, folds), procedure.scores(table)
    fold, counts = folds_of(table, folds or 1), []
    for k in range(folds):
        rows = scored.filter(pa.array(fold == k)) if alike else table.filter(pa.array(fold != k))
        rows = rows if alike else procedure.of_fold(k).scores(rows)
        of_rows = check_part(count_events(rows), EVENTS.schema, EVENTS.key, EVENTS.name)
        counts.append((of_rows, count_classes(rows)))
    return Counted(*score_limits(scored["score"].drop_null()), counts)


def counted_for(procedure: Procedure, folds: int) -> list[list[int]]:
    """For each fold's threshold the numbers of the counts that it is found in."""
    if not _alike(procedure, folds) or folds == 1:
        return [[k] for k in range(folds)]
    return [[j for j in range(folds) if j != k] for k in range(folds)]


def _alike(procedure: Procedure, folds: int) -> bool:
    return folds < 2 or not any(procedure.models)


def fit_thresholds(
    procedure: Procedure, parts: Parts, *, folds: int, own_threshold: bool, point: TwvParameters
) -> Procedure:
    """Set score limits, and thresholds unless already set; arguments as in `fit_procedure`."""
    thresholds = known = known_thresholds(procedure, own_threshold)
    counted = [count(table, procedure, 0 if known else folds) for table in parts()]
    for chosen in () if known else counted_for(procedure, folds):
        events, classes = ([of_table(one.counts[k][name]) for one in counted for k in chosen] for name in (0, 1))
        thresholds += (threshold_of(events, classes, point),)
    low, high = score_limits([limit for one in counted for limit in one[:2]])
    return replace(procedure, thresholds=thresholds, low=low, high=high)


def known_thresholds(procedure: Procedure, own_threshold: bool) -> tuple[float | None, ...]:
    """The thresholds of a procedure that need not be fitted: those it has, or its last step's; empty: there are none."""
    last = procedure.own_threshold if own_threshold else None
    return procedure.thresholds or (() if last is None else (last,))


def threshold_of(events: Sequence[Source], classes: Sequence[Source], point: TwvParameters) -> float | None:
    """The threshold of the maximum value, for `score >= threshold` on this or another list, in one pass.

    If rejecting everything is best, it is the next double above the highest score. None without training data: no query has a
    reference, or none that has one a detection.

    Args:
        events, classes: tables EVENTS and CLASSES of all parts.
        point: of the value.
    """
    table = Merged(CLASSES.schema, CLASSES.key, CLASSES.adds, classes).table()
    table = table.filter(pc.greater(table["ntrue"], 0))
    blocks = event_blocks(Merged(EVENTS.schema, EVENTS.key, EVENTS.adds, events), refless=False)
    totals = Classes(*(table[name].to_numpy() for name in Classes._fields))
    try:
        best = best_point(curve_blocks(blocks, totals, trials=point.trials, beta=point.beta))
    except UserError:
        return None
    highest = best.point.threshold
    return highest if highest is None or not best.last else float(np.nextafter(highest, np.inf))
