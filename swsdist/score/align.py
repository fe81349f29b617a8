"""Alignment of detections with true occurrences, as in NIST's STDEval 0.7 and KWSEval (F4DE 3.5).

Per (query_id, doc_id, channel), a detection may be paired with a reference if its mid-point lies within the reference's
span widened by the tolerance, both borders included. Pairs are one to one. The alignment has the greatest sum of
(kernel + 1) over its pairs, where

    kernel = 1 + 1e-8 t + 1e-6 s
    t = (min(ends) - max(starts)) / max(1e-5, duration of the reference)
    s = (score - low) / (high - low), or 0 if low = high

so the number of pairs comes first; among equals the score has 100 times the weight of the overlap. For STDEval `low`
and `high` are the least and greatest score of the whole list (see `score_limits`); with them the alignment of a group
depends on nothing outside of it, so groups can be aligned in any number of parts. For KWSEval they are those of the
list's header, or else of the group itself, and at least 1e-5 apart. Decisions are ignored. Equal sums are decided by
the order (start, score, end, decision) of the detections, never by the order of rows.

Rounding decides borderline cases, so they are computed as STDEval computes them from exported files:
mid-point = start + duration / 2 and end = start + duration, where the duration is the decimal that the file holds.
A detection's duration is the column `duration` if there is one, else end - start at 6 decimals; a reference's is
end - start at 4 decimals, which is what STDEval makes of its RTTM (it then adds it to the start again, where KWSEval
takes the end as it is: the last bit differs).

Contested rows: an alignment depends on scores only where a detection has two occurrences in reach, or an occurrence two
detections. A list that is scored many times is therefore aligned once, and only its contested rows are aligned again;
the pairs are those of `align` on the whole list.

Partial judgements: where only some places were judged, detections that overlap a place judged `yes` or `no` are counted
(`is_judged`). The others are neither hits nor false alarms.

Sources: NIST STD 2006 evaluation plan, section 4.5.1; Fiscus et al., "Results of the 2006 spoken term detection
evaluation", 2007; Rodriguez-Fuentes and Penagarikano 2013, section 2.1; and what the program does.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from swsdist.core.arrays import Bools, Floats, Ints
from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.errors import TableError
from swsdist.core.types import TRIALS, with_values
from swsdist.score.conventions import Conventions, as_table, conventions_of

#: Sums of two pairs that differ by more than this differ in any order of summation.
_CLEAR = 1e-12

KEY = ("query_id", "doc_id", "channel")


def score_limits(scores: ArrayLike, low: float = 9999.0, high: float = -9999.0) -> tuple[float, float]:
    """Least and greatest score, for `align`; for further parts of a list, pass the previous output.

    The start values are STDEval's: if all scores are above 9999, the least is 9999; if all are below -9999, the
    greatest is -9999.

    Args:
        scores: float, any shape; may be empty.
        low: least so far.
        high: greatest so far.
    """
    values = np.asarray(scores, dtype=np.float64)
    return float(values.min(initial=low)), float(values.max(initial=high))


def align(
    detections: object,
    references: object,
    *,
    tolerance: float,
    low: float | None,
    high: float | None,
    conventions: Conventions | str = "stdeval",
) -> pa.Table:
    """Pair detections with references, for any number of queries and documents, rows in any order.

    Args:
        detections: query_id, doc_id, channel, start, end (s), score; optionally decision and duration (s). More
            columns are allowed. An arrow or pandas table, or a mapping of columns (`swsdist.score.conventions`).
        references: query_id, doc_id, channel, start, end (s), in one of the same forms.
        tolerance: s, of the mid-point rule, inclusive.
        low: least score of the whole list; None (KWSEval): of each group.
        high: greatest score of the whole list; None (KWSEval): of each group.
        conventions: the program whose rules apply, or its name.

    Returns:
        A table of schema TRIALS: hits with both sides, false alarms (detections without reference), misses
        (references without detection), ordered by query_id, doc_id, channel, time (start, of a miss ref_start).

    Raises:
        TableError: a column is missing, a value is null, not finite, or an end lies before its start.
    """
    rules = conventions_of(conventions)
    sides = _Sides.read(as_table(detections, "detections"), as_table(references, "references"), rules)
    pairs = _pairs(sides, tolerance, rules)
    chosen = Assignment(*pairs).best(_weights(sides, pairs, rules, low, high))
    return _trials(sides, pairs.dets[chosen], pairs.refs[chosen])


class _Spans(NamedTuple):
    """Columns of a table as arrays. `tail` is start + duration, STDEval's end; `end` is the table's."""

    start: Floats
    end: Floats
    duration: Floats
    score: Floats
    decision: NDArray[np.int8]  # 1 YES, 0 NO, -1 not decided

    @property
    def tail(self) -> Floats:
        return self.start + self.duration

    @property
    def middle(self) -> Floats:
        return self.start + self.duration / 2

    def take(self, order: Ints) -> _Spans:
        return _Spans(self.start[order], self.end[order], self.duration[order], self.score[order], self.decision[order])

    @classmethod
    def read(cls, table: pa.Table, what: str, *, scored: bool, forward: bool = True) -> _Spans:
        start, end = _column(table, "start", what), _column(table, "end", what)
        score = _column(table, "score", what) if scored else np.zeros(len(start))
        decision = np.full(len(start), -1, dtype=np.int8)
        if scored and "decision" in table.column_names:
            decision = pc.fill_null(table["decision"].cast(pa.int8()), -1).to_numpy()
        if scored and "duration" in table.column_names:
            duration = _column(table, "duration", what)
        else:
            duration = decimals(end - start, 6 if scored else 4)
        if forward and (backward := np.flatnonzero((end < start) | (duration < 0))).size:
            raise families.INVALID_TIMES.of(TableError)(
                "the end is before the start",
                "give start and end in s, start first",
                where=_row(table, what, backward[0]),
            )
        return cls(start, end, duration, score, decision)


def _required(table: pa.Table, name: str, what: str) -> pa.ChunkedArray:
    if name not in table.column_names:
        raise codes.ABSENT_COLUMN(where=what, column=name, columns=", ".join(table.column_names))
    column = table[name]
    if column.null_count:
        row = int(np.flatnonzero(pc.is_null(column).to_numpy())[0])
        raise families.BAD_CELL(
            "{column} is empty", "fill it in, or leave the row out", where=_row(table, what, row), column=name
        )
    return column


def _column(table: pa.Table, name: str, what: str) -> Floats:
    # Adding 0 turns -0.0 into 0.0: they are equal, and the order of equal rows must have no effect.
    values: Floats = _required(table, name, what).cast(pa.float64()).to_numpy() + 0.0
    if (bad := np.flatnonzero(~np.isfinite(values))).size:
        raise codes.NOT_FINITE_NUMBER(where=_row(table, what, bad[0]), column=name, value=values[bad[0]])
    return values


def _keys(table: pa.Table, what: str) -> pa.Table:
    return pa.table({name: _required(table, name, what).cast(TRIALS.field(name).type) for name in KEY})


def _row(table: pa.Table, what: str, row: int) -> str:
    key = ", ".join(f"{name} {table[name][int(row)]}" for name in KEY if name in table.column_names)
    return f"{what}, row {row + 1} ({key})"


def decimals(values: Floats, places: int) -> Floats:
    """The values as printed by C's `printf("%.<places>f")` and read back: the double nearest to the rounded decimal.

    Args:
        values: float64, any length; magnitudes below 1e6.
        places: digits after the point, at most 6.
    """
    scale = 10.0**places
    scaled = values * scale
    rounded: Floats = np.rint(scaled) / scale
    # The product is rounded, so close to a half only the exact decimal expansion decides.
    for index in np.flatnonzero(np.abs(np.abs(scaled - np.floor(scaled)) - 0.5) < 1e-3):
        rounded[index] = float(f"{values[index]:.{places}f}")
    return rounded


def _groups(left: pa.Table, right: pa.Table) -> tuple[pa.Table, Ints, Ints]:
    """Distinct keys of both sides in order, and the index of each row's key."""
    keys = pa.concat_tables([left, right])
    code = np.zeros(len(keys), dtype=np.int64)
    for column in keys.columns:
        encoded = column.combine_chunks().dictionary_encode()
        rank = np.empty(len(encoded.dictionary), dtype=np.int64)
        rank[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(rank))
        code = code * len(rank) + rank[encoded.indices.to_numpy()]
    _, first, group = np.unique(code, return_index=True, return_inverse=True)
    return keys.take(first), group[: len(left)], group[len(left) :]


