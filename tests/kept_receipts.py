"""The receipts of a run and its store as they lie there while it is at work."""

from __future__ import annotations

import io
from contextlib import suppress

import pyarrow.parquet as pq

from swsdist.io.filesystem import Folder
from swsdist.pipeline.receipts import decoded
from swsdist.pipeline.task import Receipt


def receipts_in(folder: Folder) -> list[Receipt]:
    """All receipts below a folder, packed ones too; a file that goes meanwhile was packed into another."""
    found: dict[str, Receipt] = {}
    for _ in range(2):  # once more, for those that were packed while the folder was listed
        for name in [name for name in folder.listing() if "receipts/" in name]:
            with suppress(FileNotFoundError):
                for one in _receipts_of(name, folder.read_bytes(name)):
                    found[f"{one.stage}-{one.fingerprint}"] = one
    return list(found.values())


def _receipts_of(name: str, data: bytes) -> list[Receipt]:
    """Those of a file of receipts: a pack, or a single one."""
    return list(decoded(pq.read_table(io.BytesIO(data)))) if name.endswith(".parquet") else [Receipt.from_json(data)]
