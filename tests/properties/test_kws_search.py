"""Kaldi's keyword search is an enumeration of paths."""

import math
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.lattices.lattice import Lattice
from tests.oracles.kws import cluster_sequences, reported
from tests.support.golden.kws import kws_search
from tests.support.random_lattices import lattices

KEYWORDS = {"".join(words): words for length in (1, 2, 3) for words in product("ab", repeat=length)}


@settings(max_examples=200)
@given(lattices(), st.sampled_from([(1.0, 1.0), (0.5, 2.0)]), st.sampled_from([(50, 1), (50, 2), (10, 4)]))
def test_as_by_enumeration(lattice: Lattice, scales: tuple[float, float], frames: tuple[int, int]) -> None:
    (acoustic, lm), (longest, subsampling) = scales, frames
    both = {"acoustic_scale": acoustic, "lm_scale": lm}
    ours = list(kws_search([lattice], KEYWORDS, subsampling=subsampling, max_silence_frames=longest, **both))
    for name, words in KEYWORDS.items():
        silence = math.floor(longest / subsampling + 0.5)
        expected = sorted(
            (found.start * subsampling, found.end * subsampling, max(0.0, -math.log(found.score)))
            for found in reported(cluster_sequences(lattice, words, longest_silence=silence, **both))
        )
        assert sorted(tuple(hit[2:]) for hit in ours if hit.keyword == name) == [
            (start, end, pytest.approx(cost, abs=1e-9)) for start, end, cost in expected
        ]
