"""Inside a reduce candidates are numbers only, so memory and the time of sorting do not grow with the length of names.

Ids are codes into the names that have occurred; so no array holds more than 2 GB of strings. The order is total: by
query, score descending, doc_id, channel, first, last, example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.core.times import frames_to_seconds
from swsdist.core.types import DETECTIONS

Ints = NDArray[np.int64]

#: Detections of one piece of a table: its strings stay far below Arrow's 2 GB.
_PIECE = 1 << 20
#: Rows that are moved at once.
_AT_ONCE = 1 << 16
#: Times that the best are looked through until memory that is free is given back, which takes half as long as to look once.
_GIVE_BACK = 4


class Names:
    """The ids that have occurred, and their codes.

    A query has one code. A document has one in each file of candidates, since no two of one query are compared across files; so
    only the names of what is kept need be held (`compact`), however many documents there are.
    """

    def __init__(self) -> None:
        self.query_ids: list[str] = []  # of queries
        self._code: dict[str, int] = {}
        self._documents: list[pa.Array] = []
        self._count = 0

    def queries(self, column: pa.ChunkedArray) -> Ints:
        """The code of each row of a column of strings (or of codes of strings); new names get new codes."""
        parts = [np.empty(0, np.int64)]
        for chunk in column.chunks:
            made = chunk.dictionary_encode()
            names = made.dictionary.to_pylist()
            for name in names:
                if name not in self._code:
                    self._code[name] = len(self.query_ids)
                    self.query_ids.append(name)
            parts.append(np.array([self._code[name] for name in names], np.int64)[made.indices.to_numpy()])
        return np.concatenate(parts)

    def documents(self, column: pa.ChunkedArray) -> Ints:
        """The same of documents; those of another call have other codes, and `compact` makes all of them others."""
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        if not len(coded):
            return np.empty(0, np.int64)
        chunks = coded.unify_dictionaries().chunks
        indices = np.concatenate([chunk.indices.to_numpy() for chunk in chunks])
        used, place = np.unique(indices, return_inverse=True)
        codes = self._count + place.astype(np.int64)
        self._documents.append(chunks[0].dictionary.take(pa.array(used)))
        self._count += len(used)
        return codes

    def compact(self, documents: Ints) -> Ints:
        """The codes that documents have from now on; all others are forgotten."""
        there = np.zeros(self._count, bool)
        there[documents] = True
        codes = np.cumsum(there) - 1
        first = 0
        for k, names in enumerate(self._documents):  # one after the other, so that no more is there twice
            self._documents[k] = names.filter(pa.array(there[first : first + len(names)]))
            first += len(names)
        self._count = int(there.sum())
        return codes[documents]

    def _query_names(self, codes: Ints) -> pa.Array:
        return pa.array([self.query_ids[code] for code in codes.tolist()], pa.string())

    def _document_names(self, codes: Ints) -> pa.Array:
        if len(self._documents) > 1:  # else they would be joined anew for each of these
            self._documents = [pa.chunked_array(self._documents, pa.string()).combine_chunks()]
        return self._documents[0].take(pa.array(codes)) if self._documents else pa.array([], pa.string())

    def query_ranks(self, codes: Ints) -> Ints:
        """The place of each query's name among the sorted names of all of them."""
        return _ranks(codes, self._query_names)

    def document_ranks(self, codes: Ints) -> Ints:
        """The same of documents."""
        return _ranks(codes, self._document_names)

    def query_strings(self, codes: Ints) -> pa.Array:
        """The names of queries by their codes."""
        return _strings(codes, self._query_names)

    def document_strings(self, codes: Ints) -> pa.Array:
        """The names of documents by their codes."""
        return _strings(codes, self._document_names)


def _strings(codes: Ints, names_of: Callable[[Ints], pa.Array]) -> pa.Array:
    """The name of each code; each is looked up once."""
    used, place = np.unique(codes, return_inverse=True)
    return names_of(used).take(pa.array(place))


def _ranks(codes: Ints, names_of: Callable[[Ints], pa.Array]) -> Ints:
    """The place of each code's name among all, sorted by code points (as UTF-8 is by bytes); equal names have one."""
    used, place = np.unique(codes, return_inverse=True)
    names = names_of(used)
    order = pc.array_sort_indices(names)
    ordered = names.take(order)
    ranks = np.zeros(len(names), np.int64)
    ranks[order.to_numpy()[1:]] = np.cumsum(pc.not_equal(ordered[1:], ordered[:-1]).to_numpy(zero_copy_only=False))
    return ranks[place]


