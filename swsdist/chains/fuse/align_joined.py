"""align-joined is align of joined lists: what the systems gave to a detection stays beside it."""

from __future__ import annotations

import pyarrow as pa

from swsdist.core.types import JOINED_TRIALS
from swsdist.fusion.parts import with_parts_of
from swsdist.pipeline.stage import Table
from swsdist.stages.align import Align


class AlignJoined(Align):
    """What fits a fusion reads these."""

    name = "align-joined"
    version = 1
    takes = {"detections": "filled"}
    tables = {"trials": Table(JOINED_TRIALS)}

    def kept(self, trials: pa.Table, detections: pa.Table) -> pa.Table:
        """With the column `parts`."""
        return with_parts_of(trials, detections)
