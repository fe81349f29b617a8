"""Spans of candidates and detections: compact candidates, overlaps, excluded places, and times in recordings.

Candidates are numbers, so memory and sorting time do not grow with the length of names. Ids are codes into a list of
names, so no array holds more than 2 GB of strings. The order is total: by query, score descending, doc_id, channel,
first, last, example.

Overlapping candidates of a query in a document become one detection. The best candidate of a document is a place, with
all candidates that overlap it by more than a part of the shorter of the two. The best remaining candidate is the next
place, and so on. Overlap is counted in ticks, since seconds would need rounding. A document is in one file only, so
places do not depend on the partition of the work. There are two rules for the score:

- **best**: the place's best candidate is kept unchanged.
- **sum**: it is kept, with the sum of the posteriors of all candidates of the place, at most 1. Posteriors are taken to
  the nearest multiple of 2^-40 and added as integers, so the sum is exact in any order: cost = -(sum of round(p 2^40)),
  scale = 2^40. The sum is for mutually exclusive hypotheses, such as the paths of a lattice.

Excluded places are those that queries were cut from, which can be excluded from detections and references. A place is
excluded on all channels of its recording, which may carry the same sound.

Documents that are places in recordings: their detections become detections in the recordings, with times rounded to
1e-6 s. Documents of one recording may overlap, and give duplicate detections: of two detections that overlap by more
than a part of the shorter, the better is kept, as within a document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.calibrate.statistics import check_posteriors
from swsdist.core.arrays import Bools, Floats, Ints
from swsdist.core.numbers import frames_to_seconds
from swsdist.core.types import CANDIDATES, DETECTIONS

#: Detections per piece of a table: its strings stay far below Arrow's 2 GB.
_PIECE = 1 << 20
#: Rows that are moved at once.
_AT_ONCE = 1 << 16
#: Number of cuts between releases of free memory; a release takes half as long as a cut.
_GIVE_BACK = 4


class Names:
    """The ids seen so far, and their codes.

    A query has one code. A document has a code per file of candidates, since candidates are never compared across files; so
    only the names of kept candidates need memory (`compact`).
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
            encoded = chunk.dictionary_encode()
            names = encoded.dictionary.to_pylist()
            for name in names:
                if name not in self._code:
                    self._code[name] = len(self.query_ids)
                    self.query_ids.append(name)
            parts.append(np.array([self._code[name] for name in names], np.int64)[encoded.indices.to_numpy()])
        return np.concatenate(parts)

    def documents(self, column: pa.ChunkedArray) -> Ints:
        """The code of each row of a column of documents. Codes differ between calls, and `compact` changes them."""
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
        present = np.zeros(self._count, bool)
        present[documents] = True
        codes = np.cumsum(present) - 1
        first = 0
        for k, names in enumerate(self._documents):  # one by one, to hold few names twice
            self._documents[k] = names.filter(pa.array(present[first : first + len(names)]))
            first += len(names)
        self._count = int(present.sum())
        return codes[documents]

    def _query_names(self, codes: Ints) -> pa.Array:
        return pa.array([self.query_ids[code] for code in codes.tolist()], pa.string())

    def _document_names(self, codes: Ints) -> pa.Array:
        if len(self._documents) > 1:  # else each call would join them
            self._documents = [pa.chunked_array(self._documents, pa.string()).combine_chunks()]
        return self._documents[0].take(pa.array(codes)) if self._documents else pa.array([], pa.string())

    def query_ranks(self, codes: Ints) -> Ints:
        """The rank of each query's name among the sorted names."""
        return _ranks(codes, self._query_names)

    def document_ranks(self, codes: Ints) -> Ints:
        """The rank of each document's name among the sorted names."""
        return _ranks(codes, self._document_names)

    def query_strings(self, codes: Ints) -> pa.Array:
        """The names of queries by their codes."""
        return _strings(codes, self._query_names)

    def document_strings(self, codes: Ints) -> pa.Array:
        """The names of documents by their codes."""
        return _strings(codes, self._document_names)


