"""The exact search, on the CPU or on a GPU: the same candidates, byte for byte."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.distances.registry import create
from swsdist.methods.dtw import engine
from swsdist.methods.dtw.found import Found
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.query.example import Example


def search(
    examples: list[Example],
    documents: Iterable[tuple[int, Iterable[NDArray[np.float32]]]],
    most: NDArray[np.int64],
    settings: Settings,
) -> Found:
    """Candidates of every example in every document, on the device of the settings; see `engine.search`.

    Raises:
        UserError: as `engine.search`; there is no such GPU.
    """
    if settings.device == "cpu":
        return engine.search(examples, documents, most, settings)
    from swsdist.methods.dtw import device  # loads the GPU's driver

    return device.search(examples, documents, most, settings)[0]


def warm(settings: Settings | None = None) -> None:
    """Load the kernels that a search uses, by a search of one frame in one frame."""
    chosen = settings or Settings(create("cosine", 1), 1, 1, 1)
    frame = np.zeros((1, chosen.distance.columns), np.float32)
    search([Example("", 1, frame)], [(0, [frame])], np.ones(1, np.int64), chosen)
