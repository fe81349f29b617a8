"""Kaldi's keyword search and its lattice decoder, held against an enumeration of paths, and by hand."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import product

import kaldifst
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kaldi_decoder import DecodableCtc, LatticeSimpleDecoder, LatticeSimpleDecoderConfig

from swsdist.kernels.phone_loop import best_string
from swsdist.lattices.lattice import Lattice, Word, transcript
from swsdist.methods.lattice.kaldi import Alternative
from tests.oracles.kws import cluster_sequences, reported
from tests.oracles.phrases import read_compact
from tests.support.golden.kws import Hit, kws_search
from tests.support.random_lattices import lattices

KEYWORDS = {"".join(words): words for length in (1, 2, 3) for words in product("ab", repeat=length)}


def lattice_of(text: str) -> Lattice:
    """Of lines `source target word graph frames` or `state`, all costs graph costs."""
    rows = []
    for line in text.strip().splitlines():
        fields = line.split()
        if len(fields) > 1:
            source, target, word, cost, frames = fields
            fields = [source, target, word, f"{cost},0,{'_'.join(['1'] * int(frames))}"]
        rows.append(" ".join(fields))
    (lattice,) = read_compact("\n".join(["utt ", *rows, ""]))
    return lattice


def rows(hits: Iterable[Hit]) -> list[tuple[int, int, float]]:
    return [(hit.start, hit.end, pytest.approx(hit.cost, abs=1e-9)) for hit in hits]


@settings(max_examples=200, deadline=None)
@given(lattices(), st.sampled_from([(1.0, 1.0), (0.5, 2.0)]), st.sampled_from([(50, 1), (50, 2), (10, 4)]))
def test_as_by_enumeration(lattice: Lattice, scales: tuple[float, float], frames: tuple[int, int]) -> None:
    (longest, step), scaled = frames, {"acoustic_scale": scales[0], "lm_scale": scales[1]}
    ours = list(kws_search([lattice], KEYWORDS, subsampling=step, max_silence_frames=longest, **scaled))
    for name, words in KEYWORDS.items():
        silence = math.floor(longest / step + 0.5)
        sequences = cluster_sequences(lattice, words, longest_silence=silence, **scaled)
        found = sorted(tuple(hit[2:]) for hit in ours if hit.keyword == name)
        expected = sorted(
            (each.start * step, each.end * step, max(0.0, -math.log(each.score))) for each in reported(sequences)
        )
        assert found == [(start, end, pytest.approx(cost, abs=1e-9)) for start, end, cost in expected]


def test_clusters_add_up() -> None:
    """Chances 1/2 and 1/4 of the same word, the first frame in silence or not, and 1/4 of another."""
    half, quarter = math.log(2), math.log(4)
    lattice = lattice_of(f"0 1 0 {quarter} 1\n0 2 1 {half} 5\n1 2 1 0 4\n0 2 2 {quarter} 5\n2")
    (hit,) = kws_search([lattice], {"KW": ["1"]}, subsampling=3)
    assert hit == Hit("KW", "utt", 0, 15, pytest.approx(-math.log(0.75)))
    # Of 1 at two times, then the same 2, the better remains, although the times differ. Of 1 alone both remain.
    text = f"0 1 1 {quarter} 4\n0 2 0 {-math.log(0.75)} 4\n1 3 0 0 4\n2 3 1 0 4\n3 4 2 0 4\n4"
    assert rows(kws_search([lattice_of(text)], {"KW": ["1", "2"]})) == [(4, 12, -math.log(0.75))]
    assert rows(kws_search([lattice_of(text)], {"KW": ["1"]})) == [(0, 4, quarter), (4, 8, -math.log(0.75))]


def test_silence_arcs_are_limited_each() -> None:
    text = "0 1 1 0 4\n1 2 0 0 17\n2 3 0 0 17\n3 4 2 0 4\n4"
    for subsampling, most, count in ((3, 50, 1), (3, 49, 0), (1, 17, 1), (1, 16, 0), (2, 33, 1)):
        hits = list(
            kws_search([lattice_of(text)], {"KW": ["1", "2"]}, subsampling=subsampling, max_silence_frames=most)
        )
        assert len(hits) == count, (subsampling, most)


def test_proxies_add_their_costs() -> None:
    lattice = lattice_of(f"0 1 1 {math.log(2)} 4\n0 1 2 {math.log(2)} 4\n1 2 3 0 4\n2")
    proxies = [Alternative(0.5, ["1"]), Alternative(0.25, ["2"]), Alternative(1.0, ["3"]), Alternative(0.0, ["4"])]
    hits = list(kws_search([lattice], {"OOV": proxies}))
    assert hits == list(kws_search([lattice], {"OOV": [*proxies[:3], "4"]}))  # words among proxies cost nothing
    # The first two end in the same state: one hit, the better.
    assert rows(hits) == [(0, 4, math.log(2) + 0.25), (4, 8, 1.0)]
    assert list(kws_search([lattice], {"OOV": proxies[:1]})) == [
        Hit("OOV", "utt", 0, 4, pytest.approx(math.log(2) + 0.5))
    ]


def test_lattices_are_apart_and_in_order() -> None:
    one, two = (lattice_of(f"0 1 {word} 0 4\n1 2 1 0 4\n2") for word in "12")
    keywords, other = {"B": ["1"], "A": ["2"], "absent": ["9"]}, replace(two, key="other")
    hits = list(kws_search([one, other], keywords))
    places = [("B", "utt", 0, 4), ("B", "utt", 4, 8), ("B", "other", 4, 8), ("A", "other", 0, 4)]
    assert [hit[:4] for hit in hits] == places
    assert hits == [*kws_search([one], keywords), *kws_search([other], keywords)]


def test_scales_of_probabilities_and_of_infinite_costs() -> None:
    said = transcript("talk", [Word("yes", 1.0, 1.5, 0.25)])
    (hit,) = kws_search([said], {"KW": ["yes"]}, acoustic_scale=0.1, lm_scale=7.0)
    assert hit == Hit("KW", "talk", 1000, 1500, pytest.approx(math.log(4)))
    lattice = replace(lattice_of("0 1 1 0 4\n0 1 2 0 4\n1"), acoustic=np.array([0.0, math.inf]))
    assert [hit.keyword for hit in kws_search([lattice], {"1": ["1"], "2": ["2"]}, acoustic_scale=0.0)] == ["1"]
    assert list(kws_search([*read_compact("empty \n\n"), lattice_of("0 1 1 0 4")], {"KW": ["1"]})) == []


def loop(phones: int, states: int, entry: float, pairs: np.ndarray | None) -> kaldifst.StdVectorFst:
    """A loop: input labels are columns + 1, output labels phones + 1; with pairs, a state for each last phone."""
    fst = kaldifst.StdVectorFst()
    ends = [fst.add_state() for _ in range(1 if pairs is None else phones + 1)]
    fst.start = ends[-1]
    for end in ends:
        fst.set_final(end, 0.0)
    for last, begin in enumerate(ends):
        for phone in range(phones):
            here, cost = begin, entry + (0.0 if pairs is None else float(pairs[last, phone]))
            for state in range(states):
                there, column = fst.add_state(), phone * states + state + 1
                fst.add_arc(
                    here, kaldifst.StdArc(column, phone + 1 if state == 0 else 0, cost if state == 0 else 0.0, there)
                )
                fst.add_arc(there, kaldifst.StdArc(column, 0, 0.0, there))
                here = there
            fst.add_arc(here, kaldifst.StdArc(0, 0, 0.0, ends[0] if pairs is None else ends[phone]))
    return fst


@pytest.mark.parametrize(("states", "with_pairs"), [(1, False), (1, True), (3, False), (3, True)])
def test_equal_strings(states: int, with_pairs: bool) -> None:
    entry, config = 1.5, LatticeSimpleDecoderConfig(beam=1000.0, lattice_beam=10.0, determinize_lattice=False)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        scores = rng.normal(-2.0, 2.0, (60, 5, states)).astype(np.float32)
        pairs = rng.uniform(0.0, 3.0, (6, 5)).astype(np.float32).astype(np.float64) if with_pairs else None
        # The decoder holds no reference to either.
        fst, frames = loop(5, states, entry, pairs), DecodableCtc(scores.reshape(len(scores), -1))
        decoder = LatticeSimpleDecoder(fst, config)
        assert decoder.decode(frames)
        _, best = decoder.get_best_path()
        _, _, output, weight = kaldifst.get_linear_symbol_sequence(best)
        ours = best_string([-scores.astype(np.float64)], (5, states), entry, pairs)
        assert [item.phone + 1 for item in ours] == output
        assert sum(item.cost for item in ours) == pytest.approx(weight.value1 + weight.value2, rel=1e-5)