def _strings(codes: Ints, names_of: Callable[[Ints], pa.Array]) -> pa.Array:
    """The name of each code, with one lookup per distinct code."""
    used, place = np.unique(codes, return_inverse=True)
    return names_of(used).take(pa.array(place))


def _ranks(codes: Ints, names_of: Callable[[Ints], pa.Array]) -> Ints:
    """The rank of each code's name, sorted by code points (as UTF-8 is by bytes); equal names share a rank."""
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
    score: Floats

    def take(self, rows: NDArray[np.integer] | Bools) -> Spans:
        """Some rows."""
        return Spans._make(column[rows] for column in self)

    @property
    def rows(self) -> int:
        """The number of spans."""
        return len(self.score)


#: Selects rows by the codes of their queries and their scores.
RowFilter = Callable[[Ints, Floats], Bools]


def spans_of(candidates: pa.Table, names: Names, selects: RowFilter | None = None) -> Spans:
    """CANDIDATES as numbers, all or selected ones; the score is ``-cost / scale``, one float64 division."""
    query = names.queries(candidates["query_id"])
    cost, scale = (candidates[name].to_numpy() for name in ("cost", "scale"))
    score = -cost.astype(np.float64) / scale
    rows = np.arange(len(score)) if selects is None else np.flatnonzero(selects(query, score))
    few = len(rows) < len(score)
    left = candidates.take(pa.array(rows)) if few else candidates
    integers = {name: left[name].to_numpy().astype(np.int64) for name in ("channel", "example", "first", "last")}
    document = names.documents(left["doc_id"])
    if few:
        query, cost, scale, score = query[rows], cost[rows], scale[rows], score[rows]
    return Spans(query, document, cost=cost, scale=scale, score=score, **integers)


#: The columns of CANDIDATES that statistics read.
_SCORED = pa.schema(
    [CANDIDATES.field(name) for name in ("query_id", "doc_id", "channel", "example", "first", "last", "cost", "scale")]
)


def scored_places(places: Spans, names: Names, cost: Ints, scale: Ints) -> pa.Table:
    """Places with other scores, as statistics take candidates, of example 0."""
    where = [names.query_strings(places.query), names.document_strings(places.document)]
    span = places.channel.astype(np.int32), np.zeros(places.rows, np.int32), places.first, places.last
    return pa.table([*where, *span, cost, scale], schema=_SCORED)


def in_order(spans: Spans, names: Names) -> Spans:
    """Spans in total order."""
    return spans.take(_best_in_order(spans, names))


def _best_in_order(spans: Spans, names: Names, nbest: int | None = None) -> Ints:
    """Rows of each query's best, or of all, in total order; sorting needs memory for one query."""
    order = _by_query(spans.query)
    starts = _starts(spans.query[order])
    ends = [*starts[1:].tolist(), len(order)]
    ranks = names.query_ranks(spans.query[order[starts]])
    parts = [np.empty(0, np.int64)]
    for k in np.argsort(ranks).tolist():
        parts.append(_best_first(spans, order[starts[k] : ends[k]], names)[:nbest])
    return np.concatenate(parts)


def _by_query(codes: Ints) -> Ints:
    """Rows in stable order of their queries' codes; for few queries by numpy's 16-bit radix sort."""
    few = len(codes) > 0 and int(codes.max()) < 1 << 16
    return np.argsort(codes.astype(np.uint16) if few else codes, kind="stable")


def _starts(codes: Ints) -> Ints:
    """The first row of each code."""
    return np.flatnonzero(np.append(True, codes[1:] != codes[:-1])) if len(codes) else np.empty(0, np.int64)


