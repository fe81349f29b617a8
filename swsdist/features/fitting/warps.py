"""Warp factors of speakers: the factor of a grid under which a speaker's speech is most likely by a mixture of unwarped
speech.

The columns of all factors are concatenated. The frames of a document are normalised to mean 0 and variance 1 for each
factor separately, so that the effect of a warp on the scale does not count as likelihood. Likelihoods of a speaker's
documents are added in steps of 2^-20, so the factors do not depend on shards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swsdist.features.fitting.interface import Document, Step, Totals
from swsdist.features.fitting.mixture import Expected, Mixture, MixtureRounds
from swsdist.features.model import Model

#: Least number of frames of a speaker, and of a document.
_FEWEST = 30

_SPEAKER = "speaker."


class WarpRounds:
    """The rounds of a mixture on unwarped frames, and one for the factors.

    Args:
        mixture: the rounds of the mixture.
        factors: the grid, in the order of the columns; contains 1.
    """

    def __init__(self, mixture: MixtureRounds, factors: Sequence[float]) -> None:
        self.mixture, self.factors = mixture, list(factors)
        self.speech = mixture.speech

    def totals(self, model: Model | None, document: Document) -> Totals:
        """Totals of the mixture; in the last round likelihoods under each factor, by speaker."""
        frames = np.concatenate(document.blocks)
        under = np.split(frames, len(self.factors), axis=1)
        if not self.mixture.is_done(model):
            plain = under[self.factors.index(1.0)]
            block = normalised(plain) if len(plain) >= _FEWEST else plain[:0]
            return self.mixture.totals(model, Document([block.astype(np.float32)]))
        if document.speaker is None or len(frames) < _FEWEST:
            return {}
        sums = likelihoods(Mixture.of(model), under)
        return {f"{_SPEAKER}{document.speaker.encode().hex()}": np.array([len(frames), *sums], object)}

    def go_on(self, model: Model | None, totals: Totals) -> Step:
        """The next mixture; after the last round the best factor of each speaker."""
        if not self.mixture.is_done(model):
            return self.mixture.towards(model, totals)
        chosen: dict[str, float] = {}
        for name in sorted(totals):
            frames, *sums = totals[name].tolist()
            if frames >= _FEWEST:
                speaker = bytes.fromhex(name.removeprefix(_SPEAKER)).decode()
                chosen[speaker] = self.factors[self.best(sums, self.factors)]
        settings: dict[str, object] = {**model.settings, "speakers": list(chosen)}
        arrays: dict[str, NDArray[Any]] = {**model.arrays, "factors": np.array(list(chosen.values()), np.float64)}
        return Step(Model("vtln", 1, arrays, settings), True)

    @staticmethod
    def best(sums: Sequence[int], factors: Sequence[float]) -> int:
        """Index of the most likely factor; the one nearest to 1 wins ties."""
        return max(range(len(factors)), key=lambda k: (sums[k], -abs(factors[k] - 1), -k))


def normalised(frames: NDArray[np.float32]) -> NDArray[np.float64]:
    """Frames normalised to mean 0 and variance 1: float64 (frames, columns)."""
    values = frames.astype(np.float64)
    values -= values.mean(axis=0)
    deviation = values.std(axis=0)
    scaled: NDArray[np.float64] = values / np.where(deviation > 1e-6, deviation, 1.0)
    return scaled


def likelihoods(mixture: Mixture, under: Sequence[NDArray[np.float32]]) -> list[int]:
    """Sums of ln densities, in steps of 2^-20, of the same frames under each factor."""
    if not len(under[0]):
        return [0] * len(under)
    return [Expected.of(mixture, [normalised(item).astype(np.float32)]).likelihood for item in under]
