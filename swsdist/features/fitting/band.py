"""Choose the band that a collection has in common: 3700 Hz if more than one document in 20 is telephone speech, whatever the
sampling rate of its file; otherwise half the rate.

A document is narrow by the rule of `swsdist.audio.bandwidth`, applied to mel energies: the loud frames of no kHz above 4 kHz
come within 55 dB of those of 200 to 4000 Hz. The model states the choice and not the counts, so that collections
that choose alike have the same features.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from swsdist.audio.bandwidth import EMPTY, LOUD
from swsdist.audio.speech import AUDIBLE
from swsdist.core.codes import features as codes
from swsdist.features.fitting.interface import Document, Step, Totals
from swsdist.features.model import Model

_MELS = 40
#: Hz: upper edge of the common band of a collection with telephone speech; where its documents are empty from.
_COMMON, _TELEPHONE = 3700.0, 4000.0
_LOWEST = 200.0  # Hz
#: The choice is narrow if more than one document in so many is.
_ONE_IN = 20


def band_options(rate: int) -> dict[str, object]:
    """Options of the `mfcc` that the band is chosen from: all cepstra up to half the rate, of 25 ms every 40 ms."""
    spectrum = {
        "sample_rate": rate,
        "n_fft": _points(rate),
        "win_length": _window(rate),
        "hop_length": max(1, rate // 25),
    }
    return {**spectrum, "n_mels": _MELS, "n_mfcc": _MELS, "deltas": 0}


def _window(rate: int) -> int:
    return max(1, rate // 40)


def _points(rate: int) -> int:
    return max(512, 1 << (_window(rate) - 1).bit_length())


class BandRounds:
    """One round that counts documents, and the narrow ones of them.

    Args:
        rate: Hz, of the `mfcc` whose options are `band_options(rate)`.
    """

    speech = False

    def __init__(self, rate: int) -> None:
        from librosa import mel_frequencies

        edges = mel_frequencies(_MELS + 2, fmin=0.0, fmax=rate / 2)
        lower, centre, upper = edges[:-2], edges[1:-1], edges[2:]
        self._inside = (lower >= _LOWEST) & (upper <= _TELEPHONE)
        self._above = lower >= _TELEPHONE
        # A filter has the area 1, so times half its width it gives the power under the triangle.
        self._width = (upper - lower) / 2
        self._bands = np.unique(centre[self._above] // 1000, return_index=True)[1]
        self._scale = 2.0 / (_points(rate) * _window(rate) * 3 / 8)  # 3/8 is the mean square of Hann's window

    def totals(self, model: Model | None, document: Document) -> Totals:
        """Count one document, and whether it is narrow."""
        return {"documents": np.array([1]), "narrow": np.array([int(self.is_narrow(document.blocks))])}

    def go_on(self, model: Model | None, totals: Totals) -> Step:
        """The choice."""
        documents, narrow = int(totals["documents"][0]), int(totals["narrow"][0])
        return Step(Model("band", 1, {}, {"fmax": _COMMON if narrow * _ONE_IN > documents else None}), True)

    def is_narrow(self, blocks: list[NDArray[np.float32]]) -> bool:
        """Whether the recording of these frames has nothing above 4 kHz; a near-silent one is not narrow."""
        if not self._above.any():
            return False
        levels = np.concatenate([self._levels(block) for block in blocks])
        speech, *above = np.quantile(levels, LOUD, axis=0, method="inverted_cdf").tolist()
        return bool(speech >= AUDIBLE and max(above) < speech - EMPTY)

    def _levels(self, cepstra: NDArray[np.float32]) -> NDArray[np.int64]:
        """Power of 200 to 4000 Hz, and of each kHz above: (frames, 1 + bands), quarters of a dB."""
        from scipy.fft import idct

        energies = 10.0 ** (idct(cepstra.astype(np.float64), norm="ortho", axis=1) / 10)
        power = energies * self._width * self._scale
        speech = power[:, self._inside].sum(axis=1, keepdims=True)
        width = np.add.reduceat(self._width[self._above], self._bands)
        above = np.add.reduceat(power[:, self._above], self._bands, axis=1) / width * 1000.0
        power = np.concatenate([speech, above], axis=1)
        levels: NDArray[np.int64] = np.rint(40.0 * np.log10(power)).astype(np.int64)
        return levels


def band_of(model: Model) -> float | None:
    """The choice of a model: Hz, or None for half the rate.

    Raises:
        ConfigError: it is another model.
    """
    if model.name != "band":
        raise codes.WRONG_MODEL(name=model.name, wanted="a choice of a band")
    fmax = model.settings["fmax"]
    assert fmax is None or isinstance(fmax, float)
    return fmax
