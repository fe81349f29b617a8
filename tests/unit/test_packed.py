"""Lattices as they are searched."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from swsdist.core.codes import families
from swsdist.lattices.lattice import Lattice, Word, transcript
from swsdist.lattices.packed import Recipe, pack
from swsdist.lattices.terms import TermReader, Terms
from tests.oracles.phrases import paths
from tests.support.coded import raises
from tests.support.lattices import lattice, places_of
from tests.support.random_lattices import lattices


@settings(max_examples=60, deadline=None)
@given(lattices())
def test_shares_are_those_of_all_paths(item: Lattice) -> None:
    packed = pack(item, Recipe())
    every = paths(item)
    used = {arc for path in every for arc in path.arcs}
    mass = np.zeros(len(item.label))
    for path in every:
        mass[list(path.arcs)] += path.posterior
    assert len(packed.steps) == len(used)
    assert sorted(packed.expected()) == pytest.approx(sorted(mass[list(used)]), abs=1e-12)
    assert packed.arcs.sum() == len(packed.steps)
    assert (packed.steps >= 1).all()
    source = np.repeat(np.arange(len(packed.times)), packed.arcs)
    assert (source + packed.steps < len(packed.times)).all()
    assert (packed.times[source + packed.steps] >= packed.times[source]).all()
    assert packed.ticks == item.length * 10
    if every and used:
        assert packed.visits[0] == pytest.approx(1.0)
    assert packed.texts[0] == ""


CHOICE = lattice([(0, 1, 1, 1.0, 10.0), (0, 1, 2, 2.0, 0.0)], {1: (0.0, 0.0)}, [0, 7])


def test_scales() -> None:
    for recipe, odds in (
        *((Recipe(), 9.0), (Recipe(acoustic_scale=0.1), 0.0)),
        (Recipe(acoustic_scale=0.1, lm_scale=0), 1.0),
    ):
        chances = pack(CHOICE, recipe).chances
        assert chances[1] / chances[0] == pytest.approx(np.exp(odds))
    as_probabilities = pack(replace(CHOICE, probabilities=True), Recipe(acoustic_scale=0.1, lm_scale=0))
    assert as_probabilities.chances == pytest.approx(pack(CHOICE, Recipe()).chances)
    assert pack(CHOICE, Recipe()).times.tolist() == [0, 70]


def test_pruning_keeps_shares() -> None:
    packed = pack(CHOICE, Recipe(least=0.01))
    assert packed.chances.tolist() == [pytest.approx(1 / (1 + np.exp(-9)))]
    assert len(pack(CHOICE, Recipe(beam=8.9)).chances) == 1
    assert len(pack(CHOICE, Recipe(beam=9.1)).chances) == 2
    nothing = pack(lattice([(0, 1, 1, 0, 0), (0, 1, 1, 0, 0), (0, 1, 1, 0, 0)], {1: (0, 0)}, [0, 3]), Recipe(least=0.5))
    assert (len(nothing.times), len(nothing.steps), nothing.ticks) == (0, 0, 30)


def test_labels_and_fillers() -> None:
    words = [Word("Yes,", 0, 1), Word("<sil>", 1, 2), Word("yes", 2, 3), Word("-", 3, 4), Word("um", 4, 5)]
    packed = pack(transcript("t", words), Recipe(fillers=("<sil>", "um")))
    assert packed.texts == ("", "yes")
    assert packed.labels.tolist().count(1) == 2
    exact = pack(transcript("t", words), Recipe(spelling="exact", fillers=()))
    assert exact.texts == ("", "Yes,", "<sil>", "yes", "-", "um")


def test_marks_of_what_is_no_word() -> None:
    for mark in ("<eps>", "[laughter]", "[Noise]", "<SIL>", "!sil", "<silence>"):
        words = [Word(text, k, k + 1) for k, text in enumerate(("new", mark, "york", "<UNK>", "city"))]
        terms = [("new", "york"), ("york", "city"), (mark.strip("<[]>!").casefold(),), ("unk",)]
        found = places_of([pack(transcript("t", words), Recipe())], terms, 1000)
        assert {term for term, *_ in found} == {0}, mark
        assert TermReader(Terms(), Recipe()).alternatives(f"new {mark} york")[0].labels == ("new", "york")


def test_different_labels_of_a_lattice_do_not_become_one() -> None:
    phones = replace(CHOICE, labels=("", "s", "S"))
    with raises(families.DUPLICATE_NAME, where="key", first="s", second="S", text="s"):
        pack(phones, Recipe())
    assert pack(phones, Recipe(spelling="exact")).texts == ("", "s", "S")


def test_what_cannot_be_packed() -> None:
    with raises(families.TOO_LARGE, where="key"):
        pack(replace(CHOICE, length=1 << 40), Recipe())
    circle = lattice([(0, 1, 1, 0, 0), (1, 0, 2, 0, 0)], {1: (0, 0)}, [0, 0])
    with raises(families.DAMAGED_LATTICE, where="key"):
        pack(circle, Recipe())


def test_no_paths() -> None:
    for item in (lattice([], {}, [], start=-1), lattice([(0, 1, 1, 0, 0)], {}, [0, 3])):
        packed = pack(item, Recipe())
        assert len(packed.times) == len(packed.steps) == 0
    alone = pack(lattice([], {0: (1.0, 0.0)}, [4]), Recipe())
    assert (len(alone.steps), alone.ticks) == (0, 40)
