"""Features of a recording of any length, computed in bounded memory.

The places where a recording is cut depend only on the extractor, so the frames have the same bytes in any shard or
batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, pairwise

import numpy as np

from swsdist.core.arrays import Ints, Singles
from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.features.interface import (
    Batched,
    Extractor,
    Framed,
    Layered,
    WholeUtterance,
    for_recording,
    frame_count,
)

#: Frames computed, and stored in a row, at a time: 41 s at a shift of 10 ms.
BLOCK_FRAMES = 4096


def in_blocks(extractor: Extractor, audio: Iterable[Singles]) -> Iterator[Singles]:
    """Frames of a recording of any length, BLOCK_FRAMES at a time (the last block may be shorter).

    Args:
        extractor: computes them.
        audio: float32 blocks of samples, of any lengths.

    Yields:
        float32 (frames, dimension), C-contiguous.

    Raises:
        AudioError: a frame is not finite, or the recording is shorter than one frame.
        ConfigError: the extractor returns another number of frames or columns than it declares.
    """
    if isinstance(extractor, Layered):
        yield from streamed(extractor, in_blocks(extractor.inner, audio))
        return
    pieces: Iterator[Singles]
    if extractor.context is None:
        pieces = _kept(*_settled(extractor, _chunks(extractor, audio)))
    else:
        pieces = _kept(extractor, _windows(extractor, extractor.context, audio))
    done = 0
    for block in regrouped(pieces):
        done += len(block)
        yield block
    if done == 0:
        raise families.TOO_SHORT(
            "the recording is shorter than one frame ({seconds:g} s)",
            "remove it, or record more",
            seconds=extractor.frame_length / extractor.sample_rate,
        )


def streamed(extractor: Layered, frames: Iterable[Singles]) -> Iterator[Singles]:
    """Frames of a recording, BLOCK_FRAMES at a time, from those of the inner extractor.

    Args:
        extractor: processes them.
        frames: float32 (frames, inner dimension), consecutive blocks of any lengths.

    Yields:
        float32 (frames, dimension).

    Raises:
        AudioError: a frame is not finite.
    """
    return regrouped(_finite(extractor, block) for block in extractor.streamed(frames))


#: A stretch of samples, and its frames to keep: first, and stop (None: to the end).
_Stretch = tuple[Singles, int, int | None]


def _windows(extractor: Extractor, context: int, audio: Iterable[Singles]) -> Iterator[_Stretch]:
    """Stretches of BLOCK_FRAMES frames with context; the last one may be shorter."""
    hop = extractor.hop
    # At least a hop per frame, so that samples between short frames are dropped with them.
    window = (BLOCK_FRAMES + 2 * context - 1) * hop + max(hop, extractor.frame_length)
    source = _Source(audio)
    before = 0  # frames of context at the head of the buffer
    while True:
        need = window - (context - before) * hop
        if source.fill(need):
            yield source.held[:need], before, before + BLOCK_FRAMES
        else:
            yield source.held[:need], before, None
            return
        source.drop(max(0, before + BLOCK_FRAMES - context) * hop)
        before = min(before + BLOCK_FRAMES, context)


def _shared(extractor: WholeUtterance) -> tuple[int, int]:
    """Frames from one chunk to the next, and frames at a chunk's end that are taken from the next one."""
    overlap = extractor.overlap_frames
    return extractor.chunk_frames - overlap, overlap - overlap // 2


def _chunks(extractor: Extractor, audio: Iterable[Singles]) -> Iterator[_Stretch]:
    """The complete recording, or overlapping chunks of one length."""
    if not isinstance(extractor, WholeUtterance):
        raise families.EXTENSION(
            "extractor {name!r} has no context, nor whole_frames, chunk_frames and overlap_frames",
            "see docs/ on how to add an extractor",
            where="features.name",
            name=extractor.name,
        )
    hop, length = extractor.hop, extractor.frame_length
    chunk, overlap = extractor.chunk_frames, extractor.overlap_frames
    step, later = _shared(extractor)
    source = _Source(audio)
    if not source.fill(extractor.whole_frames * hop + length):
        yield source.held, 0, None
        return

    def samples(frames: int) -> int:
        return (frames - 1) * hop + length

    first = 0  # the first frame of this chunk to keep
    # A chunk has its full step while a complete one follows the beginning of the next.
    while source.fill(samples(chunk + step)):
        yield source.held[: samples(chunk)], first, chunk - later
        source.drop(step * hop)
        first = overlap // 2
    left = frame_count(extractor, len(source.held))
    if left > chunk:
        yield source.held[: samples(chunk)], first, chunk - later
        source.drop((left - chunk) * hop)
        first = 2 * chunk - left - later
    yield source.held[: samples(min(left, chunk))], first, None


