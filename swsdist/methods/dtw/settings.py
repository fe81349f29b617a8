"""Settings of the search engine."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from swsdist.kernels.distances.interface import Distance


class Settings(NamedTuple):
    """Settings of the search engine.

    Attributes:
        distance: of the frames' dimension.
        window: frames on either side within which a candidate must have the least cost.
        lanes: pieces side by side.
        piece: frames a piece reports on; longer where queries are long, so that the overlap stays small.
        recurrence: its name.
        backend: implementation of the search, see `methods.dtw.backends`.
        threads: that search at once.
        options: of the recurrence, those that differ from the defaults.
        row_range: map the distances of a query frame to a document to their range (`kernels.products`).
        device_memory: bytes of a GPU's memory at most; None: half of what is free, or 4 GB.
    """

    distance: Distance
    window: int
    lanes: int
    piece: int
    recurrence: str = "bounded-slope"
    backend: str = "cpu"
    threads: int = 1
    options: Mapping[str, object] = MappingProxyType({})
    row_range: bool = False
    device_memory: int | None = None
