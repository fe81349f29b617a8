"""A made-up phoneme recogniser: small random networks in the files of BUT's phnrec.

What it says of speech means nothing, but it depends on it, so all that reads such a folder can be tried without the real
weights, which are no part of this package.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from swsdist.features.phnrec.weights import CONTEXT, NETS, STATES, Banks, Recogniser, Weights, write_recogniser

PHONES = ("a", "b", "ts", "int", "pau", "e:")


def make_recogniser(folder: str, *, seed: int = 0, wide: bool = False, hidden: int = 13) -> None:
    """Write one.

    Args:
        folder: to write.
        seed: another one makes other networks.
        wide: 16 kHz and no mean of the recording, as EN has it; by default 8 kHz and its mean is subtracted, as the others.
        hidden: units of each network.
    """
    rng = np.random.default_rng(seed)
    banks = Banks(16000, 400, 160, 7, 0.0, 8000.0) if wide else Banks(8000, 200, 80, 6, 64.0, 4000.0)
    outputs = STATES * (len(PHONES) + 1)

    coefficients = np.tile([45.0 if wide else 0.0] + [0.0] * (CONTEXT // 2 + 2), banks.bands)  # about where they are

    def net(middle: NDArray[np.float64], spread: float) -> Weights:
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