class Spans(NamedTuple):
    """Candidates as parallel arrays.

    Attributes:
        query, document: int64, codes of ids.
        channel, example: int64.
        first, last: int64, ticks, both inclusive.
        cost, scale: int64, as in CANDIDATES.
        score: float64.
    """

    query: Ints
    document: Ints
    channel: Ints
    example: Ints
    first: Ints
    last: Ints
    cost: Ints
    scale: Ints
    score: NDArray[np.float64]

    def take(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> Spans:
        """Some rows."""
        return Spans._make(column[rows] for column in self)

    @property
    def rows(self) -> int:
        """How many they are."""
        return len(self.score)


#: Of the codes of queries, and scores: which rows are wanted.
RowFilter = Callable[[Ints, NDArray[np.float64]], NDArray[np.bool_]]


def spans_of(candidates: pa.Table, names: Names, wanted: RowFilter | None = None) -> Spans:
    """CANDIDATES as numbers, all or those that are wanted; the score is ``-cost / scale``, one float64 division."""
    query = names.queries(candidates["query_id"])
    cost, scale = (candidates[name].to_numpy() for name in ("cost", "scale"))
    score = -cost.astype(np.float64) / scale
    rows = np.arange(len(score)) if wanted is None else np.flatnonzero(wanted(query, score))
    few = len(rows) < len(score)
    left = candidates.take(pa.array(rows)) if few else candidates
    whole = {name: left[name].to_numpy().astype(np.int64) for name in ("channel", "example", "first", "last")}
    document = names.documents(left["doc_id"])
    if few:
        query, cost, scale, score = query[rows], cost[rows], scale[rows], score[rows]
    return Spans(query, document, cost=cost, scale=scale, score=score, **whole)


def in_order(spans: Spans, names: Names) -> Spans:
    """In total order."""
    return spans.take(_best_in_order(spans, names))


def _best_in_order(spans: Spans, names: Names, nbest: int | None = None) -> Ints:
    """Rows of the best of each query, or of all, in total order; what sorting takes is that of one query."""
    order = _by_query(spans.query)
    starts = _starts(spans.query[order])
    ends = [*starts[1:].tolist(), len(order)]
    ranks = names.query_ranks(spans.query[order[starts]])
    parts = [np.empty(0, np.int64)]
    for k in np.argsort(ranks).tolist():
        parts.append(_best_first(spans, order[starts[k] : ends[k]], names)[:nbest])
    return np.concatenate(parts)


def _by_query(codes: Ints) -> Ints:
    """Rows in the order of their queries' codes, equal ones as they are; of few queries by numpy's radix sort of 16 bits."""
    few = len(codes) > 0 and int(codes.max()) < 1 << 16
    return np.argsort(codes.astype(np.uint16) if few else codes, kind="stable")


def _starts(codes: Ints) -> Ints:
    """Where another code begins."""
    return np.flatnonzero(np.append(True, codes[1:] != codes[:-1])) if len(codes) else np.empty(0, np.int64)


def _best_first(spans: Spans, rows: Ints, names: Names) -> Ints:
    """The rows of one query in total order."""
    rows = rows[np.argsort(-spans.score[rows], kind="stable")]
    score = spans.score[rows]
    equal = score[1:] == score[:-1]
    places = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
    if len(places):
        # The other keys are dear.
        tied = rows[places]
        keys = [column[tied] for column in (spans.example, spans.last, spans.first, spans.channel)]
        rows[places] = tied[np.lexsort((*keys, names.document_ranks(spans.document[tied]), -score[places]))]
    return rows


class _Rows:
    """Candidates in arrays with room for more, added and dropped in place: new arrays would leave holes in memory."""

    def __init__(self) -> None:
        self.count = 0
        self._columns: list[NDArray[Any]] = []

    @property
    def spans(self) -> Spans:
        """They, as they stand here."""
        return Spans._make(column[: self.count] for column in self._columns)

    def add(self, spans: Spans) -> None:
        """Some more."""
        count = self.count + spans.rows
        if not self._columns:
            self._columns = [np.empty(0, column.dtype) for column in spans]
        if count > len(self._columns[0]):
            room = max(count, self.count * 5 // 4) + Best.LEAST
            for k, column in enumerate(self._columns):
                self._columns[k] = np.empty(room, column.dtype)
                self._columns[k][: self.count] = column[: self.count]
        for column, more in zip(self._columns, spans, strict=True):
            column[self.count : count] = more
        self.count = count

    def keep(self, rows: Ints, document: Callable[[Ints], Ints]) -> None:
        """Only these, which rise; their documents get other codes."""
        for column in self._columns:
            for place in range(0, len(rows), _AT_ONCE):
                some = rows[place : place + _AT_ONCE]
                column[place : place + len(some)] = column[some]
        self.count = len(rows)
        self.spans.document[:] = document(self.spans.document)

    def taken(self, rows: Ints) -> Spans:
        """These, in this order; here are none any more."""
        self._columns.reverse()
        return Spans._make(self._columns.pop()[rows] for _ in range(len(self._columns)))


#: Chooses among the detections of whole documents.
SpanFilter = Callable[[Spans], Spans]


class Best:
    """The best N candidates of each query, of all that are added, or of those of each addition that are chosen (`kept`).

    They are looked through only when a quarter as many have come as are kept, so that a row is looked at a few times, however
    many files there are.
    """

    #: Fewer rows than these wait.
    LEAST = 1 << 17

    def __init__(self, names: Names, nbest: int, span_filter: SpanFilter | None = None) -> None:
        self._names, self._nbest, self._filter = names, nbest, span_filter
        self._rows = _Rows()
        self._cuts = 0
        self._looked = 0  # rows that were kept when they were looked through last
        # The Nth best score so far, by the code of a query; the last is that of queries that are new.
        self._limit = np.full(1, -np.inf)

    def may_hold(self, query: Ints, score: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which of some may be among the best, by the codes of their queries and their scores."""
        known = np.minimum(query, len(self._limit) - 1)
        return score >= self._limit[known]

    def add(self, spans: Spans) -> None:
        """Add some, in any order."""
        if self._filter is not None:
            spans = self._filter(spans)
        wanted = self.may_hold(spans.query, spans.score)
        self._rows.add(spans if wanted.all() else spans.take(wanted))
        if self._rows.count - self._looked > max(self.LEAST, self._looked // 4):
            self._cut()

    def _cut(self) -> None:
        """Drop what is surely not among the best: below a query's Nth best score. What equals it may be one."""
        held = self._rows.spans
        order = _by_query(held.query)
        query, score = held.query[order], held.score[order]
        starts = _starts(query)
        limit = np.full(len(self._names.query_ids) + 1, -np.inf)
        for first, last in pairwise([*starts.tolist(), len(query)]):
            if last - first >= self._nbest:
                limit[query[first]] = np.partition(score[first:last], last - first - self._nbest)[-self._nbest]
        self._limit = limit
        rows = np.flatnonzero(self.may_hold(held.query, held.score))
        if len(rows) > 2 * self._nbest * len(starts):  # very many are equal
            rows = np.sort(_best_in_order(held, self._names, self._nbest))
        self._rows.keep(rows, self._names.compact)
        self._looked = self._rows.count
        self._cuts += 1
        if self._cuts % _GIVE_BACK == 0:  # what is free lies between what is kept
            pa.default_memory_pool().release_unused()

    def table(self, tick: float, system: str, *, last: bool = True) -> pa.Table:
        """DETECTIONS in total order; see `detections`. After the last one nothing is held any more."""
        if not self._rows.count:
            return DETECTIONS.empty_table()
        best = _best_in_order(self._rows.spans, self._names, self._nbest)
        kept = self._rows.taken(best) if last else self._rows.spans.take(best)
        pa.default_memory_pool().release_unused()
        made = pa.Table.from_batches(detections(kept, self._names, tick, system), DETECTIONS)
        del kept
        pa.default_memory_pool().release_unused()
        return made


def detections(spans: Spans, names: Names, tick: float, system: str) -> Iterator[pa.RecordBatch]:
    """DETECTIONS in pieces; times in s, `frames` in ticks.

    Args:
        spans: in the order that is wanted.
        names: of their codes.
        tick: s.
        system: name to put into their column.
    """
    for place in range(0, spans.rows, _PIECE):
        part = Spans._make(column[place : place + _PIECE] for column in spans)
        columns = {
            "query_id": names.query_strings(part.query),
            "doc_id": names.document_strings(part.document),
            "channel": pa.array(part.channel, pa.int32()),
            "start": frames_to_seconds(part.first, tick),
            "end": frames_to_seconds(part.last + 1, tick),
            "score": part.score,
            "decision": pa.nulls(part.rows, pa.bool_()),
            "cost": part.cost,
            "frames": pa.array(part.last - part.first + 1, pa.int32()),
            "example": pa.array(part.example, pa.int32()),
            "system": pa.array([system] * part.rows, pa.string()),
        }
        yield pa.RecordBatch.from_pydict(columns, schema=DETECTIONS)