def _candidates(
    detected: _Spans, det_group: Ints, lower: Floats, upper: Floats, ref_group: Ints
) -> tuple[Ints, Ints, Ints]:
    """All pairs that the mid-point rule allows: rows of detections and of references, and their connected component.

    Pairs come by the begin of their reference's range; components are numbered in that order.
    """
    # One sort of mid-points and borders, a lower border before and an upper border after the mid-points it equals:
    # the number of mid-points before a border is then where its range begins or ends, whatever the group.
    refs, dets = len(lower), len(det_group)
    group = np.concatenate([ref_group, det_group, ref_group])
    value = np.concatenate([lower, detected.middle, upper])
    kind = np.repeat(np.array([0, 1, 2], dtype=np.int8), [refs, dets, refs])
    order = np.lexsort((kind, value, group))
    passed = np.empty(len(order), dtype=np.int64)
    passed[order] = np.cumsum(kind[order] == 1)
    by_middle = order[kind[order] == 1] - refs
    begin, end = passed[:refs], passed[refs + dets :]
    # A reference's mid-points are a range of them, and ranges that overlap are one component.
    ref = np.lexsort((end, begin))
    ref = ref[begin[ref] < end[ref]]
    begin, end = begin[ref], end[ref]
    reached = np.maximum.accumulate(end) if len(end) else end
    component = np.cumsum(np.append(False, begin[1:] >= reached[:-1])[: len(ref)])
    length = end - begin
    offset = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
    return by_middle[np.repeat(begin, length) + offset], np.repeat(ref, length), np.repeat(component, length)


