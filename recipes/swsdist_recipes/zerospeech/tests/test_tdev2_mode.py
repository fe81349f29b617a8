"""Mode tdev2: what the facts of the program say, one by one; a literal count of pairs and tokens."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdist_recipes.zerospeech.pairs import distinct
from swsdist_recipes.zerospeech.tdev2 import score, spans
from tests.support.discovered import Line, evaluation, fragments, series, units

PHONES = [
    *series(
        "d1", 0, ("SIL", 0.2), ("a", 0.1), ("b", 0.05), ("c", 0.1), ("SIL", 0.2), ("a", 0.1), ("b", 0.05), ("SPN", 0.1)
    ),
    *series("d2", 0, ("SIL", 0.2), ("a", 0.1), ("b", 0.05), ("c", 0.1), ("SIL", 0.2)),
]
WORDS = ["d1 0.2 0.35 ab", "d1 0.35 0.45 c", "d1 0.65 0.8 ab", "d2 0.2 0.45 abc"]


def scored(*classes: Sequence[Line], phones: Sequence[Line] = PHONES, words: Sequence[Line] = WORDS) -> Any:
    return score(*evaluation(phones, words, classes))


def symbols(fragment: Line, phones: Sequence[Line] = PHONES) -> list[str]:
    """Phones of a fragment."""
    gold = units(phones, ["d1", "d2"])
    (first,), (last,) = spans(gold, fragments([[fragment]], ["d1", "d2"]))
    return [gold.names[k] for k in gold.symbol[first:last]]


def test_first_and_last_phone_need_30_ms_or_half() -> None:
    for fragment, phones in (
        ("d1 0.2 0.45", "abc"),
        ("d1 0.27 0.45", "abc"),  # 30 ms are enough
        ("d1 0.271 0.45", "bc"),
        ("d1 0.3249 0.45", "bc"),  # half of 50 ms; 0.325 is less in floats
        ("d1 0.3252 0.45", "c"),
        ("d1 0.29 0.36", "b"),  # the inner one stays
        ("d1 0.18 0.22", ""),
        ("d1 0.21 0.23", ""),  # 20 ms inside a long phone
        ("d1 0.21 0.25", "a"),
        ("d1 0.1 0.45", ["SIL", "a", "b", "c"]),
    ):
        assert symbols(fragment) == list(phones), fragment


@given(st.integers(595, 605), st.integers(0, 200), st.integers(290, 300))
def test_durations_and_common_times_are_rounded_as_the_program_rounds_them(
    duration: int, start: int, common: int
) -> None:
    onset, offset, end = (tick / 10_000 for tick in (start, start + duration, start + common))
    enough = (
        round(np.float64(end) - np.float64(onset), 3) >= 0.03
        if round(offset - onset, 3) >= 0.06
        else (end - onset) / (offset - onset) >= 0.5
    )
    assert bool(symbols(f"d1 {onset} {end}", [f"d1 {onset} {offset} a"])) == enough


def test_ned_counts_repeats_overlapping_pairs_and_pairs_of_two_classes() -> None:
    pair = ["d1 0.2 0.45", "d2 0.2 0.35"]
    assert scored(pair, pair)["ned"] == {"ned": pytest.approx(1 / 3), "n_pairs": 2}
    assert scored([pair[0], pair[0], "d1 0.2 0.35"])["ned"] == {"ned": pytest.approx(2 / 9), "n_pairs": 3}
    assert scored(pair[:1])["ned"] == {"ned": None, "n_pairs": 0}
    # Fragments without phones, and classes left empty, are dropped.
    result = scored(["d1 0.2 0.45"], ["d1 0.21 0.22"])
    assert (result["n_intervals"], result["n_classes"]) == (1, 1)


def test_ned_takes_silence_out_and_two_silences_differ() -> None:
    assert scored(["d1 0.1 0.45", "d2 0.2 0.45"])["ned"]["ned"] == 0
    assert scored(["d1 0.02 0.18", "d2 0.02 0.18"])["ned"]["ned"] == 1
    assert scored(["d1 0.65 0.8", "d1 0.65 0.9"])["ned"]["ned"] == pytest.approx(1 / 3)  # SPN stays


def test_coverage_counts_phones_of_singletons_of_all_phones_and_of_nothing_names_the_error() -> None:
    assert scored(["d1 0.1 0.45"], ["d1 0.65 0.9"])["coverage"] == {"coverage": 5 / 8, "n_covered": 5, "n_phones": 8}
    assert scored(["d1 0.02 0.18"])["coverage"]["tool_error"] == "AttributeError"
    silent = scored(["d1 0 0.2"], phones=["d1 0 0.2 SIL"], words=["d1 0 0.2 w"])
    assert silent["coverage"] == {"coverage": None, "n_covered": 0, "n_phones": 0, "tool_error": "ZeroDivisionError"}


def test_grouping() -> None:
    # Equal times in two documents are one token: ab at 0.2 of both; ab at 0.65; c. Of a class of equal strings is the first.
    grouping = scored(["d1 0.2 0.35", "d2 0.2 0.35"], ["d1 0.65 0.8", "d2 0.35 0.45"])["grouping"]
    assert (grouping["precision"], grouping["recall"]) == (pytest.approx(1 / 3), pytest.approx(1 / 2))
    # Singletons and any common time are left out.
    grouping = scored(["d1 0.2 0.35", "d1 0.2 0.36"], ["d2 0.2 0.35"])["grouping"]
    assert grouping["precision"] == 0
    assert (grouping["n_found_pairs"], grouping["n_gold_pairs"]) == (1, 2)
    grouping = scored(["d1 0.2 0.35", "d2 0.35 0.45"], ["d1 0.65 0.8"])["grouping"]
    assert grouping["precision"] == grouping["recall"] == 0
    assert grouping["tool_fscore_error"] == "ZeroDivisionError"


def test_errors_of_f() -> None:
    dies = "AssertionError"
    for fragment, token, boundary in (
        (["d1 0.3 0.35", "d1 0.35 0.45", "d2 0.35 0.45"], None, None),
        (["d1 0.3 0.35", "d1 0.65 0.75", "d2 0.3 0.35"], dies, None),
        (["d1 0.3 0.35", "d1 0.2 0.3"], dies, None),
        (["d2 0.3 0.35"], dies, "ZeroDivisionError"),
    ):
        result = scored(fragment)
        assert result["grouping"]["tool_fscore_error"] is None
        assert result["token"]["tool_fscore_error"] == result["type"]["tool_fscore_error"] == token
        assert result["boundary"]["tool_fscore_error"] == boundary
        assert (result["token"]["fscore"] is None) == (token is not None)


def counts(measure: Any) -> list[int]:
    return [measure[key] for key in ("n_hit", "n_disc", "n_gold")]


def test_tokens_types_and_boundaries() -> None:
    # Type is of spellings in recall, and jitter lowers the precision of tokens.
    result = scored(["d1 0.2 0.35", "d1 0.2 0.36", "d1 0.65 0.8"], ["d2 0.2 0.45"])
    assert (counts(result["token"]), counts(result["type"])) == ([3, 4, 4], [2, 2, 3])
    # The word of most is compared: of abc all of ab; of ab.
    assert [scored([f"d1 0.2 {end}"])["token"]["n_hit"] for end in (0.4, 0.37)] == [0, 1]
    # Boundaries have a direction and are snapped: c ends where a pause begins, so the onset of SIL there is wrong.
    assert scored(["d1 0.45 0.65"])["boundary"]["n_hit"] == 0
    assert counts(scored(["d1 0.22 0.44"])["boundary"]) == [2, 2, 7]


fragment_lines = st.lists(
    st.builds(
        lambda document, onset, length: f"{document} {onset / 100} {(onset + length) / 100}",
        st.sampled_from(["d1", "d2"]),
        st.sampled_from([15, 20, 30, 35, 65]),
        st.sampled_from([5, 10, 15, 25]),
    ),
    min_size=1,
    max_size=5,
)


@given(st.lists(fragment_lines, min_size=1, max_size=4))
def test_pairs_are_those_of_a_literal_count(classes: list[list[Line]]) -> None:
    kept = [[(tuple(symbols(line)), line) for line in members if symbols(line)] for members in classes]
    ordered = {
        tuple(sorted(pair, key=lambda item: (item[1].split()[0], float(item[1].split()[1]))))
        for members in kept
        for pair in combinations(members, 2)
    }
    gold = {
        (a, b)
        for a, b in combinations({item for members in kept for item in members}, 2)
        if a[0] == b[0] and apart(a[1], b[1])
    }
    result = scored(*classes)
    assert result["ned"]["n_pairs"] == sum(len(members) * (len(members) - 1) // 2 for members in kept)
    assert result["grouping"]["n_found_pairs"] == len(ordered)
    assert result["grouping"]["n_gold_pairs"] == len(gold)


def apart(a: Line, b: Line) -> bool:
    """Whether fragments share no time."""
    (first, *left), (second, *right) = a.split(), b.split()
    return first != second or float(left[1]) <= float(right[0]) or float(right[1]) <= float(left[0])


@given(st.lists(fragment_lines, min_size=1, max_size=4), st.randoms())
def test_the_order_of_classes_is_of_no_matter(classes: list[list[Line]], random: Any) -> None:
    shuffled = random.sample(classes, len(classes))
    ours, theirs = scored(*classes), scored(*shuffled)
    # A pair of equal onsets may be counted in both orders, by the order of lines.
    for result in (ours, theirs):
        del result["grouping"]["n_found_pairs"]
    assert ours == theirs


@given(st.lists(st.integers(-5, 5)))
def test_distinct(keys: list[int]) -> None:
    assert distinct(np.array(keys, np.int64)).tolist() == sorted(set(keys))
