"""Digests: SHA-256 of the results of a plan. Equal digests prove equal results, however the work was divided.

A digest covers the rows of the digested tables, each in canonical order. Paths, identities of files, shards and costs are not
part of these tables; the column `system` of detections, a label that defaults to the name of the config's file, is left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

import pyarrow as pa

from swsdist.core.fingerprint import slots_of
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import ChainRun
from swsdist.pipeline.records.lists import Parts
from swsdist.pipeline.stage import Table
from swsdist.store import parquet
from swsdist.store.digest import of_rows

#: Ranges of slots, one at a time in memory, of tables whose keys spread over several files.
_RANGES = 16


def digests(chain_run: ChainRun, only: tuple[str, ...] | None = None) -> dict[str, str]:
    """SHA-256 of each table of a plan, by name.

    Args:
        chain_run: with the receipts of its steps.
        only: names of tables; None: all.
    """
    by_name: dict[str, str] = {}
    for step in chain_run.chain.steps:
        if step.name not in chain_run.outcomes:
            continue
        inputs = chain_run.inputs(step)
        if only is None:
            by_name.update(step.stage.digests(inputs))
        for label, table in chain_run.chain.digested(step):
            parts = chain_run.receipts(step.name).parts(table)
            if parts and (only is None or label in only):
                by_name[label] = _table(chain_run.ledger.folder(inputs.place), parts, step.stage.tables[table])
    return by_name


def _table(folder: Folder, parts: Parts, declared: Table) -> str:
    if declared.schema is None:
        digests = sorted(part.sha256 for part in parts)
        return digests[0] if len(digests) == 1 else hashlib.sha256(json.dumps(digests).encode()).hexdigest()
    if declared.key is None:
        tables = (parquet.read(folder, part.name) for part in parts)
        order = [(name, "ascending") for name in declared.order]
        table = unlabelled(pa.concat_tables(tables))
        return of_rows(table.sort_by(order) if order else table)
    if not declared.order:
        return by_key((unlabelled(parquet.read(folder, part.name)) for part in parts), declared.key)
    return by_key(map(unlabelled, _gathered(folder, parts, declared)), declared.key)


def unlabelled(table: pa.Table) -> pa.Table:
    """A table of detections without the column `system`, which is a label."""
    return table.drop_columns(["system"]) if {"system", "doc_id"} <= set(table.column_names) else table


def _gathered(folder: Folder, parts: Parts, declared: Table) -> Iterator[pa.Table]:
    """Rows of all files, range by range of slots, each range in canonical order."""
    order = [(name, "ascending") for name in (declared.key, *declared.order)]
    for k in range(_RANGES):
        slots = slots_of(k, _RANGES)
        tables = [parquet.in_slots(folder, part.name, slots) for part in parts.meeting(slots)]
        if tables:
            yield pa.concat_tables(tables).drop_columns(["slot"]).sort_by(order)


def by_key(parts: Iterable[pa.Table], key: str) -> str:
    """SHA-256 over the SHA-256 of each key's rows; independent of how keys are spread over parts."""
    of_keys: dict[str, str] = {}
    columns: list[str] = []
    for table in parts:
        columns = table.column_names
        of_keys |= each_key(table, key)
    return of_all_keys(columns, of_keys)


def each_key(table: pa.Table, key: str) -> dict[str, str]:
    """SHA-256 of each key's rows, which lie together."""
    of_keys: dict[str, str] = {}
    first = 0
    for value, group in groupby(table[key].to_pylist()):
        count = sum(1 for _ in group)
        of_keys[value] = of_rows(table.slice(first, count))
        first += count
    return of_keys


def of_all_keys(columns: list[str], of_keys: Mapping[str, str]) -> str:
    """The SHA-256 of a table with these columns, given that of each key's rows."""
    return hashlib.sha256(json.dumps([columns, sorted(of_keys.items())]).encode()).hexdigest()
