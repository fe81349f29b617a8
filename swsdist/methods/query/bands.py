"""Find queries and documents of different bandwidths, up to the highest frequency of the features.

Features differ in a band that only one of them has, whatever was said.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.features.extractors import recipe
from swsdist.features.interface import Extractor, Precomputed

#: Bandwidths differ if the ratio of the smaller to the larger is at most this: 4 or 5 kHz to 8.
_RATIO = 0.65

REMEDY = "set the option fmax of the features below what all have (3700 for telephone speech), and index again"


class Apart(NamedTuple):
    """Number of documents of another bandwidth, the first name, and both bandwidths (Hz)."""

    documents: int
    first: str
    hz: float
    other: float

    def __str__(self) -> str:
        return f"{self.first}: up to {self.hz / 1000:g} kHz, others up to {self.other / 1000:g} kHz"


def reach(extractors: Iterable[Extractor | Precomputed]) -> float:
    """Highest frequency of the features, Hz; 0 where all are precomputed."""
    return max(
        (
            float(_options(extractor).get("fmax") or extractor.sample_rate / 2)
            for extractor in extractors
            if isinstance(extractor, Extractor)
        ),
        default=0.0,
    )


def _options(extractor: Extractor) -> dict[str, Any]:
    options: dict[str, Any] = json.loads(json.dumps(recipe(extractor)["options"]))
    return options


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
    for name, mine in zip(examples["query_id"].to_pylist(), _seen(examples, highest).tolist(), strict=True):
        odd = np.flatnonzero(np.minimum(hz, mine) <= np.maximum(hz, mine) * _RATIO)
        if len(odd):
            yield Apart(len(odd), name, mine, float(hz[odd[0]]))
