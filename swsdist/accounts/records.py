"""Records: journals as tables, read one process at a time to bound memory.

When a run has ended, its journals are packed into `accounts.parquet`, one row group for each process, and removed. A later
reader makes one pass over one file, whatever the number of processes. Newer journals lie beside the file and are read with
it.

Records are ordered: drivers first, then workers host by host. A driver learns its node's name when it has joined a cluster;
a worker knows it from the start.
"""

from __future__ import annotations

import io
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from swsdist.core.codes import families
from swsdist.core.types import ACCOUNTS
from swsdist.io.filesystem import Folder

NAME = "accounts.parquet"

#: Age in s after which a journal without an end is taken as that of a killed process.
_SILENT = 60.0

_FILE = re.compile(r"accounts/(?P<journal>.+?)(?:\.(?P<number>\d{5}))?\.jsonl")
_SAMPLE = b'"event": "sample"'
#: Columns that are fields of journal lines.
_OF_LINES = tuple(name for name in ACCOUNTS.names if name not in ("journal", "host", "pid", "role", "more"))
_LINES = pa.schema([pa.field(name, ACCOUNTS.field(name).type) for name in _OF_LINES])


class _Source(NamedTuple):
    """A record: its sort key, and a function that reads it."""

    order: tuple[str, str]
    read: Callable[[], pa.Table | None]


def records(*folders: Folder) -> Iterator[pa.Table]:
    """Records of all processes of runs, one table ACCOUNTS each, in the order of the module's docstring."""
    with ExitStack() as stack:
        sources = [source for folder in folders for source in _sources(folder, stack)]
        for source in sorted(sources, key=lambda item: item.order):
            table = source.read()
            if table is not None:
                yield table


def pack(folder: Folder) -> None:
    """Pack the journals of ended processes into `accounts.parquet`, and remove them; others stay."""
    import pyarrow.parquet as pq

    loose = _loose(folder)
    ended: list[str] = []
    if not loose:
        return
    with ExitStack() as stack:
        sources = _sources(folder, stack)
        with folder.temporary(".parquet") as path:
            with pq.ParquetWriter(path, ACCOUNTS, compression="zstd", write_page_checksum=True) as file:
                for source in sorted(sources, key=lambda item: item.order):
                    table = source.read()
                    if table is None:
                        continue
                    name = source.order[1]
                    if name in loose:
                        if not _has_ended(table):
                            continue
                        ended.append(name)
                    file.write_table(table, row_group_size=table.num_rows)
            if ended:
                folder.publish(path, NAME)
    for name in ended:
        for file_name in loose[name]:
            folder.remove(file_name)


def _has_ended(table: pa.Table) -> bool:
    last = table.num_rows - 1
    return bool(table["event"][last].as_py() == "close") or time.time() - table["t"][last].as_py() > _SILENT


def _sources(folder: Folder, stack: ExitStack) -> list[_Source]:
    """Packed records and journals of a run; a packed journal that was not removed counts once."""
    import pyarrow.parquet as pq

    sources: dict[str, _Source] = {}
    if folder.exists(NAME):
        stream = stack.enter_context(folder.open(NAME))
        try:
            file = pq.ParquetFile(stream, memory_map=False, pre_buffer=False)
        except pa.ArrowInvalid as error:
            raise families.DAMAGED_FILE(
                "the accounts of the run are damaged ({error})",
                "remove the file: what earlier tasks cost is then not known, and nothing else changes",
                where=folder.path(NAME),
                error=error,
            ) from None
        place = file.schema_arrow.get_field_index("journal")
        for k in range(file.metadata.num_row_groups):
            name = file.metadata.row_group(k).column(place).statistics.min
            sources[name] = _Source(_order(name), partial(file.read_row_group, k, use_threads=False))
    for name, files in _loose(folder).items():
        sources.setdefault(name, _Source(_order(name), partial(_read, folder, name, files)))
    return list(sources.values())


def _order(journal: str) -> tuple[str, str]:
    """Sort key: role and host, then name; host names may contain the separator."""
    return journal.rsplit("-", 2)[0], journal


def _loose(folder: Folder) -> dict[str, list[str]]:
    """Files of each unpacked journal, in order."""
    files: dict[str, list[str]] = {}
    for name in folder.listing("accounts"):
        match = _FILE.fullmatch(name)
        if match is not None:
            files.setdefault(match["journal"], []).append(name)
    return files


def _read(folder: Folder, journal: str, files: Sequence[str]) -> pa.Table | None:
    try:
        return table_of(journal, b"".join(folder.read_bytes(name) for name in files))
    except FileNotFoundError:
        return None  # packed or removed since the listing


def table_of(journal: str, text: bytes) -> pa.Table | None:
    """Parse a journal into a table ACCOUNTS; a truncated last line is dropped.

    Returns:
        The table; None if the text does not begin as a journal.
    """

    lines = text.splitlines()
    try:
        return _table(journal, lines)
    except ValueError:  # a truncated last line: the process died, or the disk was full
        return _table(journal, lines[: next((k for k, line in enumerate(lines) if not _parses(line)), len(lines))])


def _table(journal: str, lines: list[bytes]) -> pa.Table | None:
    from pyarrow import json as arrow_json

    if not lines:
        return None
    options = arrow_json.ParseOptions(explicit_schema=_LINES, unexpected_field_behavior="ignore")
    first = json.loads(lines[0])
    if first.get("event") != "open":
        return None
    rest = [(k, json.loads(line)) for k, line in enumerate(lines) if _SAMPLE not in line]
    blocks = arrow_json.ReadOptions(use_threads=False, block_size=max(1 << 20, 2 * max(map(len, lines))))
    read = arrow_json.read_json(io.BytesIO(b"\n".join(lines)), blocks, options)
    more: list[str | None] = [None] * len(lines)
    host = first["host"]
    for k, line in rest:
        if line["event"] == "node":
            host = line["host"]
        others = {name: value for name, value in line.items() if name not in _OF_LINES}
        more[k] = json.dumps(others, ensure_ascii=False) if others else None
    same: dict[str, Any] = {"journal": journal, "host": host, "pid": first["pid"], "role": first["role"]}
    columns = [
        pa.repeat(pa.scalar(same[field.name], field.type), len(lines))
        if field.name in same
        else pa.array(more, field.type)
        if field.name == "more"
        else read[field.name]
        for field in ACCOUNTS
    ]
    return pa.table(columns, schema=ACCOUNTS).combine_chunks()


def _parses(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