def _group_limits(score: Floats, group: Ints, low: float | None, high: float | None) -> tuple[Floats, Floats]:
    """Least and greatest score of each group, or those given."""
    size = int(group.max()) + 1 if len(group) else 0
    lows, highs = np.full(size, math.inf), np.full(size, -math.inf)
    np.minimum.at(lows, group, score)
    np.maximum.at(highs, group, score)
    if low is not None and high is not None:
        lows[:], highs[:] = low, high
    return lows, lows + np.maximum(highs - lows, 1e-5)


def _kernel(
    detected: _Spans,
    dets: Ints,
    true: _Spans,
    tail: Floats,
    refs: Ints,
    low: Floats | np.float64,
    high: Floats | np.float64,
) -> Floats:
    """The kernel of each pair, computed as in the programs; `low`, `high` one for all, or one per pair."""
    overlap = np.minimum(detected.tail[dets], tail[refs]) - np.maximum(detected.start[dets], true.start[refs])
    t = overlap / np.maximum(1e-5, true.duration[refs])
    with np.errstate(divide="ignore", invalid="ignore"):
        s = np.where(high > low, (detected.score[dets] - low) / (high - low), 0.0)
    return 1.0 + 1e-8 * t + 1e-6 * s


class Assignment:
    """Possible pairs by connected component, among which each set of weights selects an assignment.

    Args:
        dets, refs: int64 (n,), of each pair.
        part: int64 (n,), its component.
    """

    def __init__(self, dets: Ints, refs: Ints, part: Ints) -> None:
        order = np.lexsort((refs, dets, part))
        first = np.flatnonzero(np.diff(part[order], prepend=-1))
        size = np.diff(first, append=len(order))
        alike = [
            np.minimum.reduceat(side[order], first) == np.maximum.reduceat(side[order], first)
            for side in ((dets, refs) if len(order) else ())
        ]
        obvious = np.logical_or.reduce(alike) if alike else np.zeros(0, dtype=bool)
        self._obvious, self._sizes = order[np.repeat(obvious, size)], size[obvious]
        self._first = np.cumsum(self._sizes) - self._sizes
        # Index of the pair at each position, -1 if not allowed; most components have two of either side.
        places = []
        for begin, length in zip(first[~obvious].tolist(), size[~obvious].tolist(), strict=True):
            own_rows = order[begin : begin + length]
            rows, row = np.unique(dets[own_rows], return_inverse=True)
            columns, column = np.unique(refs[own_rows], return_inverse=True)
            place = np.full((len(rows), len(columns)), -1, dtype=np.int64)
            place[row, column] = own_rows
            places.append(place)
        squares = [place for place in places if place.shape == (2, 2)]
        self._squares = np.array(squares, dtype=np.int64).reshape(-1, 2, 2)
        self._rest = [place for place in places if place.shape != (2, 2)]

    def best(self, weight: Floats) -> Ints:
        """Indices of the pairs of the assignment with the greatest sum of weights, float64 (n,), positive.

        Where all pairs of a component share a detection or a reference, the heaviest is the answer; ties go to the lowest
        detection, then reference.
        """
        chosen, left = [np.zeros(0, dtype=np.int64)], list(self._rest)
        if len(self._obvious):
            weights = weight[self._obvious]
            best = np.flatnonzero(weights == np.repeat(np.maximum.reduceat(weights, self._first), self._sizes))
            part = np.searchsorted(self._first, best, side="right") - 1
            chosen.append(self._obvious[best[np.flatnonzero(np.diff(part, prepend=-1))]])
        if len(self._squares):
            # 0 for pairs that are not allowed: leaving both sides unpaired gains nothing.
            gain = np.where(self._squares >= 0, weight[self._squares], 0.0)
            sums = gain[:, [0, 0], [0, 1]] + gain[:, [1, 1], [1, 0]]
            clear = np.abs(sums[:, 0] - sums[:, 1]) > _CLEAR
            across = (sums[:, 1] > sums[:, 0]).astype(np.int64)[clear]
            rows = np.flatnonzero(clear)
            pairs = np.concatenate([self._squares[rows, 0, across], self._squares[rows, 1, 1 - across]])
            chosen.append(pairs[pairs >= 0])
            left += list(self._squares[~clear])
        if left:
            from scipy.optimize import linear_sum_assignment  # most lists do not need scipy, which loads slowly

            for place in left:
                gain = np.where(place >= 0, weight[place], 0.0)
                pairs = place[linear_sum_assignment(gain, maximize=True)]
                chosen.append(pairs[pairs >= 0])
        return np.concatenate(chosen)


