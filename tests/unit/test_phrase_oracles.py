"""The oracles of lattices agree with the golden answers and with each other."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pytest

from swsdist.lattices.lattice import Lattice
from tests.oracles.factors import phrase_counts, phrase_posteriors
from tests.oracles.phrases import paths, phrases, read_compact
from tests.support.random_lattices import GOLDEN

CASES = sorted(path.parent for path in GOLDEN.glob("synthetic/*/compact.txt"))
#: pynini's weights have 9 digits.
NINE_DIGITS = 1e-7


@pytest.mark.slow
@pytest.mark.skipif(not CASES, reason=f"no golden lattices beside the checkout ({GOLDEN})")
def test_golden_cases() -> None:
    numbered = (line.split() for line in (GOLDEN / "synthetic/words.txt").read_text().splitlines())
    words = {int(number): word for word, number in numbered}
    compared = 0
    for case in CASES:
        expected = json.loads((case / "expected.json").read_text())
        (lattice,) = read_compact((case / "compact.txt").read_text(), words)
        assert lattice.states == expected["states"], case.name
        reached = [time is not None for time in expected["state_times"]]
        assert lattice.times[reached].tolist() == [time for time in expected["state_times"] if time is not None]
        if expected["paths"]:
            assert (lattice.start, lattice.length) == (expected["start"], expected["frames"]), case.name
        tolerance = 1e-6 if case.name.startswith("09") else 1e-9
        for scale in expected["scales"]:
            every = paths(lattice, acoustic_scale=scale["acoustic_scale"], lm_scale=scale["lm_scale"])
            mass = [0.0] * len(lattice.label)
            for path in every:
                for arc in path.arcs:
                    mass[arc] += path.posterior
            assert mass == pytest.approx(scale["arc_posterior"], abs=tolerance), case.name
        compared += _compare_phrases(lattice, expected["phrases"], tolerance)
    assert compared > 1000


def _compare_phrases(lattice: Lattice, expected: list[list[Any]], tolerance: float) -> int:
    by_phrase = defaultdict(dict)
    for phrase, start, end, *values in expected:
        by_phrase[tuple(phrase)][start, end] = values
    for phrase, places in by_phrase.items():
        ours = phrases(lattice, phrase)
        counts, posteriors = phrase_counts(lattice, phrase), phrase_posteriors(lattice, phrase)
        assert ours.keys() == places.keys() == counts.keys() == posteriors.keys(), (lattice.key, phrase)
        for place, values in places.items():
            assert list(ours[place]) == pytest.approx(values, abs=tolerance), (lattice.key, phrase)
            assert posteriors[place] == pytest.approx(values[0], abs=NINE_DIGITS + tolerance), (lattice.key, phrase)
            assert counts[place] == pytest.approx(values[1], abs=NINE_DIGITS + tolerance), (lattice.key, phrase)
    return len(expected)
