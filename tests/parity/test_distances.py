"""Local distances in fixed point: the oracle's integers, exact in any order, and as near to float64 as is said."""

from collections.abc import Callable, Iterator
from itertools import product
from types import FunctionType

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.config.loader import config_from_dict
from swsdist.config.search import Search
from swsdist.core.codes import families
from swsdist.core.codes import methods as kernels_codes
from swsdist.core.errors import ConfigError
from swsdist.core.types import EXAMPLES
from swsdist.features.statistics import Statistics
from swsdist.kernels.arithmetic import weighted
from swsdist.kernels.distances import interface
from swsdist.kernels.distances.cosine import NORM
from swsdist.kernels.distances.euclidean import default_cap
from swsdist.kernels.distances.inner_product import OF_ONE
from swsdist.kernels.distances.interface import LARGEST_COORDINATE, LARGEST_SUM, Distance, Part, create, weighted_sum
from swsdist.kernels.products import LARGEST
from swsdist.methods.dtw.search import search
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.dtw.shard import distance_of, offset_and_scale
from swsdist.methods.query.example import Example
from swsdist.methods.query.extraction import prepared as prepared_examples
from swsdist.registry.entries import names_where
from swsdist.registry.registries import DISTANCES
from tests.oracles import distances as oracle
from tests.oracles import search as oracles_search
from tests.support.coded import raises
from tests.support.engine import as_rows

NAMES = sorted(DISTANCES)
NAME = st.sampled_from(NAMES)
ON_POSTERIORS = set(names_where(DISTANCES, "posteriors"))
#: Floors and caps that the tests use.
FLOORS, CAPS = (1e-4, 3e-3, 0.1), (0.5, 4.0, 30.0)


def features(name: str, kind: str, frames: int, dimension: int, seed: int) -> np.ndarray:
    """Frames that the distance takes; some of each kind are equal, and some are zero."""
    rng = np.random.default_rng(seed)
    if name not in ON_POSTERIORS:
        values = rng.normal(size=(frames, dimension)) * (1e-3 if kind == "peaked" else 1.5)
        if kind == "few":
            values = rng.integers(-1, 2, (frames, dimension))
    elif kind == "few":
        values = rng.integers(0, 2, (frames, dimension)).astype(float)
        values /= np.maximum(values.sum(axis=1, keepdims=True), 1)
    else:
        values = rng.dirichlet(np.full(dimension, 0.03 if kind == "peaked" else 1.0), frames)
    if kind == "constant":
        values = np.ones((frames, dimension)) / dimension
    values = np.asarray(values)
    values[0] = 0
    return values.astype(np.float32)


def given_options(name: str, choice: int, dimension: int) -> tuple[dict[str, float], dict[str, float]]:
    """Options for `create`, and the same with the defaults written out, for the oracle."""
    if "floor" in DISTANCES[name].takes():
        return ({"floor": FLOORS[choice]},) * 2 if choice < 3 else ({}, {"floor": 1e-4})
    if "cap" in DISTANCES[name].takes():
        return ({"cap": CAPS[choice]},) * 2 if choice < 3 else ({}, {"cap": default_cap(dimension)})
    return {}, {}


def prepared(distance: Distance, values: np.ndarray, side: str) -> np.ndarray:
    return distance.prepare(values, np.zeros(distance.dimension), np.ones(distance.dimension), side).frames


def largest_partial_sums(query: np.ndarray, document: np.ndarray) -> float:
    """The largest absolute value that any order of summing meets: all positive terms first, or all negative ones."""
    terms = query.astype(np.float64)[:, None, :] * document.astype(np.float64)[None, :, :]
    return max(np.maximum(terms, 0).sum(axis=2).max(), np.maximum(-terms, 0).sum(axis=2).max())


CASE = {
    "name": NAME,
    "kind": st.sampled_from(["random", "few", "peaked", "constant"]),
    "dimension": st.integers(1, 9),
    "choice": st.integers(0, 3),
    "seed": st.integers(0, 2**20),
}


