"""Posteriors, best paths, connecting and pruning, against the listing of all paths."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdist.core.codes import families
from swsdist.lattices.lattice import Lattice
from swsdist.lattices.packed import best, best_through, connect, costs, forward_backward
from tests.oracles.lattices import paths
from tests.support.coded import raises
from tests.support.lattices import lattice

_COSTS = st.one_of(
    st.integers(-24, 80).map(lambda k: k / 8), st.integers(0, 8).map(lambda k: k * 1e4), st.just(math.inf)
)


@st.composite
def lattices(draw: st.DrawFn) -> Lattice:
    """Up to six states in any order, some that no path uses."""
    states = draw(st.integers(1, 6))
    order = draw(st.permutations(range(states)))
    pairs = [(order[i], order[k]) for i in range(states) for k in range(i + 1, states)]
    arcs = [
        (*draw(st.sampled_from(pairs)), draw(st.integers(0, 3)), draw(_COSTS), draw(_COSTS))
        for _ in range(draw(st.integers(0, 9)) if pairs else 0)
    ]
    finals = {state: (draw(_COSTS), draw(_COSTS)) for state in range(states) if draw(st.booleans())}
    start = draw(st.sampled_from(order[:2]))
    return lattice(arcs, finals, draw(st.lists(st.integers(0, 9), min_size=states, max_size=states)), start=start)


@given(lattices(), st.sampled_from([(1.0, 1.0), (0.1, 1.0), (0.5, 2.0), (0.0, 1.0), (1.0, 0.0)]))
def test_sums_are_of_all_paths(given_: Lattice, scales: tuple[float, float]) -> None:
    known = paths(given_, *scales)
    ours = forward_backward(given_, *scales)
    path = best(given_, *scales)
    if not known:
        assert ours.total == -math.inf
        assert not ours.arcs.any()
        assert not ours.finals.any()
        assert not ours.pushed.any()
        assert (path.cost, len(path.arcs)) == (math.inf, 0)
        return
    least = min(item.cost for item in known)
    chances = [math.exp(least - item.cost) for item in known]
    whole = math.fsum(chances)
    assert ours.total == pytest.approx(math.log(whole) - least, rel=1e-12, abs=1e-9)
    arcs, finals = np.zeros(len(given_.source)), np.zeros(given_.states)
    for item, chance in zip(known, chances, strict=True):
        arcs[list(item.arcs)] += chance / whole
        finals[item.end] += chance / whole
    assert ours.arcs == pytest.approx(arcs, abs=1e-9)
    assert ours.finals == pytest.approx(finals, abs=1e-9)
    assert path.cost == pytest.approx(least, rel=1e-12, abs=1e-9)
    assert tuple(path.arcs) in {item.arcs for item in known if item.cost <= least + 1e-6}
    used = np.isfinite(ours.alpha)
    assert np.array_equal(used, np.isfinite(ours.beta))
    for arc in np.flatnonzero(ours.arcs > 1e-12):
        state = given_.source[arc]
        visits = math.exp(ours.alpha[state] + ours.beta[state] - ours.total)
        assert ours.pushed[arc] == pytest.approx(ours.arcs[arc] / visits, rel=1e-6)


@given(lattices())
def test_connected(given_: Lattice) -> None:
    ours = connect(given_)
    known = paths(given_, 1.0, 1.0)
    assert sorted(item.cost for item in paths(ours, 1.0, 1.0)) == pytest.approx(sorted(item.cost for item in known))
    assert len(ours.source) == len({arc for item in known for arc in item.arcs})
    assert (ours.source < ours.target).all()
    assert (np.diff(ours.source) >= 0).all()
    assert ours.start == (0 if known else -1)
    again = connect(ours)
    assert np.array_equal(again.source, ours.source)
    assert np.array_equal(again.times, ours.times)
    # The next state is the earliest of those that may come next.
    entering = {state: set(ours.source[ours.target == state].tolist()) for state in range(ours.states)}
    for state in range(1, ours.states):
        ready = [other for other in range(state, ours.states) if entering[other] <= set(range(state))]
        assert ours.times[state] == min(ours.times[other] for other in ready)


@given(lattices())
def test_best_path_through_each_arc(given_: Lattice) -> None:
    known = paths(given_, 1.0, 1.0)
    ours = best_through(given_).tolist()
    for arc, apart in enumerate(ours):
        through = [item.cost for item in known if arc in item.arcs]
        least = min((item.cost for item in known), default=0.0)
        assert apart == (pytest.approx(min(through) - least, abs=1e-9) if through else math.inf)


def test_scales() -> None:
    """Infinity is no number at scale 0, and no scale applies to probabilities."""
    given_ = lattice([(0, 1, 1, math.inf, 1), (0, 1, 2, 1, math.inf), (0, 1, 3, 2, 4)], {1: (0, 0)}, [0, 1])
    assert costs(given_, 0.0, 1.0)[0].tolist() == [math.inf, math.inf, 2.0]
    assert costs(given_, 1.0, 0.0)[0].tolist() == [math.inf, math.inf, 4.0]
    assert forward_backward(given_, 0.0, 0.0).arcs.tolist() == [0.0, 0.0, 1.0]
    arcs = [(0, 1, 1, math.log(4), 0), (0, 1, 2, math.log(4 / 3), 0)]
    given_ = lattice(arcs, {1: (0, 0)}, [0, 1], probabilities=True)
    assert forward_backward(given_, 0.1, 5.0).arcs == pytest.approx([0.25, 0.75])
    assert forward_backward(replace(given_, probabilities=False), 0.1, 2.0).arcs == pytest.approx([0.1, 0.9])
    nothing = lattice([], {}, [], start=-1)
    assert (forward_backward(nothing).total, best(nothing).cost) == (-math.inf, math.inf)
    assert connect(nothing).states == len(best_through(nothing)) == 0


def test_a_cycle_is_an_error_if_paths_use_it() -> None:
    cycle = [(0, 1, 1, 0, 0), (1, 2, 1, 0, 0), (2, 1, 1, 0, 0), (2, 3, 1, 0, 0)]
    for function in (connect, forward_backward, best, best_through):
        with raises(families.DAMAGED_LATTICE, where="key"):
            function(lattice(cycle, {3: (0, 0)}, [0, 1, 2, 3]))  # type: ignore[operator]
    assert connect(lattice(cycle, {0: (0, 0)}, [0, 1, 2, 3])).states == 1
