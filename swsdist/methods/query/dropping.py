"""Drop frames of documents and queries that are of some classes, such as silence (`search.drop`).

A frame is judged alone, so neither blocks nor shards matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.config.search import Dropping
from swsdist.core.codes import methods as codes
from swsdist.core.types import EXAMPLES


def kept(features: NDArray[np.float32], dropping: Dropping) -> NDArray[np.bool_]:
    """Which frames are not dropped.

    Args:
        features: float32 (frames, columns of all tracks side by side).
        dropping: the rule.

    Returns:
        bool (frames,).
    """
    classes = features[:, slice(*dropping.columns)]
    if dropping.above is None:
        return np.asarray(classes.max(1) < features[:, slice(*dropping.track)].max(1))
    # Column by column: numpy's sum of a row may depend on the CPU.
    return np.asarray(reduce(np.add, classes.T.astype(np.float64)) <= dropping.above)


def demand_kept(frames: NDArray[np.float32], row: Mapping[str, Any], dropping: Dropping | None, least: int) -> None:
    """Demand that enough frames of a query are kept.

    Raises:
        AudioError: fewer than `least` are.
    """
    if dropping is not None and (count := int(kept(frames, dropping).sum())) < least:
        raise codes.TOO_FEW_KEPT(where=row["path"], kept=count, frames=len(frames), least=least)


def without_dropped(examples: pa.Table, dropping: Dropping, dimension: int) -> pa.Table:
    """Examples with the frames that are kept.

    Args:
        examples: EXAMPLES, each with such a frame.
        dropping: the rule.
        dimension: columns of a frame.
    """
    rows: list[dict[str, Any]] = []
    for row in examples.to_pylist():
        features = np.frombuffer(row["features"], "<f4").reshape(-1, dimension)
        features = features[kept(features, dropping)]
        rows.append({**row, "frames": len(features), "features": features.tobytes()})
    return pa.Table.from_pylist(rows, EXAMPLES)
