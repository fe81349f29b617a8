"""Warp factors of speakers: under which of a grid is a speaker's speech most likely, by a mixture of all speakers' without one?

Frames of all factors stand side by side. Those of a document are taken less their mean and in their deviations, under each
factor by itself: what a warp does to the scale of the numbers does not count as likelihood. Likelihoods of the documents of a
speaker are added in steps of 2^-20, so any cut gives the same factors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swsdist.features.fitting.interface import Document, Step, Totals
from swsdist.features.fitting.mixture import Expected, Mixture, MixtureRounds
from swsdist.features.model import Model

#: Of a speaker, and in a document, at least.
_FEWEST = 30

_SPEAKER = "speaker."


class WarpRounds:
    """The rounds of a mixture on frames without a warp, and one for the factors.

    Args:
        mixture: how that is fitted.
        factors: the grid, in the order of the columns; 1 is one of them.
    """

    def __init__(self, mixture: MixtureRounds, factors: Sequence[float]) -> None:
        self.mixture, self.factors = mixture, list(factors)
        self.speech = mixture.speech

    def totals(self, model: Model | None, document: Document) -> Totals:
        """Those of the mixture; at last likelihoods under each factor, by speaker."""
        frames = np.concatenate(document.blocks)
        under = np.split(frames, len(self.factors), axis=1)
        if not self.mixture.is_done(model):
            plain = under[self.factors.index(1.0)]
            block = normalised(plain) if len(plain) >= _FEWEST else plain[:0]
            return self.mixture.totals(model, Document([block.astype(np.float32)]))
        if document.speaker is None or len(frames) < _FEWEST:
            return {}
        made = likelihoods(Mixture.of(model), under)
        return {f"{_SPEAKER}{document.speaker.encode().hex()}": np.array([len(frames), *made], object)}

    def go_on(self, model: Model | None, totals: Totals) -> Step:
        """The mixture goes on; then the best factor of each speaker."""
        if not self.mixture.is_done(model):
            return self.mixture.towards(model, totals)
        found: dict[str, float] = {}
        for name in sorted(totals):
            frames, *made = totals[name].tolist()
            if frames >= _FEWEST:
                speaker = bytes.fromhex(name.removeprefix(_SPEAKER)).decode()
                found[speaker] = self.factors[self.best(made, self.factors)]
        settings: dict[str, object] = {**model.settings, "speakers": list(found)}
        arrays: dict[str, NDArray[Any]] = {**model.arrays, "factors": np.array(list(found.values()), np.float64)}
        return Step(Model("vtln", 1, arrays, settings), True)

    @staticmethod
    def best(made: Sequence[int], factors: Sequence[float]) -> int:
        """Place of the factor that is most likely; of equals the one nearest to 1."""
        return max(range(len(factors)), key=lambda k: (made[k], -abs(factors[k] - 1), -k))


def normalised(frames: NDArray[np.float32]) -> NDArray[np.float64]:
    """Frames less their mean, in their deviations: float64 (frames, columns)."""
    values = frames.astype(np.float64)
    values -= values.mean(axis=0)
    deviation = values.std(axis=0)
    made: NDArray[np.float64] = values / np.where(deviation > 1e-6, deviation, 1.0)
    return made


def likelihoods(mixture: Mixture, under: Sequence[NDArray[np.float32]]) -> list[int]:
    """Sums of ln densities, in steps of 2^-20, of the same frames under each factor."""
    if not len(under[0]):
        return [0] * len(under)
    return [Expected.of(mixture, [normalised(item).astype(np.float32)]).likelihood for item in under]
