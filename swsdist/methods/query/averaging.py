"""Frames averaged before they are prepared: coarser documents and queries, for whatever distance.

A mean is taken of features, and the distance then prepares it as any frame: under a cosine its norm is that of all others,
and a mean of posteriors is a posterior.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

Frames = NDArray[np.float32]


def averaged(blocks: Iterable[Frames], factor: int) -> Iterator[Frames]:
    """Means of each `factor` consecutive frames; the last ones of a document are the mean of what is left.

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
