"""The search of lattices against the enumeration of every path, and against OpenFst."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from swsdist.lattices.lattice import BREAK, Lattice, Word, transcript
from swsdist.lattices.packed import Recipe, pack
from swsdist.lattices.terms import TermReader, Terms
from swsdist.methods.lattice.automaton import Written, written_of
from tests.oracles.factors import phrase_posteriors
from tests.oracles.phrases import Place, pattern, phrases, places
from tests.support.lattices import lattice, places_of, places_of_written
from tests.support.random_lattices import lattices

RECIPE = Recipe()
#: Store's ticks per tick of random lattices, and their longest gap.
TICKS, GAP = 10, 50
#: Chains of smaller posteriors are left out while they are followed.
FEW = 1e-12

EVERY = [phrase for length in (1, 2, 3) for phrase in product("abc", repeat=length)]
PATTERNS = [
    *("a", "? b", "a ?", "a * b", "* a", "a *", "(a|b)", "(a|b c)", "(a b|c) a", "a (b|) c", "(a|a b)", "(b a|a)"),
    *("(a|b) (b|c)", "a ? ? b", "(a|a ?|? a)", "(a *|b)", "((a|b) c|c)", "* b *"),
]


def empty_words() -> st.SearchStrategy[Lattice]:
    """Lattices of which many words last no time."""
    return lattices(most_states=5, most_arcs=8).map(lambda item: replace(item, times=item.times // 60))


def of_term(ours: Mapping[tuple[int, ...], float], term: int, number: int = 0) -> dict[tuple[int, int], float]:
    """Places of a term in a lattice, in its own ticks."""
    return {
        (start // TICKS, end // TICKS): posterior
        for (of, document, start, end), posterior in ours.items()
        if (of, document) == (term, number)
    }


def same(ours: Mapping[Place, float], theirs: Mapping[Place, float], what: object) -> None:
    """Places without one of next to no posterior may lack."""
    for place in ours.keys() | {place for place, posterior in theirs.items() if posterior > FEW}:
        assert ours.get(place, 0.0) == pytest.approx(theirs.get(place, 0.0), abs=FEW), (what, place)


@settings(max_examples=150)
@given(st.one_of(lattices(), empty_words()))
def test_posteriors_are_sums_over_paths(item: Lattice) -> None:
    packed = pack(item, RECIPE)
    anywhere, near = places_of([packed], EVERY), places_of([packed], EVERY, GAP * TICKS)
    for k, phrase in enumerate(EVERY):
        expected = phrases(item, phrase, longest_gap=GAP)
        same(of_term(anywhere, k), {place: values.posterior for place, values in expected.items()}, phrase)
        same(of_term(near, k), {place: values.near for place, values in expected.items() if values.near}, phrase)


@settings(max_examples=40)
@given(lattices(), st.sampled_from([(1.0, 1.0), (0.5, 2.0)]))
def test_posteriors_are_those_of_openfst(item: Lattice, scales: tuple[float, float]) -> None:
    acoustic_scale, lm_scale = scales
    packed = pack(item, Recipe(acoustic_scale=acoustic_scale, lm_scale=lm_scale))
    some = EVERY[:12]
    ours = places_of([packed], some)
    for k, phrase in enumerate(some):
        theirs = phrase_posteriors(item, phrase, acoustic_scale=acoustic_scale, lm_scale=lm_scale)
        here = of_term(ours, k)
        assert here.keys() <= theirs.keys()
        for place, posterior in theirs.items():
            assert here.get(place, 0.0) == pytest.approx(posterior, abs=1e-7)  # pynini's weights have 9 digits


def written(terms: Sequence[str], options: Terms | None = None) -> list[Written]:
    reader = TermReader(options or Terms(patterns=True), RECIPE)
    rows = [row for term in terms for row in reader.rows({"query_id": term, "example": 1, "term": term})]
    return list(written_of(rows, {term: k for k, term in enumerate(terms)}))


def check_patterns(item: Lattice, terms: Sequence[str], gap: int | None = None) -> None:
    ours = places_of_written([pack(item, RECIPE)], written(terms), *([] if gap is None else [gap * TICKS]))
    for k, term in enumerate(terms):
        matches = pattern(term).fullmatch

        def weight(words: Iterable[str], matches: object = matches) -> float:
            return float(matches("".join(f"{word} " for word in words)) is not None)  # type: ignore[operator]

        longest = 3 * term.count("*") + len(term.split())
        same(of_term(ours, k), places(item, weight, longest, float("inf") if gap is None else gap), term)


A, B = lattice([(0, 1, 1, 0, 0), (1, 2, 2, 0, 0)], {2: (0, 0)}, [0, 5, 5]), (1, 2, 0, 0.5, 0)


@given(st.one_of(lattices(most_arcs=8), empty_words()), st.sampled_from([None, GAP]))
@example(A, None)  # a word of no length after the term, which is in an alternative, too
@example(lattice([(0, 1, 2, 0, 0), (1, 2, 1, 0, 0), B], {2: (0, 0)}, [0, 0, 5]), None)
def test_patterns_are_sums_over_paths_that_match(item: Lattice, gap: int | None) -> None:
    check_patterns(item, PATTERNS, gap)


@settings(max_examples=60)
@given(lattices(most_arcs=8, words=["ab", "abc", "b[c", "c"]))
def test_globs(item: Lattice) -> None:
    check_patterns(item, ["a*", "*b*", "?b", "a? ?", "(?b|c) *c", "b[*", "??"])


@settings(max_examples=60)
@given(st.one_of(lattices(most_arcs=8), empty_words()), st.lists(st.sampled_from(EVERY), min_size=1, max_size=4))
def test_an_alternative_counts_by_its_weight(item: Lattice, sequences: list[tuple[str, ...]]) -> None:
    weights = {sequence: 0.5**k for k, sequence in reversed(list(enumerate(sequences)))}
    some = [Written(0, sequence, weight, False) for sequence, weight in weights.items()]
    ours = places_of_written([pack(item, RECIPE)], some)
    same(of_term(ours, 0), places(item, lambda words: weights.get(words, 0.0), 3), weights)


@settings(max_examples=60)
@given(st.lists(st.one_of(lattices(most_states=5), empty_words()), min_size=2, max_size=4), st.data())
def test_a_term_and_a_lattice_are_alone_where_others_lie_beside(items, data) -> None:
    packed = [pack(item, RECIPE) for item in items]
    together = places_of(packed, EVERY)
    some = data.draw(st.lists(st.sampled_from(EVERY), min_size=1, max_size=5, unique=True))
    few = places_of(packed[:1], some)
    for k, phrase in enumerate(some):
        same(of_term(few, k), of_term(together, EVERY.index(phrase)), phrase)
    for number, item in enumerate(packed):
        apart = places_of([item], EVERY)
        for k in range(len(EVERY)):
            assert of_term(together, k, number) == of_term(apart, k)


@settings(max_examples=60)
@given(lattices(), st.floats(0.001, 0.5), st.sampled_from([None, 0.5, 3.0]))
def test_what_is_left_of_a_pruned_lattice_keeps_its_posteriors(item: Lattice, least: float, beam: float | None) -> None:
    everything = places_of([pack(item, RECIPE)], EVERY)
    pruned = places_of([pack(item, Recipe(least=least, beam=beam))], EVERY)
    for key, posterior in pruned.items():
        assert 0 < posterior <= everything[key] * (1 + 1e-9)
    assert sum(p >= least for p in pruned.values()) <= sum(p >= least for p in everything.values())


SPOKEN = st.tuples(st.sampled_from("ab"), st.integers(0, 8), st.integers(0, 4))


@given(st.lists(SPOKEN, max_size=7))
@example([("a", 8, 1), ("b", 1, 1)])
@example([("a", 0, 1), ("b", 0, 0)])
@example([("a", 1, 1), ("b", 1, 1)] * 2)  # both speakers say it: twice there, as words of two arcs are
def test_no_phrase_of_a_transcript_goes_back_in_time(spoken: list[tuple[str, int, int]]) -> None:
    """Speakers talk at once, and cues stand in any order."""
    words = [Word(text, start / 10, (start + length) / 10) for text, start, length in spoken]
    expected = Counter(
        (round(first.start * 1000), round(second.end * 1000))
        for first, second in pairwise(words)
        if (first.text, second.text) == ("a", "b") and 0 <= second.start - first.start <= 0.25 + first.end - first.start
    )
    found = places_of([pack(transcript("x", words), RECIPE)], [("a", "b")], 250)
    assert {key[2:]: value for key, value in found.items()} == pytest.approx(expected)


def test_a_phrase_over_a_word_that_is_not_said() -> None:
    """However long that word would have lasted."""
    for end in (1.0, 1.3, 9.0):
        words = [Word("a", 0.0, 1.0), Word("x", 0.9, end, 0.25), Word("y", 0.9, end, 0.5), Word("b", 1.1, 2.0)]
        found = places_of([pack(transcript("x", words), RECIPE)], [("a", "b")], 250)
        assert {key[2:]: value for key, value in found.items()} == pytest.approx({(0, 2000): 0.375})


def test_no_phrase_spans_a_break() -> None:
    """Between two tiers of annotations nothing is spoken."""
    arcs = [(0, 1, 1, 0.0, 0.0), (1, 2, 3, 0.0, 0.0), (2, 3, 2, 0.0, 0.0)]
    item = lattice(arcs, {3: (0.0, 0.0)}, [0, 5, 5, 9], labels=("", "a", "b", BREAK), probabilities=True)
    spoken = replace(item, labels=("", "a", "b", "x"))
    for term in ("a ? b", "a * b", f"a {BREAK} b", "a *? b", "*a ?* b"):
        assert places_of_written([pack(item, RECIPE)], written([term])) == {}
        assert len(places_of_written([pack(spoken, RECIPE)], written([term]))) == (BREAK not in term)


def test_many_places_of_many_lattices() -> None:
    """The kernel's arrays grow, and what they held stays."""
    states = 60
    arcs = [
        (s, d, 1 + (s + d) % 3, 0.1 * (d - s), 0.0) for s in range(states) for d in range(s + 1, min(s + 8, states))
    ]
    dense = lattice(arcs, {states - 1: (0.0, 0.0)}, list(range(0, 5 * states, 5)))
    packed = pack(dense, RECIPE)
    some = places_of([packed], EVERY)
    assert len(some) > 8000
    twice = places_of([packed, packed], EVERY)
    assert len(twice) == 2 * len(some)
    assert all(twice[term, k, start, end] == value for (term, _, start, end), value in some.items() for k in (0, 1))
    assert np.isfinite(list(some.values())).all()
