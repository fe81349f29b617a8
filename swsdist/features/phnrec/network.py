"""Log mel energies to posteriors of phones' states.

Of each band the 16 frames up to t, and the 16 frames from t on, are weighted by a half of a Hamming window and become 11
coefficients of a cosine transform. A network for each side, then one that merges the logarithms of their outputs. Hidden units
are sigmoids; outputs are normalised exponentials, three states a phone and one class more, `oth`, at the end.

**The exponential is an approximation** (N. Schraudolph, "A fast, compact approximation of the exponential function", Neural
Computation 11, 1999), -3.9 % to +2.0 % off: networks were trained with it, and with the exact one posteriors differ by up to
0.08. Here it is exact to 2^-20 in outputs (`fexp`) and in hidden units.

Products are in float32, some 256 frames at a time, so posteriors are the same to the last bit wherever a recording is cut into
the same stretches, on one type of CPU and version of the BLAS, in one thread; on another they differ by some 1e-6.
"""

from __future__ import annotations

import math
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from swsdist.features.phnrec.weights import CONTEXT, NETS, OCTAVE, Recogniser, Weights

#: Frames to either side that a frame's posteriors depend on, beside the recording's mean.
REACH = CONTEXT - 1

#: Coefficients of a band's cosine transform.
_COEFFICIENTS = CONTEXT // 2 + 3

#: Frames a product: what is made of them stays in a cache. A rest of some frames is joined to the product before; of fewer it
#: is not, because a BLAS has another way for small ones, and other last digits.
_AT_ONCE, _REST = 256, range(32, 129)

#: Frames of which windows are copied at once.
_FEW = 96

#: Where exponents are cut off, in steps, so that float32 has them: at 80. Beyond _OVER the approximation runs over.
_FARTHEST, _OVER = int(np.float32(80 * OCTAVE)), 700.0

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
    return _softmax(logits)[0]


def log_softmax(logits: _Frames, out: _Frames | None = None) -> _Frames:
    """Their natural logarithms, in `out` if given; what is 0 in float32 has the logarithm 0: so the mergers were trained."""
    made, zeros = _softmax(logits)
    if zeros:
        made[made == 0] = 1.0
    return np.log(made, out=made if out is None else out)


def _softmax(logits: _Frames) -> tuple[_Frames, bool]:
    """And whether there may be zeros."""
    from swsdist.features.phnrec.loops import exponentials  # compiles

    logits = np.ascontiguousarray(logits)
    bits = np.empty(logits.shape, np.int32)
    if exponentials(logits, _FARTHEST, bits):  # float32 has some of them, as numbers with fewer digits
        steps = logits - logits.max(axis=1, keepdims=True)
        exact = fexp(np.maximum(steps, -_OVER))
        return np.asarray(exact / exact.sum(axis=1, keepdims=True), np.float32), True
    made = bits.view(np.float32)
    made /= made.sum(axis=1, keepdims=True)
    return made, False


class Net:
    """A perceptron of one hidden layer, ready to be applied.

    Its input's mean and scale are in its first matrix, and so is the bias, as the weight of a further input that is 1.
    """

    def __init__(self, weights: Weights) -> None:
        first = weights.first.astype(np.float64) * weights.scale
        bias = weights.bias - first @ weights.mean.astype(np.float64)
        # -(W x + b) in steps of the exponential.
        self.first = (-OCTAVE * np.concatenate([first.T, bias[None]])).astype(np.float32)
        self.second = np.ascontiguousarray(weights.second.T)
        self._bias = weights.bias_out

    def logits(self, inputs: _Frames) -> _Frames:
        """Outputs before the normalised exponential.

        Args:
            inputs: float32 (frames, inputs + 1), 1 in the last column.

        Returns:
            float32 (frames, outputs).
        """
        made: _Frames = np.matmul(_sigmoids(np.matmul(inputs, self.first)), self.second)
        made += self._bias
        return made


def _sigmoids(steps: _Frames) -> _Frames:
    """Of exponents in steps; in place.

    The 32 bits of the approximation run over: from about 709 up to twice that its sign and size are wrong, and a sigmoid of 1
    comes out as 0. Networks have such units (RU's right one does), so this is a part of them. Beyond, nothing is defined.
    """
    from swsdist.features.phnrec.loops import sigmoids  # compiles

    row, beyond = np.empty(steps.shape[1], np.float32), np.empty(len(steps), np.bool_)
    sigmoids(steps, _FARTHEST, row, row.view(np.int32), beyond)
    if beyond.any():
        some = steps[beyond]
        exponents = some / np.float32(OCTAVE)
        where = (np.abs(exponents) > _OVER) & (np.abs(exponents) < 2 * _OVER)
        far = exponents[where].astype(np.float64)
        with np.errstate(all="ignore"):
            found = 1.0 / (1.0 + fexp(far))
        np.clip(some, -_FARTHEST, _FARTHEST, out=some)
        sigmoids(some, _FARTHEST, row, row.view(np.int32), np.empty(len(some), np.bool_))
        some[where] = np.where(np.isfinite(found), found, far < 0)
        steps[beyond] = some
    return steps


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
        padded = np.empty((len(energies) + 2 * REACH, energies.shape[1]), np.float32)
        padded[REACH:-REACH], padded[:REACH], padded[-REACH:] = energies, energies[0], energies[-1]
        around = np.lib.stride_tricks.sliding_window_view(padded, 2 * REACH + 1, axis=0)
        outputs = made.shape[1]
        for first, stop in _products(len(made)):
            left, right = self.inputs(around[first:stop])
            merged = _inputs(len(left), self.merger)
            sides = self.left.logits(left), self.right.logits(right)
            for k in range(0, stop - first, _AT_ONCE):
                for side, part in zip(sides, (merged[:, :outputs], merged[:, outputs:-1]), strict=True):
                    log_softmax(side[k : k + _AT_ONCE], part[k : k + _AT_ONCE])
            made[first:stop] = self.merger.logits(merged)
        return made

    def inputs(self, around: _Frames) -> tuple[_Frames, _Frames]:
        """What the two networks are given: of (frames, bands, 31) two of (frames, bands x 11 + 1), 1 in the last column."""
        left, right = _inputs(len(around), self.left), _inputs(len(around), self.right)
        for first in range(0, len(around), _FEW):
            some = np.ascontiguousarray(around[first : first + _FEW])
            flat = some.reshape(-1, 2 * REACH + 1)
            for made, part, side in zip((left, right), (flat[:, :CONTEXT], flat[:, REACH:]), self._sides, strict=True):
                made[first : first + _FEW, :-1] = (part @ side).reshape(len(some), -1)
        return left, right


def _inputs(frames: int, net: Net) -> _Frames:
    """To be filled, but for the last column, which is 1."""
    made = np.empty((frames, len(net.first)), np.float32)
    made[:, -1] = 1.0
    return made


def _products(frames: int) -> list[tuple[int, int]]:
    """The first frame of each product, and the one behind its last."""
    edges = [*range(0, frames, _AT_ONCE), frames]
    if len(edges) > 2 and edges[-1] - edges[-2] in _REST:
        del edges[-2]
    return list(pairwise(edges))
