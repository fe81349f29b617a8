"""Posteriors of phones from the components of a Gaussian mixture and the labels of the frames in each.

    p(phone | x) = sum over components c of p(c | x) p(phone | c)

The mixture is fitted without labels (`fitting.mixture`). One more round adds up, by label, the posteriors of the
components, in integer multiples of 2^-16; p(phone | c) is a phone's share of a component's sum, smoothed by `prior`
frames distributed as the phones of the corpus.

Sources: Tejedor and others (2016), the systems P1L-STD and DTW-Spanish; Gomez and Castro (2002), "Automatic
segmentation of speech at the phonetic level".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.features.fitting.interface import Document, Step, Totals
from swsdist.features.fitting.mixture import Mixture, MixtureRounds
from swsdist.features.fitting.moments import labelled, no_labels
from swsdist.features.model import Model

_STEPS = 1 << 16

#: Frames computed at a time.
_ROWS = 512


class Estimator(NamedTuple):
    """A mixture, and probabilities of phones given its components: float64 (components, phones), whose rows sum to 1."""

    mixture: Mixture
    conditional: NDArray[np.float64]
    names: tuple[str, ...]

    @classmethod
    def of(cls, model: Model) -> Estimator:
        """The estimator of a model."""
        labels = model.settings["labels"]
        assert isinstance(labels, list)
        return cls(Mixture.of(model), np.asarray(model.arrays["conditional"], np.float64), tuple(labels))

    def posteriors(self, frames: NDArray[np.float32], scale: float) -> NDArray[np.float64]:
        """Posteriors of phones: float64 (frames, phones)."""
        posteriors = np.empty((len(frames), len(self.names)))
        # Integers, so that the sum over components is exact: 2^20 times 2^20 times at most 4096 components is below
        # 2^53.
        conditional = np.rint(self.conditional * 2**20)
        for first in range(0, len(frames), _ROWS):
            classes = np.rint(self.mixture.posteriors(frames[first : first + _ROWS], scale) * 2**20)
            posteriors[first : first + _ROWS] = classes @ conditional
        return np.asarray(posteriors / np.maximum(posteriors.sum(axis=1, keepdims=True), 1), np.float64)


class PhoneRounds:
    """The rounds of a mixture, and one that counts.

    Args:
        mixture: the rounds of the mixture.
        names: labels.
        prior: number of frames that smooth p(phone | component).
    """

    def __init__(self, mixture: MixtureRounds, names: Sequence[str], prior: float) -> None:
        self.mixture, self.names, self.prior = mixture, tuple(names), prior
        self.speech = mixture.speech

    def totals(self, model: Model | None, document: Document) -> Totals:
        """Totals of the mixture; in the last round posteriors by label."""
        if not self.mixture.is_done(model):
            return self.mixture.totals(model, document)
        frames, labels = labelled(document)
        mixture = Mixture.of(model)
        counts = np.zeros((len(self.names), mixture.components), np.int64)
        for first in range(0, len(frames), _ROWS):
            weights = np.rint(mixture.posteriors(frames[first : first + _ROWS]) * _STEPS).astype(np.int64)
            np.add.at(counts, labels[first : first + _ROWS], weights)
        return {"counts": counts}

    def go_on(self, model: Model | None, totals: Totals) -> Step:
        """The next mixture; after the last round the estimator.

        Raises:
            DataError: no frame has a label.
        """
        if not self.mixture.is_done(model):
            return self.mixture.towards(model, totals)
        counts = totals["counts"] / _STEPS
        used = counts.sum(axis=1) >= 1
        if not used.any():
            raise no_labels("phones")
        of_phones = counts[used]
        spread = of_phones.sum(axis=1) / of_phones.sum()
        smoothed = of_phones.T + self.prior * spread
        conditional = smoothed / smoothed.sum(axis=1, keepdims=True)
        names = [name for name, is_used in zip(self.names, used.tolist(), strict=True) if is_used]
        settings = {**model.settings, "labels": names}
        return Step(Model("phones", 1, {**model.arrays, "conditional": conditional}, settings), True)
