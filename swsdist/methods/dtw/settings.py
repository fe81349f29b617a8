"""What the engine needs to know of a config."""

from __future__ import annotations

from typing import NamedTuple

from swsdist.kernels.distances.interface import Distance
from swsdist.kernels.scales import BAND


class Settings(NamedTuple):
    """What the engine needs to know.

    Attributes:
        distance: of the frames' dimension.
        window: frames on either side that a candidate must be the least of.
        lanes: pieces side by side.
        piece: frames a piece reports on; longer where queries are long, so that the overlap stays small.
        pattern: name in `search.patterns.PATTERNS`.
        product: who multiplies, see `search.multiply`.
        threads: that search at once.
        band: R of the pattern segmental.
        device: cpu or cuda.
        device_memory: bytes of a GPU's memory at most; None: as `search.device` has it.
    """

    distance: Distance
    window: int
    lanes: int
    piece: int
    pattern: str = "bounded-slope"
    product: str = "auto"
    threads: int = 1
    band: int = BAND
    device: str = "cpu"
    device_memory: int | None = None
