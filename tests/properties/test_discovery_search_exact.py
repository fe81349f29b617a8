"""Segments, neighbours, clusters and parses of a search for recurring stretches against their definitions."""

import hashlib
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from swsdist.audio.speech import stretches
from swsdist.discovery import clusters, neighbours
from swsdist.discovery.clusters import Edge, Side, Token
from swsdist.discovery.neighbours import DECIBEL, Grid, Neighbours, Pairs, Places, Segments
from tests.oracles import discovery_search as oracle

SEEDS = st.integers(0, 2**32 - 1)

# Segments


@given(
    st.lists(st.booleans(), max_size=60), st.integers(2, 20), st.integers(1, 9), st.sampled_from([0, 0.5, 0.8, 0.9, 1])
)
@settings(max_examples=300)
def test_segments_begin_where_enough_is_speech(spoken: list[bool], frames: int, hop: int, share: float) -> None:
    options = Segments(frames=frames, hop=hop, speech=share)
    assert neighbours.starts(np.array(spoken, np.bool_), options).tolist() == oracle.starts(spoken, frames, hop, share)


@given(SEEDS, st.integers(2, 13), st.integers(1, 14), st.integers(1, 3), st.sampled_from([64, 128]))
def test_signatures_are_the_sides_of_directions(seed: int, frames: int, parts: int, columns: int, bits: int) -> None:
    rng = np.random.default_rng(seed)
    options = Segments(frames=frames, hop=2, parts=parts, bits=bits)
    document = rng.integers(-3, 4, (30, columns))  # small, so that some products are 0
    first = neighbours.starts(np.ones(30, np.bool_), options)
    signs = neighbours.directions(columns, options)
    packed = neighbours.signatures(document.astype(np.float32), first, signs, options)
    assert packed.shape == (len(first), bits // 8)
    whole = signs.astype(int).tolist()
    for k, begin in enumerate(first.tolist()):
        wanted = oracle.signature(document[begin : begin + frames].tolist(), whole, parts)
        assert np.unpackbits(packed[k]).astype(bool).tolist() == wanted
    # Columns in any order, and other frames before: the same bits, from the largest numbers on.
    segment = rng.integers(-32767, 32768, (frames, columns)).astype(np.float32)
    begin, order = np.zeros(1, np.int64), rng.permutation(columns)
    bits_of = neighbours.signatures(segment, begin, signs, options).tobytes()
    mixed = signs.reshape(parts, columns, bits)[:, order].reshape(parts * columns, bits)
    assert neighbours.signatures(segment[:, order], begin, mixed, options).tobytes() == bits_of
    before = np.concatenate([rng.integers(-32767, 32768, (2000, columns)).astype(np.float32), segment])
    assert neighbours.signatures(before, begin + 2000, signs, options).tobytes() == bits_of


@given(SEEDS, st.integers(1, 6))
@settings(max_examples=50)
def test_signatures_do_not_depend_on_the_order_of_the_frames_of_a_part(seed: int, parts: int) -> None:
    rng = np.random.default_rng(seed)
    options, begin = Segments(frames=6 * parts, hop=1, parts=parts, bits=64), np.zeros(1, np.int64)
    segment, signs = rng.integers(-32767, 32768, (6 * parts, 7)).astype(np.float32), neighbours.directions(7, options)
    mixed = segment[np.concatenate([6 * part + rng.permutation(6) for part in range(parts)])]
    one, other = (neighbours.signatures(frames, begin, signs, options).tobytes() for frames in (segment, mixed))
    assert one == other


def test_many_segments_are_the_same_as_one_after_the_other() -> None:
    rng = np.random.default_rng(1)
    options = Segments(frames=4, hop=1, parts=2, bits=64)
    document = rng.integers(-9, 10, (2500, 2)).astype(np.float32)
    first, signs = neighbours.starts(np.ones(2500, np.bool_), options), neighbours.directions(2, options)
    at_once = neighbours.signatures(document, first, signs, options)
    for k in (0, 1023, 1024, 2048, len(first) - 1):
        assert neighbours.signatures(document, first[k : k + 1], signs, options).tobytes() == at_once[k].tobytes()


def test_directions_and_orders_are_the_same_everywhere() -> None:
    for columns, options, digest in (
        (39, Segments(), "52001bf4c601c92f"),
        (3, Segments(frames=7, parts=5, bits=64), "3bb7fac0133d29e7"),
    ):
        signs = neighbours.directions(columns, options)
        assert set(np.unique(signs)) == {-1, 1}
        assert hashlib.sha256(signs.astype(np.int8).tobytes()).hexdigest()[:16] == digest
    order = neighbours.order_of(256, 3)
    assert len(set(order.tolist())) == 64
    assert hashlib.sha256(order.astype("<i8").tobytes()).hexdigest()[:16] == "293846c968aeca5e"
    assert sorted(neighbours.order_of(64, 0).tolist()) == list(range(64))


# Neighbours


@st.composite
def collections(draw: Any) -> Places:
    """Segments of a few documents, with signatures that repeat, more or less."""
    rng = np.random.default_rng(draw(SEEDS))
    count, width = draw(st.integers(0, 30)), draw(st.sampled_from([8, 16]))
    document = np.sort(rng.integers(0, 3, count)).astype(np.int32)
    first = np.zeros(count, np.int32)
    for number in range(3):
        first[document == number] = 5 * np.arange((document == number).sum())
    kinds = rng.integers(0, 256, (3, width)).astype(np.uint8)
    noise = np.packbits(rng.random((count, 8 * width)) < draw(st.sampled_from([0.0, 0.05, 0.2])), axis=1)
    return Places.of(document, first, np.ascontiguousarray(kinds[rng.integers(0, 3, count)] ^ noise))


def rows(pairs: Pairs) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in pairs), strict=True))


