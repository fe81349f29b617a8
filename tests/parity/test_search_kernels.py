"""The compiled kernels say exactly what the oracles say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from swsdist.kernels.bounded_slope import State, packing
from swsdist.kernels.fixed_point import DISTANCES, NORM, prepare, probe_gemm
from swsdist.kernels.peaks import local_minima
from swsdist.kernels.scales import MAX_DISTANCE
from swsdist.testing import oracles_search as oracle

KINDS = st.sampled_from(["random", "constant", "few-values", "largest"])


def distance_table(kind: str, n: int, frames: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if kind == "random":
        return rng.integers(0, MAX_DISTANCE + 1, (n, frames))
    if kind == "few-values":
        return rng.integers(0, 3, (n, frames))
    return np.full((n, frames), MAX_DISTANCE if kind == "largest" else 7)


def run_kernel(tables: list[np.ndarray], block: int) -> tuple[np.ndarray, int]:
    """Curves (frames, lanes), packed; shorter documents are padded."""
    n, longest = tables[0].shape[0], max(t.shape[1] for t in tables)
    padded = -(-longest // block) * block
    distances = np.zeros((n, padded, len(tables)), np.int32)
    for lane, table in enumerate(tables):
        distances[:, : table.shape[1], lane] = table
    state = State(n, len(tables))
    curve = np.empty((padded, len(tables)), state.packing.dtype)
    for first in range(0, padded, block):
        state.advance(np.ascontiguousarray(distances[:, first : first + block]), curve[first : first + block])
    return curve, state.packing.frame_bits


@settings(max_examples=60, deadline=None)
@given(
    kind=KINDS,
    n=st.integers(1, 12),
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=9),
    block=st.integers(1, 17),
    seed=st.integers(0, 2**20),
)
def test_recurrence_is_the_oracle(kind: str, n: int, lengths: list[int], block: int, seed: int) -> None:
    tables = [distance_table(kind, n, frames, seed + k) for k, frames in enumerate(lengths)]
    curve, bits = run_kernel(tables, block)
    infinity = packing(n).infinity
    for lane, table in enumerate(tables):
        expected = oracle.bounded_slope(table.tolist())
        for t, want in enumerate(expected):
            got = int(curve[t, lane])
            assert (None if got >= infinity else (got >> bits, got & ((1 << bits) - 1))) == want


@settings(max_examples=40, deadline=None)
@given(kind=KINDS, n=st.integers(1, 5), frames=st.integers(1, 9), seed=st.integers(0, 2**20))
def test_oracle_is_the_best_of_all_paths(kind: str, n: int, frames: int, seed: int) -> None:
    table = distance_table(kind, n, frames, seed).tolist()
    assert oracle.bounded_slope(table) == oracle.best_path(table)


@pytest.mark.parametrize("n", [1, 2, 3, 255, 256, 361, 362, 511, 512, 700, 2000])
def test_no_overflow_at_the_largest_distances(n: int) -> None:
    table = np.full((n, 4 * n + 5), MAX_DISTANCE)
    curve, bits = run_kernel([table], 64)
    assert int(curve[4 * n, 0]) >> bits == n * MAX_DISTANCE
    # The shortest of equal paths: half the query's frames, rounded up.
    assert int(curve[4 * n, 0]) & ((1 << bits) - 1) == (n + 1) // 2
    assert curve.min() >= 0


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(sorted(DISTANCES)),
    data=hnp.arrays(
        np.float32, hnp.array_shapes(min_dims=2, max_dims=2, max_side=7), elements=st.floats(-8, 8, width=32)
    ),
    zero=st.booleans(),
)
def test_distances_are_the_oracles(name: str, data: np.ndarray, zero: bool) -> None:
    if zero:
        data[0] = 0
    dimension = data.shape[1]
    frames = prepare(data, np.zeros(dimension), np.ones(dimension))
    assert (frames == np.rint(frames)).all()
    dots = np.ascontiguousarray(frames @ frames.T)
    out = np.empty(dots.shape, np.int32)
    DISTANCES[name].from_dots(dots.reshape(-1), out.reshape(-1))
    assert out.tolist() == oracle.distance(name, frames, frames)
    if zero:
        assert (out[0] == DISTANCES[name].unit).all()


@settings(max_examples=30, deadline=None)
@given(dimension=st.integers(1, 512), seed=st.integers(0, 2**20))
def test_fixed_point_keeps_its_bounds(dimension: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(20, dimension)).astype(np.float32)
    frames = prepare(features, np.zeros(dimension), np.ones(dimension)).astype(np.float64)
    norms = np.sqrt((frames**2).sum(axis=1))
    assert (norms <= NORM + np.sqrt(dimension) / 2).all()
    assert norms.max() ** 2 < 2**24
    exact = features.astype(np.float64)
    exact /= np.sqrt((exact**2).sum(axis=1, keepdims=True))
    error = np.abs(frames @ frames.T / NORM**2 - exact @ exact.T).max()
    assert error <= np.sqrt(dimension) / NORM


def test_prepare_takes_offset_and_scale() -> None:
    features = np.array([[3.0, 1.0], [1.0, 1.0]], np.float32)
    frames = prepare(features, np.array([1.0, 1.0]), np.array([2.0, 5.0]))
    assert frames.tolist() == [[round(NORM), 0.0], [0.0, 0.0]]


@settings(max_examples=80, deadline=None)
@given(
    costs=st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=30), min_size=1, max_size=5),
    window=st.integers(1, 6),
    cut=st.integers(0, 30),
)
def test_candidates_are_the_oracles_wherever_cut(costs: list[list[int]], window: int, cut: int) -> None:
    longest = max(len(c) for c in costs)
    curve = np.zeros((longest, len(costs)), np.int32)
    for lane, column in enumerate(costs):
        curve[: len(column), lane] = column
    frames = np.array([len(c) for c in costs])
    limit = 6  # a cost of 6 stands for no path
    parts = []
    for first, stop in ((0, cut), (cut, longest)):
        parts.append(
            local_minima(
                curve << 3, 3, np.full(len(costs), first), np.minimum(frames, stop), frames, window, limit << 3
            )
        )
    found = sorted(map(tuple, np.concatenate(parts).tolist()))
    expected = [
        (lane, t)
        for lane, column in enumerate(costs)
        for t, _, _ in oracle.candidates([None if c >= limit else (c, 1) for c in column], window)
    ]
    assert found == sorted(expected)


def test_this_machines_gemm_is_exact() -> None:
    probe_gemm()
