"""System lists of the NIST programs: STDLIST (STDEval 0.7) and KWSLIST (KWSEval), recognised by their content.

Both hold, for each term, the list of its detections: file, channel, tbeg, dur, score and decision. Files are streamed.
A list in the usual layout, an element per line, is read by columns (`read_lines`), any other XML by elements; the
result is the same, only the speed differs.

The programs treat irregular lists differently, so irregularities are noted or refused.

**By columns**: an element per line, attributes in one order. Such a line, split at its double quotes, is a row of a table:
names of attributes in the even columns, values in the odd ones. pyarrow's CSV reader does that some ten times as fast as an
XML parser yields elements. At any deviation (a comment, an entity, a single quote, two elements per line, a missing
attribute, an invalid number) `read_lines` gives up, and the file is then read as XML from its start: so only one place finds
and reports errors.

**Writing**: `stdlist` of STDEval 0.7 and `kwslist` of KWSEval (F4DE 3.5).

Both are streamed: batches of detections in, text out; and written in parts, each of its own queries. Requirements of the
programs, found by reading and running them:

- STDEval parses by regular expressions: exactly `<name attr="...">`, `termid` first, and it hangs on a number written
  `1e+20` or a name that holds `+`, `(`, `[`, ... KWSEval validates: `tbeg` and `dur` without exponent, `decision` YES
  or NO. So numbers are plain decimals. A score is the shortest decimal that reads back as the same double.
- Both take the mid-point as tbeg + dur / 2. `dur` is the exact decimal difference of `end` and `start` as printed, so
  that tbeg + dur is `end` to one unit in the last place, and only decisions on a border to about 1e-12 s can change.
- `file` is looked up without folders and, by STDEval, without `.sph`, `.wav`, `.flac`; by KWSEval without `.sph` only.
  So folders and these three endings are removed (`file_id`): the file names in the RTTM must have the same form.
- Neither decodes XML entities in a file name, RTTM splits at blanks, and neither links query ids outside of ASCII: such
  names are refused here, since the scores would silently be wrong.
- A query occurs once, with its detections together (STDEval keeps the last of two lists, KWSEval scores both). A query
  without detections has an empty list.
- A detection without decision is written NO: STDEval fails on any other value when it draws a curve.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import BinaryIO, NamedTuple
from xml.sax.saxutils import escape

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from swsdist.core.arrays import Bools, Ints
from swsdist.core.codes import families
from swsdist.core.codes import io as codes
from swsdist.core.errors import DataError, SwsdistError, UserError
from swsdist.io.compressed import LONGEST_LINE, opened, short
from swsdist.io.fields import LATEST, ROWS, decimals
from swsdist.io.fields import decimal as fields_decimal
from swsdist.io.nist.xml import Element, Fields, channel_number, decimal, elements, note_channels
from swsdist.io.notices import Notices


class Dialect(NamedTuple):
    """A program's names of elements and attributes, and of a list's query."""

    root: str
    group: str
    query: str
    time: str
    oov: str
    item: str


STDLIST = Dialect("stdlist", "detected_termlist", "termid", "term_search_time", "oov_term_count", "term")
KWSLIST = Dialect("kwslist", "detected_kwlist", "kwid", "search_time", "oov_count", "kw")


class RawList(NamedTuple):
    """Result of both readers: the k-th list owns the rows from first[k] to first[k + 1].

    `columns`: file (dictionary), channel (dictionary of texts), tbeg, dur, score (float64), decision (dictionary).
    """

    dialect: Dialect
    attributes: dict[str, str]
    lists: list[dict[str, str]]
    first: list[int]
    columns: list[pa.ChunkedArray]


_BLOCK = 4 << 20
_HEAD = re.compile(
    rb'\s*(?:<\?xml version="1\.[01]"(?: encoding="(?:UTF-8|utf-8)")?\s*\?>\s*)?<(\w+)((?: \w+="[^"<&\']*")*)>[ \r]*\n'
)
_ATTRIBUTE = re.compile(r' (\w+)="([^"<&\']*)"')
_VALUES = ("file", "channel", "tbeg", "dur", "score", "decision")
_NAME = pa.dictionary(pa.int32(), pa.string())
_TYPES = {
    "file": _NAME,
    "channel": _NAME,
    "decision": _NAME,
    "tbeg": pa.float64(),
    "dur": pa.float64(),
    "score": pa.float64(),
}


class _OtherLayout(Exception):
    """The file has another layout."""


def read_lines(path: str, storage: Mapping[str, object] | None, dialects: Sequence[Dialect]) -> RawList | None:
    """The list, or None if it has another layout, or is no list.

    Raises:
        UserError: there is no such file.
        DataError: it is packed and damaged.
    """
    with opened(path, storage) as stream:
        try:
            return _Reader(stream, dialects).read()
        except _OtherLayout:
            return None


class _Reader:
    def __init__(self, stream: BinaryIO, dialects: Sequence[Dialect]) -> None:
        self._stream = stream
        block = stream.read(_BLOCK)
        head = _HEAD.match(block)
        by_root = {dialect.root.encode(): dialect for dialect in dialects}
        if head is None or head[1] not in by_root:
            raise _OtherLayout
        self._dialect = by_root[head[1]]
        self._attributes = self._pairs(head[2])
        self._rest = block[head.end() :]
        names = "|".join(re.escape(name) for name in (self._dialect.group, self._dialect.root))
        self._tag = re.compile(rf'[ \t]*<(/?)({names})((?: \w+="[^"<&\']*")*) ?(/?)>[ \t]*\r?')
        self._lists: list[dict[str, str]] = []
        self._first: list[int] = []
        self._rows = 0
        self._state = "between"  # between lists, in a list, or at the end
        self._order: list[str] | None = None
        self._parts: list[pa.Table] = []

    @staticmethod
    def _pairs(text: bytes) -> dict[str, str]:
        try:
            pairs = _ATTRIBUTE.findall(text.decode())
        except UnicodeDecodeError:
            raise _OtherLayout from None
        if len(dict(pairs)) != len(pairs):
            raise _OtherLayout
        return dict(pairs)

    def read(self) -> RawList:
        while True:
            block = self._stream.read(_BLOCK)
            data = self._rest + block
            cut = data.rfind(b"\n") + 1 if block else len(data)
            self._rest = data[cut:]
            if len(self._rest) >= LONGEST_LINE:
                raise _OtherLayout
            self._part(data[:cut])
            if not block:
                break
        if self._state != "end" or self._rest.strip():
            raise _OtherLayout
        columns = (
            pa.concat_tables(self._parts) if self._parts else pa.table({n: pa.array([], _TYPES[n]) for n in _VALUES})
        )
        return RawList(
            self._dialect,
            self._attributes,
            self._lists,
            [*self._first, self._rows],
            [columns.column(name) for name in _VALUES],
        )

    def _part(self, data: bytes) -> None:
        """Read whole lines."""
        if not data.strip():
            return
        if b"&" in data or b"'" in data or b"<!" in data or b"<?" in data or b"\0" in data or b"]]>" in data:
            raise _OtherLayout
        tags: list[tuple[int, str]] = []

        def other(row: pa.csv.InvalidRow) -> str:
            tags.append((row.number, row.text))
            return "skip"

        if self._order is None:
            self._order = self._attribute_order(data)
        names = self._columns()
        try:
            table = pa.csv.read_csv(
                pa.BufferReader(data),
                pa.csv.ReadOptions(use_threads=False, column_names=names, block_size=len(data) + 1),
                pa.csv.ParseOptions(
                    delimiter='"', quote_char=False, invalid_row_handler=other, ignore_empty_lines=False
                ),
                pa.csv.ConvertOptions(
                    column_types={name: _TYPES.get(name, _NAME) for name in names},
                    null_values=[],
                    strings_can_be_null=False,
                    quoted_strings_can_be_null=False,
                ),
            )
        except pa.ArrowInvalid:
            if names != ["tag"]:
                raise _OtherLayout from None
            raise
        self._check_tags(table, names)
        _check_values(table)
        at = 0
        for k, (number, text) in enumerate(tags):
            rows = number - 1 - k  # rows of detections before this line; lines count from 1
            self._detections(rows - at)
            at = rows
            self._element(text)
        self._detections(table.num_rows - at)
        if table.num_rows:
            self._parts.append(table.select(_VALUES))

    def _attribute_order(self, data: bytes) -> list[str]:
        match = re.search(rf'(?m)^[ \t]*<{self._dialect.item}((?: \w+="[^"\n]*")+) ?/>[ \t]*\r?$'.encode(), data)
        order = (
            [name for name, _ in _ATTRIBUTE.findall(match[1].decode("utf-8", "replace"))] if match else list(_VALUES)
        )
        if sorted(order) != sorted(_VALUES):
            raise _OtherLayout
        return order

    def _columns(self) -> list[str]:
        assert self._order is not None
        between = [x for k, name in enumerate(self._order) for x in (f"before {k}", name)]
        return [*between, "after"]

    def _check_tags(self, table: pa.Table, names: list[str]) -> None:
        """Check that the text around the values is that of such lines."""
        assert self._order is not None
        first, *others = self._order
        around = [f"<{self._dialect.item} {first}=", *(f" {name}=" for name in others), "/>"]
        for name, required in zip(names[::2], around, strict=True):
            texts = _distinct(table, name)
            if required is around[0]:
                texts = [text.lstrip(" \t") for text in texts]
            elif required is around[-1]:
                texts = [text.strip(" \t\r") for text in texts]
            if any(text != required for text in texts):
                raise _OtherLayout

    def _detections(self, count: int) -> None:
        if count < 0 or (count and self._state != "in"):
            raise _OtherLayout
        self._rows += count

    def _element(self, text: str) -> None:
        if not text.strip():
            return
        tag = self._tag.fullmatch(text)
        if tag is None:
            raise _OtherLayout
        closing, name, pairs, empty = tag.groups()
        attributes = dict(_ATTRIBUTE.findall(pairs))
        moves = {("between", "", self._dialect.group): "in", ("in", "/", self._dialect.group): "between"}
        moves["between", "/", self._dialect.root] = "end"
        state = moves.get((self._state, closing, name))
        if state is None or (closing and (pairs or empty)) or len(attributes) != pairs.count("="):
            raise _OtherLayout
        if state == "in":
            if not attributes.get(self._dialect.query):
                raise _OtherLayout
            self._lists.append(attributes)
            self._first.append(self._rows)
            state = "between" if empty else "in"
        self._state = state


def _check_values(table: pa.Table) -> None:
    """Check that numbers are finite, and texts no tags."""
    for name in ("tbeg", "dur", "score") if table.num_rows else ():
        limits = pc.min_max(table.column(name)).as_py()
        low, high = (0.0, LATEST) if name != "score" else (-sys.float_info.max, sys.float_info.max)
        if not low <= limits["min"] <= limits["max"] <= high or pc.any(pc.is_nan(table.column(name))).as_py():
            raise _OtherLayout
    for name in ("file", "channel", "decision"):
        if any(not text or "<" in text for text in _distinct(table, name)):
            raise _OtherLayout
    if not all(text.isascii() and text.isdigit() and len(text) < 10 for text in _distinct(table, "channel")):
        raise _OtherLayout


def _distinct(table: pa.Table, name: str) -> list[str]:
    """The texts of a column, each once."""
    texts: list[str] = table.column(name).combine_chunks().dictionary.to_pylist()
    return texts


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
                raise families.MALFORMED_XML(
                    "a <{item}> is in no <{group}>",
                    "put each detection in its query's <{group}>",
                    where=fields.where,
                    item=dialect.item,
                    group=dialect.group,
                )
            files.append(fields.text("file"))
            fields.channel()
            channels.append(fields.text("channel"))
            starts.append(fields.time("tbeg"))
            durations.append(fields.time("dur"))
            scores.append(fields.number("score"))
            decisions.append(fields.text("decision"))
    if dialect is None:
        raise families.EMPTY_INPUT.of(DataError)("the system list is empty", "name a STDLIST or KWSLIST", where=path)
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
        raise families.MALFORMED_XML(
            "the list has {limit} alone",
            "give both {limits}, or neither",
            where=where,
            limit=limits[0],
            limits=" and ".join(names),
        )
    low, high = (decimal(attributes[name], name, where) for name in names)
    if low > high:
        raise families.INVALID_VALUE.of(DataError)(
            "min_score {low} is above max_score {high}", "exchange them", where=where, low=low, high=high
        )


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
                raise families.DUPLICATE_NAME("a query has two lists", "put its detections into one list", where=where)
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
            raise families.MALFORMED_LINE("a decision is neither YES nor NO", "write YES or NO", where=where)
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


#: Characters in names that break a program.
_FORBIDDEN = {STDLIST: re.compile(r"[+*?()\[\]{}|^$\\]"), KWSLIST: re.compile(r"(?!)")}
#: Of a document's id that may hold one of them, or what breaks both.
_SUSPECT = r"[^!-~]|[&<>\"+*?()\[\]{}|^$\\]"
_UNITS = 10_000  # in a second, of which frames begin at whole ones


class ListWriter(NamedTuple):
    """A list of one of the programs: a head, rows of its parts, and a tail. `where` names it in errors."""

    dialect: Dialect
    attributes: dict[str, str]
    seconds: float
    where: str

    def write(self, batches: Iterable[pa.RecordBatch], queries: Iterable[str], out: Path) -> None:
        """Write a whole list.

        Args:
            batches: detections (schema DETECTIONS), those of a query together.
            queries: ids of all queries; those without detections get an empty list.
            out: local file to write.

        Raises:
            UserError: the program cannot process a name, or cannot distinguish two documents.
            DataError: a score is not finite, or a query's detections are not consecutive.
        """
        done: set[str] = set()
        with out.open("wb") as file:
            file.write(self.head())
            file.writelines(self.rows(batches, done))
            file.write(self.tail(query for query in queries if query not in done))

    def head(self) -> bytes:
        """What stands before the rows."""
        return f"<{self.dialect.root} {_attributes(self.attributes)}>\n".encode()

    def tail(self, queries: Iterable[str]) -> bytes:
        """What stands behind the rows, with an empty list for each of some queries; errors as of `write`."""
        empty = "".join(self._begin(query) + self._end for query in queries)
        return f"{empty}</{self.dialect.root}>\n".encode()

    def rows(self, batches: Iterable[pa.RecordBatch], done: set[str]) -> Iterator[bytes | memoryview]:
        """The lists of queries with detections, which are added to `done`; arguments and errors as of `write`."""
        current: str | None = None
        documents: list[pa.Array] = []
        for batch in (some.slice(k, ROWS) for some in batches for k in range(0, some.num_rows, ROWS)):
            queries, ids = (batch.column(name).cast(pa.string()) for name in ("query_id", "doc_id"))
            encoded = ids.dictionary_encode()
            documents.append(encoded.dictionary)
            bad, error = self._first_fault(batch, encoded)
            lines, starts = self._lines(batch, encoded)
            for query, first, last in _runs(queries):
                if query != current:
                    if query in done:
                        raise families.MALFORMED_FILE(
                            "the detections of query {query!r} are not consecutive",
                            "sort the detections by query_id",
                            where=self.where,
                            query=query,
                        )
                    done.add(query)
                    yield (("" if current is None else self._end) + self._begin(query)).encode()
                    current = query
                if bad < last and error is not None:
                    raise error
                yield lines[starts[first] : starts[last]]
        if current is not None:
            yield self._end.encode()
        self.check(documents)

    def check(self, documents: Iterable[pa.Array]) -> None:
        """Refuse a list in which the program could not distinguish two documents.

        Args:
            documents: distinct ids of those of each part.

        Raises:
            UserError: there are two.
        """
        held, new = [pa.array([], pa.string())], 0
        for some in documents:
            held.append(some)
            new += len(some)
            if new > len(held[0]):
                held, new = [pc.unique(pa.chunked_array(held))], 0
        known = pc.unique(pa.chunked_array(held))
        names = _file_ids(known)
        if pc.count_distinct(names).as_py() == len(names):
            return
        first: dict[str, str] = {}
        for name, document in zip(names.to_pylist(), known.to_pylist(), strict=True):
            other = first.setdefault(name, document)
            if other != document:
                raise families.UNWRITABLE_NAME(
                    "the NIST programs call both documents {first!r} and {second!r} {name!r}",
                    "give them different last names, or leave {list} out of report.exports",
                    first=other,
                    second=document,
                    name=name,
                    list=self.dialect.root,
                )

    @property
    def _end(self) -> str:
        return f"</{self.dialect.group}>\n"

    def _begin(self, query: str) -> str:
        if fault := self._fault(query, None if query.isascii() else "is not ASCII"):
            raise self._invalid("query", query, fault)
        shown = {self.dialect.query: query, self.dialect.time: fields_decimal(self.seconds), self.dialect.oov: "0"}
        return f"<{self.dialect.group} {_attributes(shown)}>\n"

    def _first_fault(self, batch: pa.RecordBatch, encoded: pa.DictionaryArray) -> tuple[int, SwsdistError | None]:
        """Row of the first score or document that cannot be written, and the error."""
        rows, error = batch.num_rows, None
        for document in encoded.dictionary.filter(pc.match_substring_regex(encoded.dictionary, _SUSPECT)).to_pylist():
            bad = re.search(r'[&<>"\s]', file_id(document))
            if fault := self._fault(document, f"holds {bad[0]!r}" if bad else None):
                rows = pc.index(encoded.indices, pc.index(encoded.dictionary, document)).as_py()
                error = self._invalid("document", document, fault)
                break
        row = pc.index(pc.is_finite(batch.column("score")), False).as_py()
        if 0 <= row <= rows:
            query, document, score = (batch.column(name)[row].as_py() for name in ("query_id", "doc_id", "score"))
            return row, families.INVALID_VALUE.of(DataError)(
                "query {query!r} has the score {score} in document {document!r}",
                "run the normalisation again; scores must be finite",
                where=self.where,
                query=query,
                score=score,
                document=document,
            )
        return rows, error

    def _fault(self, name: str, fault: str | None) -> str | None:
        """What keeps the program from reading a name; None: nothing."""
        if not name.isprintable():
            return "holds a control character"
        special = _FORBIDDEN[self.dialect].search(name)
        return f"holds {special[0]!r}" if special else fault

    def _invalid(self, kind: str, name: str, fault: str) -> UserError:
        return families.UNWRITABLE_NAME(
            "the NIST program that reads a {list} cannot work with {kind} {name!r}: its id {fault}",
            "rename it, or leave {list} out of report.exports",
            list=self.dialect.root,
            kind=kind,
            name=name,
            fault=fault,
        )

    def _lines(self, batch: pa.RecordBatch, encoded: pa.DictionaryArray) -> tuple[memoryview, list[int]]:
        """The elements of a batch's rows, as bytes, and where each begins and the last ends."""
        start, duration = _times(batch)
        lines = pc.binary_join_element_wise(
            f'<{self.dialect.item} file="',
            _file_ids(encoded.dictionary).take(encoded.indices),
            '" channel="',
            batch.column("channel").cast(pa.string()),
            '" tbeg="',
            start,
            '" dur="',
            duration,
            '" score="',
            decimals(batch.column("score")),
            pc.if_else(pc.fill_null(batch.column("decision"), False), '" decision="YES"/>\n', '" decision="NO"/>\n'),
            "",
        )
        _, starts, data = lines.buffers()
        return memoryview(data), np.frombuffer(starts, np.int32, len(lines) + 1, 4 * lines.offset).tolist()