def positions(extractor: Framed, frames: int) -> Ints | None:
    """Position of each frame in the stretch that it is computed in, int64 (frames,); None: it does not matter."""
    while isinstance(extractor, Layered):
        extractor = extractor.inner
    if not isinstance(extractor, WholeUtterance) or getattr(extractor, "context", 0) is not None:
        return None
    result = np.arange(frames)
    if frames <= extractor.whole_frames:
        return result
    chunk, (step, later) = extractor.chunk_frames, _shared(extractor)
    last = frames - chunk  # where the last chunk begins
    starts = [*range(0, last, step), last]
    for before, start in pairwise(starts):
        result[before + chunk - later :] = np.arange(before + chunk - later - start, frames - start)
    return result


class _Source:
    """A buffer of samples, and the stream of later ones."""

    def __init__(self, audio: Iterable[Singles]) -> None:
        self._audio = iter(audio)
        self.held: Singles = np.empty(0, np.float32)

    def fill(self, need: int) -> bool:
        """Buffer `need` samples, or all; return whether there are enough."""
        parts, have = [self.held], len(self.held)
        while have < need:
            block = next(self._audio, None)
            if block is None:
                break
            parts.append(block)
            have += len(block)
        if len(parts) > 1:
            self.held = np.concatenate(parts)
        return have >= need

    def drop(self, samples: int) -> None:
        """Drop the first samples."""
        self.held = self.held[samples:]


def _settled(extractor: Extractor, stretches: Iterator[_Stretch]) -> tuple[Extractor, Iterator[_Stretch]]:
    """Adapt the extractor to a recording of several chunks by its first chunk; return it with all stretches."""
    first = next(stretches)
    several = first[2] is not None
    return for_recording(extractor, first[0]) if several else extractor, chain([first], stretches)


def _kept(extractor: Extractor, stretches: Iterable[_Stretch]) -> Iterator[Singles]:
    """The frames to keep of each stretch, with several stretches per call if the extractor supports batches."""
    waiting: list[_Stretch] = []
    most = max(1, extractor.batch) if isinstance(extractor, Batched) else 1
    for stretch in stretches:
        waiting.append(stretch)
        if len(waiting) == most:
            yield from _computed(extractor, waiting)
            waiting = []
    if waiting:
        yield from _computed(extractor, waiting)


def _computed(extractor: Extractor, stretches: list[_Stretch]) -> Iterator[Singles]:
    samples = [stretch[0] for stretch in stretches]
    results = extractor.extract_batch(samples) if isinstance(extractor, Batched) else map(extractor.extract, samples)
    for frames, (stretch, first, last) in zip(results, stretches, strict=True):
        expected = frame_count(extractor, len(stretch))
        if frames.shape != (expected, extractor.dimension):
            raise families.EXTENSION(
                (
                    "extractor {name!r} returned {shape} for {samples} samples; its hop, frame_length and "
                    "dimension promise {expected}"
                ),
                (
                    "return {expected}, or times are wrong; swsdist.testing.conformance.check_extractor "
                    "checks an extractor"
                ),
                where="features.name",
                name=extractor.name,
                shape=" x ".join(map(str, frames.shape)),
                samples=len(stretch),
                expected=f"{expected} x {extractor.dimension}",
            )
        yield _finite(extractor, frames)[first:last]


def _finite(extractor: Extractor | Layered, frames: Singles) -> Singles:
    if not np.isfinite(frames).all():
        raise codes.NON_FINITE_FEATURES(name=extractor.name)
    return frames


def regrouped(pieces: Iterable[Singles]) -> Iterator[Singles]:
    """Regroup frames into blocks of BLOCK_FRAMES."""
    held: list[Singles] = []
    have = 0
    for piece in pieces:
        while have + len(piece) >= BLOCK_FRAMES:
            taken = BLOCK_FRAMES - have
            held.append(piece[:taken])
            yield np.ascontiguousarray(held[0] if len(held) == 1 else np.concatenate(held))
            piece, held, have = piece[taken:], [], 0
        if len(piece):
            held.append(piece)
            have += len(piece)
    if held:
        yield np.ascontiguousarray(held[0] if len(held) == 1 else np.concatenate(held))
