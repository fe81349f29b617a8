"""Neural networks from log mel energies to posteriors of phone states.

In each band, the 16 frames up to t and the 16 frames from t on are weighted by half a Hamming window and reduced to 11
coefficients of a cosine transform. A network processes each side; a third merges the logarithms of their outputs.
Hidden units are sigmoids; outputs are softmax: three states per phone and a final class, `oth`.

**The exponential is an approximation** (N. Schraudolph, "A fast, compact approximation of the exponential function",
Neural Computation 11, 1999), -3.9 % to +2.0 % off. Networks were trained with it; with the exact one posteriors differ
by up to 0.08. Here the approximation is reproduced to 2^-20 in outputs (`fexp`) and in hidden units.

Products are float32, some 256 frames at a time. On one type of CPU and version of the BLAS, in one thread, posteriors
are the same to the last bit if a recording is cut into the same stretches; elsewhere they differ by some 1e-6.

Log mel energies as phnrec computes them.

Frame t covers samples [t * hop, t * hop + frame_length), under a Hamming window, zeros behind it up to the next power of two.
Bands are triangles that are linear in mel, mel(f) = 1127 ln(1 + f / 700), as in HTK; their height is 1. The natural logarithm
of a band's power is taken, and where the power is exactly 0 (digital silence) the number is 0. Samples are in the range of 16
bits; spectra are in float32.

Read a folder of BUT's phnrec: its configuration, phones, windows and networks.

::

    config                      INI: sample rate, mel bands, penalty of the decoder
    dicts/phonemes              a phone a line, in the order of the outputs; the class `oth` at the end is not listed
    windows/band{0,1}.window    16 numbers each: weights of the frames to the left and to the right
    weights/*.nbin              band0 (left), band1 (right) and merger: sizes and float32 weights, little endian
    weights/*.weights           the same as text (QuickNet), with norms/*.norms; read if there is no .nbin

Compiled element-wise operations between two products: one pass over memory, where numpy needs six.

Results equal those of the same numpy operations to the last bit. The exponential is the approximation of `network`;
exponents are in steps, OCTAVE per unit.
"""

from __future__ import annotations

import configparser
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.core.arrays import Bools, Floats, Singles
from swsdist.core.codes import features as codes
from swsdist.core.errors import ConfigError
from swsdist.io.failures import as_file_fault
from swsdist.io.local import retry_local
from swsdist.kernels.compiled import compiled

NETS = ("band0", "band1", "merger")

#: States of a phone, and frames of a network's context including the centre.
STATES, CONTEXT = 3, 16

#: A float32 whose bits are read as an integer: steps per unit of an exponent, and the number 1, minus a constant that
#: reduces the errors of the networks' exponential.
OCTAVE, ONE_BITS = (1 << 23) / math.log(2), np.int32((127 << 23) - (60801 << 3))

#: Supported settings; a folder with other values belongs to another system.
FIXED = {
    ("posteriors", "system"): "LCRC",
    ("posteriors", "length"): str(2 * CONTEXT - 1),
    ("posteriors", "add_c0"): "true",
    ("posteriors", "softening_func"): "none 0 0 0",
    ("params", "kind"): "fbanks",
    ("melbanks", "preem_coef"): "0.0",
    ("offlinenorm", "sent_var_norm"): "false",
    ("decoder", "num_states_per_phn"): str(STATES),
    ("decoder", "softening_func"): "log 0 0 0",
}


class Weights(NamedTuple):
    """A perceptron with one hidden layer, float32.

    Attributes:
        first: (hidden, inputs), second: (outputs, hidden).
        bias, bias_out: (hidden,), (outputs,).
        mean, scale: (inputs,); an input x becomes (x - mean) * scale.
    """

    first: Singles
    second: Singles
    bias: Singles
    bias_out: Singles
    mean: Singles
    scale: Singles


class Banks(NamedTuple):
    """Parameters of mel energies.

    Attributes:
        rate: Hz.
        frame_length, hop: samples.
        bands: number of bands.
        lowest, highest: Hz.
    """

    rate: int
    frame_length: int
    hop: int
    bands: int
    lowest: float
    highest: float


