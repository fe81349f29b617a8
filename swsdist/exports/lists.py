"""Detections as lists: a CSV table, and a STDLIST and a KWSLIST of the NIST programs, where undecided detections become NO."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO

import pyarrow as pa

from swsdist.core.types import DETECTIONS
from swsdist.exports.interface import Material, Rows
from swsdist.io.nist.systemlist_writing import SystemList
from swsdist.io.nist.systemlist_writing import kwslist as kwslist_of
from swsdist.io.nist.systemlist_writing import stdlist as stdlist_of
from swsdist.io.tables import write_csv


class CsvTable(Rows):
    """`detections.csv`."""

    file = "detections.csv"

    def head(self, material: Material) -> bytes:
        """The names of the columns."""
        return _csv([], header=True)

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
        """A line a detection."""
        for batch in batches:
            yield _csv([batch])


def _csv(batches: Iterable[pa.RecordBatch], header: bool = False) -> bytes:
    out = BytesIO()
    write_csv(batches, DETECTIONS, out, header)
    return out.getvalue()


class NistList(Rows):
    """A list of a NIST program, which cannot read some names (a file name that is a pattern, for example)."""

    def __init__(self, file: str, made: Callable[..., SystemList]) -> None:
        self.file, self._made = file, made

    def head(self, material: Material) -> bytes:
        """The root element."""
        return self._made(system=material.system).head()

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes | memoryview]:
        """An element a query."""
        return self._made().rows(batches, set())

    def tail(self, queries: Sequence[str]) -> bytes:
        """An empty element for each query without detections."""
        return self._made().tail(queries)

    def check(self, documents: Iterable[pa.Array]) -> None:
        """Refuse two documents of one name."""
        self._made().check(documents)


table, stdlist, kwslist = CsvTable(), NistList("stdlist.xml", stdlist_of), NistList("kwslist.xml", kwslist_of)