def listed(places: Places) -> list[tuple[int, int, bytes]]:
    signs = [row.tobytes() for row in places.signature]
    return list(zip(places.document.tolist(), places.first.tolist(), signs, strict=True))


@given(collections(), st.integers(0, 3), st.integers(2, 20), st.sampled_from([0.01, 0.1, 0.34, 0.9]))
@settings(max_examples=200)
def test_a_beam_over_all_proposes_all_pairs(places: Places, number: int, frames: int, unlike: float) -> None:
    options = Neighbours(beam=max(1, len(places.first)), unlike=unlike)
    most = int(unlike * places.signature.shape[1] * 8)
    assert rows(neighbours.near(places, number, frames, 5, options)) == oracle.all_pairs(listed(places), frames, most)


@given(collections(), st.integers(0, 3), st.integers(2, 20), st.integers(1, 5), st.integers(1, 7))
@settings(max_examples=200)
def test_a_beam_proposes_some_of_all_pairs_each_once(places, number, frames, beam, held) -> None:
    """However many are compared at a time."""
    proposed = rows(neighbours.near(places, number, frames, 5, Neighbours(beam=beam)))
    bits = places.signature.shape[1] * 8
    assert proposed == sorted(set(proposed))
    assert set(proposed) <= set(oracle.all_pairs(listed(places), frames, int(0.34 * bits)))
    assert len(proposed) <= beam * len(places.first)
    assert set(proposed) <= set(rows(neighbours.near(places, number, frames, 5, Neighbours(beam=beam + 1))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbours, "_HELD", held)
        assert rows(neighbours.near(places, number, frames, 5, Neighbours(beam=beam))) == proposed


def test_equal_signatures_are_all_near() -> None:
    """Of equal signatures each stands beside the next, in every order."""
    places = Places.of(np.arange(40, dtype=np.int32), np.zeros(40, np.int32), np.full((40, 8), 7, np.uint8))
    pairs = rows(neighbours.near(places, 0, 50, 5, Neighbours(beam=1)))
    assert pairs == [(k, k + 1, 0) for k in range(39)]


def some(places: Places, seed: int) -> Pairs:
    """Pairs in any order, in either direction, some twice and unlike in other numbers of bits."""
    rng = np.random.default_rng(seed)
    pairs = neighbours.near(places, 0, 5, 5, Neighbours(beam=9, unlike=0.5))
    pairs = neighbours.joined(
        [pairs, Pairs(pairs.right, pairs.left, pairs.unlike), pairs._replace(unlike=pairs.unlike + 1)]
    )
    return pairs.take(rng.permutation(len(pairs.left))[: rng.integers(0, 60)])


@given(collections(), SEEDS, st.integers(1, 4))
@settings(max_examples=200)
def test_each_pair_stays_once_where_it_is_least_unlike_and_the_most_alike_of_each_segment(places, seed, kept) -> None:
    given_pairs = rows(some(places, seed))
    least = {pair[:2]: min(other[2] for other in given_pairs if other[:2] == pair[:2]) for pair in given_pairs}
    pairs = neighbours.unique(some(places, seed))
    assert rows(pairs) == [(*pair, least[pair]) for pair in sorted(least)]
    assert rows(neighbours.most_alike(pairs, kept)) == oracle.most_alike(rows(pairs), kept)
    # Cut among tasks in any way, and chosen again from what they chose, the same pairs are left.
    task = np.random.default_rng(seed).integers(0, 3, len(pairs.left))
    parts = [neighbours.most_alike(pairs.take(task == k), kept) for k in range(3)]
    assert rows(neighbours.most_alike(neighbours.joined(parts), kept)) == rows(neighbours.most_alike(pairs, kept))


DIAGONALS = st.builds(
    lambda **values: Neighbours(by="diagonals", unlike=0.3, beam=9, **values),
    window=st.integers(1, 7),
    share=st.sampled_from([0.2, 0.5, 1.0]),
    width=st.integers(1, 3),
    points=st.integers(1, 3),
)


@given(collections(), SEEDS, DIAGONALS)
@settings(max_examples=300)
def test_diagonals_are_alike_where_most_of_their_pairs_are(places: Places, seed: int, options: Neighbours) -> None:
    """Where segments are missing, and at the ends of documents, nothing is alike."""
    kept = np.random.default_rng(seed).random(len(places.first)) < 0.8
    places = Places(*(np.ascontiguousarray(column[kept]) for column in places))
    half, most = options.window // 2, int(0.3 * places.signature.shape[1] * 8)
    pairs = neighbours.near(places, 0, 5, 5, Neighbours(unlike=0.3, beam=9))
    grid = Grid.of(places, 5, options.window)
    counts = [oracle.alike(listed(places), pair, 5, half, most) for pair in rows(pairs)]
    assert grid.alike(pairs, most).tolist() == counts
    wanted = [pair for pair, count in zip(rows(pairs), counts, strict=True) if count >= options.share * (2 * half + 1)]
    assert rows(neighbours.near(places, 0, 5, 5, options)) == wanted


@given(collections(), SEEDS, DIAGONALS)
@settings(max_examples=300)
def test_lines_of_pairs(places: Places, seed: int, options: Neighbours) -> None:
    """Also where documents are divided among buckets."""
    pairs = neighbours.unique(neighbours.ordered(some(places, seed)))
    wanted = oracle.lines(listed(places), rows(pairs), 5, options.width, 5 * options.window, options.points)
    assert sorted(rows(neighbours.lines(places, pairs, 5, options))) == wanted
    bucket = places.document[pairs.left] % 2
    parts = [neighbours.lines(places, pairs.take(bucket == k), 5, options) for k in range(2)]
    assert sorted(rows(neighbours.joined(parts))) == wanted


def test_no_segment_has_no_neighbour() -> None:
    nothing = Places.of(np.empty(0, np.int32), np.empty(0, np.int32), np.empty((0, 8), np.uint8))
    for options in (Neighbours(), Neighbours(by="diagonals")):
        pairs = neighbours.near(nothing, 0, 50, 5, options)
        assert rows(pairs) == []
        assert rows(neighbours.lines(nothing, pairs, 5, options)) == rows(neighbours.most_alike(pairs, 3)) == []


# Clusters

NOWHERE = Side(0, 0, 1)


@st.composite
def graphs(draw: Any) -> tuple[int, list[Edge]]:
    nodes = draw(st.integers(1, 9))
    pairs = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)).filter(lambda pair: pair[0] < pair[1])
    ends = draw(st.lists(pairs, unique=True, max_size=14)) if nodes > 1 else []
    return nodes, [Edge(*pair, draw(st.integers(1, 3)), (NOWHERE, NOWHERE)) for pair in ends]


