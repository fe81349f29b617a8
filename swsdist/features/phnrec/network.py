"""Log mel energies to posteriors of phones' states.

Of each band the 16 frames up to t, and the 16 frames from t on, are weighted by a half of a Hamming window and become 11
coefficients of a cosine transform. A network for each side, then one that merges the logarithms of their outputs. Hidden units
are sigmoids; outputs are normalised exponentials, three states a phone and one class more, `oth`, at the end.

**The exponential is an approximation** (N. Schraudolph, "A fast, compact approximation of the exponential function", Neural
Computation 11, 1999), -3.9 % to +2.0 % off: networks were trained with it, and with the exact one posteriors differ by up to
0.08. Here it is exact to 2^-20 in outputs (`fexp`) and in hidden units.

Products are in float32, 256 frames at a time, so posteriors are the same to the last bit wherever a recording is cut into the
same stretches, on one type of CPU and version of the BLAS, in one thread; on another they differ by some 1e-6.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from swsdist.features.phnrec.weights import CONTEXT, NETS, Recogniser, Weights

#: Frames to either side that a frame's posteriors depend on, beside the recording's mean.
REACH = CONTEXT - 1

#: Coefficients of a band's cosine transform.
_COEFFICIENTS = CONTEXT // 2 + 3

#: Frames a product: what is made of them stays in a cache.
_AT_ONCE = 256

#: Where exponents are cut off, so that float32 has them; beyond _OVER the approximation runs over.
_FARTHEST, _OVER = 80.0, 700.0

#: A float32 whose bits are taken for an integer: steps of an exponent of 1, and the number 1, less what makes errors small.
_OCTAVE, _ONE = (1 << 23) / math.log(2), np.int32((127 << 23) - (60801 << 3))

_Frames = NDArray[np.float32]


def fexp(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Schraudolph's approximation of the exponential: the high half of a double, of which the low half is 0.

    Args:
        values: any shape. Beyond -708 and 709 its 32 bits run over, and it is no exponential.
    """
    whole = np.trunc(np.asarray(values, np.float64) * (1048576 / math.log(2))).astype(np.int64)
    whole += 1072693248 - 60801
    whole <<= 32
    return np.asarray(whole.view(np.float64))


def softmax(logits: _Frames) -> _Frames:
    """Normalised exponentials of each row, float32."""
    steps = np.subtract(logits, logits.max(axis=1, keepdims=True))
    if steps.min(initial=0.0) < -_FARTHEST:  # float32 has some of them, as numbers with fewer digits
        exact = fexp(np.maximum(steps, -_OVER))
        return np.asarray(exact / exact.sum(axis=1, keepdims=True), np.float32)
    steps *= np.float32(_OCTAVE)
    made: _Frames = _exponential(steps, np.empty(steps.shape, np.int32))
    made /= made.sum(axis=1, keepdims=True)
    return made


def log_softmax(logits: _Frames) -> _Frames:
    """Their natural logarithms; what is 0 in float32 has the logarithm 0, for so the mergers were trained."""
    made = softmax(logits)
    made[made == 0] = 1.0
    return np.log(made, out=made)


def _exponential(steps: _Frames, bits: NDArray[np.int32]) -> _Frames:
    """`fexp` of exponents in steps, none beyond _FARTHEST; in the memory of `bits`."""
    np.copyto(bits, steps, casting="unsafe")
    np.add(bits, _ONE, out=bits)
    return bits.view(np.float32)


