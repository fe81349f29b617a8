"""The averaged template: the oracle's barycentre, whatever the distance; alone, alike, and in any order."""

from __future__ import annotations

import hashlib
from itertools import islice

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.kernels.alignment import align
from swsdist.kernels.distances.interface import Distance, Part, create, weighted_sum
from swsdist.methods.query.template import ROUNDS, template
from tests.oracles import examples as oracle

Frames = np.ndarray


def distances() -> dict[str, Distance]:
    names = ("cosine", "cosine-squared", "euclidean", "kl", "inner-product", "log-posterior-cosine")
    made = {name: create(name, 4) for name in names}
    made["sum"] = weighted_sum([Part(create("cosine", 3), 0, 3, 2), Part(create("euclidean", 2), 2, 4, 1)], 4)
    return made


DISTANCES = distances()


def drawn(rng: np.random.Generator, length: int, name: str, few: bool) -> Frames:
    """Frames with many ties, or none; probabilities for distances between such."""
    frames = rng.integers(-1, 2, (length, 4)).astype(float) if few else rng.normal(size=(length, 4))
    if name in ("kl", "inner-product", "log-posterior-cosine"):
        frames = np.exp(frames)
        frames /= frames.sum(axis=1, keepdims=True)
    return frames


def local(distance: Distance, left: Frames, right: Frames) -> list[list[int]]:
    query = distance.fill(np.array(left, float), "query", None).frames.astype(int)
    document = distance.fill(np.array(right, float), "document", None).frames.astype(int)
    table = np.full((len(query), len(document)), (1 << distance.shift) >> 1)
    for stream in distance.streams:
        dots = query[:, stream.first : stream.stop] @ document[:, stream.first : stream.stop].T
        table += [[stream.weight * stream.distance(dot) for dot in row] for row in dots.tolist()]
    return np.minimum(table >> distance.shift, 4095).tolist()


@settings(max_examples=100, deadline=None)
@given(
    rows=st.integers(1, 5), columns=st.integers(1, 5), most=st.sampled_from([0, 1, 4095]), seed=st.integers(0, 2**20)
)
def test_the_path_is_the_oracles(rows: int, columns: int, most: int, seed: int) -> None:
    table = np.random.default_rng(seed).integers(0, most + 1, (rows, columns)).astype(np.int16)
    cost, path = np.empty((rows, columns), np.int32), np.empty((rows + columns - 1, 2), np.int32)
    places = align(table, cost, path)
    expected = oracle.path(table.tolist())
    assert [tuple(place) for place in path[:places].tolist()][::-1] == expected
    assert cost[-1, -1] == sum(int(table[place]) for place in expected)


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(sorted(DISTANCES)),
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    few=st.booleans(),
    seed=st.integers(0, 2**20),
)
def test_template_is_the_oracle(name: str, lengths: list[int], few: bool, seed: int) -> None:
    """Also the same several times, under a distance of 0 to itself or not (`inner-product`)."""
    rng, distance = np.random.default_rng(seed), DISTANCES[name]
    examples = sorted((drawn(rng, n, name, few) for n in lengths), key=lambda frames: (len(frames), frames.tobytes()))
    mean = oracle.barycentre([e.tolist() for e in examples], lambda *pair: local(distance, *pair), ROUNDS)
    expected = distance.fill(np.array(mean), "query", None).frames
    assert template(examples, distance).tobytes() == expected.tobytes()
    alone = distance.fill(examples[0].copy(), "query", None).frames
    for times in (1, 2, 3, 7):
        assert template([examples[0].copy() for _ in range(times)], distance).tobytes() == alone.tobytes()


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(sorted(DISTANCES)),
    lengths=st.lists(st.integers(1, 30), min_size=2, max_size=5),
    few=st.booleans(),
    seed=st.integers(0, 2**20),
)
def test_order_does_not_matter(name: str, lengths: list[int], few: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    examples = [drawn(rng, n, name, few) for n in lengths]
    one = template(examples, DISTANCES[name])
    other = template([examples[k] for k in rng.permutation(len(examples))], DISTANCES[name])
    assert one.tobytes() == other.tobytes()
    assert len(one) in lengths


def test_the_bytes_are_held() -> None:
    """Numbers by a linear congruential generator and a correctly rounded division: the same template on any machine.

    When this fails and you meant it, raise `version` of the stage `search`: no one's old candidates may be taken for new ones.
    """

    def numbers(state: int):  # type: ignore[no-untyped-def] # Knuth's MMIX generator
        while True:
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            yield (state >> 49) / 1000

    drawn = numbers(1)
    examples = [np.array(list(islice(drawn, n * 13))).reshape(n, 13) - 16 for n in (40, 33, 51, 47)]
    digest = hashlib.sha256()
    for name in ("cosine", "euclidean-squared"):
        digest.update(template(examples, create(name, 13)).astype("<f4").tobytes())
    assert digest.hexdigest() == "604af1fb16927ca758c89b49f9b6f08892d93e9606a2182947649e71c3be6c97"