@given(graphs(), st.randoms(use_true_random=False))
@settings(max_examples=400)
def test_bridges_part_two_groups_and_components_are_what_is_left_connected(graph, random) -> None:
    nodes, edges = graph
    found = oracle.bridges(nodes, [edge[:2] for edge in edges])
    assert clusters.bridges(nodes, edges) == found
    left = [edge[:2] for k, edge in enumerate(edges) if k not in found]
    assert clusters.components(nodes, edges) == sorted(
        sorted(group) for group in oracle.groups(nodes, left) if len(group) > 1
    )
    mixed = random.sample(edges, len(edges))
    assert clusters.centres(nodes, mixed) == clusters.centres(nodes, edges)
    assert clusters.components(nodes, mixed) == clusters.components(nodes, edges)


@given(graphs())
@settings(max_examples=200)
def test_every_member_matches_its_centre(graph: tuple[int, list[Edge]]) -> None:
    nodes, edges = graph
    classes = clusters.centres(nodes, edges)
    members = [node for group in classes for node in group]
    assert len(members) == len(set(members))
    assert all(len(group) > 1 for group in classes)
    linked = {edge[:2] for edge in edges} | {(right, left) for left, right, *_ in edges}
    total = {node: sum(edge.score for edge in edges if node in edge[:2]) for node in range(nodes)}
    free = set(range(nodes))
    for centre, *others in classes:
        assert set(others) == {other for other in free if (centre, other) in linked}
        free -= {centre, *others}
        assert all(total[centre] >= total[other] for other in others)
    # Nobody is left who matches another of these.
    assert not [edge for edge in edges if {edge.left, edge.right} <= free]


