"""Prepared examples of queries, their parts, and averages of their frames.

Parts of an example are searched as examples, for documents with other words between, or with another ending. A query of
N frames is cut into halves of N // 2 frames and the rest, and into its first and its last ceil(2 N / 3) frames.

Averages are taken of features, before the distance prepares them as any frame, so they suit every distance: under a
cosine a mean is normalised like all frames, and a mean of posteriors is a posterior.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from swsdist.core.arrays import Ints, Singles


class Example(NamedTuple):
    """One spoken example of a query, or the template of several.

    Attributes:
        query_id: of its query.
        example: its number; of a template the least number of its examples.
        frames: prepared, float32 (query frames, columns).
        saturated: number of frames that were clipped to the distance's range (`kernels.distances.interface`).
    """

    query_id: str
    example: int
    frames: Singles
    saturated: int = 0


#: What candidates are of, by number: the uncut query, its joined halves, its first two thirds, its last two thirds.
UNCUT, JOINED, FIRST, LAST = range(4)
#: A candidate's example is the number of the example times this, plus that of the part.
PARTS = 4
#: Frames that are searched, for each frame of a query.
WORK = 1 + 1 + 2 * 2 / 3


class Parts(NamedTuple):
    """Examples in parts.

    Attributes:
        searched: examples that the engine searches.
        target: int64 (searched,), ascending: index in `results` of the same example, or for a half of its whole.
        results: examples that candidates are of; joined halves are as long as the whole.
        gap: greatest number of document frames between two halves.
    """

    searched: list[Example]
    target: Ints
    results: list[Example]
    gap: int


def in_parts(examples: Sequence[Example], least: int, gap: int) -> Parts:
    """All examples with their parts; empty parts and parts of fewer than `least` frames are left out."""
    least = max(least, 1)
    searched: list[Example] = []
    results: list[Example] = []
    target: list[int] = []

    def add(example: Example, part: int, *cuts: slice) -> None:
        result = example._replace(example=example.example * PARTS + part)
        pieces = [result._replace(frames=np.ascontiguousarray(example.frames[cut])) for cut in cuts]
        target.extend([len(results)] * len(pieces))
        searched.extend(pieces)
        results.append(pieces[0] if len(pieces) == 1 else result)

    for example in examples:
        n = len(example.frames)
        half, long = n // 2, -(-2 * n // 3)
        add(example, UNCUT, slice(0, n))
        part = example._replace(saturated=0)  # counted once
        if half >= least:
            add(part, JOINED, slice(0, half), slice(half, n))
        if least <= long < n:
            add(part, FIRST, slice(0, long))
            add(part, LAST, slice(n - long, n))
    return Parts(searched, np.array(target, np.int64), results, gap)


Frames = Singles


def averaged(blocks: Iterable[Frames], factor: int) -> Iterator[Frames]:
    """Means of each `factor` consecutive frames; the last mean of a document can be of fewer.

    Args:
        blocks: consecutive, float32 (frames, dimension); not prepared.
        factor: r.

    Yields:
        float32 blocks.
    """
    if factor == 1:
        yield from blocks
        return
    rest: Frames | None = None
    for block in blocks:
        frames = block if rest is None else np.concatenate([rest, block])
        complete = len(frames) // factor * factor
        if complete:
            yield _means(frames[:complete], factor)
        rest = frames[complete:]
    if rest is not None and len(rest):
        yield _means(rest, factor)


def _means(frames: Frames, factor: int) -> Frames:
    out = np.empty((-(-len(frames) // factor), frames.shape[1]), np.float32)
    from swsdist.kernels.windows import means  # loads numba: planning does without

    means(np.ascontiguousarray(frames), factor, out)
    return out
