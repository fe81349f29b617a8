"""The compiled kernels say exactly what the oracles say."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.core.errors import UserError
from swsdist.kernels import arithmetic, products
from swsdist.kernels.distances.interface import create
from swsdist.kernels.scan import COLUMNS, bound, pick
from swsdist.kernels.vectors import WIDTH, below, load, load_unsigned, spread, store
from swsdist.methods.dtw.backends.cpu import Multiply, by_numpy, probe
from tests.oracles import search as oracle

LANES = st.lists(st.integers(-(2**31), 2**31 - 1), min_size=WIDTH, max_size=WIDTH)


@numba.njit
def _all_operations(left, right, out):
    a, b = load(left, 0), load(right, 0)
    store(out, 0, a + b)
    store(out, 16, a - b)
    store(out, 32, a * b)
    store(out, 48, a << 3)
    store(out, 64, a >> 5)
    store(out, 80, a & b)
    store(out, 96, arithmetic.least(a, b))
    store(out, 112, arithmetic.most(a, 7))
    store(out, 128, arithmetic.choose(a, b, a, b + 1))
    store(out, 144, 100 - a)
    store(out, 160, spread(41, a))
    return below(a, b)


@given(left=LANES, right=LANES)
def test_lanes_wrap_as_int32_does(left: list[int], right: list[int]) -> None:
    out = np.zeros(176, np.int32)
    bits = _all_operations(np.array(left, np.int32), np.array(right, np.int32), out)

    def wrapped(value: int) -> int:
        return (value + 2**31) % 2**32 - 2**31

    pairs = list(zip(left, right, strict=True))
    expected = [
        [wrapped(a + b) for a, b in pairs],
        [wrapped(a - b) for a, b in pairs],
        [wrapped(a * b) for a, b in pairs],
        [wrapped(a << 3) for a in left],
        [a >> 5 for a in left],
        [a & b for a, b in pairs],
        [arithmetic.least(a, b) for a, b in pairs],
        [arithmetic.most(a, 7) for a in left],
        [arithmetic.choose(a, b, a, wrapped(b + 1)) for a, b in pairs],
        [wrapped(100 - a) for a in left],
        [41] * WIDTH,
    ]
    assert out.reshape(-1, WIDTH).tolist() == expected
    assert [bool(bits >> lane & 1) for lane in range(WIDTH)] == [a < b for a, b in pairs]


@numba.njit
def _floats(left, right, out):
    a, b = load(left, 0), load(right, 0)
    store(out, 0, a * b + a)
    store(out, 16, a - b)
    store(out, 32, arithmetic.least(a, b))


@settings(max_examples=50)
@given(values=st.lists(st.floats(-(2**20), 2**20, width=32), min_size=2 * WIDTH, max_size=2 * WIDTH))
def test_float_lanes_round_as_numpy_does(values: list[float]) -> None:
    left, right = np.array(values, np.float32).reshape(2, WIDTH)
    out = np.zeros(48, np.float32)
    _floats(left, right, out)
    product = left * right  # rounded by itself: multiply and add are not contracted
    assert out.tolist() == np.concatenate([product + left, left - right, np.minimum(left, right)]).tolist()


@numba.njit
def _widened(narrow, wide):
    store(wide, 0, load_unsigned(narrow, 0, load(wide, 0)) << 20)


def test_narrow_integers_become_wide_ones() -> None:
    narrow, wide = np.arange(4080, 4096, dtype=np.int16), np.zeros(WIDTH, np.int64)
    _widened(narrow, wide)
    assert wide.tolist() == [value << 20 for value in range(4080, 4096)]


def filled(name: str, query: np.ndarray, documents: list[np.ndarray], source: products.Source) -> np.ndarray:
    """Distances (frames, query frames, documents) as a fill writes them."""
    distance = create(name, query.shape[1])
    layout = products.layout(distance)
    (stream,) = distance.streams
    sides = [np.zeros(query.shape[1]), np.ones(query.shape[1])]
    left = distance.prepare(query, *sides, "query").frames
    right = [distance.prepare(document, *sides, "document").frames for document in documents]
    longest = -(-max(map(len, right)) // products.STRIDE) * products.STRIDE
    together = products.aligned(longest * len(layout.order) * WIDTH, np.int16)
    products.interleave((*right, *[right[0][:0]] * (WIDTH - len(right))), layout.order, together)
    large, small = products.tiles(len(query))
    rows = products.rows_of(large, small)
    mine = products.paired(left, layout.order, rows)
    given_, pairs = together, layout.pairs
    if source == "float32":
        blocks = Multiply("numpy", lambda a, b, out: np.matmul(a, b, out=out)).blocks(together, layout)
        given_, pairs = np.matmul(mine.astype(np.float32), blocks[0]).reshape(-1).view(np.int16), longest
    out = np.zeros(longest * rows * WIDTH, np.int16)
    fill = products.fill(stream.from_dot, source)
    room = np.zeros(products.SUMS, np.int32)
    fill(given_, 0, longest, pairs, 0, layout.pairs, mine.reshape(-1), 0, large, small, out, room)
    return out.reshape(longest, rows, WIDTH)[:, : len(query), : len(right)]


@settings(max_examples=40)
@given(
    name=st.sampled_from(["cosine", "cosine-squared", "inner-product", "euclidean"]),
    n=st.integers(1, 31),
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=WIDTH),
    dimension=st.integers(1, 9),
    seed=st.integers(0, 2**20),
)
def test_both_products_are_the_maps_of_exact_sums(name, n, lengths, dimension, seed) -> None:
    rng = np.random.default_rng(seed)

    def features(frames: int) -> np.ndarray:
        if name == "inner-product":
            return rng.dirichlet(np.ones(dimension), frames).astype(np.float32)
        return rng.normal(size=(frames, dimension)).astype(np.float32)

    query, documents = features(n), [features(length) for length in lengths]
    distance = create(name, dimension)
    sides = [np.zeros(dimension), np.ones(dimension)]
    left = distance.prepare(query, *sides, "query").frames.astype(int)
    by_int16, by_float32 = (filled(name, query, documents, source) for source in ("int16", "float32"))
    assert np.array_equal(by_int16, by_float32)
    for lane, document in enumerate(documents):
        right = distance.prepare(document, *sides, "document").frames.astype(int)
        expected = [[distance.streams[0].distance(dot) for dot in row] for row in (right @ left.T).tolist()]
        assert by_int16[: len(document), :, lane].tolist() == expected


def test_tiles_hold_a_query_with_little_padding() -> None:
    for n in range(1, 500):
        rows = products.rows_of(*products.tiles(n))
        assert n <= rows <= n + 4
        assert n < 20 or rows == n


@numba.njit
def _pick(curve, rows, row_zero, bits, infinity, window, lanes, minima, found):
    return pick(curve, rows, row_zero, bits, infinity, window, lanes, 7, minima, found, 0)


@settings(max_examples=150)
@given(
    costs=st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=40), min_size=1, max_size=5),
    window=st.integers(1, 12),
    cut=st.integers(0, 40),
    most=st.integers(0, 5),
)
def test_candidates_are_the_oracles_wherever_cut(costs: list[list[int]], window: int, cut: int, most: int) -> None:
    longest = max(len(c) for c in costs)
    bits, limit = 3, 6  # a cost of 6 stands for no path
    infinity = limit << bits
    rows = longest + 2 * window
    curve = np.full((rows, WIDTH), infinity, np.int32)
    for lane, column in enumerate(costs):
        curve[window : window + len(column), lane] = np.array(column) << bits | 1
    rows_found = []
    for first, stop in ((0, cut), (cut, longest)):
        lanes = np.zeros((WIDTH, 6), np.int64)
        for lane, column in enumerate(costs):
            lanes[lane] = len(column), first, min(stop, len(column)), 50 + lane, 1000, most
        found = np.empty((WIDTH * bound(rows, window), COLUMNS), np.int64)
        count = _pick(
            curve.reshape(-1), rows, -window, bits, infinity, window, lanes, np.empty(rows * WIDTH, np.int32), found
        )
        rows_found.append(sorted(map(tuple, found[:count].tolist())))
    for part, (first, stop) in zip(rows_found, ((0, cut), (cut, longest)), strict=True):
        expected = []
        for lane, column in enumerate(costs):
            of_lane = oracle.candidates([None if c >= limit else (c, 1) for c in column], window)
            within = [one for one in of_lane if first <= one[0] < stop]
            expected += [(7, 50 + lane, 1000 + t, 1, cost) for t, _, cost in oracle.keep_best(within, most)]
        assert part == sorted(expected)


def test_this_machines_gemm_is_exact() -> None:
    assert by_numpy().name == "numpy"


def test_a_product_that_is_not_exact_is_refused() -> None:
    def rough(left: np.ndarray, right: np.ndarray, out: np.ndarray) -> None:
        out[:] = (left.astype(np.float16) @ right.astype(np.float16)).astype(np.float32)

    with np.errstate(over="ignore"), pytest.raises(UserError, match="not exact on integers"):
        probe(Multiply("rough", rough))