def _trials(sides: _Sides, dets: Ints, refs: Ints) -> pa.Table:
    """The aligned list in its canonical order; `dets`, `refs` are the rows of the pairs."""
    keys, detected, det_group, _, true, ref_group, _ = sides
    partner = np.full(len(det_group), -1, dtype=np.int64)
    partner[dets] = refs
    missed = np.ones(len(ref_group), dtype=bool)
    missed[refs] = False
    misses = np.flatnonzero(missed)
    detection = np.concatenate([np.arange(len(partner)), np.full(len(misses), -1)])
    reference = np.concatenate([partner, misses])
    group = np.concatenate([det_group, ref_group[misses]])
    time = np.concatenate([detected.start, true.start[misses]])
    # Rows of both sides are already in order; at equal times detections come before misses.
    order = np.lexsort((reference, detection, detection < 0, time, group))
    detection, reference = detection[order], reference[order]

    def side(values: NDArray[np.generic], rows: Ints, kind: pa.DataType) -> pa.Array:
        if not len(values):
            return pa.nulls(len(rows), kind)
        return pa.array(values[np.maximum(rows, 0)], mask=rows < 0).cast(kind)

    decided = detection.copy()
    decided[detection >= 0] = np.where(detected.decision[detection[detection >= 0]] < 0, -1, detection[detection >= 0])
    columns = [
        *(column.combine_chunks() for column in keys.take(group[order]).columns),
        side(detected.start, detection, pa.float64()),
        side(detected.end, detection, pa.float64()),
        side(detected.score, detection, pa.float64()),
        side(detected.decision == 1, decided, pa.bool_()),
        side(true.start, reference, pa.float64()),
        side(true.end, reference, pa.float64()),
    ]
    return pa.Table.from_arrays(columns, schema=TRIALS)


def is_judged(detections: pa.Table, judged: pa.Table) -> Bools:
    """Whether each detection overlaps a judged place of its query, bool (detections,).

    Args:
        detections: query_id, doc_id, channel, start, end (s).
        judged: the same columns, of places judged `yes` or `no`.
    """
    places: dict[tuple[str, str, int], list[tuple[float, float]]] = {}
    for query_id, doc_id, channel, start, end in _rows(judged):
        places.setdefault((query_id, doc_id, channel), []).append((start, end))
    result = np.zeros(detections.num_rows, bool)
    names = pc.unique(judged["doc_id"].cast(pa.string())).cast(pa.string())
    near = pc.is_in(detections["doc_id"].cast(pa.string()), value_set=names).to_numpy()
    rows = np.flatnonzero(near)
    for row, (query_id, doc_id, channel, start, end) in zip(
        rows.tolist(), _rows(detections.take(pa.array(rows))), strict=True
    ):
        of_key = places.get((query_id, doc_id, channel), ())
        result[row] = any(start < last and first < end for first, last in of_key)
    return result


def _rows(table: pa.Table) -> list[tuple[str, str, int, float, float]]:
    return list(zip(*(table[name].to_pylist() for name in (*KEY, "start", "end")), strict=True))


