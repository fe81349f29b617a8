"""Lattices of a free loop of phones against the enumeration of every path of states."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.lattices import phone_loop
from swsdist.lattices.phone_loop import PhoneArcs, packed_arcs, phone_arcs
from tests.oracles.phone_loop import phone_lattice


def by_place(arcs: PhoneArcs) -> dict[tuple[int, int, int], float]:
    columns = (column.tolist() for column in (arcs.starts, arcs.ends, arcs.phones, arcs.posteriors))
    return {(start, end, phone): posterior for start, end, phone, posterior in zip(*columns, strict=True)}


def random(seed: int, frames: int, phones: int, states: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(scale=2.0, size=(frames, phones, states)).astype(np.float32)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 9),
    st.integers(0, 5),
    st.integers(1, 2),
    st.integers(1, 3),
    st.sampled_from([0.3, 1.0]),
    st.sampled_from([0.0, -2.0]),
)
def test_every_path(seed: int, frames: int, phones: int, states: int, scale: float, insertion: float) -> None:
    given = random(seed, frames, phones, states)
    if seed == 0:
        given[frames // 2 :][:1, 0, 0] = -np.inf
    total, expected = phone_lattice(given, scale, insertion)
    arcs = phone_arcs(given, scale, insertion, 1e-300)
    assert arcs.total == pytest.approx(total, abs=1e-6)  # of single precision
    assert by_place(arcs) == pytest.approx(expected, abs=1e-9)
    for border, visits in enumerate(arcs.visits):
        through = sum(p for (start, _, _), p in expected.items() if start == border)
        at_end = float(border == frames and bool(expected))
        assert visits == pytest.approx(through + at_end, abs=1e-9)
    least = phone_arcs(given, scale, insertion, 0.1)
    assert by_place(least) == pytest.approx({arc: p for arc, p in expected.items() if p >= 0.1}, abs=1e-9)


@pytest.mark.parametrize("block", [1, 3, 7])
def test_borders_of_blocks_do_not_show(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given = random(1, 23, 4, 3)
    once = phone_arcs(given, 0.5, -1.0, 1e-4)
    assert len(once.starts) > 50
    assert (once.ends - once.starts).max() > block
    monkeypatch.setattr(phone_loop, "_BLOCK", block)
    again = phone_arcs(given, 0.5, -1.0, 1e-4)
    for ours, theirs in zip(again, once, strict=True):
        assert np.array_equal(ours, theirs)


def test_no_path() -> None:
    impossible = np.full((4, 2, 3), -np.inf)
    for posteriors in (random(1, 0, 2, 3), random(1, 2, 2, 3), impossible):
        arcs = phone_arcs(posteriors, 1.0)
        assert (arcs.total, len(arcs.starts), arcs.visits.tolist()) == (-np.inf, 0, [0.0] * (len(posteriors) + 1))
        packed = packed_arcs(arcs, ["a", "b"], 0.01)
        assert (len(packed.times), packed.ticks) == (0, 10 * len(posteriors))


def test_packed() -> None:
    given = random(2, 12, 3, 3)
    arcs = phone_arcs(given, 1.0, 0.0, 1e-3)
    packed = packed_arcs(arcs, ["a", "", "b"], 0.02)
    assert packed.texts == ("", "a", "b")
    assert packed.ticks == 240
    source = np.repeat(np.arange(len(packed.times)), packed.arcs)
    target = source + packed.steps
    names = ["a", "", "b"]
    ours = sorted(
        (int(packed.times[s]) // 20, int(packed.times[t]) // 20, packed.texts[label], round(p, 9))
        for s, t, label, p in zip(source, target, packed.labels, packed.expected(), strict=True)
    )
    assert ours == sorted((s, e, names[phone], round(p, 9)) for (s, e, phone), p in by_place(arcs).items())