def stdlist(
    where: str = "stdlist.xml",
    *,
    termlist: str = "tlist.xml",
    language: str = "unknown",
    system: str = "swsdist",
    indexing_seconds: float = 0.0,
    index_bytes: int = 0,
    search_seconds: float = 0.0,
) -> ListWriter:
    """The system list of STDEval.

    Args:
        where: its name in errors.
        termlist: name of the corresponding term list.
        language: language of the term list.
        system: name of the system.
        indexing_seconds: cost of indexing.
        index_bytes: size of the index.
        search_seconds: cost of searching, per query.
    """
    attributes = {
        "termlist_filename": termlist,
        "indexing_time": fields_decimal(indexing_seconds),
        "language": language,
        "index_size": str(index_bytes),
        "system_id": system,
    }
    return ListWriter(STDLIST, attributes, search_seconds, where)


def kwslist(
    where: str = "kwslist.xml",
    *,
    kwlist: str = "kwlist.xml",
    language: str = "unknown",
    system: str = "swsdist",
    search_seconds: float = 0.0,
) -> ListWriter:
    """The system list of KWSEval; arguments as of `stdlist`, with `kwlist` the keyword list."""
    attributes = {"kwlist_filename": kwlist, "language": language, "system_id": system}
    return ListWriter(KWSLIST, attributes, search_seconds, where)


