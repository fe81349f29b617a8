"""Parquet files, published complete, read in bounded pieces.

A feature column stores a blob per row: no dictionary, no statistics, no compression (mantissas do not
compress), which reads about 4.7 times faster than lists. All other columns are compressed with zstd; strings are also
dictionary-coded. Page checksums turn damage into errors.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from swsdist.core.codes import storage as storage_codes
from swsdist.core.errors import DamagedTransferError, StoreError
from swsdist.core.threads import in_threads
from swsdist.core.types import DOCUMENTS
from swsdist.features.interface import Dtype
from swsdist.io.filesystem import Folder, demand_no_detour
from swsdist.io.remote.scratch import scratch

_BLOBS = ("features", "codes")
_WITHOUT_STATISTICS = (
    *_BLOBS,
    "speech",
    *("times", "visits", "arcs", "steps", "labels", "chances", "document_rows", "expected"),
)

#: Most rows in a row group; larger groups are cut, so readers of a part need not hold everything.
LARGEST_ROW_GROUP = 1 << 22


def numbers(dtype: Dtype) -> np.dtype[np.floating]:
    """Type of the numbers of a feature column: little-endian."""
    return np.dtype(dtype).newbyteorder("<")


class Output(NamedTuple):
    """A file published by a task."""

    name: str
    size: int
    sha256: str


def describe(path: Path, name: str) -> Output:
    """Size and SHA-256 of a finished local file, to be published as `name`."""
    with path.open("rb") as file:
        return Output(name, path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


def publish_bytes(folder: Folder, name: str, data: bytes) -> Output:
    """Publish a small file."""
    folder.write_bytes(name, data)
    return Output(name, len(data), hashlib.sha256(data).hexdigest())


def publish(folder: Folder, name: str, tables: Iterable[pa.Table], schema: pa.Schema) -> Output:
    """Write tables to one Parquet file, a row group per table, and publish it.

    A table of more than `LARGEST_ROW_GROUP` rows becomes several row groups: readers find rows by value
    (`row_groups_with`), never by the position of a row group.
    """
    with folder.temporary(".parquet") as path:
        with writer(path, schema) as file:
            for table in tables:
                # Without a size Arrow cuts at 2^20 rows.
                file.write_table(table.cast(schema), row_group_size=min(max(1, table.num_rows), LARGEST_ROW_GROUP))
        output = describe(path, name)
        folder.publish(path, name)
    return output


@contextmanager
def writer(path: Path, schema: pa.Schema) -> Iterator[Any]:
    """A `pyarrow.parquet.ParquetWriter` with our settings."""
    plain = [name for name in schema.names if name not in _BLOBS]
    structs = [field for field in schema if pa.types.is_list(field.type) and pa.types.is_struct(field.type.value_type)]
    leaves = {f"{field.name}.list.element.{leaf.name}": leaf for field in structs for leaf in field.type.value_type}
    fields = {name: schema.field(name) for name in plain} | leaves
    strings = [name for name, field in fields.items() if pa.types.is_string(field.type)]
    with pq.ParquetWriter(
        path,
        schema,
        use_dictionary=strings,
        write_statistics=[name for name in plain if name not in _WITHOUT_STATISTICS],
        compression={name: "none" if name in _BLOBS else "zstd" for name in (*schema.names, *leaves)},
        write_page_checksum=True,
    ) as file:
        yield file


class _Footer(NamedTuple):
    """Cached footer of a frequently read file.

    Attributes:
        identity: of the file.
        metadata: Arrow's metadata of the footer.
        groups: by column, and by value, the row groups that hold it.
    """

    identity: object
    metadata: Any
    groups: dict[str, dict[str, list[int]]]


#: By path, of the files read last in this process: the footer of a million documents takes 5 MB, and 0.3 s to read.
_footers: dict[str, _Footer] = {}
_MOST_FOOTERS = 4


def _identity(source: Any) -> object:
    if hasattr(source, "etag"):
        return source.etag
    status = os.fstat(source.fileno())
    return status.st_ino, status.st_size, status.st_mtime_ns


@contextmanager
def reader(folder: Folder, name: str, codes: Sequence[str] = (), keep: bool = False) -> Iterator[Any]:
    """An open `pyarrow.parquet.ParquetFile`; columns named in `codes` are read as codes of their strings.

    With `keep` its footer is read once per process.

    Raises:
        StoreError: the file is missing, is not Parquet, or is reachable only through another user's link.
    """
    if (root := folder.local()) is not None:
        demand_no_detour(root, name)
    try:
        source = folder.open(name)
    except FileNotFoundError:
        raise storage_codes.MISSING_STORE_FILE(where=folder.path(name)) from None
    with source:
        try:
            identity = _identity(source) if keep else None
            cached_groups = _footers.get(folder.path(name)) if keep else None
            file = pq.ParquetFile(
                source,
                metadata=cached_groups.metadata
                if cached_groups is not None and cached_groups.identity == identity
                else None,
                memory_map=False,
                pre_buffer=False,
                page_checksum_verification=True,
                read_dictionary=list(codes),
            )
            if keep and (cached_groups is None or cached_groups.identity != identity):
                _footers.pop(folder.path(name), None)
                for old in list(_footers)[: 1 - _MOST_FOOTERS]:
                    del _footers[old]
                _footers[folder.path(name)] = _Footer(identity, file.metadata, {})
            yield file
        except (pa.ArrowInvalid, OSError) as error:
            # Arrow's own errors, for example of a damaged page, have no errno; those of a file system or network have
            # one.
            if isinstance(error, OSError) and (error.errno is not None or type(error) is not OSError):
                raise
            _footers.pop(folder.path(name), None)
            raise (StoreError if root is not None else DamagedTransferError)(
                f"the file is damaged ({error})", where=folder.path(name), remedy="remove it and run again"
            ) from None


def read(folder: Folder, name: str, columns: list[str] | None = None, codes: Sequence[str] = ()) -> pa.Table:
    """A whole table; columns named in `codes` as codes of their strings."""
    with reader(folder, name, codes) as file:
        return file.read(columns=columns, use_threads=False)


def row_groups_with(file: Any, column: str, value: Any, last: Any = None) -> list[int]:
    """Row groups of an open file that may hold a value of a column, or a value in a range, by the file's statistics.

    Args:
        file: from `reader`.
        column: not nested.
        value: of the column's type.
        last: greatest value of the range that begins with `value`; default: only that value.
    """
    last = value if last is None else last
    place = file.schema_arrow.get_field_index(column)
    result = []
    for k in range(file.num_row_groups):
        seen = file.metadata.row_group(k).column(place).statistics
        if seen is None or not seen.has_min_max or (seen.min <= last and value <= seen.max):
            result.append(k)
    return result


def read_where(
    folder: Folder, name: str, column: str, value: str, columns: list[str] | None = None, codes: Sequence[str] = ()
) -> pa.Table:
    """The row groups of a table that hold a value of a string column without nulls.

    Caches the lookup, so repeated calls do not depend on the size of the table.
    """
    with reader(folder, name, [*codes, column], keep=True) as file:
        kept = _footers.get(folder.path(name))
        cached_groups = kept.groups if kept is not None else {}  # another thread may have replaced it
        if column not in cached_groups:
            cached_groups[column] = _groups(file, column)
        table = file.read_row_groups(cached_groups[column].get(value, []), columns=columns, use_threads=False)
    place = table.schema.get_field_index(column)
    if column in codes or place < 0:
        return table
    return table.set_column(place, table.schema.field(place).with_type(pa.string()), table[column].cast(pa.string()))


def _groups(file: Any, column: str) -> dict[str, list[int]]:
    """The row groups that hold each value of a column, which is read as codes."""
    values = file.read(columns=[column], use_threads=False)[column].unify_dictionaries()
    result: dict[str, list[int]] = {}
    if not len(values):
        return result
    names = values.chunk(0).dictionary.to_pylist()
    codes = np.concatenate([chunk.indices.to_numpy(zero_copy_only=False) for chunk in values.chunks])
    rows = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
    pairs = np.unique(np.stack([np.repeat(np.arange(len(rows)), rows), codes], axis=1), axis=0)
    for group, code in pairs.tolist():
        result.setdefault(names[code], []).append(group)
    return result


def in_slots(
    folder: Folder, name: str, slots: range, columns: list[str] | None = None, codes: Sequence[str] = ()
) -> pa.Table:
    """The rows of a table whose column `slot` is in a range, which is not empty, for any row groups."""
    required = None if columns is None else sorted({*columns, "slot"})
    with reader(folder, name, codes) as file:
        groups = row_groups_with(file, "slot", slots[0], slots[-1])
        table = file.read_row_groups(groups, columns=required, use_threads=False)
    slot = table["slot"]
    result = pc.min_max(slot).as_py()
    if table.num_rows and slots[0] <= result["min"] and result["max"] <= slots[-1]:
        return table
    return table.filter(pc.and_(pc.greater_equal(slot, slots[0]), pc.less_equal(slot, slots[-1])))


def rows(folder: Folder, name: str, columns: list[str] | None = None, batch: int = 65536) -> Iterator[Any]:
    """Record batches of a table, with one row group in memory at a time."""
    with reader(folder, name) as file:
        yield from file.iter_batches(batch_size=batch, columns=columns, use_threads=False)


def row_groups(
    folder: Folder, name: str, columns: list[str], threads: int = 1, chosen: Sequence[int] | None = None
) -> Iterator[pa.Table]:
    """The row groups of a table, or some; `threads` read at once, and at most one more is in memory."""
    with reader(folder, name) as file:
        read = partial(file.read_row_group, columns=columns, use_threads=False)
        for _, table in in_threads(read, range(file.num_row_groups) if chosen is None else chosen, threads):
            yield table


def groups_by_value(folder: Folder, name: str, column: str) -> dict[str, list[int]]:
    """The row groups of a table that hold each value of a string column without nulls."""
    with reader(folder, name, [column]) as file:
        return _groups(file, column)


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
        """Some columns of all documents, in pieces of bounded length."""
        with pq.ParquetFile(self._file.name, pre_buffer=False) as file:
            for k in range(file.num_row_groups):
                yield file.read_row_group(k, list(columns), use_threads=False).select(list(columns))

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Some columns of all documents."""
        schema = pa.schema([DOCUMENTS.field(name) for name in columns])
        return pa.concat_tables([schema.empty_table(), *self.pieces(columns)])
