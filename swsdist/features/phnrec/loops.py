"""Compiled element-wise operations between two products: one pass over memory, where numpy needs six.

Results equal those of the same numpy operations to the last bit. The exponential is the approximation of `network`;
exponents are in steps, OCTAVE per unit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from swsdist.core.arrays import Bools, Singles
from swsdist.features.phnrec.weights import OCTAVE, ONE_BITS
from swsdist.kernels.compiled import compiled

_UNIT, _STEP = np.float32(1), np.float32(OCTAVE)


@compiled("void(float32[:, ::1], int32, float32[::1], int32[::1], boolean[::1])")
def sigmoids(
    steps: Singles,
    farthest: int,
    row: Singles,
    bits: NDArray[np.int32],
    beyond: Bools,
) -> None:
    """Sigmoids, 1 / (1 + exp(steps / OCTAVE)), in place.

    Args:
        steps: float32 (frames, units), exponents in steps.
        farthest: in steps; frames with an exponent of larger absolute value are left unchanged.
        row: float32 (units,), a work array.
        bits: int32 (units,), the same memory.
        beyond: (frames,), written: whether a frame was left unchanged.
    """
    for frame in range(len(steps)):
        exponents, far = steps[frame], np.int32(0)
        for k in range(len(exponents)):
            integer = np.int32(exponents[k])
            far |= np.int32(integer > farthest) | np.int32(integer < -farthest)
            bits[k] = integer + ONE_BITS
        beyond[frame] = far != 0
        if far == 0:
            for k in range(len(exponents)):
                exponents[k] = np.true_divide(_UNIT, _UNIT + row[k])  # the operator would check for zero


@compiled("boolean(float32[:, ::1], int32, int32[:, ::1])")
def exponentials(logits: Singles, farthest: int, bits: NDArray[np.int32]) -> bool:
    """Exponentials of logits minus the highest of their row.

    Args:
        logits: float32 (frames, outputs), finite; at least one output.
        farthest: in steps; if a logit is farther below the highest, the result is invalid.
        bits: int32 (frames, outputs), filled with the bits of float32.

    Returns:
        Whether a logit is farther.
    """
    beyond, outputs = np.int32(0), logits.shape[1]
    for frame in range(len(logits)):
        logits_of_frame, row_bits = logits[frame], bits[frame]
        # Four maxima at a time, so that comparisons do not wait for each other.
        first = second = third = most = logits_of_frame[0]
        for k in range(0, outputs - 3, 4):
            first, second = max(first, logits_of_frame[k]), max(second, logits_of_frame[k + 1])
            third, most = max(third, logits_of_frame[k + 2]), max(most, logits_of_frame[k + 3])
        for k in range(outputs - outputs % 4, outputs):
            first = max(first, logits_of_frame[k])
        most = max(max(first, second), max(third, most))
        for k in range(outputs):
            integer = np.int32((logits_of_frame[k] - most) * _STEP)
            beyond |= np.int32(integer < -farthest)
            row_bits[k] = integer + ONE_BITS
    return bool(beyond)


@compiled("void(float32[::1], int64, float32[::1], float32[:, ::1])")
def windowed(samples: Singles, hop: int, window: Singles, made: Singles) -> None:
    """Window the frames of a signal.

    Args:
        samples: float32, from the first sample of the first frame to at least the last sample of the last frame.
        hop: from one frame to the next.
        window: float32 (frame length,).
        made: float32 (frames, points), filled up to the frame's length.
    """
    for frame in range(len(made)):
        samples_of_frame, row = samples[frame * hop :], made[frame]
        for k in range(len(window)):
            row[k] = samples_of_frame[k] * window[k]


@compiled("void(float32[:, ::1], float32[:, ::1])")
def powers(spectra: Singles, made: Singles) -> None:
    """Squared absolute values.

    Args:
        spectra: float32 (frames, 2 x points or more), alternating real and imaginary parts.
        made: float32 (frames, points), filled.
    """
    for frame in range(len(spectra)):
        spectrum, row = spectra[frame], made[frame]
        for k in range(len(row)):
            row[k] = spectrum[2 * k] * spectrum[2 * k] + spectrum[2 * k + 1] * spectrum[2 * k + 1]