def _best_first(spans: Spans, rows: Ints, names: Names) -> Ints:
    """The rows of one query in total order."""
    rows = rows[np.argsort(-spans.score[rows], kind="stable")]
    score = spans.score[rows]
    equal = score[1:] == score[:-1]
    places = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
    if len(places):
        # The other keys are expensive.
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
        """The present rows."""
        return Spans._make(column[: self.count] for column in self._columns)

    def add(self, spans: Spans) -> None:
        """Append rows."""
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
        """Keep only these rows, in ascending order; their documents get new codes."""
        for column in self._columns:
            for place in range(0, len(rows), _AT_ONCE):
                some = rows[place : place + _AT_ONCE]
                column[place : place + len(some)] = column[some]
        self.count = len(rows)
        self.spans.document[:] = document(self.spans.document)

    def taken(self, rows: Ints) -> Spans:
        """These rows in this order; empties the container."""
        self._columns.reverse()
        return Spans._make(self._columns.pop()[rows] for _ in range(len(self._columns)))


#: Chooses among the detections of whole documents.
SpanFilter = Callable[[Spans], Spans]


class Best:
    """The N best candidates of each query, among those that the filter of each addition passes.

    A cut happens only when the additions reach a quarter of the kept rows, so each row is checked a few times, whatever
    the number of files.
    """

    #: Fewer rows than these wait.
    LEAST = 1 << 17

    def __init__(self, names: Names, nbest: int, span_filter: SpanFilter | None = None) -> None:
        self._names, self._nbest, self._filter = names, nbest, span_filter
        self._rows = _Rows()
        self._cuts = 0
        self._looked = 0  # rows kept by the last cut
        # The Nth best score so far, by the code of a query; the last is that of queries that are new.
        self._limit = np.full(1, -np.inf)

    def may_hold(self, query: Ints, score: Floats) -> Bools:
        """Whether rows may be among the best, by the codes of their queries and their scores."""
        codes = np.minimum(query, len(self._limit) - 1)
        return score >= self._limit[codes]

    def add(self, spans: Spans) -> None:
        """Add some, in any order."""
        if self._filter is not None:
            spans = self._filter(spans)
        selects = self.may_hold(spans.query, spans.score)
        self._rows.add(spans if selects.all() else spans.take(selects))
        if self._rows.count - self._looked > max(self.LEAST, self._looked // 4):
            self._cut()

    def _cut(self) -> None:
        """Drop rows below their query's Nth best score; ties are kept."""
        present_rows = self._rows.spans
        order = _by_query(present_rows.query)
        query, score = present_rows.query[order], present_rows.score[order]
        starts = _starts(query)
        limit = np.full(len(self._names.query_ids) + 1, -np.inf)
        for first, last in pairwise([*starts.tolist(), len(query)]):
            if last - first >= self._nbest:
                limit[query[first]] = np.partition(score[first:last], last - first - self._nbest)[-self._nbest]
        self._limit = limit
        rows = np.flatnonzero(self.may_hold(present_rows.query, present_rows.score))
        if len(rows) > 2 * self._nbest * len(starts):  # very many are equal
            rows = np.sort(_best_in_order(present_rows, self._names, self._nbest))
        self._rows.keep(rows, self._names.compact)
        self._looked = self._rows.count
        self._cuts += 1
        if self._cuts % _GIVE_BACK == 0:  # free memory is fragmented
            pa.default_memory_pool().release_unused()

    def table(self, tick: float, system: str) -> pa.Table:
        """DETECTIONS in total order; see `detections`. It empties the container."""
        if not self._rows.count:
            return DETECTIONS.empty_table()
        best = _best_in_order(self._rows.spans, self._names, self._nbest)
        kept = self._rows.taken(best)
        pa.default_memory_pool().release_unused()
        encoded = pa.Table.from_batches(detections(kept, self._names, tick, system), DETECTIONS)
        del kept
        pa.default_memory_pool().release_unused()
        return encoded


def detections(spans: Spans, names: Names, tick: float, system: str) -> Iterator[pa.RecordBatch]:
    """DETECTIONS in pieces; times in s, `frames` in ticks.

    Args:
        spans: in the order of the output.
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


#: How candidates of one place are merged.
Merge = Literal["best", "sum"]

#: A posterior of 1 is this many units.
POSTERIOR = 1 << 40


def claim_places(spans: Spans, overlap: float) -> tuple[Spans, Ints, Ints]:
    """For each candidate, the candidate of the same query and document that suppresses it.

    Args:
        spans: all spans of each of their documents.
        overlap: see `swsdist.reduce.examples.Bucket`.

    Returns:
        The spans, grouped by query and document; their rows, best first within each group; and for each position in that
        order the position of the span that suppresses it, or its own position if it is kept.
    """
    if spans.rows == 0:
        return spans, np.empty(0, np.int64), np.empty(0, np.int64)
    starts = _starts_of_overlaps(spans)
    # Spans of one example arrive grouped; then there are as many runs as keys.
    if len(starts) > 1 and not _stand_together(spans, starts):
        spans = spans.take(np.lexsort((spans.channel, spans.document, spans.query)))
        starts = _starts_of_overlaps(spans)
    from swsdist.kernels.suppression import claim  # loads numba: planning does without

    order, owner = np.empty(spans.rows, np.int64), np.empty(spans.rows, np.int64)
    bounds = np.append(starts, spans.rows)
    claim(bounds, spans.score, spans.first, spans.last, spans.example, overlap, order, owner)
    return spans, order, owner


def _starts_of_overlaps(spans: Spans) -> Ints:
    """The first row of each run of one query, document and channel."""
    new = np.ones(spans.rows, bool)
    new[1:] = spans.query[1:] != spans.query[:-1]
    for column in (spans.document, spans.channel):
        new[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(new)


def _stand_together(spans: Spans, starts: Ints) -> bool:
    """Whether no query, document and channel has two runs."""
    documents, channels = int(spans.document.max()) + 1, int(spans.channel.max()) + 1
    keys = (spans.query[starts] * documents + spans.document[starts]) * channels + spans.channel[starts]
    keys.sort()
    return bool((keys[1:] != keys[:-1]).all())


def merge_overlaps(spans: Spans, overlap: float, merge: Merge) -> Spans:
    """One span per place.

    Raises:
        DataError: `sum`, and a score is not in [0, 1].
    """
    if merge == "sum":
        check_posteriors(spans.cost, spans.scale)
    spans, order, owner = claim_places(spans, overlap)
    kept_rows = np.flatnonzero(owner == np.arange(spans.rows))
    kept = spans.take(order[kept_rows])
    if merge == "best":
        return kept
    total = np.zeros(spans.rows, np.int64)
    # Only 2^23 candidates at one place would overflow 64 bits.
    np.add.at(total, owner, np.rint(spans.score[order] * POSTERIOR).astype(np.int64))
    cost = -np.minimum(total[kept_rows], POSTERIOR)
    scale = np.full(kept.rows, POSTERIOR)
    return kept._replace(cost=cost, scale=scale, score=-cost.astype(np.float64) / scale)


#: End of a place without an end, s.
_END = 1e9

#: Sources of a query's examples: by query and recording, spans in s, ascending.
SourcePlaces = Mapping[tuple[str, str], list[tuple[float, float]]]


def source_places(queries: Iterable[Mapping[str, Any]], documents: pa.Table, *, by_path: bool) -> SourcePlaces:
    """The places, in the names and times of recordings.

    Args:
        queries: rows of QUERIES; rows without a document are ignored.
        documents: CORPUS or PLACED.
        by_path: include rows that name only a document's file.
    """
    queries = [row for row in queries if row["doc_id"] is not None or (by_path and row["path"] is not None)]
    if not queries:
        return {}
    ids = pa.array({row["doc_id"] for row in queries if row["doc_id"] is not None}, pa.string())
    paths = pa.array({row["path"] for row in queries if row["doc_id"] is None}, pa.string())
    meant = pc.or_(pc.is_in(documents["doc_id"], ids), pc.is_in(documents["path"], paths))
    columns = ["doc_id", "path"]
    if "recording" in documents.column_names:
        meant = pc.or_(meant, pc.is_in(documents["recording"], ids))
        columns.append("recording")
    by_name: dict[str, str] = {}
    by_file: dict[str, str] = {}
    for row in documents.select(columns).filter(meant).to_pylist():
        recording = row.get("recording") or row["doc_id"]
        by_name[row["doc_id"]] = by_name[recording] = by_file[row["path"]] = recording
    results: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in queries:
        recording = by_name.get(row["doc_id"]) if row["doc_id"] is not None else by_file.get(row["path"])
        if recording is not None:
            span = (row["start"] or 0.0, _END if row["end"] is None else row["end"])
            results.setdefault((row["query_id"], recording), []).append(span)
    return {key: sorted(spans) for key, spans in sorted(results.items())}


def outside_places(table: pa.Table, places: SourcePlaces) -> pa.Table:
    """Rows outside of their query's source places: with an overlap of at most half of the shorter.

    Args:
        table: with query_id, doc_id (of a recording), start and end: DETECTIONS, REFERENCES.
        places: of its queries.
    """
    if not places or not table.num_rows:
        return table
    keys = zip(table["query_id"].to_pylist(), table["doc_id"].to_pylist(), strict=True)
    start, end = table["start"].to_numpy(), table["end"].to_numpy()
    kept = np.ones(table.num_rows, bool)
    for k, key in enumerate(keys):
        for first, last in places.get(key, ()):
            common = min(end[k], last) - max(start[k], first)
            kept[k] &= common <= min(end[k] - start[k], last - first) / 2
    return table.filter(pa.array(kept))


#: Columns of DOCUMENTS that say where documents lie.
WHERE = ("doc_id", "channel", "recording", "start")

#: Units of a second in which overlaps are counted.
_FINE = 1_000_000


def in_recordings(detections: pa.Table, documents: pa.Table, overlap: float) -> pa.Table:
    """Detections by recording, in total order.

    Args:
        detections: DETECTIONS, by document.
        documents: columns WHERE of DOCUMENTS; all documents of the detections.
        overlap: of two that overlap by more than this part of the shorter, the better stays.
    """
    placed_documents = pc.and_(
        pc.is_valid(documents["recording"]), pc.is_in(documents["doc_id"], pc.unique(detections["doc_id"]))
    )
    keys, names, starts = _recording_starts(documents.filter(placed_documents))
    if not keys or detections.num_rows == 0:
        return detections
    rows = [
        keys.get(key, -1)
        for key in zip(detections["doc_id"].to_pylist(), detections["channel"].to_pylist(), strict=True)
    ]
    at = np.array(rows, np.int64)
    recording_ids = pa.array([names[row] if row >= 0 else None for row in rows], pa.string())
    doc_id = pc.coalesce(recording_ids, detections["doc_id"].combine_chunks())
    offset = np.where(at >= 0, np.array(starts)[at], 0.0)
    start, end = (np.round(detections[name].to_numpy() + offset, 6) for name in ("start", "end"))
    placed = detections
    for name, values in (("doc_id", doc_id), ("start", pa.array(start)), ("end", pa.array(end))):
        placed = placed.set_column(DETECTIONS.get_field_index(name), DETECTIONS.field(name), values)
    codes, none = Names(), np.zeros(len(at), np.int64)
    spans = Spans(
        query=codes.queries(placed["query_id"]),
        document=codes.documents(placed["doc_id"]),
        channel=placed["channel"].to_numpy().astype(np.int64),
        example=placed["example"].fill_null(0).to_numpy().astype(np.int64),
        first=np.rint(start * _FINE).astype(np.int64),
        last=np.rint(end * _FINE).astype(np.int64) - 1,
        cost=np.arange(len(at)),  # the row, to find it again
        scale=none,
        score=np.array(placed["score"].to_numpy()),
    )
    spans, order, owner = claim_places(spans, overlap)
    kept = in_order(spans.take(order[owner == np.arange(spans.rows)]), codes)
    return placed.take(pa.array(kept.cost))


def _recording_starts(documents: pa.Table) -> tuple[dict[tuple[str, int], int], list[str], list[float]]:
    """Rows by document and channel, and of each row recording and start."""
    columns = [documents[name].to_pylist() for name in WHERE]
    keys = {key: row for row, key in enumerate(zip(columns[0], columns[1], strict=True))}
    return keys, columns[2], columns[3]
