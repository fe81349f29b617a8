"""Detections as the lists that the NIST programs score: `stdlist` of STDEval 0.7 and `kwslist` of KWSEval (F4DE 3.5).

Both are streamed: batches of detections in, text out. Requirements of the programs, found by reading and running them:

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

import math
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import TypedDict
from xml.sax.saxutils import escape

import pyarrow as pa

from swsdist.core.codes import io as codes
from swsdist.io.fields import decimal
from swsdist.io.nist.systemlist_dialect import KWSLIST, STDLIST, Dialect

_ROWS = 8192  # converted to text at a time


#: Characters in names that break a program.
_FORBIDDEN = {STDLIST: re.compile(r"[+*?()\[\]{}|^$\\]"), KWSLIST: re.compile(r"(?!)")}


class Header(TypedDict, total=False):
    """Attributes of a list, for `write_stdlist`."""

    termlist: str
    language: str
    system: str
    indexing_seconds: float
    index_bytes: int
    search_seconds: float


def write_stdlist(
    batches: Iterable[pa.RecordBatch],
    queries: Iterable[str],
    out: Path,
    *,
    termlist: str = "tlist.xml",
    language: str = "unknown",
    system: str = "swsdist",
    indexing_seconds: float = 0.0,
    index_bytes: int = 0,
    search_seconds: float = 0.0,
) -> None:
    """Write the system list of STDEval.

    Args:
        batches: detections (schema DETECTIONS), those of a query together.
        queries: ids of all queries; those without detections get an empty list.
        out: local file to write.
        termlist: name of the corresponding term list.
        language: language of the term list.
        system: name of the system.
        indexing_seconds: cost of indexing.
        index_bytes: size of the index.
        search_seconds: cost of searching, per query.

    Raises:
        UserError: STDEval cannot process a name, or cannot distinguish two documents.
        DataError: a score is not finite, or a query's detections are not consecutive.
    """
    attributes = {
        "termlist_filename": termlist,
        "indexing_time": decimal(indexing_seconds),
        "language": language,
        "index_size": str(index_bytes),
        "system_id": system,
    }
    _write(STDLIST, attributes, search_seconds, batches, queries, out)


def write_kwslist(
    batches: Iterable[pa.RecordBatch],
    queries: Iterable[str],
    out: Path,
    *,
    kwlist: str = "kwlist.xml",
    language: str = "unknown",
    system: str = "swsdist",
    search_seconds: float = 0.0,
) -> None:
    """Write the system list of KWSEval; arguments and errors as in `write_stdlist`, with `kwlist` the keyword list."""
    attributes = {"kwlist_filename": kwlist, "language": language, "system_id": system}
    _write(KWSLIST, attributes, search_seconds, batches, queries, out)


def file_id(doc_id: str) -> str:
    """Name of a document in both programs and in an RTTM: no folders, no .sph, .wav or .flac."""
    return re.sub(r"\.(sph|wav|flac)$", "", doc_id.rpartition("/")[2])


def _write(
    dialect: Dialect,
    attributes: dict[str, str],
    seconds: float,
    batches: Iterable[pa.RecordBatch],
    queries: Iterable[str],
    out: Path,
) -> None:
    names = _Names(dialect)
    done: set[str] = set()
    current: str | None = None
    with out.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f"<{dialect.root} {_attributes(attributes)}>\n")

        def begin(query: str) -> None:
            if query in done:
                raise codes.SCATTERED_DETECTIONS(where=str(out), query=query)
            done.add(query)
            shown = {dialect.query: names.query(query), dialect.time: decimal(seconds), dialect.oov: "0"}
            file.write(f"<{dialect.group} {_attributes(shown)}>\n")

        for query, doc_id, channel, start, end, score, decision in _rows(batches):
            if query != current:
                if current is not None:
                    file.write(f"</{dialect.group}>\n")
                begin(query)
                current = query
            if not math.isfinite(score):
                raise codes.NON_FINITE_SCORE(where=str(out), query=query, score=score, document=doc_id)
            file.write(
                f'<{dialect.item} file="{names.file(doc_id)}" channel="{channel}" tbeg="{decimal(start)}" '
                f'dur="{_difference(end, start)}" score="{decimal(score)}" decision="{"YES" if decision else "NO"}"/>\n'
            )
        if current is not None:
            file.write(f"</{dialect.group}>\n")
        for query in queries:
            if query not in done:
                begin(query)
                file.write(f"</{dialect.group}>\n")
        file.write(f"</{dialect.root}>\n")


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, str, int, float, float, float, bool | None]]:
    required = ["query_id", "doc_id", "channel", "start", "end", "score", "decision"]
    for batch in batches:
        for first in range(0, batch.num_rows, _ROWS):
            part = batch.slice(first, _ROWS)
            yield from zip(*(part.column(name).to_pylist() for name in required), strict=True)


class _Names:
    """Checked names, each checked once."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._files: dict[str, str] = {}
        self._documents: dict[str, str] = {}

    def query(self, query: str) -> str:
        self._check(query, "query", None if query.isascii() else "is not ASCII")
        return query

    def file(self, doc_id: str) -> str:
        if doc_id not in self._files:
            name = file_id(doc_id)
            bad = re.search(r'[&<>"\s]', name)
            self._check(doc_id, "document", f"holds {bad[0]!r}" if bad else None)
            other = self._documents.setdefault(name, doc_id)
            if other != doc_id:
                raise codes.AMBIGUOUS_NIST_DOCUMENTS(first=other, second=doc_id, name=name, list=self._dialect.root)
            self._files[doc_id] = name
        return self._files[doc_id]

    def _check(self, name: str, kind: str, fault: str | None) -> None:
        special = _FORBIDDEN[self._dialect].search(name)
        if special:
            fault = f"holds {special[0]!r}"
        if not name.isprintable():
            fault = "holds a control character"
        if fault:
            raise codes.INVALID_NIST_NAME(list=self._dialect.root, kind=kind, name=name, fault=fault)


def _attributes(values: dict[str, str]) -> str:
    return " ".join(f'{name}="{escape(value, {chr(34): "&quot;"})}"' for name, value in values.items())


def _difference(end: float, start: float) -> str:
    return format(Decimal(repr(end)) - Decimal(repr(start)), "f")