@settings(max_examples=300)
@given(**CASE)
def test_distances_are_the_oracles(name, kind, dimension, choice, seed) -> None:
    options, full = given_options(name, choice, dimension)
    distance = create(name, dimension, options)
    values = {side: features(name, kind, 4, dimension, seed + k) for k, side in enumerate(("query", "document"))}
    fixed = {}
    for side, own in values.items():
        made = distance.prepare(own, np.zeros(dimension), np.ones(dimension), side)
        expected = [oracle.frame(name, row, side, full) for row in own.astype(np.float64).tolist()]
        assert made.frames.dtype == np.float32
        assert made.frames.tolist() == [row for row, _ in expected]
        assert made.saturated == sum(saturated for _, saturated in expected)
        fixed[side] = made.frames
    (stream,) = distance.streams
    assert (stream.first, stream.stop, stream.weight, distance.shift) == (0, distance.columns, 1, 0)
    assert largest_partial_sums(fixed["query"], fixed["document"]) <= stream.bound <= LARGEST_SUM
    dots = fixed["query"] @ fixed["document"].T
    for (i, q), (j, x) in product(*(enumerate(fixed[side].astype(int).tolist()) for side in values)):
        assert stream.distance(int(dots[i, j])) == oracle.distance(name, q, x, full)


@settings(max_examples=300)
@given(**CASE)
def test_errors_are_within_what_the_docs_say(name, kind, dimension, choice, seed) -> None:
    options, full = given_options(name, choice, dimension)
    distance = create(name, dimension, options)
    left, right = features(name, kind, 4, dimension, seed), features(name, kind, 4, dimension, seed + 1)
    if name.startswith("euclidean"):  # frames beyond the cap are not measured, but cut off
        longest = full["cap"] * (1 - np.sqrt(dimension) / 2 / NORM)
        for frames in (left, right):
            norms = np.linalg.norm(frames.astype(np.float64), axis=1)
            frames[norms > longest] = 0
    fixed = prepared(distance, left, "query"), prepared(distance, right, "document")
    for i, j in product(range(4), range(4)):
        q, x = left[i].astype(np.float64).tolist(), right[j].astype(np.float64).tolist()
        exact = oracle.exact(name, q, x, full)
        d = oracle.distance(name, fixed[0][i].astype(int).tolist(), fixed[1][j].astype(int).tolist(), full)
        assert abs(d / distance.unit - exact) <= largest_error(name, dimension, full, q, x) + 1e-9


def largest_error(name: str, dimension: int, options: dict[str, float], q: list[float], x: list[float]) -> float:
    """What docs/concepts/exact-numbers.md says."""
    if name.endswith("-squared") and not name.startswith("euclidean"):
        plain = name.removesuffix("-squared")
        e = largest_error(plain, dimension, options, q, x)
        return 2 * oracle.exact(plain, q, x, options) * e + e * e + 1 / 2048
    if name.startswith("kl"):
        of_logarithms = 1 / 128 if name == "kl" else 1 / 64
        largest = np.log((1 + dimension * options["floor"]) / options["floor"])
        return largest * dimension / 8192 + of_logarithms * (1 + dimension / 8192) + 1 / 4096 + 1 / 256
    e = np.sqrt(dimension) / NORM
    if name in ("cosine-exp", "cosine-neg-log"):
        plain = oracle.exact("cosine", q, x, options)
        if name == "cosine-exp":
            return np.exp(plain + e) - np.exp(plain) + 0.71 / 512
        right = max(4e-4, 1.0 - plain)
        return np.log(right / max(right - e, 4e-4)) + 0.58 / 512
    if name == "inner-product":
        total = [sum(side) or 1.0 for side in (q, x)]
        inner = sum(a * b for a, b in zip(q, x, strict=True)) / total[0] / total[1]
        wrong = 1 / OF_ONE + (dimension / 4 + 32) / OF_ONE**2
        right = inner + options["floor"]
        return np.log(right / max(right - wrong, 1e-9)) + 0.55 / 256
    if name == "euclidean":
        return e + 1 / 4096 + 1 / 2048
    if name == "euclidean-squared":
        return 2 * oracle.exact("euclidean", q, x, options) * e + e * e + 1 / 2048 + 2**-21
    return e + 1 / 4096


#: The name of each plain map, its function, and its definition in float64, exact for products up to 2^24.
def cosine(dot: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(2048 - dot / 4096), 0, 4095)


DEFINITIONS = {
    "cosine": cosine,
    "cosine-squared": lambda dot: (cosine(dot) ** 2 + 2048) // 4096,
    "kl": lambda dot: np.clip(np.floor(dot / 4096 + 0.5), 0, 4095),
    "euclidean": lambda dot: np.minimum(np.rint(np.sqrt(np.maximum(-dot, 0))), 4095),
    "euclidean-squared": lambda dot: np.clip(np.floor(-dot / 4096 + 0.5), 0, 4095),
}


