"""Rejected inputs of a store or a run, from its folder."""

from __future__ import annotations

import pyarrow as pa

from swsdist.core.types import REJECTED
from swsdist.io.filesystem import Folder
from swsdist.pipeline.inspection.loading import config_of
from swsdist.pipeline.plan import load_plans
from swsdist.store import parquet
from swsdist.store.manifest import words_store
from swsdist.store.reading import Store

#: Table of a run with a report.
_TABLE = "rejected.parquet"


def rejections(folder: str) -> pa.Table:
    """REJECTED: documents of a store; for a run with a report also queries and failed tasks.

    Args:
        folder: folder of a store or a run, local or `s3://`.

    Raises:
        StoreError: neither a store nor a run, or the run has no store yet.
    """
    place = Folder(folder.rstrip("/"))
    if place.exists("plan.json"):
        if place.exists(_TABLE):
            return parquet.read(place, _TABLE)
        plan = next(iter(load_plans(place).values()))
        place = Folder(config_of(place, plan).store, place.storage)
    tables = [Store(place).rejected().select(REJECTED.names)]
    if (words := words_store(place.path())) is None:
        return tables[0]
    tables.append(Store(Folder(words, place.storage)).rejected().select(REJECTED.names))
    # A recording may be unreadable to both.
    rows = {tuple(row.values()): row for row in pa.concat_tables(tables).to_pylist()}
    return pa.Table.from_pylist(list(rows.values()), REJECTED)