@dataclass(frozen=True, eq=False)
class Recogniser:
    """Content of a folder; the weights are read on first use.

    Attributes:
        folder: its path.
        banks: of its mel energies.
        subtract_mean: whether each band's mean over the recording is subtracted.
        phones: names, in the order of the outputs.
        penalty: natural logarithm that the decoder adds for each phone.
    """

    folder: Path
    banks: Banks
    subtract_mean: bool
    phones: tuple[str, ...]
    penalty: float

    @property
    def files(self) -> list[Path]:
        """All files that frames depend on."""
        windows = [self.folder / "windows" / f"{name}.window" for name in NETS[:2]]
        result = [self.folder / "config", self.folder / "dicts" / "phonemes", *windows]
        for name in NETS:
            binary = binary_file(self.folder, name)
            result += [binary] if binary.is_file() else [_text(self.folder, name), _norms(self.folder, name)]
        return result

    @cached_property
    def nets(self) -> dict[str, Weights]:
        """The three networks by name.

        Raises:
            ConfigError: a file is damaged, or the networks do not fit each other, the bands or the phones.
        """
        inputs, outputs = self.banks.bands * (CONTEXT // 2 + 3), STATES * (len(self.phones) + 1)
        nets = {}
        for name in NETS:
            binary = binary_file(self.folder, name)
            net = _readbinary_file(binary) if binary.is_file() else _read_text(self.folder, name)
            expected = (2 * outputs if name == "merger" else inputs, outputs)
            if (actual := (net.first.shape[1], len(net.second))) != expected:
                raise codes.WRONG_NETWORK_SIZE(
                    where=str(binary),
                    inputs=actual[0],
                    outputs=actual[1],
                    expected_inputs=expected[0],
                    expected_outputs=expected[1],
                    bands=self.banks.bands,
                    phones=len(self.phones),
                )
            nets[name] = net
        return nets

    @cached_property
    def windows(self) -> tuple[Floats, Floats]:
        """Weights of the frames t-15 to t, and of t to t+15: float64 (16,) each."""
        left, right = (_numbers(self.folder / "windows" / f"{name}.window", CONTEXT) for name in NETS[:2])
        return left, right


def read_recogniser(folder: str) -> Recogniser:
    """Read a folder's configuration and phones.

    Raises:
        ConfigError: a file is missing or damaged, or the system is of another kind.
    """
    place = Path(folder)
    where = str(place / "config")
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#",))
    try:
        parser.read_string(_read(place / "config").decode("latin-1"))
        for (section, key), supported in FIXED.items():
            if (value := parser.get(section, key, fallback=supported)) != supported:
                raise codes.OTHER_RECOGNISER(where=where, section=section, key=key, value=value, supported=supported)
        banks = Banks(
            parser.getint("source", "sample_freq"),
            parser.getint("melbanks", "vector_size"),
            parser.getint("melbanks", "vector_step"),
            parser.getint("melbanks", "nbanks"),
            parser.getfloat("melbanks", "lower_freq"),
            parser.getfloat("melbanks", "higher_freq"),
        )
        subtract = parser.getboolean("offlinenorm", "sent_mean_norm")
        penalty = parser.getfloat("decoder", "wpenalty")
    except (configparser.Error, ValueError) as error:
        raise codes.BAD_RECOGNISER_CONFIG(where=where, detail=str(error).replace("\n", " ")) from None
    if min(banks[:4]) < 1 or not 0 <= banks.lowest < banks.highest <= banks.rate / 2:
        raise codes.BAD_MEL_BANDS(
            where=where, bands=banks.bands, lowest=banks.lowest, highest=banks.highest, rate=banks.rate
        )
    phones = tuple(_read(place / "dicts" / "phonemes").decode("latin-1").split())
    if not phones or len(set(phones)) < len(phones):
        raise codes.BAD_PHONE_LIST(where=str(place / "dicts/phonemes"), count=len(phones), distinct=len(set(phones)))
    recogniser = Recogniser(place, banks, subtract, phones, penalty)
    for path in recogniser.files:
        if not path.is_file():
            raise codes.RECOGNISER_FILE_MISSING(where=str(path))
    return recogniser


def binary_file(folder: Path, name: str) -> Path:
    """Path of a network's binary weights."""
    return folder / "weights" / f"{name}.nbin"


def _text(folder: Path, name: str) -> Path:
    return folder / "weights" / f"{name}.weights"


def _norms(folder: Path, name: str) -> Path:
    return folder / "norms" / f"{name}.norms"


def _read(path: Path) -> bytes:
    try:
        return retry_local(path.read_bytes)
    except OSError as error:
        detail = as_file_fault(error, str(path)).message
        raise codes.RECOGNISER_FILE_UNREADABLE(where=str(path), detail=detail) from error


def _damaged(path: Path, detail: str) -> ConfigError:
    return codes.NOT_RECOGNISER_WEIGHTS(where=str(path), detail=detail)


def _readbinary_file(path: Path) -> Weights:
    """Read a .nbin: int32 2, sizes, then float32; each size is rounded up to a multiple of 4."""
    data = _read(path)
    if len(data) < 16:
        raise _damaged(path, f"{len(data)} bytes")
    layers, inputs, hidden, outputs = (int(item) for item in np.frombuffer(data[:16], "<i4"))
    if layers != 2 or min(inputs, hidden, outputs) < 1:
        raise _damaged(path, f"{layers} layers of {inputs}, {hidden} and {outputs}")
    i, h, o = (-(-size // 4) * 4 for size in (inputs, hidden, outputs))
    counts = [h * i, o * h, h, o, i, i]
    if len(data) != 16 + 4 * sum(counts):
        raise _damaged(path, f"{len(data)} bytes, not {16 + 4 * sum(counts)}")
    numbers = np.frombuffer(data, "<f4", offset=16).astype(np.float32)
    first, second, bias, bias_out, mean, scale = np.split(numbers, np.cumsum(counts)[:-1])
    return _finite(
        path,
        Weights(
            first.reshape(h, i)[:hidden, :inputs],
            second.reshape(o, h)[:outputs, :hidden],
            bias[:hidden],
            bias_out[:outputs],
            mean[:inputs],
            scale[:inputs],
        ),
    )


def _read_text(folder: Path, name: str) -> Weights:
    """Read QuickNet's text: `weigvec N` and N numbers, row by row, twice; `biasvec N`, twice. Means and scales are in
    the norms.
    """
    path = _text(folder, name)
    first, second, bias, bias_out = _vectors(path, ("weigvec", "weigvec", "biasvec", "biasvec"))
    mean, scale = _vectors(_norms(folder, name), ("vec", "vec"))
    hidden, outputs, inputs = len(bias), len(bias_out), len(mean)
    if len(first) != hidden * inputs or len(second) != outputs * hidden or len(scale) != inputs or not inputs:
        raise _damaged(path, f"{len(first)} and {len(second)} weights for {inputs}, {hidden} and {outputs} units")
    return _finite(
        path, Weights(first.reshape(hidden, inputs), second.reshape(outputs, hidden), bias, bias_out, mean, scale)
    )


def _vectors(path: Path, wanted: tuple[str, ...]) -> list[Singles]:
    words = _read(path).split()
    result, place = [], 0
    try:
        for name in wanted:
            if words[place].decode() != name:
                raise _damaged(path, f"{words[place].decode('latin-1')!r} in the place of {name}")
            count = int(words[place + 1])
            numbers = np.array(words[place + 2 : place + 2 + count], np.float32)
            if len(numbers) != count:
                raise _damaged(path, f"{name} has {len(numbers)} numbers, not {count}")
            result.append(numbers)
            place += 2 + count
    except (IndexError, ValueError) as error:
        raise _damaged(path, str(error)) from None
    return result


def _finite(path: Path, net: Weights) -> Weights:
    if not all(np.isfinite(item).all() for item in net):
        raise _damaged(path, "a number is not finite")
    return net


def _numbers(path: Path, count: int) -> Floats:
    try:
        result = np.array(_read(path).split(), np.float64)
    except ValueError as error:
        raise _damaged(path, str(error)) from None
    if len(result) != count or not np.isfinite(result).all():
        raise _damaged(path, f"{len(result)} numbers, not {count}")
    return result


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
    """Softmax of each row, float32."""
    return _softmax(logits)[0]


def log_softmax(logits: Singles, out: Singles | None = None) -> Singles:
    """Natural logarithm of the softmax, in `out` if given; 0 in float32 has the logarithm 0, as in training of the
    mergers.
    """
    made, zeros = _softmax(logits)
    if zeros:
        made[made == 0] = 1.0
    return np.log(made, out=made if out is None else out)


def _softmax(logits: Singles) -> tuple[Singles, bool]:
    """Softmax, and whether it may contain zeros."""

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
_MEL_AT_ONCE, _MEL_FEW = 128, 64


def log_energies(samples: NDArray[np.floating], banks: Banks) -> Floats:
    """Natural logarithms of mel energies.

    Args:
        samples: (n,), from -32768 to 32767.
        banks: rate, frames and bands.

    Returns:
        float64 (frames, bands): all frames that lie whole inside.
    """
    from scipy.fft import rfft

    length = banks.frame_length
    if len(samples) < length:
        return np.empty((0, banks.bands))
    signal, hop = np.ascontiguousarray(samples, np.float32), banks.hop
    window, matrix = _single(banks)
    energies = np.empty((1 + (len(signal) - length) // hop, banks.bands))
    points = _points(banks)
    padded, power = np.zeros((_MEL_FEW, points), np.float32), np.empty((_MEL_AT_ONCE, points // 2), np.float32)
    for first in range(0, len(energies), _MEL_AT_ONCE):
        some = min(_MEL_AT_ONCE, len(energies) - first)
        for k in range(0, some, _MEL_FEW):
            few = min(_MEL_FEW, some - k)
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