def of_every_product(name: str, first: int, fine: bool = False) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """All products from `first` to 2^24, in parts, with what the map makes of them.

    It is the map's own code on int32 arrays: what does not fit 32 bits wraps, and shows.
    """
    (used,) = create(name, 5).maps(fine)
    whole = on_arrays(used)
    for begin in range(first, LARGEST_SUM + 1, 1 << 18):
        dot = np.arange(begin, min(begin + (1 << 18), LARGEST_SUM + 1), dtype=np.int32)
        found = whole(dot)
        assert found.dtype == np.int32
        yield dot.astype(np.float64), found


def on_arrays(function: FunctionType) -> FunctionType:
    """The same code, with the functions that it calls, on arrays."""
    called = {name: function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__}
    known = {"least": np.minimum, "most": np.maximum}
    return FunctionType(function.__code__, {name: known.get(name) or on_arrays(of) for name, of in called.items()})


@pytest.mark.parametrize("name", DEFINITIONS)
def test_map_of_every_product(name: str) -> None:
    for dot, found in of_every_product(name, -LARGEST_SUM):
        assert (found == DEFINITIONS[name](dot)).all()


def logarithm(dot: np.ndarray) -> np.ndarray:
    return np.maximum(-np.log(np.maximum(dot, 1) / OF_ONE**2), 0)


#: The name of each map that is a polynomial, its definition in float64, its unit, its largest error, and its fine map's.
POLYNOMIALS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], int, float, float]] = {
    "inner-product": (logarithm, 256, 0.55, 0.8),
    "cosine-exp": (lambda dot: np.expm1(np.clip(1 - dot / 2**23, 0, 2)), 512, 0.71, 2.6),
    "cosine-neg-log": (lambda dot: -np.log(np.clip(dot, 3355, 2**23) / 2**23), 512, 0.58, 1.1),
}


@pytest.mark.parametrize("fine", [False, True])
@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomial_of_every_product(name: str, fine: bool) -> None:
    definition, unit, *errors = POLYNOMIALS[name]
    most, last = (LARGEST if fine else 4095), LARGEST
    for dot, found in of_every_product(name, 0 if name == "inner-product" else -LARGEST_SUM, fine):
        exact = np.minimum(definition(dot) * unit * (8 if fine else 1), most)
        assert np.abs(found - exact).max() <= errors[fine]
        # A fine one rises by a step, where octaves of a logarithm meet.
        assert (np.diff(found, prepend=last) <= fine).all()
        last = found[-1]


def test_fine_cosine_of_every_product() -> None:
    for dot, found in of_every_product("cosine", -LARGEST_SUM, True):
        assert (found == np.clip(np.rint(16384 - dot / 512), 0, LARGEST)).all()


def test_every_map_is_one_of_these() -> None:
    known = {create(name, 5).streams[0].from_dot for name in [*DEFINITIONS, *POLYNOMIALS]}
    assert {create(name, 5).streams[0].from_dot for name in NAMES} == known


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dimension", [1, 2, 39, 138, 1000])
def test_bounds_of_the_worst_frames(name: str, dimension: int) -> None:
    """One class alone, all alike, all at the edge of rounding up, opposite, and beyond every range."""
    floor = {"floor": 1e-10 if name != "inner-product" else 1e-4} if "floor" in DISTANCES[name].takes() else {}
    distance = create(name, dimension, floor)
    rng = np.random.default_rng(dimension)
    if name in ON_POSTERIORS:
        rounding_up = np.full(dimension, 0.50001 / 4096)
        rounding_up[0] += 1 - rounding_up.sum()
        rows = [np.eye(dimension)[0], np.full(dimension, 1 / dimension), rounding_up, np.eye(dimension)[-1]]
        values = np.array([*rows, np.zeros(dimension), *rng.dirichlet(np.full(dimension, 0.1), 8)])
    else:
        rows = [np.ones(dimension), -np.ones(dimension), np.eye(dimension)[0], -np.eye(dimension)[0]]
        rows += [np.full(dimension, 0.50001 / NORM), np.zeros(dimension)]
        values = np.array([*rows, *rng.normal(size=(8, dimension))])
        values = np.concatenate([values, values * 1e-20, values * 1e6])
    query, document = (prepared(distance, values.astype(np.float32), side) for side in ("query", "document"))
    for frames in (query, document):
        assert (frames == np.rint(frames)).all()
        assert np.abs(frames).max() <= LARGEST_COORDINATE
    assert largest_partial_sums(query, document) <= distance.streams[0].bound <= LARGEST_SUM


