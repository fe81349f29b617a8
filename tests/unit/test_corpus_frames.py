"""The mean of a short query: between its own frames' and that of its speaker or the collection."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError

from swsdist.config.search import Search
from swsdist.core.codes import config as codes
from swsdist.core.types import EXAMPLES
from swsdist.features.statistics import Statistics
from swsdist.methods.query.extraction import prepared

FRAMES = np.random.default_rng(0).normal(3.0, 2.0, (50, 4)).astype("<f4")
COLLECTION = Statistics.from_variance(1000, np.zeros(4), np.full(4, 4.0))
OF_RECORDING = {"mean": [1.0] * 4, "variance": [9.0] * 4}


def example_of(search: Search, **columns: Any) -> np.ndarray:
    row = dict.fromkeys(EXAMPLES.names) | {"query_id": "q", "example": 1, "frames": len(FRAMES), **columns}
    row["features"] = FRAMES.tobytes()
    names = ("query_id", "example", "speaker", "frames", "features", "mean", "variance")
    table = pa.table({name: [row[name]] for name in names})
    (example,) = prepared(table, {("collection", ""): COLLECTION}, search, 4)
    return example.frames


def search_with(**settings: Any) -> Search:
    return Search(**{"distance": "cosine", "normalise": "mean-variance", **settings})


@pytest.mark.parametrize("weight", [1, 100, 10**9])
def test_own_mean_counts_by_its_frames(weight: int) -> None:
    mean = (50 * FRAMES.astype(np.float64).mean(axis=0) + weight * COLLECTION.mean) / (50 + weight)
    moved = Statistics.from_variance(1, mean, COLLECTION.variance)
    row = {"query_id": "q", "example": 1, "speaker": None, "mean": None, "variance": None}
    row |= {"frames": len(FRAMES), "features": FRAMES.tobytes()}
    table = pa.table({name: [value] for name, value in row.items()})
    (expected,) = prepared(table, {("collection", ""): moved}, search_with(), 4)
    assert np.array_equal(example_of(search_with(corpus_frames=weight)), expected.frames)


def test_without_it_the_query_s_frames_have_no_say() -> None:
    many = example_of(search_with(corpus_frames=10**12))
    assert np.array_equal(example_of(search_with()), many)
    assert not np.array_equal(example_of(search_with(corpus_frames=100)), many)
    for by in ("document", "collection"):  # a place in a recording keeps the recording's
        ways = ({"documents_by": by}, {"documents_by": by, "corpus_frames": 100})
        assert np.array_equal(*(example_of(search_with(**how), **OF_RECORDING) for how in ways))


def test_statistics_of_what_is_not_normalised_are_refused() -> None:
    posteriors = {"distance": "kl", "normalise": "none"}
    Search(**posteriors)
    for setting in ({"corpus_frames": 100}, {"queries_by": "collection"}, {"documents_by": "speaker"}):
        with pytest.raises(ValidationError) as error:
            Search(**posteriors, **setting)
        assert error.value.errors()[0]["type"] == codes.NOTHING_NORMALISED.name
