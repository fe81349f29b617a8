"""A library's float32 matrix product in place of the int16 product of `kernels.products`.

Prepared frames are integers whose sums float32 holds exactly, so both give the same bytes, and the choice affects only
speed: the int16 product (in registers, fused with the map) is fastest on CPUs with 512-bit vectors; see
docs/concepts/engine.md. A library is used only after it multiplied known integers of the largest size without error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.core.codes import methods as codes
from swsdist.kernels.products import Layout
from swsdist.kernels.vectors import WIDTH
from swsdist.methods.dtw.backends.room import Room


class Multiply(NamedTuple):
    """A library's float32 product.

    Attributes:
        name: of the library.
        into: (left, right, out): writes left @ right.
        frames: frames of a segment per product with a group of queries.
    """

    name: str
    into: Callable[[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]], None]
    frames: int = 64

    def blocks(self, source: NDArray[np.int16], layout: Layout) -> list[NDArray[np.float32]]:
        """The streams of a segment as right-hand sides, float32 (columns, frames x 16)."""
        by_pair = source.reshape(-1, layout.pairs, WIDTH, 2)
        return [
            np.ascontiguousarray(
                by_pair[:, first : first + pairs].transpose(1, 3, 0, 2).reshape(2 * pairs, -1), np.float32
            )
            for first, pairs, *_ in layout.shape.tolist()
        ]

    def __call__(
        self, queries: list[NDArray[np.float32]], blocks: list[NDArray[np.float32]], room: Room
    ) -> tuple[NDArray[np.int16], ...]:
        """Products of a group of queries and a segment, one per stream: float32 (rows, frames, 16), their bytes as
        int16.
        """
        products = []
        for k, (left, right) in enumerate(zip(queries, blocks, strict=True)):
            size = len(left) * right.shape[1]
            out = room(f"products {k}", size, np.float32)[:size]
            self.into(left, right, out.reshape(len(left), -1))
            products.append(out.view(np.int16))
        return tuple(products)


@cache
def by_numpy() -> Multiply:
    """numpy's BLAS, one product for a group of queries and a segment of frames.

    Raises:
        UserError: its float32 product is not exact on integers below 2^24.
    """
    chosen = Multiply("numpy", _numpy)
    probe(chosen)
    return chosen


def probe(chosen: Multiply) -> None:
    """Multiply known integers of the largest size that search uses.

    Raises:
        UserError: a product came out wrong (reduced precision, or a broken BLAS).
    """
    k = np.arange(39 * 64, dtype=np.int64).reshape(64, 39)
    left, right = k * 2654435761 % 927 - 463, k * 40503 % 925 - 462
    out = np.empty((64, 64), np.float32)
    chosen.into(left.astype(np.float32), np.ascontiguousarray(right.T, np.float32), out)
    if not np.array_equal(out, (left @ right.T).astype(np.float64)):
        raise codes.INEXACT_PRODUCT(where="search.backend", library=chosen.name)


def _numpy(left: NDArray[np.float32], right: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    np.matmul(left, right, out=out)
