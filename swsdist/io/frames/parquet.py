"""Parquet: a row per document, with the columns `doc_id`, `frames` and optionally `channel`.

`frames` is a list of lists of numbers (a list per frame, all of one length), or binary: little-endian float32, frame
after frame, whose dimension is in the config. A key is `doc_id`, or, if the table has several channels of the document,
`DOC_ID-CHANNEL`.

Rows are read one by one. Files with small row groups are read fastest, for example `row_group_size=100`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from swsdist.core.codes import families
from swsdist.core.codes import io as codes
from swsdist.io.frames.item import Format, Item, RawFrames, damage_errors, damaged, open_file

_BROKEN = (pa.ArrowException, OSError, ValueError)


class _Parquet:
    """Reads rows in order; an earlier row restarts its row group."""

    shift: float | None = None

    def __init__(self, path: str, storage: Mapping[str, object]) -> None:
        self._path, self._file = path, open_file(path, storage)
        with damage_errors(path, *_BROKEN):
            self._table = pq.ParquetFile(self._file, memory_map=False, pre_buffer=False)
        self._group, self._next = -1, 0
        self._rows: Iterator[Any] = iter(())

    def read(self, at: str) -> RawFrames:
        group, row = map(int, at.split(":"))
        with damage_errors(self._path, *_BROKEN):
            if group != self._group or row < self._next:
                self._rows = self._table.iter_batches(1, row_groups=[group], columns=["frames"], use_threads=False)
                self._group, self._next = group, 0
            while self._next <= row:
                batch = next(self._rows)
                self._next += 1
            return _array(batch.column(0), self._path)

    def close(self) -> None:
        self._file.close()


def _array(column: Any, path: str) -> RawFrames:
    """The one value of a column."""
    if not column[0].is_valid:
        raise damaged(path, "a row without frames")
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return np.frombuffer(column[0].as_buffer(), "<f4")
    rows = column.flatten()
    lengths = set(rows.value_lengths().to_pylist())
    if len(lengths) > 1 or rows.null_count:
        raise damaged(path, "its frames are of several lengths")
    width = lengths.pop() if lengths else 0
    values: RawFrames = rows.flatten().to_numpy(zero_copy_only=False)
    return values.reshape(len(rows), width)


def _find(path: str, identity: str, size: int, storage: Mapping[str, object]) -> Iterator[tuple[str, Item]]:
    with damage_errors(path, *_BROKEN), open_file(path, storage) as file:
        table = pq.ParquetFile(file, memory_map=False)
        _check(table.schema_arrow, path)
        names = [name for name in ("doc_id", "channel") if name in table.schema_arrow.names]
        places, keys = [], []
        for group in range(table.num_row_groups):
            part = table.read_row_group(group, columns=names)
            places += [f"{group}:{row}" for row in range(part.num_rows)]
            channels = part["channel"].to_pylist() if "channel" in names else [1] * part.num_rows
            keys += list(zip(part["doc_id"].to_pylist(), channels, strict=True))
    several = {doc_id for doc_id, n in Counter(doc_id for doc_id, _ in dict.fromkeys(keys)).items() if n > 1}
    for (doc_id, channel), at in zip(keys, places, strict=True):
        if doc_id is None:
            raise families.BAD_CELL(
                "a row has no doc_id", "give it one", where=f"{path}, row group {at.replace(':', ', row ')}"
            )
        key = f"{doc_id}-{channel}" if doc_id in several else str(doc_id)
        yield key, Item("parquet", path, at, f"{identity}@{at}", size // max(1, len(keys)))


def _check(schema: Any, path: str) -> None:
    for name in ("doc_id", "frames"):
        if name not in schema.names:
            raise families.MISSING_COLUMN(
                "there is no column {column}; there are {columns}",
                "a row a document: doc_id, frames, maybe channel",
                where=path,
                column=name,
                columns=", ".join(schema.names),
            )
    for name, expected in (("doc_id", "text"), ("channel", "whole numbers")):
        if name in schema.names and not _names(schema.field(name).type, text_allowed=name == "doc_id"):
            raise codes.COLUMN_TYPE(where=path, column=name, type=schema.field(name).type, expected=expected)
    kind = schema.field("frames").type
    binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    if not binary and not (_is_list(kind) and _is_list(kind.value_type)):
        raise families.BAD_CELL(
            "the column frames has the type {type}",
            "a list of lists of numbers, or binary: little-endian float32, frame after frame",
            where=path,
            type=kind,
        )


def _names(kind: Any, *, text_allowed: bool) -> bool:
    """Whether a column may name documents, or channels."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    texts = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return bool(pa.types.is_integer(kind) or pa.types.is_null(kind) or (text_allowed and texts))


def _is_list(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


PARQUET = Format((".parquet", ".pq"), _find, _Parquet)