class Net:
    """A perceptron of one hidden layer, ready to be applied.

    Its input's mean and scale are in its first matrix, and so is the bias, as the weight of a further input that is 1.
    """

    def __init__(self, weights: Weights) -> None:
        first = weights.first.astype(np.float64) * weights.scale
        bias = weights.bias - first @ weights.mean.astype(np.float64)
        # -(W x + b) in steps of the exponential.
        self.first = (-_OCTAVE * np.concatenate([first.T, bias[None]])).astype(np.float32)
        self.second = np.ascontiguousarray(weights.second.T)
        self._bias = weights.bias_out

    def logits(self, inputs: _Frames) -> _Frames:
        """Outputs before the normalised exponential.

        Args:
            inputs: float32 (frames, inputs + 1), 1 in the last column.

        Returns:
            float32 (frames, outputs).
        """
        made = np.empty((len(inputs), self.second.shape[1]), np.float32)
        steps = np.matmul(inputs, self.first)
        lowest, highest = float(steps.min()), float(steps.max())
        farthest, wrapped = max(-lowest, highest) / _OCTAVE, None
        if farthest > _OVER:
            wrapped = _wrapped(steps / np.float32(_OCTAVE))
        if farthest > _FARTHEST:
            np.clip(steps, -_FARTHEST * _OCTAVE, _FARTHEST * _OCTAVE, out=steps)
        hidden = _exponential(steps, np.empty(steps.shape, np.int32))
        np.add(hidden, np.float32(1), out=hidden)
        np.reciprocal(hidden, out=hidden)
        if wrapped is not None:
            hidden[wrapped[0]] = wrapped[1]
        np.matmul(hidden, self.second, out=made)
        made += self._bias
        return made


def _wrapped(exponents: _Frames) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Where exponents leave the range, and the sigmoids there.

    The 32 bits of the approximation run over: from about 709 up to twice that its sign and size are wrong, and a sigmoid of 1
    comes out as 0. Networks have such units (RU's right one does), so this is a part of them. Beyond, nothing is defined.
    """
    where = (np.abs(exponents) > _OVER) & (np.abs(exponents) < 2 * _OVER)
    far = exponents[where].astype(np.float64)
    with np.errstate(all="ignore"):
        found = 1.0 / (1.0 + fexp(far))
    return where, np.where(np.isfinite(found), found, far < 0)


class Networks:
    """The three networks of a recogniser."""

    def __init__(self, recogniser: Recogniser) -> None:
        self._recogniser = recogniser
        self.left, self.right, self.merger = (Net(recogniser.nets[name]) for name in NETS)

    @cached_property
    def _sides(self) -> tuple[_Frames, _Frames]:
        """Window and cosine transform of either side: float32 (16, 11) each."""
        places, k = np.arange(CONTEXT) + 0.5, np.arange(_COEFFICIENTS)
        cosines = math.sqrt(2 / CONTEXT) * np.cos(np.pi / CONTEXT * places[:, None] * k)
        left, right = ((window[:, None] * cosines).astype(np.float32) for window in self._recogniser.windows)
        return left, right

    def logits(
        self, energies: NDArray[np.float64], prior: NDArray[np.float64] | None = None, weight: int = 0
    ) -> _Frames:
        """Outputs of the merger before its normalised exponential.

        Args:
            energies: float64 (frames, bands), log mel energies, all of what counts as one recording.
            prior: float64 (bands,), a mean that counts as `weight` frames beside those of the recording.
            weight: frames.

        Returns:
            float32 (frames, 3 x phones + 3).
        """
        made = np.empty((len(energies), self.merger.second.shape[1]), np.float32)
        if len(energies) == 0:
            return made
        if self._recogniser.subtract_mean:
            mean = energies.mean(axis=0)
            if prior is not None:
                mean = (len(energies) * mean + weight * prior) / (len(energies) + weight)
            energies = energies - mean
        padded = np.pad(energies, ((REACH, REACH), (0, 0)), mode="edge").astype(np.float32)
        around = np.lib.stride_tricks.sliding_window_view(padded, 2 * REACH + 1, axis=0)
        for first in range(0, len(made), _AT_ONCE):
            left, right = self.inputs(around[first : first + _AT_ONCE])
            merged = np.ones((len(left), len(self.merger.first)), np.float32)
            outputs = made.shape[1]
            merged[:, :outputs] = log_softmax(self.left.logits(left))
            merged[:, outputs:-1] = log_softmax(self.right.logits(right))
            made[first : first + _AT_ONCE] = self.merger.logits(merged)
        return made

    def inputs(self, around: _Frames) -> tuple[_Frames, _Frames]:
        """What the two networks are given: of (frames, bands, 31) two of (frames, bands x 11 + 1), 1 in the last column."""
        left, right = (np.ones((len(around), len(self.left.first)), np.float32) for _ in range(2))
        for made, part, side in zip(
            (left, right), (around[..., :CONTEXT], around[..., REACH:]), self._sides, strict=True
        ):
            made[:, :-1] = (np.ascontiguousarray(part).reshape(-1, CONTEXT) @ side).reshape(len(around), -1)
        return left, right