def test_a_long_chain_needs_no_recursion() -> None:
    edges = [Edge(k, k + 1, 1, (NOWHERE, NOWHERE)) for k in range(20_000)]
    assert clusters.bridges(20_001, edges) == set(range(1, 19_999))
    assert clusters.components(20_001, edges) == [[0, 1], [19_999, 20_000]]


#: Of two documents that are recordings.
TIMES = [("a", 0), ("b", 0)]
SIDES = st.builds(
    lambda document, first, length: Side(document, first, first + length),
    st.integers(0, 1),
    st.integers(0, 30),
    st.integers(1, 12),
)


def shared(side: Side, place: Side) -> float:
    """The share of the longer that two stretches have in common."""
    common = set(range(side.first, side.stop)) & set(range(place.first, place.stop))
    return len(common) / max(side.stop - side.first, place.stop - place.first) * (side.document == place.document)


@given(st.lists(SIDES, max_size=8), st.sampled_from([0.5, 0.8, 1.0]))
@settings(max_examples=200)
def test_of_duplicates_the_first_stays(places: list[Side], duplicates: float) -> None:
    stay: list[int] = []
    for number, place in enumerate(places):
        if all(shared(place, places[other]) < duplicates for other in stay):
            stay.append(number)
    assert clusters.distinct(places, duplicates, TIMES) == stay


MATCHES = st.lists(st.tuples(SIDES, SIDES, st.integers(1, 9)), max_size=12)


@given(MATCHES, st.sampled_from([0.05, 0.3, 0.5, 0.7, 1.0]))
@settings(max_examples=300)
def test_a_side_joins_the_first_node_of_all_that_it_shares(matches, overlap) -> None:
    nodes, edges = clusters.nodes_of(matches, overlap, TIMES)
    wanted, links = oracle.nodes([match[:2] for match in matches], overlap)
    assert nodes == wanted
    assert [edge[:2] for edge in edges] == links
    for left, right, score, sides in edges:  # an edge is of a match
        assert all(shared(side, nodes[end]) >= overlap for side, end in zip(sides, (left, right), strict=True))
        assert (*sides, score) in matches or (*sides[::-1], score) in matches
    matches.sort(key=lambda match: (-match[2], match))
    ordered, edges = clusters.nodes_of(matches, overlap, TIMES)
    best = {edge[:2]: edge.score for edge in edges}
    for left, right, score in matches:
        ends = [next(k for k, node in enumerate(ordered) if shared(side, node) >= overlap) for side in (left, right)]
        assert ends[0] == ends[1] or best[min(ends), max(ends)] >= score


