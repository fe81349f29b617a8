"""Find queries and documents of different bandwidths, up to the highest frequency of the features.

Features differ in a band that only one of them has, whatever was said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.features.interface import Extractor, Precomputed, upper_edge_of
from swsdist.features.transforms.interface import Transformed

#: Bandwidths differ if the ratio of the smaller to the larger is at most this: 4 or 5 kHz to 8.
_RATIO = 0.65


class Apart(NamedTuple):
    """Number of documents of another bandwidth, the first name, and both bandwidths (Hz)."""

    documents: int
    first: str
    hz: float
    other: float

    def __str__(self) -> str:
        return f"{self.first}: up to {self.hz / 1000:g} kHz, others up to {self.other / 1000:g} kHz"


def reach(extractors: Iterable[Extractor | Precomputed]) -> float:
    """Highest frequency of the features, Hz; 0 where all are precomputed.

    Raises:
        ConfigError: one is not fitted, or its model is unusable.
    """
    return max(
        (
            upper_edge_of(extractor.inner if isinstance(extractor, Transformed) else extractor)
            for extractor in extractors
            if isinstance(extractor, Extractor)
        ),
        default=0.0,
    )


def _seen(table: pa.Table, highest: float) -> NDArray[np.float64]:
    """Bandwidths, at most the highest frequency of the features; NaN where unknown."""
    hz: NDArray[np.float64] = np.minimum(table["bandwidth"].to_numpy(zero_copy_only=False).astype(np.float64), highest)
    return hz


def narrow(documents: pa.Table, highest: float) -> Apart | None:
    """Documents (`doc_id`, `bandwidth`) of a narrower band than the widest."""
    hz = _seen(documents, highest)
    if not np.isfinite(hz).any():
        return None
    widest = float(np.nanmax(hz))
    odd = np.flatnonzero(hz <= widest * _RATIO)
    if not len(odd):
        return None
    return Apart(len(odd), documents["doc_id"][int(odd[0])].as_py(), float(hz[odd[0]]), widest)


def apart(examples: pa.Table, documents: pa.Table, highest: float) -> Iterator[Apart]:
    """Of each example of a query (`query_id`, `bandwidth`) the documents of another band."""
    hz = _seen(documents, highest)
    for name, left in zip(examples["query_id"].to_pylist(), _seen(examples, highest).tolist(), strict=True):
        odd = np.flatnonzero(np.minimum(hz, left) <= np.maximum(hz, left) * _RATIO)
        if len(odd):
            yield Apart(len(odd), name, left, float(hz[odd[0]]))
