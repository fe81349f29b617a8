"""The recurrences' vectors say exactly what the oracles say, and the oracles what a search over all paths says."""

from fractions import Fraction
from itertools import pairwise

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.kernels.arithmetic import MAX_DISTANCE, packing
from swsdist.kernels.recurrences import averages, interface, nonsegmental, segmental
from swsdist.kernels.recurrences.interface import create
from swsdist.kernels.vectors import WIDTH, lanes_of, load, store
from swsdist.registry.registries import RECURRENCES
from tests.oracles import patterns as oracle
from tests.oracles import search

KINDS = st.sampled_from(["random", "constant", "few-values", "largest", "zeros"])
TABLE = {"kind": KINDS, "n": st.integers(1, 5), "frames": st.integers(1, 7), "seed": st.integers(0, 2**20)}


def table_of(kind: str, n: int, frames: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if kind == "random":
        return rng.integers(0, MAX_DISTANCE + 1, (n, frames))
    if kind == "few-values":
        return rng.integers(0, 3, (n, frames))
    return np.full((n, frames), {"largest": MAX_DISTANCE, "zeros": 0, "constant": 7}[kind])


@settings(max_examples=60)
@given(**TABLE, band=st.integers(1, 4))
def test_optimal_recurrences_find_the_best_of_all_paths(kind, n, frames, seed, band) -> None:
    table = table_of(kind, n, frames, seed).tolist()
    assert oracle.asymmetric(table) == oracle.best_asymmetric(table)
    assert oracle.segmental(table, band) == oracle.best_segmental(table, band)
    assert search.bounded_slope(table) == search.best_path(table)


def lengths_of(name: str, path: oracle.Path) -> int:
    """What a path's sum is divided by."""
    if name == "averages":
        return len(path)
    return 2 + sum(2 if after[1] - before[1] == 1 else 1 for before, after in pairwise(path))


@settings(max_examples=60)
@given(**TABLE, name=st.sampled_from(["averages", "non-segmental"]))
def test_greedy_recurrences_keep_one_of_all_paths(kind, n, frames, seed, name) -> None:
    """They choose at each cell, so theirs is not always the best path; but it is one, and of one step it is the best."""
    table = table_of(kind, n, frames, seed).tolist()
    found = (oracle.averages if name == "averages" else oracle.non_segmental)(table)
    steps = oracle.ALL_BY_ONE if name == "averages" else oracle.QUERY_BY_QUERY
    for end, (cost, length) in enumerate(found):
        every = {
            (oracle.candidate_cost(oracle.charge(table, p), lengths_of(name, p), n), end - p[0][1] + 1)
            for p in oracle.paths(n, end, steps)
            if len(p) == 1 or p[1][0] > 0  # the query's first frame is met once
        }
        assert (cost, length) in every
        if n == 1 or (n == 2 and name == "non-segmental"):
            assert cost == min(every)[0]


def runner(advance, restart):
    numba.extending.register_jitable(advance)
    numba.extending.register_jitable(restart)

    @numba.njit
    def run(distances, n, first, stop, columns, at, bits, infinity, curve, option):
        if first == 0:
            restart(columns, at, n, infinity, option)
        for t in range(first, stop):
            ended = advance(distances, (t - first) * n * WIDTH, n, t, columns, at, bits, option)
            store(curve, t * WIDTH, ended)

    return run


RUN = {name: runner(create(name, {}).advance, create(name, {}).restart) for name in RECURRENCES}


def curves(name: str, tables: list[np.ndarray], block: int, band: int = 3, wide: bool = False) -> list:
    """(cost, frames) of each lane at each frame, None where no path ends; by blocks of frames."""
    made = create(name, {"band": band} if name == "segmental" else {})
    n, longest = tables[0].shape[0], max(t.shape[1] for t in tables)
    distances = np.zeros((longest, n, WIDTH), np.int16)
    for lane, table in enumerate(tables):
        distances[: table.shape[1], :, lane] = table.T
    packed = made.packing(n)
    before = 5 * WIDTH  # another query's columns lie there
    columns = np.full(before + made.elements(n), 77, made.state(packed.dtype, wide))
    curve = np.empty(longest * WIDTH, packed.dtype)
    for first in range(0, longest, block):
        stop = min(first + block, longest)
        part = np.ascontiguousarray(distances[first:stop]).reshape(-1)
        RUN[name](part, n, first, stop, columns, before, packed.frame_bits, packed.infinity, curve, made.option)
    assert (columns[:before] == 77).all()
    curve = curve.reshape(longest, WIDTH)
    mask = (1 << packed.frame_bits) - 1
    return [
        [None if s >= packed.infinity else (s >> packed.frame_bits, s & mask) for s in column[: t.shape[1]]]
        for column, t in zip(curve.T.tolist(), tables, strict=False)
    ]


def by_oracle(name: str, table: np.ndarray, band: int) -> list:
    if name == "segmental":
        return oracle.segmental(table.tolist(), band)
    known = {"asymmetric": oracle.asymmetric, "averages": oracle.averages, "non-segmental": oracle.non_segmental}
    return list({**known, "bounded-slope": search.bounded_slope}[name](table.tolist()))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "bounded-slope" else pytest.mark.slow) for name in RUN]
)
@settings(max_examples=50)
@given(
    kind=KINDS,
    n=st.integers(1, 12),
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=9),
    block=st.integers(1, 17),
    band=st.integers(1, 9),
    wide=st.booleans(),
    seed=st.integers(0, 2**20),
)
def test_vectors_are_the_oracle(name, kind, n, lengths, block, band, wide, seed) -> None:
    tables = [table_of(kind, n, frames, seed + k) for k, frames in enumerate(lengths)]
    found = curves(name, tables, block, band, wide)
    assert found == [by_oracle(name, table, band) for table in tables]


