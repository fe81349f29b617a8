"""Tables of documents on their way into a store: in a temporary file, for means and variances of millions fill memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from swsdist.core.types import DOCUMENTS
from swsdist.io.remote.scratch import scratch

#: Most rows of a piece.
_PIECE = 1 << 14


class SpooledDocuments:
    """DOCUMENTS in a temporary file, which goes with the object.

    Args:
        tables: DOCUMENTS, one after the other; each is in memory only while it is written.
    """

    def __init__(self, tables: Iterable[pa.Table]) -> None:
        self.num_rows = 0
        self._file = tempfile.NamedTemporaryFile(dir=scratch(), suffix=".parquet")  # noqa: SIM115 - it is kept
        plain: dict[str, Any] = {"use_dictionary": False, "write_statistics": False, "compression": "none"}
        with pq.ParquetWriter(self._file.name, DOCUMENTS, **plain) as writer:
            for table in tables:
                writer.write_table(table.cast(DOCUMENTS), _PIECE)
                self.num_rows += table.num_rows

    def pieces(self, columns: Sequence[str] = DOCUMENTS.names) -> Iterator[pa.Table]:
        """Some columns, in pieces of bounded length."""
        with pq.ParquetFile(self._file.name, pre_buffer=False) as file:
            for k in range(file.num_row_groups):
                yield file.read_row_group(k, list(columns), use_threads=False).select(list(columns))

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Some columns, whole."""
        schema = pa.schema([DOCUMENTS.field(name) for name in columns])
        return pa.concat_tables([schema.empty_table(), *self.pieces(columns)])