@given(
    **CASE, lengths=st.lists(st.integers(1, 11), min_size=1, max_size=5), side=st.sampled_from(["query", "document"])
)
def test_blocks_prepared_together_are_those_prepared_alone(name, kind, dimension, choice, seed, lengths, side) -> None:
    options, _ = given_options(name, choice, dimension)
    distance = create(name, dimension, options)
    blocks = [features(name, kind, length, dimension, seed + k) for k, length in enumerate(lengths)]
    rng = np.random.default_rng(seed)
    shape = len(blocks), dimension
    offset, scale = np.zeros(shape), np.ones(shape)
    if name not in ON_POSTERIORS:
        offset, scale = rng.normal(size=shape), rng.uniform(0.3, 3, shape)
    together = distance.prepare_blocks(blocks, offset, scale, side, str)
    for k, block in enumerate(blocks):
        alone = distance.prepare(block, offset[k], scale[k], side)
        assert together[k].frames.tobytes() == alone.frames.tobytes()
        assert together[k].saturated == alone.saturated


def test_prepare_takes_offset_and_scale() -> None:
    distance = create("euclidean", 2, {"cap": 1.0})
    values = np.array([[7.0, 5.0]], np.float32)
    values.flags.writeable = False
    made = distance.prepare(values, np.array([6.0, 5.0]), np.array([2.0, 1.0]), "document")
    assert made.frames[0, :2].tolist() == [1448, 0]


@settings(max_examples=500)
@given(st.floats(1e-11, 4.0))
def test_logarithm(x: float) -> None:
    right = oracle.ln(x)
    assert abs(interface.ln(x) - right) <= 2**-50 * max(1.0, abs(right))
    assert interface.compiled_ln(x) == interface.ln(x)


def test_equal_options_are_the_same_distance() -> None:
    for name in DISTANCES:
        assert create(name, 3) is create(name, 3)
    assert create("kl", 3, {"floor": 1e-4}) is create("kl", 3)


@given(
    terms=st.lists(st.tuples(NAME, st.integers(1, 16)), min_size=1, max_size=8),
    dimension=st.integers(1, 5),
    seed=st.integers(0, 2**20),
)
def test_weighted_sums_are_the_oracles(terms, dimension, seed) -> None:
    values = {side: [] for side in ("query", "document")}
    for k, (name, _) in enumerate(terms):
        for side, own in values.items():
            own.append(features(name, "random", 3, dimension, seed + k + (side == "query")))
    whole = len(terms) * dimension
    parts = [
        Part(create(name, dimension), k * dimension, (k + 1) * dimension, weight)
        for k, (name, weight) in enumerate(terms)
    ]
    total = weighted_sum(parts, whole)
    frames = {side: prepared(total, np.concatenate(own, axis=1), side) for side, own in values.items()}
    assert frames["query"].shape[1] == total.columns == total.streams[-1].stop
    assert total.unit == weighted(terms).unit
    for i, j in product(range(3), range(3)):
        expected, found = [], 1 << total.shift >> 1
        for (name, weight), part, stream, left, right in zip(
            terms, parts, total.streams, values["query"], values["document"], strict=True
        ):
            q, x = (prepared(part.distance, own, side) for own, side in ((left, "query"), (right, "document")))
            own = slice(stream.first, stream.stop)
            assert (frames["query"][:, own] == q).all()
            assert (frames["document"][:, own] == x).all()
            options = given_options(name, 3, dimension)[1]
            d = oracle.distance(name, q[i].astype(int).tolist(), x[j].astype(int).tolist(), options)
            expected.append((d, part.distance.unit, weight))
            found += stream.weight * stream.distance(int(q[i] @ x[j]))
        assert found < 2**31
        assert min(max(found >> total.shift, 0), 4095) == oracle.weighted(expected, total.unit)


def test_weights_of_a_sum() -> None:
    assert weighted([("cosine", 1)]) == ((1,), 0, 2048)
    assert weighted([("cosine", 2), ("cosine-squared", 1)]) == ((2, 2), 2, 512)
    assert weighted([("kl", 1), ("cosine", 1)]) == ((16, 1), 5, 64)
    with raises(families.TOO_LARGE):
        weighted([("kl", 1000), ("cosine", 1)])