def file_id(doc_id: str) -> str:
    """Name of a document in both programs and in an RTTM: no folders, no .sph, .wav or .flac."""
    return re.sub(r"\.(sph|wav|flac)$", "", doc_id.rpartition("/")[2])


def _file_ids(documents: pa.Array) -> pa.Array:
    """`file_id` of each."""
    parts = pc.split_pattern(documents, "/", max_splits=1, reverse=True)
    names = bare = parts.values.take(pc.subtract(parts.offsets[1:], 1))
    for ending in (".sph", ".wav", ".flac"):
        bare = pc.if_else(pc.ends_with(names, ending), pc.utf8_slice_codeunits(names, 0, -len(ending)), bare)
    return bare


def _runs(queries: pa.Array) -> Iterator[tuple[str, int, int]]:
    """Successive equal values, each with its first row and the row after its last."""
    ends = pc.run_end_encode(queries)
    firsts = [0, *ends.run_ends.to_pylist()]
    return zip(ends.values.to_pylist(), firsts[:-1], firsts[1:], strict=True)


def _attributes(values: dict[str, str]) -> str:
    return " ".join(f'{name}="{escape(value, {chr(34): "&quot;"})}"' for name, value in values.items())


def _times(batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
    """Start, and end less start, of each row: exact decimals, of whole units by integers."""
    times = [batch.column(name).to_numpy() for name in ("start", "end")]
    start, end = units = [np.rint(np.where(abs(time) < 1e9, time, 0) * _UNITS).astype(np.int64) for time in times]
    whole = [(some / _UNITS == time) & ~np.signbit(time) for some, time in zip(units, times, strict=True)]
    needed = [_fractions()[1][some % _UNITS] for some in units]
    exact = whole[0] & whole[1] & (start <= end)
    pairs = zip(*(time[~exact].tolist() for time in times), strict=True)
    return (
        _replaced(_seconds(start, needed[0]), ~whole[0], map(fields_decimal, times[0][~whole[0]].tolist())),
        _replaced(_seconds(end - start, np.maximum(*needed)), ~exact, (_difference(*pair) for pair in pairs)),
    )


def _seconds(units: Ints, places: Ints) -> pa.Array:
    """Numbers of units as seconds with so many decimals."""
    whole, rest = np.divmod(units, _UNITS)
    fractions = _fractions()[0].take(pa.array(places * _UNITS + rest))
    return pc.binary_join_element_wise(pa.array(whole).cast(pa.string()), fractions, "")


@cache
def _fractions() -> tuple[pa.Array, Ints]:
    """`.0` to `.9999` with no to four decimals, and how many each needs, at least one."""
    texts = [f".{unit:04d}" for unit in range(_UNITS)]
    needed = [max(1, len(text.rstrip("0")) - 1) for text in texts]
    return pa.array([text[: places + 1] for places in range(5) for text in texts]), np.array(needed)


def _replaced(texts: pa.Array, where: Bools, by: Iterable[str]) -> pa.Array:
    return pc.replace_with_mask(texts, pa.array(where), pa.array(by, pa.string())) if where.any() else texts


def _difference(start: float, end: float) -> str:
    return format(Decimal(repr(end)) - Decimal(repr(start)), "f")
