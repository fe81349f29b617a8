"""Tables between stages: what was written is found by what it holds, however Parquet cut it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from swsdist.io.filesystem import Folder
from swsdist.store import parquet
from swsdist.types import CANDIDATES


def bucketful(bucket: int, rows: int) -> pa.Table:
    """So many candidates of one bucket; `end_frame` tells them apart."""
    columns = {
        "slot": np.full(rows, bucket, np.int32),
        "query_id": [f"q{bucket}"] * rows,
        "example": np.ones(rows, np.int32),
        "doc_id": ["d"] * rows,
        "channel": np.ones(rows, np.int32),
        "end_frame": np.arange(rows),
        "frames": np.ones(rows, np.int32),
        "cost": np.arange(rows) % 97,
        "query_frames": np.ones(rows, np.int32),
    }
    return pa.Table.from_pydict(columns, schema=CANDIDATES)


def test_a_bucket_of_more_rows_than_arrow_puts_into_a_row_group_is_read_whole(tmp_path: Path) -> None:
    """Arrow cuts at 2^20 rows by itself: a bucket's candidates were lost, and the next buckets were mixed up."""
    folder = Folder(str(tmp_path))
    sizes = {2: 3, 5: (1 << 20) + 5, 9: 4}
    parquet.publish(folder, "c.parquet", (bucketful(*one) for one in sizes.items()), CANDIDATES)
    for bucket, rows in sizes.items():
        found = parquet.in_slots(folder, "c.parquet", (bucket, bucket))
        assert found["slot"].unique().to_pylist() == [bucket]
        assert np.array_equal(found["end_frame"].to_numpy(), np.arange(rows))


def test_a_table_that_is_too_large_for_a_row_group_is_cut_and_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "LARGEST_ROW_GROUP", 7)
    folder = Folder(str(tmp_path))
    parquet.publish(folder, "c.parquet", [bucketful(0, 20), bucketful(1, 7), bucketful(3, 1)], CANDIDATES)
    with parquet.reader(folder, "c.parquet") as file:
        assert file.num_row_groups == 3 + 1 + 1
        assert [parquet.holding(file, "slot", bucket) for bucket in range(4)] == [[0, 1, 2], [3], [], [4]]
    assert [parquet.in_slots(folder, "c.parquet", (bucket, bucket)).num_rows for bucket in range(4)] == [20, 7, 0, 1]