def test_streams_in_a_config(tmp_path) -> None:
    values = {"run": "run", "corpus": {"documents": "docs"}}
    values["search"] = {
        "floor": 0.01,
        "streams": [
            {"columns": [0, 39], "weight": 2},
            {"columns": [39, 90], "distance": "kl", "normalise": "none"},
            {"columns": [90, 180], "distance": "kl-symmetric", "normalise": "none", "floor": 0.001},
        ],
    }
    terms = config_from_dict(values, tmp_path).search.terms()
    assert terms == (
        (0, 39, "cosine", 2, "mean-variance", {}, None),
        (39, 90, "kl", 1, "none", {"floor": 0.01}, None),
        (90, 180, "kl-symmetric", 1, "none", {"floor": 0.001}, None),
    )
    assert Search().terms() == ((0, None, "cosine", 1, "mean-variance", {}, None),)


def found_by_oracle(query: np.ndarray, document: np.ndarray, local: Callable[..., int], most: int) -> list:
    """Last frame, frames and cost of the candidates of distances between lists of integers."""
    frames = document.astype(int).tolist()
    table = [[local(q, x) for x in frames] for q in query.astype(int).tolist()]
    return oracles_search.keep_best(oracles_search.candidates(oracles_search.bounded_slope(table), 2), most)


@settings(max_examples=60)
@given(name=NAME, seed=st.integers(0, 2**20), lengths=st.lists(st.integers(1, 30), min_size=1, max_size=4))
def test_the_engine_finds_what_the_oracle_finds(name, seed, lengths) -> None:
    distance, options = create(name, 5), given_options(name, 3, 5)[1]
    values = [features(name, "random", n, 5, seed + n) for n in (4, *lengths)]
    query = prepared(distance, values[0], "query")
    documents = [(k, [prepared(distance, own, "document")]) for k, own in enumerate(values[1:])]
    expected = []
    for k, (document,) in documents:
        several = found_by_oracle(query, document, lambda q, x: oracle.distance(name, q, x, options), 3)
        expected += [(0, k, *one) for one in several]
    found = search([Example("q", 1, query)], documents, np.full(len(documents), 3), Settings(distance, 2, 16, 1))
    assert as_rows(found) == expected


def test_the_engine_searches_sums() -> None:
    """Posteriors of a net beside cepstra: the costs are the oracle's sums, along the path that it finds."""
    settings_of = Search.model_validate(
        {"streams": [{"columns": (0, 3), "weight": 2}, {"columns": (3, 7), "distance": "kl", "normalise": "none"}]}
    )
    distance = distance_of(settings_of, 7)
    values = [
        np.concatenate([features("cosine", "random", n, 3, n), features("kl", "random", n, 4, n)], axis=1)
        for n in (5, 60)
    ]
    statistics = Statistics.of(values[1])
    offset, scale = offset_and_scale(settings_of, statistics)
    own = Statistics.of(values[0])
    several = Statistics(1, np.stack([statistics.mean, own.mean]), np.stack([statistics.variance, own.variance]))
    for together, *alone in zip(
        offset_and_scale(settings_of, several), (offset, scale), offset_and_scale(settings_of, own), strict=True
    ):
        assert together.tobytes() == np.stack(alone).tobytes()
    assert (offset[:3] == statistics.mean[:3]).all()
    assert (offset[3:] == 0).all()
    assert (scale[3:] == 1).all()
    query, document = (
        distance.prepare(own, offset, scale, side).frames
        for own, side in zip(values, ("query", "document"), strict=True)
    )

    def local(q: list[int], x: list[int]) -> int:
        terms = ("cosine", slice(3), 2), ("kl", slice(3, None), 1)
        parts = [(oracle.distance(n, q[own], x[own], {}), DISTANCES[n].unit, weight) for n, own, weight in terms]
        return oracle.weighted(parts, distance.unit)

    expected = found_by_oracle(query, document, local, 99)
    found = search([Example("q", 1, query)], [(0, [document])], np.array([99]), Settings(distance, 2, 16, 1))
    assert len(expected) > 3
    assert [row[2:] for row in as_rows(found)] == expected


