"""Sound of integers, and an extractor that only reshapes it: nothing in either depends on a CPU or on a library's numbers."""

from __future__ import annotations

from itertools import islice
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from swsdist.registry.registry import Entry
from swsdist.testing.scenes import numbers

WIDTH, RATE = 8, 800


class Reshape(BaseModel):
    """Frames are eight samples each, as the integers that they were: 10 ms at 800 Hz."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: ClassVar[str] = "reshape"
    version: ClassVar[int] = 1
    sample_rate: ClassVar[int] = RATE
    frame_length: ClassVar[int] = WIDTH
    hop: ClassVar[int] = WIDTH
    context: ClassVar[int] = 0
    dimension: ClassVar[int] = WIDTH

    def extract(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """Frames of float32 (n,) samples, float32 (n / 8, 8)."""
        whole = len(samples) // WIDTH * WIDTH
        frames: NDArray[np.float32] = samples[:whole].reshape(-1, WIDTH) * np.float32(32768)
        return frames

    def describe(self) -> dict[str, Any]:
        """It has no options."""
        return {}


def sound(seed: int, frames: int, loudness: int) -> NDArray[np.int16]:
    """Noise of this peak, int16 (8 x frames,)."""
    drawn = np.fromiter(islice(numbers(seed), frames * WIDTH), np.int64)
    return (drawn % (2 * loudness + 1) - loudness).astype(np.int16)


ENTRY = Entry(f"{__name__}:Reshape", 1)
