"""Read a folder of BUT's phnrec: its configuration, phones, windows and networks.

::

    config                      INI: sample rate, mel bands, penalty of the decoder
    dicts/phonemes              a phone a line, in the order of the outputs; the class `oth` at the end is not listed
    windows/band{0,1}.window    16 numbers each: weights of the frames to the left and to the right
    weights/*.nbin              band0 (left), band1 (right) and merger: sizes and float32 weights, little endian
    weights/*.weights           the same as text (QuickNet), with norms/*.norms; read if there is no .nbin
"""

from __future__ import annotations

import configparser
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from swsdist.core.arrays import Floats, Singles
from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.core.errors import ConfigError
from swsdist.io.failures import as_file_fault
from swsdist.io.local import retry_local

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
                raise families.UNUSABLE_MODEL(
                    (
                        "the network has {inputs} inputs and {outputs} outputs, not {expected_inputs} and "
                        "{expected_outputs} for {bands} bands and {phones} phones"
                    ),
                    "take config, dicts/phonemes and weights of one recogniser",
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
        raise families.UNUSABLE_MODEL(
            "the list has {count} phone{s}, {distinct} distinct",
            "list a phone a line, each once",
            where=str(place / "dicts/phonemes"),
            count=len(phones),
            distinct=len(set(phones)),
        )
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
    return families.UNUSABLE_MODEL(
        "the file holds no weights of a recogniser: {detail}", "copy it again", where=str(path), detail=detail
    )


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