@pytest.mark.slow
@pytest.mark.parametrize("n", [255, 256, 700])
@pytest.mark.parametrize("name", sorted(RUN))
def test_nothing_overflows_at_the_largest_distances(name: str, n: int) -> None:
    """Around the length at which bounded slope, asymmetric and non-segmental turn to 64 bits."""
    table = np.full((n, 300), MAX_DISTANCE)
    table[:, 150:160] = MAX_DISTANCE - 1
    assert curves(name, [table], 64, 10) == [by_oracle(name, table, 10)]


@pytest.mark.parametrize("n", [1, 2, 3, 255, 256, 361, 362, 511, 512, 700, 2000])
def test_bounded_slope_does_not_overflow(n: int) -> None:
    (found,) = curves("bounded-slope", [np.full((n, 4 * n + 5), MAX_DISTANCE)], 64)
    # The shortest of equal paths: half the query's frames, rounded up.
    assert found[4 * n] == (n * MAX_DISTANCE, (n + 1) // 2)
    assert all(pair is None or pair[0] >= 0 for pair in found)


def test_types_turn_where_the_packing_says() -> None:
    assert packing(255).dtype is np.int32
    assert nonsegmental.packing(255).dtype is np.int32
    assert MAX_DISTANCE * 255 * (2 * 255) < 2**31  # a product of a sum and a length
    assert MAX_DISTANCE * (averages.INT32_FRAMES + averages.LONGEST_QUERY) < 2**31
    assert segmental.packing(64, 10).dtype is np.int32


@numba.njit
def _quotients(totals, frames, lengths, out, singles):
    total, length = load(totals, 0), load(lengths, 0)
    store(out, 0, interface.share(total, frames, length))
    store(singles, 0, interface.single(total))
    for lane in range(WIDTH):
        out[WIDTH + lane] = interface.share(totals[lane], frames, lengths[lane])
        singles[WIDTH + lane] = interface.single(totals[lane])


@settings(max_examples=200)
@given(data=st.data(), frames=st.integers(1, 2**15))
def test_shares_and_singles_are_exact(data, frames) -> None:
    """Of large numbers, and of those next to a whole or a half."""
    lengths = data.draw(st.lists(st.integers(1, 2**25), min_size=WIDTH, max_size=WIDTH))
    totals = []
    for length in lengths:
        near = data.draw(st.integers(0, 2 * MAX_DISTANCE)) * length // 2 + data.draw(st.integers(-2, 2))
        totals.append(min(max(near, 0), MAX_DISTANCE * length))
    out, singles = np.empty(2 * WIDTH, np.int64), np.empty(2 * WIDTH, np.float32)
    _quotients(np.array(totals), frames, np.array(lengths), out, singles)
    exact = [
        int((Fraction(total * frames, length) + Fraction(1, 2)).__floor__())
        for total, length in zip(totals, lengths, strict=True)
    ]
    assert out.tolist() == exact * 2
    assert exact == [interface.share(total, frames, length) for total, length in zip(totals, lengths, strict=True)]
    assert singles.tolist() == [np.float32(total) for total in totals] * 2


@numba.njit
def _through(values, out):
    narrow = lanes_of(out)
    store(out, 0, interface.narrow(interface.wide(load(out, 0)) + load(values, 0), narrow))


def test_wide_and_narrow() -> None:
    values, out = np.arange(WIDTH, dtype=np.int64) - 5, np.full(WIDTH, -7, np.int32)
    _through(values, out)
    assert out.tolist() == (np.arange(WIDTH) - 12).tolist()
    assert (interface.wide(3), interface.narrow(4, 0)) == (3, 4)
