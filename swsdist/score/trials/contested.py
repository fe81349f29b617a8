"""Contested detections, whose pairs depend on scores, and their alignment by new scores.

An alignment (`swsdist.score.trials.align`) depends on scores only where a detection has two occurrences in reach, or an
occurrence two detections. All other pairs do not depend on scores. So a list that is scored many times is
aligned once, and only contested rows are aligned again: the pairs are those of `align` on the whole list.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.score.conventions import conventions_of
from swsdist.score.trials.align import Assignment, _candidates, _group_limits, _groups, _kernel, _keys, _Spans

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class _Sides(NamedTuple):
    """Detections and references of an aligned list, in the order of `align`; `row` is each detection's row in the list."""

    detections: _Spans
    group: Ints
    row: Ints
    true: _Spans
    true_group: Ints
    true_row: Ints


class _Pairs(NamedTuple):
    """Pairs that the mid-point rule allows, with their component."""

    dets: Ints
    refs: Ints
    part: Ints


def _sides(trials: pa.Table, conventions: str) -> _Sides:
    rules = conventions_of(conventions)
    row = np.flatnonzero(pc.is_valid(trials["score"]).to_numpy())
    true_row = np.flatnonzero(pc.is_valid(trials["ref_start"]).to_numpy())
    detections = trials.take(pa.array(row)).drop_columns(["ref_start", "ref_end", "decision"])
    references = trials.take(pa.array(true_row)).drop_columns(["start", "end", "score", "decision"])
    references = references.rename_columns({"ref_start": "start", "ref_end": "end"})
    spans = _Spans.read(detections, "detections", scored=True)
    true = _Spans.read(references, "references", scored=False, forward=rules.forward_only)
    _, group, true_group = _groups(_keys(detections, "detections"), _keys(references, "references"))
    order, true_order = _order(spans, group), np.lexsort((true.end, true.start, true_group))
    return _Sides(
        spans.take(order),
        group[order],
        row[order],
        true.take(true_order),
        true_group[true_order],
        true_row[true_order],
    )


def _order(detected: _Spans, group: Ints) -> Ints:
    return np.lexsort((detected.end, detected.score, detected.start, group))


def _pairs(sides: _Sides, tolerance: float, conventions: str) -> _Pairs:
    true = sides.true
    tail = true.tail if conventions_of(conventions).sums_ends else true.end
    candidates = _candidates(sides.detections, sides.group, true.start - tolerance, tail + tolerance, sides.true_group)
    return _Pairs(*candidates)


def contested(trials: pa.Table, *, tolerance: float, conventions: str) -> Bools:
    """Rows of an aligned list whose pairs depend on scores.

    Args:
        trials: schema TRIALS, aligned by any scores; all rows of each query.
        tolerance: s, of the mid-point rule.
        conventions: name of the program whose rules hold.

    Returns:
        bool (rows,). If a group's scores limit the kernel (KWSEval), one contested detection marks the whole group.
    """
    sides = _sides(trials, conventions)
    pairs = _pairs(sides, tolerance, conventions)
    several = np.bincount(pairs.part, minlength=1)[pairs.part] > 1
    mask = np.zeros(trials.num_rows, dtype=bool)
    mask[sides.row[pairs.dets[several]]] = True
    mask[sides.true_row[pairs.refs[several]]] = True
    if not conventions_of(conventions).list_limits:
        groups = np.unique(sides.group[pairs.dets[several]])
        mask[sides.row[np.isin(sides.group, groups)]] = True
        mask[sides.true_row[np.isin(sides.true_group, groups)]] = True
    return mask


def split_contested(trials: pa.Table, mask: Bools) -> tuple[pa.Table, pa.Table]:
    """Separate the contested rows of an aligned list.

    Args:
        trials: schema TRIALS.
        mask: of `contested`.

    Returns:
        The list with contested hits split into a false alarm and a miss; and the contested rows unchanged.
    """
    hit = mask & pc.is_valid(trials["score"]).to_numpy() & pc.is_valid(trials["ref_start"]).to_numpy()
    hits = trials.filter(pa.array(hit))
    misses, alarms = hits, hits
    for name in ("start", "end", "score", "decision"):
        misses = _emptied(misses, name)
    for name in ("ref_start", "ref_end"):
        alarms = _emptied(alarms, name)
    return pa.concat_tables([trials.filter(pa.array(~hit)), alarms, misses]), trials.filter(pa.array(mask))


def _emptied(table: pa.Table, name: str) -> pa.Table:
    field = table.schema.field(name)
    return table.set_column(table.schema.get_field_index(name), field, pa.nulls(table.num_rows, field.type))


class Contest:
    """Contested rows, to be paired by different sets of scores.

    Args:
        rows: schema TRIALS, those marked by `contested`; all rows of each group.
        tolerance, conventions: as of `contested`.

    Attributes:
        row: int64 (C,), row in `rows` of each contested detection; input and output of `hits` are in this order.
    """

    def __init__(self, rows: pa.Table, *, tolerance: float, conventions: str) -> None:
        self._sides = sides = _sides(rows, conventions)
        self._tolerance, self._conventions = tolerance, conventions
        self._pairs = _pairs(sides, tolerance, conventions)
        self.row = sides.row
        # Scores order detections with the same start, which may decide between equal sums.
        together = (np.diff(sides.detections.start) == 0) & (np.diff(sides.group) == 0)
        self._together = np.flatnonzero(together)
        self._alike = sides.detections.score[self._together] == sides.detections.score[self._together + 1]
        self._assignment = Assignment(*self._pairs)

    def hits(self, scores: Floats, low: float | None, high: float | None) -> Bools:
        """Whether each detection is paired.

        Args:
            scores: float64 (C,).
            low, high: least and greatest score of the whole list; None: of each group.
        """
        sides, pairs = self._sides._replace(detections=self._sides.detections._replace(score=scores)), self._pairs
        hits = np.zeros(len(scores), dtype=bool)
        if self._same_order(scores):
            chosen = self._assignment.best(self._weights(sides, pairs, low, high))
            hits[pairs.dets[chosen]] = True
            return hits
        order = _order(sides.detections, sides.group)
        sides = sides._replace(detections=sides.detections.take(order), group=sides.group[order])
        pairs = _pairs(sides, self._tolerance, self._conventions)
        chosen = Assignment(*pairs).best(self._weights(sides, pairs, low, high))
        hits[order[pairs.dets[chosen]]] = True
        return hits

    def _same_order(self, scores: Floats) -> bool:
        score, next_score = scores[self._together], scores[self._together + 1]
        return bool(((score < next_score) | ((score == next_score) & self._alike)).all())

    def _weights(self, sides: _Sides, pairs: _Pairs, low: float | None, high: float | None) -> Floats:
        rules, true = conventions_of(self._conventions), sides.true
        tail = true.tail if rules.sums_ends else true.end
        if rules.list_limits:
            assert low is not None
            assert high is not None
            limits = np.float64(low), np.float64(high)
            return _kernel(sides.detections, pairs.dets, true, tail, pairs.refs, *limits) + 1
        lows, highs = _group_limits(sides.detections.score, sides.group, low, high)
        group = sides.group[pairs.dets]
        return _kernel(sides.detections, pairs.dets, true, tail, pairs.refs, lows[group], highs[group]) + 1
