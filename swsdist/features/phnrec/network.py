"""Networks of phnrec: from samples to log mel energies, and from these to posteriors of phone states.

Log mel energies: frame t covers samples [t * hop, t * hop + frame_length), under a Hamming window, with zeros behind it
up to the next power of two. Samples are in the range of 16 bits; spectra are float32. Bands are triangles that are
linear in mel, mel(f) = 1127 ln(1 + f / 700), as in HTK; their height is 1. The natural logarithm of a band's power is
taken; a power of exactly 0 (digital silence) gives 0.

Networks: in each band, the 16 frames up to t and the 16 frames from t on are weighted by half a Hamming window and
reduced to 11 coefficients of a cosine transform. A network processes each side; a third merges the logarithms of their
outputs. Hidden units are sigmoids; outputs are softmax: three states per phone and a final class, `oth`.

The exponential is Schraudolph's approximation, off by -3.9 % to +2.0 %. The networks were trained with it; with the
exact one posteriors differ by up to 0.08. Here the approximation is reproduced to 2^-20 in outputs (`fexp`) and in
hidden units.

Products are float32, some 256 frames at a time. On one type of CPU and version of the BLAS, in one thread, posteriors
are the same to the last bit if a recording is cut into the same stretches; elsewhere they differ by some 1e-6.

Source of the exponential: N. Schraudolph, "A fast, compact approximation of the exponential function", Neural
Computation 11, 1999; the others are those of `swsdist.features.phnrec`.
"""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from swsdist.core.arrays import Floats, Singles
from swsdist.features.phnrec.weights import CONTEXT, NETS, OCTAVE, Banks, Recogniser, Weights

#: Frames on either side that a frame's posteriors depend on, besides the recording's mean.
REACH = CONTEXT - 1

#: Coefficients of a band's cosine transform.
_COEFFICIENTS = CONTEXT // 2 + 3

#: Frames per product, so that intermediate results fit a cache. A remainder in `_REST` joins the previous product; a
#: smaller one does not, because a BLAS uses another kernel for small products, with other last digits.
_AT_ONCE, _REST = 256, range(32, 129)

#: Frames whose windows are copied at once.
_FEW = 96

#: Exponents, in steps, are clipped at 80 to fit float32. Beyond _OVER the approximation overflows.
_FARTHEST, _OVER = int(np.float32(80 * OCTAVE)), 700.0


def fexp(values: NDArray[np.floating]) -> Floats:
    """Schraudolph's approximation of the exponential: sets the high half of a double; the low half is 0.

    Args:
        values: any shape. Below -708 or above 709 the 32 bits overflow, and the result is not an exponential.
    """
    bits = np.trunc(np.asarray(values, np.float64) * (1048576 / math.log(2))).astype(np.int64)
    bits += 1072693248 - 60801
    bits <<= 32
    return np.asarray(bits.view(np.float64))


def softmax(logits: Singles) -> Singles:
    """Softmax of each row: float32 (frames, outputs)."""
    return _softmax(logits)[0]


def log_softmax(logits: Singles, out: Singles | None = None) -> Singles:
    """Natural logarithm of the softmax of each row, float32 (frames, outputs), in `out` if given.

    A probability of 0 has the logarithm 0, as in the training of the mergers.
    """
    made, zeros = _softmax(logits)
    if zeros:
        made[made == 0] = 1.0
    return np.log(made, out=made if out is None else out)


def _softmax(logits: Singles) -> tuple[Singles, bool]:
    """Softmax, and whether it may contain zeros."""

    from swsdist.features.phnrec.loops import exponentials  # compiles

    logits = np.ascontiguousarray(logits)
    bits = np.empty(logits.shape, np.int32)
    if exponentials(logits, _FARTHEST, bits):  # some are subnormal in float32
        steps = logits - logits.max(axis=1, keepdims=True)
        exact = fexp(np.maximum(steps, -_OVER))
        return np.asarray(exact / exact.sum(axis=1, keepdims=True), np.float32), True
    made = bits.view(np.float32)
    made /= made.sum(axis=1, keepdims=True)
    return made, False


class Net:
    """A perceptron with one hidden layer, ready for use.

    The first matrix includes the input's mean and scale, and the bias as the weight of an additional input of 1.
    """

    def __init__(self, weights: Weights) -> None:
        first = weights.first.astype(np.float64) * weights.scale
        bias = weights.bias - first @ weights.mean.astype(np.float64)
        # -(W x + b) in steps of the exponential.
        self.first = (-OCTAVE * np.concatenate([first.T, bias[None]])).astype(np.float32)
        self.second = np.ascontiguousarray(weights.second.T)
        self._bias = weights.bias_out

    def logits(self, inputs: Singles) -> Singles:
        """Outputs before the softmax.

        Args:
            inputs: float32 (frames, inputs + 1), 1 in the last column.

        Returns:
            float32 (frames, outputs).
        """
        made: Singles = np.matmul(_sigmoids(np.matmul(inputs, self.first)), self.second)
        made += self._bias
        return made


