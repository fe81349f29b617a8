"""Matches of term discovery: one alignment against its definition on the documents' frames, and which of many stay."""

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.chains.discover.inputs import unit_of
from swsdist.chains.discover.propose_pairs import Collection, pairs_of
from swsdist.config.search import Search
from swsdist.discovery.neighbours import Match, Matching, Places, Stretches, best, match
from swsdist.kernels.arithmetic import MAX_DISTANCE
from swsdist.kernels.distances.interface import create
from swsdist.kernels.products import local_distances
from swsdist.methods.dtw.search import Matches
from swsdist.methods.dtw.shard import distance_of
from swsdist.registry.registries import DISTANCES as DISTANCE_NAMES
from swsdist.testing import scenes
from tests.oracles import local_alignment as oracle

NAMES = ("cosine", "euclidean")
DISTANCES = {name: create(name, 2) for name in NAMES}


def document(name: str, values: np.ndarray, spoken: list[bool], side: Any) -> Stretches:
    return Stretches(scenes.prepared(DISTANCES[name], values.astype(np.float32), side), np.array(spoken))


@st.composite
def cases(draw: Any) -> dict[str, Any]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    same = draw(st.booleans())
    lengths = [draw(st.integers(6, 12))] * 2 if same else draw(st.tuples(st.integers(4, 9), st.integers(4, 9)))
    values = [rng.integers(-1, 2, (length, 2)) for length in lengths]
    spoken = [(rng.random(length) < 0.9).tolist() for length in lengths]
    if same:
        values[1], spoken[1] = values[0], spoken[0]
    frames = draw(st.integers(2, 3))
    first = draw(st.integers(0, lengths[0] - frames)), draw(st.integers(0, lengths[1] - frames))
    if same and abs(first[0] - first[1]) < frames:  # segments of one document are apart
        first = 0, lengths[0] - frames
    options = Matching(
        level=draw(st.sampled_from([0.3, 0.6, 1.2])),
        gap=draw(st.sampled_from([0.0, 0.25])),
        band=draw(st.integers(0, 2)),
        reach=draw(st.integers(0, 1)),
        frames=draw(st.integers(1, 3)),
    )
    shift = 0 if same else draw(st.none() | st.integers(-4, 4))
    return {"shift": shift, "values": values, "spoken": spoken, "frames": frames, "first": first, "options": options}


def defined(name: str, case: dict[str, Any]) -> Match | None:
    """The match, one distance after the other."""
    options, frames, distance, shift = case["options"], case["frames"], DISTANCES[name], case["shift"]
    ranges = [
        range(max(0, first - options.reach), min(len(values), first + frames + options.reach))
        for first, values in zip(case["first"], case["values"], strict=True)
    ]
    left, right = (document(name, case["values"][k], case["spoken"][k], ("query", "document")[k]) for k in (0, 1))
    table = [[MAX_DISTANCE] * len(ranges[1]) for _ in ranges[0]]
    for (i, t), (j, u) in product(enumerate(ranges[0]), enumerate(ranges[1])):
        together = shift is not None and abs(t - u - shift) < max(frames, options.frames)
        if left.spoken[t] and right.spoken[u] and not together:
            table[i][j] = int(local_distances(left.frames[t : t + 1], right.frames[u : u + 1], distance)[0, 0])
    diagonal = case["first"][1] - ranges[1].start - (case["first"][0] - ranges[0].start)
    level, gap = round(options.level * distance.unit), round(options.gap * distance.unit)
    score, begin, stop, start, end = oracle.best(table, diagonal, options.band, level, gap)
    if min(stop - begin, end - start) < options.frames:
        return None
    sides = [(ranges[0].start + begin, ranges[0].start + stop), (ranges[1].start + start, ranges[1].start + end)]
    times = [sides[0], tuple(frame + (shift or 0) for frame in sides[1])]
    if shift is not None and max(times)[0] < min(times)[1]:
        return None
    return Match(*sides, score)


@pytest.mark.parametrize("name", NAMES)
@given(case=cases())
@settings(max_examples=200)
def test_a_match_is_the_best_path_around_two_segments(name: str, case: dict[str, Any]) -> None:
    left, right = (document(name, case["values"][k], case["spoken"][k], ("query", "document")[k]) for k in (0, 1))
    rest = case["first"], case["frames"], DISTANCES[name], DISTANCES[name].unit, case["options"]
    assert match(left, right, case["shift"], *rest) == defined(name, case)


@given(st.integers(0, 2**32 - 1), st.integers(10, 40))
def test_a_document_does_not_overlap_itself(seed: int, apart: int) -> None:
    """Where a document repeats itself every few frames, too."""
    rng = np.random.default_rng(seed)
    values = np.tile(rng.integers(-2, 3, (rng.integers(1, 7), 2)), (90, 1))[:90]
    left, right = (document("cosine", values, [True] * 90, side) for side in ("query", "document"))
    options = Matching(frames=3, reach=20, band=6)
    made = match(left, right, 0, (20, 20 + apart), 10, DISTANCES["cosine"], DISTANCES["cosine"].unit, options)
    assert made is None or made.left[1] <= made.right[0] or made.right[1] <= made.left[0]


