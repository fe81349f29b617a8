"""Choose the band that a collection has in common: 3700 Hz if more than one document in 20 is telephone speech, whatever the
sampling rate of its file; otherwise half the rate.

The model states the choice and not the counts, so that collections that choose alike have the same features.
"""

from __future__ import annotations

import numpy as np

from swsdist.core.codes import features as codes
from swsdist.features.fitting.interface import Document, Step, Totals
from swsdist.features.model import Model

#: Hz: upper edge of the common band of a collection with telephone speech.
COMMON = 3700.0
#: Hz: greatest bandwidth of telephone speech (`audio.bandwidth`).
_TELEPHONE = 4000.0
#: The choice is narrow if more than one document in so many is.
_ONE_IN = 20


class BandRounds:
    """One round that counts documents, and of them those of a narrow band; their frames do not matter.

    Args:
        rate: Hz, of their samples.
    """

    speech = False

    def __init__(self, rate: int) -> None:
        self._rate = rate

    def totals(self, model: Model | None, document: Document) -> Totals:
        """Count one document, and whether it is narrow; a near-silent one is not."""
        hz = document.bandwidth
        narrow = hz is not None and hz <= _TELEPHONE and hz < self._rate / 2
        return {"documents": np.array([1]), "narrow": np.array([int(narrow)])}

    def go_on(self, model: Model | None, totals: Totals) -> Step:
        """The choice."""
        documents, narrow = int(totals["documents"][0]), int(totals["narrow"][0])
        return Step(Model("band", 1, {}, {"fmax": COMMON if narrow * _ONE_IN > documents else None}), True)


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