def test_what_is_no_posterior_is_refused() -> None:
    for values, problem in (
        ([0.5, -0.25, 0.75], "it contains -0.25"),
        ([0.5, 0.5, 0.5], "its sum is 1.5"),
        ([0.1, 0.1, 0.1], "its sum is 0.3"),
        ([float("nan"), 0, 1], "its sum is nan"),
    ):
        frames = np.array([[0.25, 0.25, 0.5], values], np.float32)
        for name in ON_POSTERIORS:
            with raises(kernels_codes.NEEDS_POSTERIORS, where="document d7", name=name, frame=1, problem=problem):
                create(name, 3).prepare(frames, np.zeros(3), np.ones(3), "document", "document d7")
    good, bad = np.array([[0.5, 0.5]], np.float32), np.array([[0.5, 0.5], [0.5, 0.7]], np.float32)
    with raises(kernels_codes.NEEDS_POSTERIORS, where="block 1", frame=1):
        sides = np.zeros((3, 2)), np.ones((3, 2)), "document", "block {}".format
        create("kl", 2).prepare_blocks([good, bad, good], *sides)
    row = {"query_id": "q7", "example": 2, "duration": 0.1, "frames": 2, "speaker": None}
    row["features"] = np.array([[0.5, 0.5], [-3.0, 1.0]], "<f4").tobytes()
    with raises(kernels_codes.NEEDS_POSTERIORS, where="query q7, example 2", frame=1):
        statistics, config = {("collection", ""): Statistics.zero(2)}, Search(distance="kl", normalise="none")
        prepared_examples(pa.Table.from_pylist([row], EXAMPLES), statistics, config, 2)


#: Settings of search, and what the mistake is about.
WRONG = [
    ({"distance": "kl"}, "search: kl compares posteriors, and normalise is mean-variance"),
    ({"cap": 2.0}, "search: the distance cosine takes no cap"),
    ({"distance": "euclidean", "floor": 0.01}, "search: the distance euclidean takes no floor"),
    ({"distance": "inner-product", "normalise": "none", "floor": 1e-5}, "floor must be 0.0001 or more"),
    ({"distance": "kl", "normalise": "none", "floor": 0.5}, "search.floor"),
    ({"distance": "euclidean", "cap": 0.0}, "search.cap"),
    ({"streams": [{"columns": [3, 3]}]}, "no columns from 3 to 3"),
    ({"streams": [{"columns": [0, 3]}, {"columns": [3, 5], "distance": "kl"}]}, r"streams\[1\]: kl compares"),
    ({"streams": [{"columns": [0, 3]}, {"columns": [2, 5], "normalise": "mean"}]}, "columns 2 to 3 are in two"),
    ({"streams": [{"columns": [0, 3], "cap": 1.0}]}, r"streams\[0\]: the distance cosine has no option cap"),
    ({"streams": [{"columns": [0, 3], "weight": 0}]}, r"search.streams\[0\]"),
    ({"streams": [{"columns": [-1, 3]}]}, r"search.streams\[0\]"),
    ({"streams": [{"columns": [0, 3]}] * 9}, "search.streams"),
    ({"streams": [{"columns": [0, 3], "distance": "hamming"}]}, r"search.streams\[0\]"),
]


def test_what_is_refused(tmp_path) -> None:
    for given_search, complaint in WRONG:
        with pytest.raises(ConfigError, match=complaint):
            config_from_dict({"run": "run", "corpus": {"documents": "docs"}, "search": given_search}, tmp_path)
    for name, options, complaint in (
        ("hamming", {}, "unknown distance 'hamming'"),
        ("cosine", {"cap": 1.0}, "the distance cosine has no option cap"),
        ("inner-product", {"floor": 1e-5}, "options of inner-product: floor must be 0.0001 or more"),
    ):
        with pytest.raises(ConfigError, match=complaint):
            create(name, 3, options)
    for name, dimension in (("kl", 5000), ("kl-symmetric", 5000), ("inner-product", 300_000)):
        with raises(families.TOO_LARGE, dimension=dimension, name=name):
            create(name, dimension, {"floor": 1e-10} if name != "inner-product" else {})
    with raises(kernels_codes.STREAM_COLUMNS_OUTSIDE, where="streams[1].columns", first=3, stop=6, dimension=5):
        weighted_sum([Part(create("cosine", 3), 0, 3, 1), Part(create("cosine", 3), 3, 6, 1)], 5)