@pytest.mark.parametrize("name", sorted(DISTANCE_NAMES))
@given(seed=st.integers(0, 2**32 - 1), level=st.floats(0.01, 1), silent=st.integers(1, 8))
@settings(max_examples=30)
def test_silence_adds_nothing(name: str, seed: int, level: float, silent: int) -> None:
    """At any level below the greatest distance no match enters silence, not even where all frames are equal."""
    rng = np.random.default_rng(seed)
    values = rng.dirichlet(np.full(4, 0.3), 24) * 0.999 + 0.001 / 4
    values[: 24 - silent // 2] = values[0] if seed % 2 else values[: 24 - silent // 2]
    spoken = [k < 24 - silent for k in range(24)]
    distance = create(name, 4)
    left, right = (
        Stretches(scenes.prepared(distance, values.astype(np.float32), side), np.array(spoken))
        for side in ("query", "document")
    )
    most = (MAX_DISTANCE - 1) / distance.unit
    options = Matching(level=max(1 / distance.unit, level * most), gap=0.0, frames=1, band=3, reach=24)
    place = (4, 4), 10, distance, distance.unit, options
    made = match(left, right, None, *place)
    short = (Stretches(stretch.frames[: 24 - silent], stretch.spoken[: 24 - silent]) for stretch in (left, right))
    assert made == match(*short, None, *place)


def test_a_level_counts_all_streams() -> None:
    """Frames at a distance of 1 in every stream, each unlike all others, are at the level 1."""
    for weights in ((1, 1), (2, 1), (3, 2, 1)):
        streams = [{"columns": [2 * k, 2 * k + 2], "weight": weight} for k, weight in enumerate(weights)]
        search = Search.model_validate({"streams": streams, "normalise": "none"})
        distance = distance_of(search, 2 * len(weights))
        left, right = (
            scenes.prepared(distance, np.tile(np.array([pair], np.float32), (1, len(weights))), side)
            for pair, side in (((1, 0), "query"), ((0, 1), "document"))
        )
        assert unit_of(search) == pytest.approx(int(local_distances(left, right, distance)[0, 0]), rel=0.01)


STRETCHES = st.builds(lambda first, length: (first, first + length), st.integers(0, 15), st.integers(1, 8))
MATCHES = st.builds(Match, STRETCHES, STRETCHES, st.integers(1, 4))


def same(one: Match, other: Match) -> bool:
    """Whether two matches share more than half of the shorter stretch, on both sides."""
    shares = [
        (len(set(range(*a)) & set(range(*b))), min(a[1] - a[0], b[1] - b[0]))
        for a, b in ((one.left, other.left), (one.right, other.right))
    ]
    return all(2 * common > shorter for common, shorter in shares)


@given(st.lists(MATCHES, max_size=12), st.randoms(use_true_random=False))
@settings(max_examples=300)
def test_of_matches_of_the_same_places_the_best_stays(matches: list[Match], random: Any) -> None:
    kept = best(matches)
    assert set(kept) <= set(matches)
    assert not [pair for pair in combinations(kept, 2) if same(*pair)]
    assert [item.score for item in kept] == sorted((item.score for item in kept), reverse=True)
    for item in set(matches) - set(kept):
        assert any(same(item, better) and better.score >= item.score for better in kept)
    assert best(random.sample(matches, len(matches))) == kept
    assert best(kept) == kept
    assert best(matches + matches) == kept


@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(1, 12))
@settings(max_examples=200)
def test_the_segment_of_a_hit_is_the_nearest(seed: int, frames: int, apart: int) -> None:
    """The earlier of two as near; none half a segment away, or so near to the searched segment: the hit is no pair."""
    rng = np.random.default_rng(seed)
    places = [(d, first) for d in range(3) for first in range(0, 40, 4) if rng.random() < 0.6] or [(1, 0)]
    document, first = (np.array(column, np.int32) for column in zip(*places, strict=True))
    everything = Collection([], np.zeros(3, np.int32), Places.of(document, first, np.empty((len(first), 8), np.uint8)))
    searched = rng.permutation(len(places))[:4].astype(np.int32)
    count = int(rng.integers(0, 20))
    query, hit_document = rng.integers(0, len(searched), count), rng.integers(0, 4, count)
    length = rng.integers(1, 2 * frames + 1, count)
    end = length - 1 + rng.integers(0, 45, count)
    cost = rng.integers(0, 9, count)
    names = np.array([2, 0, -1, 1])
    matches = Matches(query.astype(np.int32), hit_document.astype(np.int32), end, length.astype(np.int32), cost, 1.0)
    wanted: dict[tuple[int, int], int] = {}
    for k in range(count):
        segment = int(searched[query[k]])
        begin = int(end[k]) + 1 - (int(length[k]) + frames) // 2  # where a segment has the hit's middle as its own
        near = [(abs(at - begin), number) for number, (d, at) in enumerate(places) if d == names[hit_document[k]]]
        distance, other = min(near, default=(1 << 30, -1))
        overlapping = places[segment][0] == places[other][0] and abs(places[segment][1] - places[other][1]) < apart
        if distance <= frames // 2 and not overlapping:
            wanted[segment, other] = min(int(cost[k]), wanted.get((segment, other), 1 << 30))
    made = pairs_of(matches, searched, names, everything, frames, apart)
    assert list(zip(*(column.tolist() for column in made), strict=True)) == [(*k, wanted[k]) for k in sorted(wanted)]
