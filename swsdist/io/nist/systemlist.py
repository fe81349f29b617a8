"""System lists of the NIST programs: STDLIST (STDEval 0.7) and KWSLIST (KWSEval), recognised by their content.

Both hold, for each term, the list of its detections: file, channel, tbeg, dur, score and decision. Files are streamed.
A list in the usual layout, an element per line, is read by columns (`systemlist_lines`), any other XML by elements; the
result is the same, only the speed differs.

The programs treat irregular lists differently, so irregularities are noted or refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.codes import io as codes
from swsdist.io.compressed import short
from swsdist.io.nist.systemlist_dialect import KWSLIST, STDLIST, Dialect, RawList
from swsdist.io.nist.systemlist_lines import read_lines
from swsdist.io.nist.xml import Element, Fields, channel_number, decimal, elements, note_channels
from swsdist.io.notices import Notices

_NAME = pa.dictionary(pa.int32(), pa.string())

#: Detections of a list. `end` is start + duration as a double, as in both programs.
SYSTEM = pa.schema(
    [
        pa.field("query_id", _NAME, False),
        pa.field("doc_id", _NAME, False),
        pa.field("channel", pa.int32(), False),
        pa.field("start", pa.float64(), False),
        pa.field("end", pa.float64(), False),
        pa.field("duration", pa.float64(), False),
        pa.field("score", pa.float64(), False),
        pa.field("decision", pa.bool_(), False),
    ]
)


@dataclass(frozen=True, eq=False)
class SystemList:
    """A system list.

    Attributes:
        detections: table SYSTEM, in the order of the file; `doc_id` is the attribute `file` as written.
        queries: the query of each list with its search time in s as written, in the order of the file.
        attributes: of the outermost element (system_id, language, min_score, ...).
        dialect: of the list.
    """

    detections: pa.Table
    queries: dict[str, str]
    attributes: dict[str, str]
    dialect: Dialect


def read_systemlist(
    path: str,
    storage: Mapping[str, object] | None = None,
    *,
    notices: Notices | None = None,
    duplicates: bool = True,
) -> SystemList:
    """Read a STDLIST or KWSLIST.

    Args:
        path: plain or packed, local or `s3://`.
        storage: options for s3fs.
        notices: collects irregularities that STDEval ignores: decisions other than YES and NO (they count as NO), and
            several lists of one query (the last counts). None: they are errors.
        duplicates: keep the last of several lists of a query; False: refuse them. (KWSEval would score each against all
            references, which then count twice.)

    Raises:
        UserError: there is no such file.
        DataError: it is no system list; an attribute is missing; a time or score is not a finite number; a duration is
            negative; with file and line.
    """
    raw = read_lines(path, storage, (STDLIST, KWSLIST)) or _read_elements(path, storage)
    if raw.dialect is KWSLIST:
        _check_limits(raw.attributes, path)
    owner, queries = _queries(raw, path, notices if duplicates else None)
    detections = _table(raw, owner, path, notices)
    return SystemList(detections, queries, raw.attributes, raw.dialect)


def _read_elements(path: str, storage: Mapping[str, object] | None) -> RawList:
    dialect: Dialect | None = None
    attributes: dict[str, str] = {}
    lists: list[dict[str, str]] = []
    first: list[int] = []
    files: list[str] = []
    channels: list[str] = []
    decisions: list[str] = []
    starts: list[float] = []
    durations: list[float] = []
    scores: list[float] = []
    for element in elements(path, storage):
        if element.attributes is None:
            continue
        if dialect is None:
            dialect, attributes = _dialect(element, path), element.attributes
        elif element.name == dialect.group:
            fields = Fields(path, element)
            lists.append({dialect.query: fields.text(dialect.query), "where": fields.where, **element.attributes})
            first.append(len(scores))
        elif element.name == dialect.item:
            fields = Fields(path, element)
            if not lists:
                raise codes.DETECTION_OUTSIDE_LIST(where=fields.where, item=dialect.item, group=dialect.group)
            files.append(fields.text("file"))
            fields.channel()
            channels.append(fields.text("channel"))
            starts.append(fields.time("tbeg"))
            durations.append(fields.time("dur"))
            scores.append(fields.number("score"))
            decisions.append(fields.text("decision"))
    if dialect is None:
        raise codes.EMPTY_SYSTEM_LIST(where=path)
    columns = [pa.array(files, pa.string()).dictionary_encode(), pa.array(channels, pa.string()).dictionary_encode()]
    columns += [pa.array(values, pa.float64()) for values in (starts, durations, scores)]
    columns.append(pa.array(decisions, pa.string()).dictionary_encode())
    return RawList(dialect, attributes, lists, [*first, len(scores)], [pa.chunked_array([c]) for c in columns])


def _dialect(element: Element, path: str) -> Dialect:
    for dialect in (STDLIST, KWSLIST):
        if element.name == dialect.root:
            return dialect
    raise codes.WRONG_ROOT_ELEMENT(
        where=f"{path}, line {element.line}",
        element=short(element.name),
        expected="a system list: a STDLIST (<stdlist>) or a KWSLIST (<kwslist>)",
    )


def _check_limits(attributes: Mapping[str, str], path: str) -> None:
    """Check the limits by which KWSEval scales scores: both or neither must be present."""
    names = ("min_score", "max_score")
    limits = [name for name in names if name in attributes]
    if not limits:
        return
    where = f"{path}: <{KWSLIST.root}>"
    if len(limits) == 1:
        raise codes.LONE_SCORE_LIMIT(where=where, limit=limits[0], limits=" and ".join(names))
    low, high = (decimal(attributes[name], name, where) for name in names)
    if low > high:
        raise codes.SCORE_LIMITS_EXCHANGED(where=where, low=low, high=high)


def _queries(raw: RawList, path: str, notices: Notices | None) -> tuple[list[str | None], dict[str, str]]:
    """The query of each list, None if a later list replaces it; and the search times."""
    owner: list[str | None] = []
    last: dict[str, int] = {}
    times: dict[str, str] = {}
    for k, attributes in enumerate(raw.lists):
        query = attributes[raw.dialect.query]
        if query in last:
            where = attributes.get("where", path) + f": {short(query)}"
            if notices is None:
                raise codes.DUPLICATE_QUERY_LIST(where=where)
            notices.add(codes.REPEATED_QUERY_LIST, where=where, count=1)
            owner[last[query]] = None
        last[query] = k
        owner.append(query)
        times[query] = attributes.get(raw.dialect.time, "")
    return owner, times


def _table(raw: RawList, owner: list[str | None], path: str, notices: Notices | None) -> pa.Table:
    file, channel, start, duration, score, decision = (column.unify_dictionaries() for column in raw.columns)
    names = [query for query in owner if query is not None]
    place = {query: k for k, query in enumerate(names)}
    first = np.asarray(raw.first, dtype=np.int64)
    code = np.repeat(np.array([-1 if q is None else place[q] for q in owner], dtype=np.int32), first[1:] - first[:-1])
    query = pa.DictionaryArray.from_arrays(pa.array(code, mask=code < 0), pa.array(names, pa.string()))

    encoded = decision.combine_chunks()
    words = np.array([word == "YES" for word in encoded.dictionary.to_pylist()], dtype=bool)
    odd = {k: word for k, word in enumerate(encoded.dictionary.to_pylist()) if word not in ("YES", "NO")}
    indices = encoded.indices.to_numpy()
    for k, word in odd.items():
        rows = np.flatnonzero(indices == k)
        group = int(np.searchsorted(first, rows[0], side="right")) - 1
        where = f"{path}: {short(word)!r}, of a detection of {short(raw.lists[group][raw.dialect.query])}"
        if notices is None:
            raise codes.BAD_DECISION(where=where)
        notices.add(codes.DECISION_COUNTED_AS_NO, where=where, count=len(rows))
    numbers = channel.combine_chunks()
    note_channels(numbers.dictionary.to_pylist(), path, notices)
    table_of = np.array([channel_number(text, path) for text in numbers.dictionary.to_pylist()], dtype=np.int32)
    table = pa.table(
        [
            query,
            file.cast(_NAME),
            pa.array(table_of[numbers.indices.to_numpy()] if len(numbers) else table_of[:0]),
            start,
            pc.add(start, duration),
            duration,
            score,
            pa.array(words[indices] if len(indices) else words[:0]),
        ],
        schema=SYSTEM,
    )
    return table.filter(pa.array(code >= 0)) if (code < 0).any() else table
