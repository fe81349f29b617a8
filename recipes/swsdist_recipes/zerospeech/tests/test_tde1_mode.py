"""Mode tde1: what the facts of the program say, one by one; completion and pairs against literal definitions."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdist_recipes.zerospeech.pairs import pairs_of_items
from swsdist_recipes.zerospeech.tde1 import InRuns, Members, cut, overlap, score
from tests.support.discovered import Line, evaluation, fragments, intervals, series, units

DOCUMENTS = ["d1", "d2", "d3"]
PHONES = [
    *series("d1", 0, ("SIL", 0.2), *((symbol, 0.1) for symbol in "abcdef"), ("SIL", 0.2), *((s, 0.1) for s in "abcd")),
    *series("d2", 5, ("SIL", 0.2), *((symbol, 0.1) for symbol in "abcde"), ("SIL", 0.2)),
]
WORDS = ["d1 0.2 0.5 abc", "d1 0.5 0.8 def", "d1 1.0 1.4 abcd", "d2 5.2 5.7 abcde"]
SPLIT = ["d1 0.2 0.8", "d1 1.0 1.4", "d2 5.2 5.7"]
GOLD = [
    ["d1 0.2 0.5", "d1 1.0 1.3", "d2 5.2 5.5"],
    ["d1 0.2 0.6", "d1 1.0 1.4", "d2 5.2 5.6"],
    ["d1 0.3 0.7", "d2 5.3 5.7"],
]


def scored(
    *classes: Sequence[Line], folds: Sequence[Sequence[Line]] = (SPLIT,), gold: Sequence[Sequence[Line]] = GOLD
) -> Any:
    return score(*evaluation(PHONES, WORDS, classes, split=SPLIT, gold=gold, folds=folds))


def cross(*classes: Sequence[Line], **more: Any) -> Any:
    return scored(*classes, **more)["cross"]


def mean(measure: Any) -> list[float]:
    """Mean precision and recall."""
    return [measure["precision"]["mean"], measure["recall"]["mean"]]


def phones_of(fragment: Line, phones: Sequence[Line] = PHONES) -> str | None:
    """Phones of a fragment as it is; None if it is dropped."""
    gold = InRuns.of(units(phones, DOCUMENTS).without(("SIL",)))
    members = Members.of(fragments([[fragment]], DOCUMENTS), gold)
    if not len(members.fragments):
        return None
    names = gold.units.names
    return "".join(names[k] for k in gold.units.symbol[members.first[0] : members.last[0]])


def test_phones_of_a_fragment() -> None:
    for fragment, phones in (
        ("d1 0.2 0.5", "abc"),
        ("d1 0.24 0.5", "abc"),
        ("d1 0.28 0.5", "bc"),
        ("d1 0.31 0.33", "b"),  # more than half of the fragment
        ("d1 0.6 0.62", "e"),
        ("d1 0.78 1.18", "ab"),  # the last run that it overlaps enough with
        ("d1 0.79 1.0", ""),  # near the first run, but with none of its phones
        ("d1 0.85 0.95", None),  # in a pause
        ("d1 0.85 1.02", None),  # the only run begins after it, and it has little of that
        ("d1 0.3 0.3", None),
        ("d3 0.2 0.5", None),
    ):
        assert phones_of(fragment) == phones, fragment
    # Neighbours less than 10 us apart are in one run.
    run = InRuns.of(units(["d1 0 0.1 a", "d1 0.100009 0.2 b", "d1 0.20001 0.3 c"], DOCUMENTS)).run
    assert run.tolist() == [0, 0, 1]


def test_a_fragment_is_cut_to_the_stretch_of_most() -> None:
    for fragment, cut_to in (
        ("d1 0.3 0.5", [(300, 500)]),
        ("d1 0.6 1.1", [(600, 800)]),
        ("d1 0.7 1.4", [(1000, 1400)]),
        ("d1 0.75 1.05", [(750, 800)]),  # as much of both but for the noise: the first
        *((none, []) for none in ("d1 0.81 0.99", "d1 0.8 1.0", "d3 0.3 0.5")),
    ):
        kept = cut(fragments([[fragment]], DOCUMENTS), intervals(SPLIT[::-1], DOCUMENTS))
        assert list(zip(kept.onset // 1000, kept.offset // 1000, strict=True)) == cut_to, fragment


@given(st.integers(0, 10_000), st.integers(1, 900), st.integers(1, 900), st.integers(1, 900))
def test_overlap_is_that_of_floats(onset: int, length: int, later: int, other: int) -> None:
    a, b = onset / 1000, (onset + length) / 1000
    c, d = (onset + later) / 1000, (onset + later + other) / 1000
    common = 0.0 if b < c else min(b, d) - max(a, c)
    expected = common >= 1e-8 and (common > 0.03 or common > 0.5 * (b - a) or common > 0.5 * (d - c))
    (x, y) = (intervals([f"d1 {p} {q}"], DOCUMENTS) for p, q in ((a, b), (c, d)))
    assert bool(overlap(x, y)[0]) == expected == bool(overlap(y, x)[0])


def test_30_ms_overlap_by_the_noise_of_floats() -> None:
    def common_30_ms(end: str) -> bool:
        start = f"{float(end) - 0.03:.2f}"
        stretch = intervals([f"d1 {start} {float(end) + 1}"], DOCUMENTS)
        return bool(overlap(intervals([f"d1 {float(start) - 0.1} {end}"], DOCUMENTS), stretch)[0])

    assert [common_30_ms("0.47"), common_30_ms("2")] == [False, True]


def test_pairs_at_one_time_of_two_documents_are_lost() -> None:
    phones = [*series("d1", 0, *((s, 0.1) for s in "abc")), *series("d2", 0, *((s, 0.1) for s in "abd"))]
    split = ["d1 0 0.3", "d2 0 0.3"]
    classes = [["d1 0 0.3", "d2 0 0.3"]]
    result: Any = score(*evaluation(phones, ["d1 0 0.3 w"], classes, split=split, gold=classes, folds=[split]))
    assert result["cross"]["ned"]["folds"] == [1.0]  # no pair, so no fold, so 1
    assert mean(result["cross"]["matching"]) == [0, 0]


def test_ned_counts_a_pair_of_two_classes_once() -> None:
    pairs = ["d1 0.2 0.5", "d1 1.0 1.4"], ["d1 0.2 0.5", "d1 1.0 1.4", "d2 5.2 5.5"]
    assert cross(*pairs)["ned"]["mean"] == pytest.approx((1 / 4 + 0 + 1 / 4) / 3)


def test_two_fragments_without_phones_kill_the_program() -> None:
    phones, split = [*PHONES, "d1 1.5 1.52 x"], ["d1 0.2 0.82", "d2 5.2 5.72"]
    classes = [["d1 0.79 0.82", "d2 5.69 5.72"]]
    result: Any = score(*evaluation(phones, WORDS, classes, split=split, gold=GOLD, folds=[split]))
    assert result["cross"].keys() == {"nlp", "matching", "grouping", "token", "type", "boundary"}
    assert result["cross"]["nlp"] == {"error": "ZeroDivisionError"}


def test_coverage_is_of_time_and_may_exceed_1() -> None:
    assert cross(["d1 0.25 0.5", "d1 0.2 0.5"])["coverage"]["mean"] == pytest.approx(0.3 / 1.4)
    assert cross(["d1 0.2 0.8"], gold=[["d1 0.2 0.5"]])["coverage"]["mean"] == pytest.approx(2)
    # Of nothing it is left out, and without gold it kills.
    more: Any = {"folds": [["d1 0.2 0.8"], ["d1 1.0 1.4"]], "gold": [["d1 0.2 0.5"]]}
    assert cross(["d1 0.2 0.5"], **more)["coverage"]["folds"] == [1.0]
    assert cross(["d1 1.0 1.4"], **more)["nlp"] == {"error": "ZeroDivisionError"}


def test_matching_counts_both_orders_of_parts_along_diagonals_to_the_tick() -> None:
    # abc with abcd: <abc, abc> and <abc, bcd>. Pairs by second member: abc 3, of which 2 are gold; bcd 1, of which 0.
    # Members: abc twice, bcd once.
    matching = cross(["d1 0.2 0.5", "d1 1.0 1.4"])["matching"]
    assert matching["precision"]["mean"] == pytest.approx(2 / 3 * 2 / 3)
    classes = [["d1 0.2 0.5", "d1 1.0 1.3"]]
    for end, recall in (("1.3", 1), ("1.301", 0)):
        assert cross(*classes, gold=[["d1 0.2 0.5", f"d1 1.0 {end}"]])["matching"]["recall"]["mean"] == recall


def test_parts_have_at_most_19_phones() -> None:
    names = [chr(ord("a") + k) for k in range(20)]
    phones = [*series("d1", 0, *((s, 0.1) for s in names)), *series("d2", 5, *((s, 0.1) for s in names))]
    split = ["d1 0 2", "d2 5 7"]
    for most, recall in ((2.0, 0), (1.9, 1)):
        gold = [[f"d1 0 {most}", f"d2 5 {5 + most}"]]
        result: Any = score(*evaluation(phones, WORDS, [split], split=split, gold=gold, folds=[split]))
        assert result["cross"]["matching"]["recall"]["mean"] == recall


def test_grouping_of_types_and_of_classes_left_with_one_line_in_a_fold() -> None:
    # ab is second to abc nowhere, and keeps its weight: the pair is (ab, abc), of 2 members; abc has ratio 0.
    assert mean(cross(["d1 0.2 0.4", "d1 1.0 1.3", "d2 5.2 5.5"])["grouping"]) == [pytest.approx(2 / 3 * 1 / 3), 1]
    folds, other = [["d1 0.2 0.8", "d1 1.0 1.4"]], ["d1 1.0 1.3", "d1 0.5 0.8"]
    alone = cross(["d1 0.2 0.5", "d2 5.2 5.5"], other, folds=folds)["grouping"]
    assert alone["recall"]["folds"] == [0.0]  # no gold, so undefined, so no fold is left
    both = cross(["d1 0.2 0.5", "d1 0.2 0.5"], other, folds=folds)["grouping"]
    assert mean(both) == [0, 0]
    assert both["recall"]["folds"] == [0.0]


def test_tokens_are_of_exactly_one_word_and_boundaries_less_than_30_ms_away() -> None:
    result = cross(["d1 0.2 0.5", "d1 0.21 0.5", "d1 0.2 0.8"], ["d1 0.26 0.5"])
    assert mean(result["token"]) == [2 / 4, 2 / 4]
    assert mean(result["type"]) == [1 / 2, 1 / 4]  # seen: (abc), (abc, def)
    assert mean(cross(["d1 0.22 0.48"], ["d1 0.54 0.6"])["boundary"]) == [2 / 4, 2 / 7]


def test_folds_without_a_value_are_left_out_and_std_is_of_the_population() -> None:
    folds = [["d1 0.2 0.8", "d1 1.0 1.4"], ["d2 5.2 5.7"]]
    result = cross(["d1 0.2 0.5", "d1 1.0 1.4"], ["d2 5.2 5.7"], folds=folds)
    assert result["ned"]["folds"] == [1 / 4]
    assert result["token"]["precision"]["folds"] == [1, 1]
    assert result["grouping"]["fscore"]["folds"] == [0]
    token = cross(["d1 0.2 0.5", "d1 1.0 1.3"], folds=[["d1 0.2 0.8"], ["d1 1.0 1.4"]])["token"]
    assert token["precision"] == {"folds": [1, 0], "mean": 0.5, "std": 0.5, "min": 0, "max": 1}
    assert token["fscore"]["folds"] == [pytest.approx(2 / 3), 0]


def test_nothing_found_and_fragments_count_once() -> None:
    result = scored()
    assert (result["n_classes"], result["n_fragments"]) == (0, 0)
    assert (result["cross"]["ned"]["folds"], result["cross"]["coverage"]["folds"]) == ([1.0], [0.0])
    result = scored(["d1 0.2 0.5", "d1 0.2 0.5", "d1 0.1 0.5"], ["d1 0.85 0.95"], ["d3 0 1"])
    assert (result["n_classes"], result["n_fragments"]) == (1, 1)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), max_size=15))
def test_pairs_of_items_come_once(rows: list[tuple[int, int]]) -> None:
    group, item = (np.array([row[k] for row in rows], np.int64) for k in (0, 1))
    pairs = [pair for x, y in pairs_of_items(group, item) for pair in zip(x.tolist(), y.tolist(), strict=True)]
    shared = {(min(a[1], b[1]), max(a[1], b[1])) for a, b in combinations(rows, 2) if a[0] == b[0] and a[1] != b[1]}
    assert sorted(pairs) == sorted(shared)


lines = st.builds(
    lambda place, length: f"{place[0]} {place[1]} {round(place[1] + length / 100, 2)}",
    st.sampled_from([("d1", 0.2), ("d1", 0.3), ("d1", 0.28), ("d1", 1.0), ("d2", 5.2), ("d2", 5.25)]),
    st.integers(1, 45),
)


@given(st.lists(st.lists(lines, max_size=5), max_size=3), st.randoms())
def test_the_order_of_lines_is_of_no_matter(classes: list[list[Line]], random: Any) -> None:
    shuffled = [random.sample(members, len(members)) for members in random.sample(classes, len(classes))]
    assert scored(*classes) == scored(*shuffled)
