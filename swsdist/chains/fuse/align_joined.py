"""The stage align-joined: align for joined lists, which keeps the scores of the systems."""

from __future__ import annotations

import pyarrow as pa

from swsdist.core.types import JOINED_TRIALS
from swsdist.fusion.parts import with_parts_of
from swsdist.pipeline.stage import Table
from swsdist.stages.align import Align


class AlignJoined(Align):
    """Aligned joined lists, for fitting a fusion."""

    name = "align-joined"
    version = 1
    takes = {"detections": "filled"}
    tables = {"trials": Table(JOINED_TRIALS)}

    def kept(self, trials: pa.Table, detections: pa.Table) -> pa.Table:
        """Trials with the column `parts`."""
        return with_parts_of(trials, detections)