def _sigmoids(steps: Singles) -> Singles:
    """Sigmoids of exponents in steps; in place.

    The 32 bits of the approximation overflow: from about 709 to twice that its sign and size are wrong, and a sigmoid
        of 1
    becomes 0. Trained networks have such units (RU's right one does), so this must be reproduced. Beyond, the result is
    undefined.
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
            result = 1.0 / (1.0 + fexp(far))
        np.clip(some, -_FARTHEST, _FARTHEST, out=some)
        sigmoids(some, _FARTHEST, row, row.view(np.int32), np.empty(len(some), np.bool_))
        some[where] = np.where(np.isfinite(result), result, far < 0)
        steps[beyond] = some
    return steps


class Networks:
    """The three networks of a recogniser."""

    def __init__(self, recogniser: Recogniser) -> None:
        self._recogniser = recogniser
        self.left, self.right, self.merger = (Net(recogniser.nets[name]) for name in NETS)

    @cached_property
    def _sides(self) -> tuple[Singles, Singles]:
        """Window times cosine transform of either side: float32 (16, 11) each."""
        places, k = np.arange(CONTEXT) + 0.5, np.arange(_COEFFICIENTS)
        cosines = math.sqrt(2 / CONTEXT) * np.cos(np.pi / CONTEXT * places[:, None] * k)
        left, right = ((window[:, None] * cosines).astype(np.float32) for window in self._recogniser.windows)
        return left, right

    def logits(self, energies: Floats, prior: Floats | None = None, weight: int = 0) -> Singles:
        """Outputs of the merger before its softmax.

        Args:
            energies: float64 (frames, bands), log mel energies of one recording.
            prior: float64 (bands,), a mean that counts as `weight` additional frames.
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

    def inputs(self, around: Singles) -> tuple[Singles, Singles]:
        """Inputs of the two networks: from (frames, bands, 31) two of (frames, bands x 11 + 1), with 1 in the last
        column.
        """
        left, right = _inputs(len(around), self.left), _inputs(len(around), self.right)
        for first in range(0, len(around), _FEW):
            some = np.ascontiguousarray(around[first : first + _FEW])
            flat = some.reshape(-1, 2 * REACH + 1)
            for made, part, side in zip((left, right), (flat[:, :CONTEXT], flat[:, REACH:]), self._sides, strict=True):
                made[first : first + _FEW, :-1] = (part @ side).reshape(len(some), -1)
        return left, right


def _inputs(frames: int, net: Net) -> Singles:
    """Allocate inputs; only the last column is set, to 1."""
    made = np.empty((frames, len(net.first)), np.float32)
    made[:, -1] = 1.0
    return made


def _products(frames: int) -> list[tuple[int, int]]:
    """First frame of each product, and the frame after its last."""
    edges = [*range(0, frames, _AT_ONCE), frames]
    if len(edges) > 2 and edges[-1] - edges[-2] in _REST:
        del edges[-2]
    return list(pairwise(edges))


#: Frames of a product, and frames of which spectra are held: so few that they stay in a cache.
_FRAMES_AT_ONCE, _WINDOWS_AT_ONCE = 128, 64


def log_energies(samples: NDArray[np.floating], banks: Banks) -> Floats:
    """Natural logarithms of mel energies.

    Args:
        samples: (n,), from -32768 to 32767.
        banks: rate, frames and bands.

    Returns:
        float64 (frames, bands): all frames that lie whole inside.
    """
    from scipy.fft import rfft

    from swsdist.features.phnrec.loops import powers, windowed  # compiles

    length = banks.frame_length
    if len(samples) < length:
        return np.empty((0, banks.bands))
    signal, hop = np.ascontiguousarray(samples, np.float32), banks.hop
    window, matrix = _single(banks)
    energies = np.empty((1 + (len(signal) - length) // hop, banks.bands))
    points = _points(banks)
    padded, power = (
        np.zeros((_WINDOWS_AT_ONCE, points), np.float32),
        np.empty((_FRAMES_AT_ONCE, points // 2), np.float32),
    )
    for first in range(0, len(energies), _FRAMES_AT_ONCE):
        some = min(_FRAMES_AT_ONCE, len(energies) - first)
        for k in range(0, some, _WINDOWS_AT_ONCE):
            few = min(_WINDOWS_AT_ONCE, some - k)
            windowed(signal[(first + k) * hop :], hop, window, padded[:few])
            powers(rfft(padded[:few], axis=1).view(np.float32), power[k : k + few])
        energies[first : first + some] = power[:some] @ matrix
    silent = energies == 0.0
    energies[silent] = 1.0
    return np.log(energies, out=energies)


@lru_cache(maxsize=8)
def _single(banks: Banks) -> tuple[Singles, Singles]:
    """The window, and `filters`, in float32."""
    return np.hamming(banks.frame_length).astype(np.float32), filters(banks).astype(np.float32)


@lru_cache(maxsize=8)
def filters(banks: Banks) -> Floats:
    """Weights of the spectrum's points in each band: float64 (points / 2, bands); the highest frequency has none."""
    points = _points(banks)
    width = banks.rate / points
    centres = np.linspace(_mel(banks.lowest), _mel(banks.highest), banks.bands + 2)
    first = max(1, int(banks.lowest / width + 1.5))
    last = min(points // 2 - 1, int(banks.highest / width - 0.5))
    matrix = np.zeros((points // 2, banks.bands))
    for k in range(first, last + 1):
        place = _mel(k * width)
        above = min(max(int(np.searchsorted(centres, place, side="right")), 1), banks.bands + 1)
        share = (place - centres[above - 1]) / (centres[above] - centres[above - 1])
        if above <= banks.bands:
            matrix[k, above - 1] = share
        if above >= 2:
            matrix[k, above - 2] = 1 - share
    matrix.setflags(write=False)
    return matrix


def _points(banks: Banks) -> int:
    return 1 << (banks.frame_length - 1).bit_length()


def _mel(frequency: float) -> float:
    return 1127.0 * math.log1p(frequency / 700.0)
