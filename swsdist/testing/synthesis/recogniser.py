"""A random phoneme recogniser: small networks in the file format of BUT's phnrec.

Its output is meaningless but depends on the speech, so readers of such folders can be tested without the real
weights, which are not part of this package.
"""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from swsdist.core.arrays import Floats
from swsdist.features.phnrec.weights import CONTEXT, FIXED, NETS, STATES, Banks, Recogniser, Weights, binary_file

PHONES = ("a", "b", "ts", "int", "pau", "e:")


def make_recogniser(folder: str, *, seed: int = 0, wide: bool = False, hidden: int = 13) -> None:
    """Write a recogniser.

    Args:
        folder: to write.
        seed: of the random weights.
        wide: 16 kHz without mean subtraction, like EN; by default 8 kHz with mean subtraction, like the others.
        hidden: units of each network.
    """
    rng = np.random.default_rng(seed)
    banks = Banks(16000, 400, 160, 7, 0.0, 8000.0) if wide else Banks(8000, 200, 80, 6, 64.0, 4000.0)
    outputs = STATES * (len(PHONES) + 1)

    coefficients = np.tile([45.0 if wide else 0.0] + [0.0] * (CONTEXT // 2 + 2), banks.bands)  # approximate values

    def net(middle: Floats, spread: float) -> Weights:
        inputs = len(middle)
        arrays = (
            rng.normal(size=(hidden, inputs)) / np.sqrt(inputs) * 2,
            rng.normal(size=(outputs, hidden)) * 1.5,
            rng.normal(size=hidden),
            rng.normal(size=outputs),
            middle,
            np.full(inputs, 1 / spread),
        )
        return Weights(*(array.astype(np.float32) for array in arrays))

    nets = {name: net(np.full(2 * outputs, -4.0), 2.0) if name == "merger" else net(coefficients, 3.0) for name in NETS}
    write_recogniser(folder, Recogniser(Path(folder), banks, not wide, PHONES, -1.5), nets)


def write_recogniser(folder: str, recogniser: Recogniser, nets: Mapping[str, Weights]) -> None:
    """Write a folder of networks, trained or random, for `read_recogniser`.

    Args:
        folder: created if absent.
        recogniser: everything except the networks; `recogniser.folder` is ignored.
        nets: `band0`, `band1` and `merger`.
    """
    place, banks = Path(folder), recogniser.banks
    values = dict(FIXED) | {
        ("source", "sample_freq"): str(banks.rate),
        ("melbanks", "vector_size"): str(banks.frame_length),
        ("melbanks", "vector_step"): str(banks.hop),
        ("melbanks", "nbanks"): str(banks.bands),
        ("melbanks", "lower_freq"): f"{banks.lowest:g}",
        ("melbanks", "higher_freq"): f"{banks.highest:g}",
        ("offlinenorm", "sent_mean_norm"): str(recogniser.subtract_mean).lower(),
        ("decoder", "wpenalty"): repr(recogniser.penalty),
    }
    parser = configparser.ConfigParser(interpolation=None)
    for (section, key), value in values.items():
        if not parser.has_section(section):
            parser.add_section(section)
        parser.set(section, key, value)
    for name in ("dicts", "windows", "weights"):
        (place / name).mkdir(parents=True, exist_ok=True)
    with (place / "config").open("w", encoding="latin-1") as file:
        parser.write(file, space_around_delimiters=False)
    (place / "dicts/phonemes").write_text("".join(f"{phone}\n" for phone in recogniser.phones), encoding="latin-1")
    hamming = np.hamming(2 * CONTEXT - 1)
    for name, half in zip(NETS, (hamming[:CONTEXT], hamming[CONTEXT - 1 :]), strict=False):
        (place / "windows" / f"{name}.window").write_text("".join(f"{value!r}\n" for value in half.tolist()))
    for name, net in nets.items():
        binary_file(place, name).write_bytes(_packed(net))


def _packed(net: Weights) -> bytes:
    (hidden, inputs), outputs = net.first.shape, len(net.second)
    parts = [np.array([2, inputs, hidden, outputs], "<i4").tobytes()]
    for array in net:
        padded = np.pad(array, [(0, -size % 4) for size in array.shape])
        parts.append(padded.astype("<f4").tobytes())
    return b"".join(parts)
