"""Frames in fixed point held in float32, and the local distances between them.

A float32 product of two prepared frames is exact: each coordinate is an integer, the two norms are at most
2^11.5 + sqrt(D)/2, so by Cauchy-Schwarz every partial sum of a dot product, in any order, is an integer below 2^24. A matrix
product of such frames therefore has the same bytes on any BLAS, block, lane or device, with or without FMA.

Cosine: frames of norm 2^11.5, ``d = rint(2048 - dot * 2^-12)`` clamped to 0..4095, so 2048 is a cosine distance of 1. A zero
vector has distance 2048 to everything. Error of a cosine: at most sqrt(D) / 2^11.5 (D = 39: 0.0022; observed: some 1e-4).

Cosine squared: ``(d * d + 2048) >> 12``, so 1024 is a squared cosine distance of 1.

`prepare` works in float64 with + - * / sqrt in index order, all of them correctly rounded by IEEE 754: the same bytes on any
CPU. rint rounds halves to even.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from swsdist.errors import UserError
from swsdist.kernels.scales import UNITS

#: Norm of a prepared frame, 2^11.5.
NORM = 2.0**11.5


class Distance(NamedTuple):
    """A local distance: its name in configs, and its compiled map."""

    name: str
    from_dots: Any

    @property
    def unit(self) -> int:
        """The integer that stands for a distance of 1."""
        return UNITS[self.name]


@numba.njit("void(float64[:,::1], float64[::1], float64[::1], float32[:,::1])", nogil=True, cache=True)
def _prepare(features: Any, offset: Any, scale: Any, out: Any) -> None:
    frames, dimension = features.shape
    row = np.empty(dimension)
    for t in range(frames):
        square = 0.0
        for k in range(dimension):
            x = (features[t, k] - offset[k]) / scale[k]
            row[k] = x
            square = square + x * x
        norm = np.sqrt(square)
        for k in range(dimension):
            out[t, k] = 0.0 if norm == 0.0 else np.rint(row[k] / norm * NORM)


def prepare(
    features: NDArray[np.float32], offset: NDArray[np.float64], scale: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Normalise frames and put them into fixed point.

    Args:
        features: float32 (frames, D), finite.
        offset: float64 (D,), taken from each frame; zeros for none.
        scale: float64 (D,), positive; each frame is divided by it; ones for none.

    Returns:
        float32 (frames, D) of integers; a frame that equals the offset is all zero.
    """
    out = np.empty(features.shape, np.float32)
    _prepare(np.ascontiguousarray(features, np.float64), offset, scale, out)
    return out


@numba.njit("void(float32[::1], int32[::1])", nogil=True, cache=True)
def _cosine(dots: Any, out: Any) -> None:
    for j in range(dots.size):
        d = np.int32(np.rint(np.float32(2048.0) - dots[j] * np.float32(2.0**-12)))
        out[j] = min(max(d, np.int32(0)), np.int32(4095))


@numba.njit("void(float32[::1], int32[::1])", nogil=True, cache=True)
def _cosine_squared(dots: Any, out: Any) -> None:
    for j in range(dots.size):
        d = np.int32(np.rint(np.float32(2048.0) - dots[j] * np.float32(2.0**-12)))
        d = min(max(d, np.int32(0)), np.int32(4095))
        out[j] = np.int32(np.int32(d * d + np.int32(2048)) >> np.int32(12))


#: The distances by name. `from_dots` maps float32 dot products to int32 distances, flat arrays, which must not overlap
#: (the compiler would fall back to a loop that is ten times slower).
DISTANCES = {
    distance.name: distance for distance in (Distance("cosine", _cosine), Distance("cosine-squared", _cosine_squared))
}


def probe_gemm() -> None:
    """Multiply known integers of the largest size that search uses; refuse a BLAS that is not exact.

    Raises:
        UserError: a float32 product of integers below 2^24 came out wrong (TF32, bfloat16 or a broken BLAS).
    """
    k = np.arange(39 * 64, dtype=np.int64).reshape(64, 39)
    left, right = k * 2654435761 % 927 - 463, k * 40503 % 925 - 462
    product = left.astype(np.float32) @ right.T.astype(np.float32)
    if not np.array_equal(product.astype(np.int64), left @ right.T):
        raise UserError(
            "this machine's float32 matrix product is not exact on integers below 2^24",
            where="BLAS probe",
            remedy="switch off TF32 or reduced precision, or install numpy with its own OpenBLAS",
        )