@given(MATCHES, st.integers(0, 20))
@settings(max_examples=200)
def test_a_place_of_a_recording_is_one_node_whatever_the_document(matches, origin) -> None:
    """Two documents of one recording, as if they were one."""
    times = [("a", 0), ("a", origin)]

    def one(side: Side) -> Side:
        return Side(0, side.first + times[side.document][1], side.stop + times[side.document][1])

    alone = [(one(left), one(right), score) for left, right, score in matches]
    (nodes, edges), (wanted, links) = clusters.nodes_of(matches, 0.7, times), clusters.nodes_of(alone, 0.7, TIMES)
    assert [one(node) for node in nodes] == wanted
    assert [edge._replace(sides=tuple(map(one, edge.sides))) for edge in edges] == links
    assert clusters.distinct(nodes, 0.5, times) == clusters.distinct(wanted, 0.5, TIMES)


# Parses

TOKENS = st.builds(
    lambda first, length, group, score: Token(first, first + length, group, float(score)),
    st.integers(0, 20),
    st.integers(1, 9),
    st.integers(0, 3),
    st.integers(0, 5),
)


@given(st.lists(TOKENS, max_size=9), st.randoms(use_true_random=False))
@settings(max_examples=300)
def test_the_chosen_tokens_have_the_greatest_sum(tokens: list[Token], random: Any) -> None:
    chosen = clusters.choose(tokens)
    assert all(before.stop <= after.first for before, after in pairwise(chosen))
    assert not [token for token in chosen if token not in tokens]
    best = oracle.best_sum([(token.first, token.stop, int(token.score)) for token in tokens])
    assert sum(token.score for token in chosen) == best
    assert clusters.choose(random.sample(tokens, len(tokens))) == chosen


FRAMES = st.sets(st.integers(0, 40)).map(sorted)


@given(st.lists(TOKENS, max_size=9), st.lists(st.booleans(), min_size=30, max_size=40), FRAMES, st.integers(1, 6))
@settings(max_examples=300)
def test_the_rest_covers_all_other_speech_once(tokens, spoken, boundaries, least) -> None:
    chosen = clusters.choose(tokens)
    parse = clusters.with_rest(chosen, np.array(spoken), boundaries, least)
    assert parse == sorted(parse)
    assert all(before.stop <= after.first for before, after in pairwise(parse))
    rest = [token for token in parse if token.group < 0]
    assert [token for token in parse if token.group >= 0] == chosen
    free = [k for k, speech in enumerate(spoken) if speech and not any(t.first <= k < t.stop for t in chosen)]
    covered = [k for token in rest for k in range(token.first, token.stop)]
    assert set(covered) <= set(free)
    # What is not covered is short: each such stretch, by itself.
    short = sorted(set(free) - set(covered))
    stretches = np.split(short, np.flatnonzero(np.diff(short) > 1) + 1) if short else []
    assert all(len(stretch) < least for stretch in stretches)
    assert all(token.stop - token.first >= least and token.score == 0 for token in rest)
    # It is cut at boundaries only, and at each that leaves enough on both sides.
    for token in rest:
        assert token.first in boundaries or token.first - 1 not in free
        inside = [frame for frame in boundaries if token.first + least <= frame <= token.stop - least]
        assert not inside


# Boundaries


