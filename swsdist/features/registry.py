"""What an extractor is, and which are installed.

An extractor turns samples into frames. It is a small class with an options model, found by its name in
`swsdist.registries.FEATURES`; a third party adds one by a class and a line in its own `pyproject.toml`. Whether it is right is
told by `swsdist.testing.conformance.check_extractor`.

Long recordings are computed in fixed blocks of `BLOCK_FRAMES` frames with the context that the extractor asks for, so memory
is bounded; the block is part of the fingerprint, since where a block ends may change the last bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from swsdist.errors import AudioError, ConfigError
from swsdist.registries import FEATURES

#: Frames computed, and stored in a row, at a time: 41 s at a shift of 10 ms.
BLOCK_FRAMES = 4096


@runtime_checkable
class Extractor(Protocol):
    """Samples in, frames out.

    Attributes:
        name: its name in configs.
        version: raised whenever the same options and samples give other bytes.
        sample_rate: Hz; audio is resampled to it.
        frame_length, hop: samples under a frame, and from one frame to the next.
        context: frames on either side that a frame's value depends on.
        dimension: numbers a frame.
    """

    name: str
    version: int
    sample_rate: int
    frame_length: int
    hop: int
    context: int
    dimension: int

    def extract(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """Frames of a stretch of samples: float32 (n,) to float32 (frame_count(self, n), dimension)."""
        ...

    def describe(self) -> dict[str, Any]:
        """All options with their values, as plain JSON: what the frames depend on besides the samples."""
        ...


def frame_count(extractor: Extractor, samples: int) -> int:
    """Frames that lie whole inside `samples` samples."""
    return max(0, 1 + (samples - extractor.frame_length) // extractor.hop)


def frame_shift(extractor: Extractor) -> float:
    """Seconds from one frame to the next."""
    return extractor.hop / extractor.sample_rate


def installed() -> dict[str, str]:
    """Names of the extractors that there are, and where each comes from."""
    return {name: FEATURES[name].target for name in sorted(FEATURES)}


def create(name: str, options: dict[str, Any]) -> Extractor:
    """Make an extractor.

    Raises:
        ConfigError: there is none of that name, or it does not take these options.
    """
    try:
        extractor: Extractor = FEATURES[name].load()(**options)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(["features.options", *(str(part) for part in first["loc"])])
        raise ConfigError(first["msg"], where=place, remedy=f"see the options of {name} in docs/") from None
    return extractor


def identity(extractor: Extractor) -> dict[str, Any]:
    """What the frames depend on besides the samples, for fingerprints."""
    return {
        "name": extractor.name,
        "version": extractor.version,
        "block_frames": BLOCK_FRAMES,
        "options": extractor.describe(),
    }


def in_blocks(extractor: Extractor, audio: Iterable[NDArray[np.float32]]) -> Iterator[NDArray[np.float32]]:
    """Frames of a recording of any length, BLOCK_FRAMES at a time (the last block may be shorter).

    Args:
        extractor: computes them.
        audio: float32 blocks of samples, of any lengths.

    Yields:
        float32 (frames, dimension), C-contiguous.

    Raises:
        AudioError: a frame is not finite, or the recording is shorter than one frame.
    """
    hop, context = extractor.hop, extractor.context
    # At least a hop for each frame, or what lies between short frames would not be dropped with them.
    whole = (BLOCK_FRAMES + 2 * context - 1) * hop + max(hop, extractor.frame_length)
    held = np.empty(0, np.float32)
    done = 0  # frames yielded
    before = 0  # frames of context at the head of `held`
    source = iter(audio)
    more = True
    while more:
        parts = [held]
        have = len(held)
        need = whole - (context - before) * hop
        while have < need:
            block = next(source, None)
            if block is None:
                more = False
                break
            parts.append(block)
            have += len(block)
        held = np.concatenate(parts)
        frames = extractor.extract(held[:need])
        if not np.isfinite(frames).all():
            raise AudioError(f"features of {extractor.name} are not finite", reason="not-finite")
        new = frames[before : before + BLOCK_FRAMES] if more else frames[before:]
        while len(new) > 0:
            yield np.ascontiguousarray(new[:BLOCK_FRAMES])
            done += min(len(new), BLOCK_FRAMES)
            new = new[BLOCK_FRAMES:]
        drop = max(0, before + BLOCK_FRAMES - context)
        held = held[drop * hop :]
        before = min(before + BLOCK_FRAMES, context)
    if done == 0:
        seconds = extractor.frame_length / extractor.sample_rate
        raise AudioError(
            f"shorter than one frame ({seconds:g} s)", reason="too-short", remedy="leave it out, or record more"
        )
