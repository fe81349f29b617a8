"""Checks backends of the exact search; see `swsdist.methods.dtw.backends.interface` for the requirements."""

from __future__ import annotations

import numpy as np

from swsdist.kernels.distances.interface import Part, Side, weighted_sum
from swsdist.kernels.distances.interface import create as create_distance
from swsdist.methods.dtw.search import search
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.query.example import Example
from swsdist.registry.registries import BACKENDS, RECURRENCES
from swsdist.testing import scenes
from swsdist.testing.conformance.entry import check_entry, require

_DIMENSION = 4
_QUERIES, _DOCUMENTS = (1, 2, 17, 33, 300), (1, 2, 20, 900, 31)


def check_backend(name: str) -> None:
    """Check one registered backend: its results are those of `int16`.

    Checked for every recurrence, for one distance and a weighted sum, for any cuts and windows, any number of candidates,
    and ties of costs.

    Args:
        name: registered in `swsdist.registry.registries.BACKENDS`.

    Raises:
        AssertionError: a check fails; the message names it.
        UserError: it cannot be used on this machine.
    """
    _, what = check_entry(BACKENDS, name)
    cosine = create_distance("cosine", _DIMENSION)
    euclidean = create_distance("euclidean", _DIMENSION)
    several = weighted_sum([Part(cosine, 0, _DIMENSION, 1), Part(euclidean, 0, _DIMENSION, 3)], _DIMENSION)
    sides: dict[Side, tuple[int, ...]] = {"query": _QUERIES, "document": _DOCUMENTS}
    for recurrence in RECURRENCES:
        for distance, window, most, piece in ((cosine, 1, 1000, 1), (several, 3, 2, 10_000), (cosine, 40, 0, 50)):
            queries, documents = (
                [scenes.prepared(distance, scenes.features(n, n, _DIMENSION), side) for n in frames]
                for side, frames in sides.items()
            )
            documents.append(np.repeat(documents[1], 60, axis=0))
            examples = [Example(f"q{k}", 1, query) for k, query in enumerate(queries)]
            kept = np.full(len(documents), most, np.int64)
            settings = Settings(distance, window, 16, piece, recurrence)
            blocks = [(k, [item]) for k, item in enumerate(documents)]
            actual, expected = (
                search(examples, blocks, kept, settings._replace(backend=item)) for item in (name, "int16")
            )
            same = scenes.rows(actual) == scenes.rows(expected)
            require(
                same, what, f"it finds other candidates than int16 with the recurrence {recurrence}, pieces of {piece}"
            )