class _Sides(NamedTuple):
    """Detections and references in order of key and time; `row` and `true_row` are their rows in the tables."""

    keys: pa.Table
    detections: _Spans
    group: Ints
    row: Ints
    true: _Spans
    true_group: Ints
    true_row: Ints

    @classmethod
    def read(cls, detections: pa.Table, references: pa.Table, rules: Conventions) -> _Sides:
        spans = _Spans.read(detections, "detections", scored=True)
        true = _Spans.read(references, "references", scored=False, forward=rules.forward_only)
        if len(spans.score) and not math.isfinite(spans.score.max() - spans.score.min()):
            raise families.TOO_LARGE.of(TableError)(
                "scores from {lowest} to {highest} differ by more than a double can hold",
                "scale them",
                where="detections",
                lowest=spans.score.min(),
                highest=spans.score.max(),
            )
        keys, group, true_group = _groups(_keys(detections, "detections"), _keys(references, "references"))
        order, true_order = _order(spans, group), np.lexsort((true.end, true.start, true_group))
        taken = true.take(true_order), true_group[true_order], true_order
        return cls(keys, spans.take(order), group[order], order, *taken)


class _Pairs(NamedTuple):
    """Pairs that the mid-point rule allows, with their component."""

    dets: Ints
    refs: Ints
    part: Ints


def _sides(trials: pa.Table, conventions: str) -> _Sides:
    """Of an aligned list."""
    row = np.flatnonzero(pc.is_valid(trials["score"]).to_numpy())
    true_row = np.flatnonzero(pc.is_valid(trials["ref_start"]).to_numpy())
    detections = trials.take(pa.array(row)).drop_columns(["ref_start", "ref_end", "decision"])
    references = trials.take(pa.array(true_row)).drop_columns(["start", "end", "score", "decision"])
    references = references.rename_columns({"ref_start": "start", "ref_end": "end"})
    sides = _Sides.read(detections, references, conventions_of(conventions))
    return sides._replace(row=row[sides.row], true_row=true_row[sides.true_row])


def _order(detected: _Spans, group: Ints) -> Ints:
    return np.lexsort((detected.decision, detected.end, detected.score, detected.start, group))


def _pairs(sides: _Sides, tolerance: float, rules: Conventions) -> _Pairs:
    lower, upper = sides.true.start - tolerance, _tails(sides, rules) + tolerance
    return _Pairs(*_candidates(sides.detections, sides.group, lower, upper, sides.true_group))


def _tails(sides: _Sides, rules: Conventions) -> Floats:
    return sides.true.tail if rules.sums_ends else sides.true.end


def _weights(sides: _Sides, pairs: _Pairs, rules: Conventions, low: float | None, high: float | None) -> Floats:
    """What each pair is worth in an assignment."""
    if rules.list_limits:
        if low is None or high is None:
            raise TypeError("STDEval's kernel needs the least and greatest score of the whole list")
        limits: tuple[Floats | np.float64, Floats | np.float64] = np.float64(low), np.float64(high)
    else:
        if (low is None) != (high is None):
            raise TypeError("the least and greatest score are given together, or neither is")
        group = sides.group[pairs.dets]
        lows, highs = _group_limits(sides.detections.score, sides.group, low, high)
        limits = lows[group], highs[group]
    return _kernel(sides.detections, pairs.dets, sides.true, _tails(sides, rules), pairs.refs, *limits) + 1


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
    pairs = _pairs(sides, tolerance, conventions_of(conventions))
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
        mask: bool (rows,), from `contested`.

    Returns:
        The list with contested hits split into a false alarm and a miss; and the contested rows unchanged.
    """
    hit = mask & pc.is_valid(trials["score"]).to_numpy() & pc.is_valid(trials["ref_start"]).to_numpy()
    hits = trials.filter(pa.array(hit))
    misses, alarms = hits, hits
    for name in ("start", "end", "score", "decision"):
        misses = with_values(misses, name, pa.nulls(len(misses), misses.schema.field(name).type))
    for name in ("ref_start", "ref_end"):
        alarms = with_values(alarms, name, pa.nulls(len(alarms), pa.float64()))
    return pa.concat_tables([trials.filter(pa.array(~hit)), alarms, misses]), trials.filter(pa.array(mask))


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
        self._tolerance, self._rules = tolerance, conventions_of(conventions)
        self._pairs = _pairs(sides, tolerance, self._rules)
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
            chosen = self._assignment.best(_weights(sides, pairs, self._rules, low, high))
            hits[pairs.dets[chosen]] = True
            return hits
        order = _order(sides.detections, sides.group)
        sides = sides._replace(detections=sides.detections.take(order), group=sides.group[order])
        pairs = _pairs(sides, self._tolerance, self._rules)
        chosen = Assignment(*pairs).best(_weights(sides, pairs, self._rules, low, high))
        hits[order[pairs.dets[chosen]]] = True
        return hits

    def _same_order(self, scores: Floats) -> bool:
        score, next_score = scores[self._together], scores[self._together + 1]
        return bool(((score < next_score) | ((score == next_score) & self._alike)).all())
