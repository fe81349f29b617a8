"""Detections as the lists that the NIST programs score: `stdlist` of STDEval 0.7 and `kwslist` of KWSEval (F4DE 3.5).

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
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.core.codes import io as codes
from swsdist.core.errors import SwsdistError, UserError
from swsdist.io.fields import ROWS, decimal, decimals
from swsdist.io.nist.systemlist_dialect import KWSLIST, STDLIST, Dialect

#: Characters in names that break a program.
_FORBIDDEN = {STDLIST: re.compile(r"[+*?()\[\]{}|^$\\]"), KWSLIST: re.compile(r"(?!)")}
#: Of a document's id that may hold one of them, or what breaks both.
_SUSPECT = r"[^!-~]|[&<>\"+*?()\[\]{}|^$\\]"
_UNITS = 10_000  # in a second, of which frames begin at whole ones


class SystemList(NamedTuple):
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
                        raise codes.SCATTERED_DETECTIONS(where=self.where, query=query)
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
                raise codes.AMBIGUOUS_NIST_DOCUMENTS(first=other, second=document, name=name, list=self.dialect.root)

    @property
    def _end(self) -> str:
        return f"</{self.dialect.group}>\n"

    def _begin(self, query: str) -> str:
        if fault := self._fault(query, None if query.isascii() else "is not ASCII"):
            raise self._invalid("query", query, fault)
        shown = {self.dialect.query: query, self.dialect.time: decimal(self.seconds), self.dialect.oov: "0"}
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
            return row, codes.NON_FINITE_SCORE(where=self.where, query=query, score=score, document=document)
        return rows, error

    def _fault(self, name: str, fault: str | None) -> str | None:
        """What keeps the program from reading a name; None: nothing."""
        if not name.isprintable():
            return "holds a control character"
        special = _FORBIDDEN[self.dialect].search(name)
        return f"holds {special[0]!r}" if special else fault

    def _invalid(self, kind: str, name: str, fault: str) -> UserError:
        return codes.INVALID_NIST_NAME(list=self.dialect.root, kind=kind, name=name, fault=fault)

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
) -> SystemList:
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
        "indexing_time": decimal(indexing_seconds),
        "language": language,
        "index_size": str(index_bytes),
        "system_id": system,
    }
    return SystemList(STDLIST, attributes, search_seconds, where)


def kwslist(
    where: str = "kwslist.xml",
    *,
    kwlist: str = "kwlist.xml",
    language: str = "unknown",
    system: str = "swsdist",
    search_seconds: float = 0.0,
) -> SystemList:
    """The system list of KWSEval; arguments as of `stdlist`, with `kwlist` the keyword list."""
    attributes = {"kwlist_filename": kwlist, "language": language, "system_id": system}
    return SystemList(KWSLIST, attributes, search_seconds, where)


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
        _replaced(_seconds(start, needed[0]), ~whole[0], map(decimal, times[0][~whole[0]].tolist())),
        _replaced(_seconds(end - start, np.maximum(*needed)), ~exact, (_difference(*pair) for pair in pairs)),
    )


def _seconds(units: NDArray[np.int64], places: NDArray[np.int64]) -> pa.Array:
    """Numbers of units as seconds with so many decimals."""
    whole, rest = np.divmod(units, _UNITS)
    fractions = _fractions()[0].take(pa.array(places * _UNITS + rest))
    return pc.binary_join_element_wise(pa.array(whole).cast(pa.string()), fractions, "")


@cache
def _fractions() -> tuple[pa.Array, NDArray[np.int64]]:
    """`.0` to `.9999` with no to four decimals, and how many each needs, at least one."""
    texts = [f".{unit:04d}" for unit in range(_UNITS)]
    needed = [max(1, len(text.rstrip("0")) - 1) for text in texts]
    return pa.array([text[: places + 1] for places in range(5) for text in texts]), np.array(needed)


def _replaced(texts: pa.Array, where: NDArray[np.bool_], by: Iterable[str]) -> pa.Array:
    return pc.replace_with_mask(texts, pa.array(where), pa.array(by, pa.string())) if where.any() else texts


def _difference(start: float, end: float) -> str:
    return format(Decimal(repr(end)) - Decimal(repr(start)), "f")