@given(
    st.lists(st.integers(0, 9), max_size=40), st.integers(1, 6), st.integers(0, 3), st.sampled_from([0.01, 1.0, 30.0])
)
@settings(max_examples=400)
def test_minima_are_the_lowest_between_falls_and_rises_and_of_shapes_not_of_levels(values, depth, smooth, fall) -> None:
    assert neighbours.minima(values, depth) == oracle.minima(values, depth)
    loudness = 2 * DECIBEL * np.array(values, np.int64)
    frames = neighbours.falls(loudness, smooth, fall)
    assert frames == sorted(set(frames))
    assert all(0 <= frame < len(values) for frame in frames)
    assert neighbours.falls(loudness + 777, smooth, fall) == frames
    assert neighbours.falls(2 * loudness, smooth, 2 * fall) == frames
    assert len(neighbours.falls(loudness, smooth, 2 * fall)) <= len(frames)


def test_a_syllable_begins_where_half_of_the_fall_is_done() -> None:
    vowel, consonant = [60 * DECIBEL] * 10, [40 * DECIBEL] * 5
    slope = [(60 - 4 * k) * DECIBEL for k in range(1, 5)]
    loudness = np.array([*vowel, *slope, *consonant, *vowel, *slope, *consonant], np.int64)
    # The second fall has no rise after it.
    assert neighbours.falls(loudness, 0, 1.0) == [12]
    assert neighbours.falls(loudness, 0, 20.0) == [12]
    assert neighbours.falls(loudness, 0, 20.1) == []
    assert neighbours.falls(loudness, 2, 1.0) == [12]


@given(
    st.lists(st.booleans(), max_size=50), st.sets(st.integers(0, 40)).map(sorted), st.integers(0, 40), st.integers(0, 9)
)
@settings(max_examples=200)
def test_margins_are_taken_from_both_ends_and_the_nearest_boundary(spoken, boundaries, frame, reach) -> None:
    left = neighbours.without_margins(np.array(spoken, np.bool_), reach).tolist()
    padded = [*[False] * reach, *spoken, *[False] * reach]
    assert left == [all(padded[k : k + 2 * reach + 1]) for k in range(len(spoken))]
    covered = [False] * len(spoken)
    for first, stop in stretches(np.array(spoken, np.bool_)):
        covered[first:stop] = [True] * (stop - first)
    assert covered == spoken
    near = [other for other in boundaries if abs(other - frame) <= reach]
    nearest = min(near, key=lambda other: (abs(other - frame), other), default=frame)
    assert neighbours.nearest(boundaries, frame, reach) == nearest


# Members


@given(SIDES, SIDES, st.integers(-9, 9), st.integers(-9, 9))
@settings(max_examples=200)
def test_a_match_carries_places_from_side_to_side(side: Side, other: Side, first: int, stop: int) -> None:
    assert clusters.projected(side, side, other, 100) == other
    assume(side.first + first < side.stop + stop)
    place = Side(side.document, side.first + first, side.stop + stop)
    carried = clusters.projected(place, side, other, 100)
    assert carried.document == other.document
    assert 0 <= carried.first < carried.stop <= 100
    if side.stop - side.first == other.stop - other.first and other.first + first >= 0:
        assert carried == Side(other.document, other.first + first, other.stop + stop)


@given(MATCHES, FRAMES, st.integers(0, 9))
@settings(max_examples=300)
def test_members_are_where_the_ends_of_the_centre_are(matches, boundaries, reach) -> None:
    matches.sort(key=lambda match: (-match[2], match))
    nodes, edges = clusters.nodes_of(matches, 0.7, TIMES)
    between = {edge[:2]: edge for edge in edges}
    for group in clusters.centres(len(nodes), edges):
        placed = clusters.places(group, nodes, between, [boundaries, []], [50, 50], reach)
        assert placed[0] == clusters.moved(nodes[group[0]], [boundaries, []], reach)
        assert [place.document for place in placed] == [nodes[node].document for node in group]
        assert all(0 <= place.first < place.stop <= 50 for place in placed)
        for node, place in zip(group[1:], placed[1:], strict=True):
            (edge,) = (edge for edge in edges if set(edge[:2]) == {group[0], node})
            own, other = edge.sides if group[0] < node else edge.sides[::-1]
            assert place == clusters.moved(clusters.projected(placed[0], own, other, 50), [boundaries, []], reach)
