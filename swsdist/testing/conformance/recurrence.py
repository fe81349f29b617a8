"""Checks recurrences; see `swsdist.kernels.recurrences.interface` for the requirements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numba
import numpy as np
from numpy.typing import NDArray

from swsdist.core.errors import UserError
from swsdist.kernels.arithmetic import State
from swsdist.kernels.distances.interface import Distance
from swsdist.kernels.distances.interface import create as create_distance
from swsdist.kernels.products import local_distances
from swsdist.kernels.recurrences.interface import Recurrence, Table, create
from swsdist.kernels.vectors import WIDTH, store
from swsdist.methods.curve import curve, path, traced
from swsdist.methods.dtw.search import search
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.query.example import Example
from swsdist.registry.entries import checked
from swsdist.registry.registries import RECURRENCES
from swsdist.testing import scenes
from swsdist.testing.conformance.entry import check_entry, require

_DIMENSION = 4
_QUERIES, _DOCUMENTS = (1, 2, 7, 33), (1, 20, 400)

#: Guard value in memory that a recurrence must not write.
_GUARD = 77

_VECTORS = "read and write arrays by load, load_unsigned and store alone, at multiples of WIDTH"


def check_recurrence(name: str, options: Mapping[str, object] | None = None) -> None:
    """Check one registered recurrence.

    Its entry tells the longest query that its state holds; its plain twin gives the same compiled as in plain Python; the
    search finds what the twin's curve says, whatever cuts and lanes; one lane by itself, which a thread of a GPU has, gives
    what sixteen give; what lies further back than `reach` changes nothing; a path begins and ends where its candidate does.

    Args:
        name: registered in `swsdist.registry.registries.RECURRENCES`.
        options: some of its options.

    Raises:
        AssertionError: a check fails; the message names it.
    """
    entry, what = check_entry(RECURRENCES, name)
    recurrence = create(name, options)
    _check_longest(recurrence, entry.longest(checked(RECURRENCES, name, options or {})), what)
    distance = create_distance("cosine", _DIMENSION)
    queries = [scenes.prepared(distance, scenes.features(n, n, _DIMENSION), "query") for n in _QUERIES]
    documents = [scenes.prepared(distance, scenes.features(n + 1, n, _DIMENSION), "document") for n in _DOCUMENTS]
    equal = np.repeat(documents[0], 60, axis=0)
    for query in queries:
        for document in (*documents, equal):
            table = local_distances(query, document, distance)
            _check_twin(recurrence, table, what)
            _check_reach(recurrence, table, what)
            _check_neighbours(recurrence, table, what)
    _check_one_lane(recurrence, local_distances(queries[-1], documents[-1], distance), what)
    _check_search(name, options or {}, recurrence, distance, queries, [*documents, equal], what)


def candidates(curve: list[tuple[int, int] | None], window: int) -> list[tuple[int, int, int]]:
    """End frames of locally least cost: (end frame, document frames, cost), by end frame."""
    ends = []
    for t, distance_row in enumerate(curve):
        if distance_row is None:
            continue
        before = [other for other in curve[max(0, t - window) : t] if other is not None]
        after = [other for other in curve[t + 1 : t + window + 1] if other is not None]
        if all(other[0] > distance_row[0] for other in before) and all(other[0] >= distance_row[0] for other in after):
            ends.append((t, distance_row[1], distance_row[0]))
    return ends


def _check_longest(recurrence: Recurrence, longest: int, what: str) -> None:
    require(longest >= 1, what, "it holds no query at all")
    recurrence.packing(longest)
    try:
        recurrence.packing(longest + 1)
    except UserError:
        return
    require(False, what, f"its entry says that queries of {longest} frames are the longest, and it takes a longer one")


def _check_twin(recurrence: Recurrence, table: NDArray[np.int16], what: str) -> None:
    actual, steps = traced(table, recurrence.trace, recurrence.option)
    if table.size < 4000:
        cost, frames = np.empty_like(actual.cost), np.empty_like(actual.frames)
        plain = np.empty_like(steps)
        recurrence.trace(table.astype(np.int64), recurrence.option, cost, frames, plain)
        same = (cost == actual.cost).all() and (frames == actual.frames).all()
        require(bool(same), what, "its twin gives something else compiled than in plain Python")
    ended = actual.frames > 0
    require(bool(((actual.cost >= 0) == ended).all()), what, "a path that there is has no cost, or one that is not has")
    inside = actual.frames <= np.arange(1, len(actual.frames) + 1)
    require(bool(inside.all()), what, "a path begins before the document")


def _check_reach(recurrence: Recurrence, table: NDArray[np.int16], what: str) -> None:
    if recurrence.reach is None:
        return
    n, length = table.shape
    first = max(0, length - 1 - recurrence.reach(n)) // recurrence.grid * recurrence.grid
    complete, _ = traced(table, recurrence.trace, recurrence.option)
    cut, _ = traced(np.ascontiguousarray(table[:, first:]), recurrence.trace, recurrence.option)
    same = (complete.cost[-1], complete.frames[-1]) == (cut.cost[-1], cut.frames[-1])
    require(
        bool(same), what, f"for {n} query frames it depends on more than the {recurrence.reach(n)} frames that it says"
    )


def _check_neighbours(recurrence: Recurrence, table: NDArray[np.int16], what: str) -> None:
    if recurrence.neighbours is None or table.size > 4000:
        return
    n, length = table.shape
    packing = recurrence.packing(n)
    states = np.full((n + 2, length + 2), packing.infinity, np.int64)  # row i + 2, column t + 2
    states[1] = 0
    shifted = np.zeros((n + 1, length), np.int64)
    shifted[1:] = table.astype(np.int64) << packing.frame_bits
    for t in range(length):
        for i in range(n):
            fast = states[i, t + 1]
            arguments = states[i + 1, t + 1], states[i + 1, t], fast, shifted[i + 1, t], shifted[i, t]
            states[i + 2, t + 2] = recurrence.neighbours(*arguments)
    actual, _ = traced(table, recurrence.trace, recurrence.option)
    last = states[-1, 2:]
    cost = np.where(last < packing.infinity, last >> packing.frame_bits, -1)
    require(np.array_equal(cost, actual.cost), what, "its cell of neighbours gives another curve than its twin")


def _check_one_lane(recurrence: Recurrence, table: NDArray[np.int16], what: str) -> None:
    n, length = table.shape
    packing = recurrence.packing(n)
    state = recurrence.state(packing.dtype, wide=False)
    restart, advance = numba.njit(recurrence.restart), numba.extending.register_jitable(recurrence.advance)
    distances = np.ascontiguousarray(np.stack([np.roll(table, k, 1).T for k in range(WIDTH)], 2)).reshape(-1)

    def frames(distances: Table, columns: State, curve: State, bits: int, option: int) -> None:
        for t in range(length):
            store(curve, t * WIDTH, advance(distances, t * n * WIDTH, n, t, columns, 0, bits, option))

    run = numba.njit(frames)

    def curve(lane: slice) -> NDArray[np.int64]:
        # Indexing one lane as if it were all exceeds the end by the number of lanes.
        size = recurrence.elements(n)
        columns, actual = np.full(WIDTH * size, _GUARD, state), np.zeros(length * WIDTH, packing.dtype)
        restart(columns[:size][lane], 0, n, packing.infinity, recurrence.option)
        run(distances[lane], columns[:size][lane], actual[lane], packing.frame_bits, recurrence.option)
        require(bool((columns[size:] == _GUARD).all()), what, f"it writes beyond its columns; {_VECTORS}")
        return actual.astype(np.int64)

    alone = np.sum([curve(slice(lane, None, WIDTH)) for lane in range(WIDTH)], axis=0)
    same = np.array_equal(alone, curve(slice(None)))
    require(same, what, f"one lane by itself gives something else than sixteen; {_VECTORS}")


def _check_search(
    name: str,
    options: Mapping[str, object],
    recurrence: Recurrence,
    distance: Distance,
    queries: Sequence[NDArray[np.float32]],
    documents: Sequence[NDArray[np.float32]],
    what: str,
) -> None:
    examples = [Example(f"q{k}", 1, query) for k, query in enumerate(queries)]
    most = np.full(len(documents), 1000, np.int64)
    for window, lanes, piece in ((1, 16, 10_000), (3, 5, 50)):
        settings = Settings(distance, window, lanes, piece, name, options=options)
        actual = search(examples, ((k, [item]) for k, item in enumerate(documents)), most, settings)
        expected = []
        for q, query in enumerate(queries):
            for d, document in enumerate(documents):
                complete = curve(query, document, distance, name, options)
                pairs = zip(complete.cost.tolist(), complete.frames.tolist(), strict=True)
                expected += [
                    (q, d, *candidate)
                    for candidate in candidates([pair if pair[1] else None for pair in pairs], window)
                ]
        same = scenes.rows(actual) == expected
        require(same, what, f"the search finds other candidates than its twin's curve has (pieces of {piece} frames)")
    for q, d, end, frames, _ in expected[:: max(1, len(expected) // 40)]:
        cells = path(queries[q], documents[d], end, distance, name, options)
        begin = (0, end - frames + 1)
        require(tuple(cells[0]) == begin, what, f"the path of a candidate begins at {tuple(cells[0])}, not at {begin}")
        require(
            tuple(cells[-1]) == (len(queries[q]) - 1, end), what, "the path of a candidate does not end where it does"
        )
        require(bool((np.diff(cells, axis=0) >= 0).all()), what, "a path goes back")
