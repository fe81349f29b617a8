"""What could not be used, of a store or of a run, from its folder alone."""

from __future__ import annotations

import pyarrow as pa

from swsdist.core.types import REJECTED
from swsdist.io.filesystem import Folder
from swsdist.pipeline.inspection.loading import config_of
from swsdist.pipeline.plan import load_plans
from swsdist.store import parquet
from swsdist.store.reading import Store

#: Of a run that has a report.
_TABLE = "rejected.parquet"


def rejections(folder: str) -> pa.Table:
    """REJECTED: documents of a store; of a run that has a report also queries, and tasks that failed.

    Args:
        folder: of a store or a run, local or `s3://`.

    Raises:
        StoreError: it is neither, or the run has no store yet.
    """
    place = Folder(folder.rstrip("/"))
    if place.exists("plan.json"):
        if place.exists(_TABLE):
            return parquet.read(place, _TABLE)
        plan = next(iter(load_plans(place).values()))
        place = Folder(config_of(place, plan).store, place.storage)
    return Store(place).rejected().select(REJECTED.names)
