"""Tables between stages: what was written is found by what it holds, however Parquet cut it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from swsdist.core.types import CANDIDATES
from swsdist.io.filesystem import Folder
from swsdist.store import parquet


def slotful(slot: int, rows: int) -> pa.Table:
    """So many candidates of one slot; `last` tells them apart."""
    numbers, ones = np.arange(rows), np.ones(rows, np.int64)
    columns = {"slot": slot * ones, "query_id": [f"q{slot}"] * rows, "example": ones, "doc_id": ["d"] * rows}
    columns |= {"channel": ones, "first": numbers, "last": numbers, "cost": numbers % 97, "scale": ones}
    return pa.Table.from_pydict(columns).cast(CANDIDATES)


def test_a_table_that_is_too_large_for_a_row_group_is_cut_and_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "LARGEST_ROW_GROUP", 7)
    folder = Folder(str(tmp_path))
    parquet.publish(folder, "c.parquet", [slotful(0, 20), slotful(1, 7), slotful(3, 1)], CANDIDATES)
    with parquet.reader(folder, "c.parquet") as file:
        assert file.num_row_groups == 3 + 1 + 1
        assert [parquet.row_groups_with(file, "slot", slot) for slot in range(4)] == [[0, 1, 2], [3], [], [4]]
        assert parquet.row_groups_with(file, "slot", 1, 2) == [3]
        assert parquet.row_groups_with(file, "slot", 1, 3) == [3, 4]
    assert [parquet.in_slots(folder, "c.parquet", range(k, k + 1)).num_rows for k in range(4)] == [20, 7, 0, 1]
    assert parquet.in_slots(folder, "c.parquet", range(1, 4)).num_rows == 8


def test_row_groups_that_hold_a_value(tmp_path: Path) -> None:
    """Whatever the order of values, as codes or not; a file that is written anew is read anew."""
    schema = pa.schema([pa.field("shard", pa.string(), False), pa.field("k", pa.int64(), False)])
    folder = Folder(str(tmp_path))

    def write(names: list[list[str]]) -> None:
        tables = [pa.table({"shard": some, "k": range(len(some))}, schema=schema) for some in names]
        parquet.publish(folder, "t.parquet", tables, schema)

    write([["c", "a"], ["b"], ["a", "d"]])
    for _ in range(2):
        found = parquet.read_where(folder, "t.parquet", "shard", "a")
        assert found["shard"].to_pylist() == ["c", "a", "a", "d"]
        assert found.schema.equals(schema)
        assert parquet.read_where(folder, "t.parquet", "shard", "b", ["k"])["k"].to_pylist() == [0]
        assert parquet.read_where(folder, "t.parquet", "shard", "no").num_rows == 0
        coded = parquet.read_where(folder, "t.parquet", "shard", "d", codes=["shard"])["shard"]
        assert (coded.to_pylist(), pa.types.is_dictionary(coded.type)) == (["a", "d"], True)
    write([["no"], ["a"]])
    assert parquet.read_where(folder, "t.parquet", "shard", "no")["shard"].to_pylist() == ["no"]
    write([])
    assert parquet.read_where(folder, "t.parquet", "shard", "a").num_rows == 0
    for k in range(9):
        parquet.publish(folder, f"t{k}.parquet", [], schema)
        parquet.read_where(folder, f"t{k}.parquet", "shard", "a")
    assert len(parquet._footers) <= 4
