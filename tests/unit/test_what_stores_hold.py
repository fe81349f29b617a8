"""Configs share a store only if it holds the same for both."""

from __future__ import annotations

from typing import Any

import numpy as np

from swsdist.config import config_from_dict
from swsdist.kernels.halves import single
from swsdist.stages.inputs.corpus_documents import stored

LATTICES: dict[str, Any] = {"chain": "lattices", "search": {"method": "lattice"}}
OTHERS: list[dict[str, Any]] = [
    {"chain": "search"},
    {"chain": "search", "features": {"name": "mfcc", "options": {"coefficients": 12}}},
    {**LATTICES, "options": {"source": "recogniser"}},
    {**LATTICES, "options": {"source": "recogniser", "recogniser": {"options": {"scale": 10}}}},
    LATTICES,
    {**LATTICES, "options": {"recipe": {"acoustic_scale": 2}}},
]


def held(sections: dict[str, Any]) -> dict[str, object]:
    return stored(config_from_dict({"run": "run", "corpus": {"documents": "d.csv", "queries": "q.csv"}, **sections}))


def test_stores_of_other_contents_are_others_and_frames_are_shared_by_decoders() -> None:
    """Lattices of frames are kept elsewhere."""
    contents = [held(other) for other in OTHERS]
    assert [contents.index(one) for one in contents] == list(range(len(OTHERS)))
    loops = [{**LATTICES, "options": {"source": "frames", "decoding": {"scale": scale}}} for scale in (0.3, 1)]
    assert held(loops[0]) == held(loops[1]) == held({"chain": "search"})


def test_all_halves_as_single_precision() -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)].reshape(2, -1)
    halves.flags.writeable = False  # as those of a file are
    assert single(halves).tobytes() == halves.astype(np.float32).tobytes()
