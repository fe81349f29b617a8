"""Checks local distances and recurrences; their `interface` in `swsdist.kernels` has the requirements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numba
import numpy as np
from numpy.typing import NDArray

from swsdist.core.arrays import Ints, Singles
from swsdist.core.errors import DataError, UserError
from swsdist.kernels.arithmetic import MAX_DISTANCE, State
from swsdist.kernels.distances.interface import LARGEST_COORDINATE, LARGEST_SUM, Distance, Side, create
from swsdist.kernels.products import LARGEST, local_distances
from swsdist.kernels.recurrences.interface import Recurrence, Table
from swsdist.kernels.recurrences.interface import create as create_recurrence
from swsdist.kernels.vectors import WIDTH, store
from swsdist.methods.curve import curve, path, traced
from swsdist.methods.dtw.search import search
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.query.example import Example
from swsdist.registry.entries import checked
from swsdist.registry.registries import DISTANCES, RECURRENCES
from swsdist.testing import scenes
from swsdist.testing.conformance.entry import check_entry, require

Frames = Singles

#: The value of a distance between two features, in its own terms.
Exact = Callable[[Sequence[float], Sequence[float]], float]

_SIDES: tuple[Side, Side] = ("query", "document")


def check_distance(
    name: str, options: Mapping[str, object] | None = None, exact: Exact | None = None, error: float = 0.05
) -> None:
    """Check one registered distance.

    Partial sums of products stay within 2^24 whatever their order; frames do not depend on their neighbours, so blocks change
    nothing; the map gives 0..4095 for every product, and the same compiled as in plain Python; a zero vector has a distance.

    Args:
        name: registered in `swsdist.registry.registries.DISTANCES`.
        options: some of its options.
        exact: its definition in floating point; values for features of up to nine dimensions are compared.
        error: how far they may be apart.

    Raises:
        AssertionError: a check fails; the message names it.
    """
    entry, what = check_entry(DISTANCES, name)
    unit = entry.unit
    fits = unit > 0 and unit.bit_count() == 1 and unit <= MAX_DISTANCE + 1
    require(fits, what, f"unit {unit} is no power of two of at most {MAX_DISTANCE + 1}")
    for dimension in (1, 2, 9, 39):
        distance = create(name, dimension, options)
        _check_made(distance, dimension, unit, what)
        prepared_frames = {side: _check_frames(distance, side, entry.posteriors, what) for side in _SIDES}
        _check_bounds(distance, prepared_frames["query"], prepared_frames["document"], what)
        _check_map(distance, prepared_frames["query"], prepared_frames["document"], what)
        if exact is not None and dimension <= 9:
            _check_values(distance, entry.posteriors, exact, error, what)
    if entry.posteriors:
        _check_refuses(create(name, 3, options), what)


def features(posteriors: bool, dimension: int, seed: int = 1) -> Frames:
    """Features of many kinds: ordinary, equal in all dimensions, one dimension alone, zero, and tiny or huge."""
    units = np.eye(dimension, dtype=np.float32)
    same = np.full((1, dimension), 1 / dimension, np.float32)
    zero = np.zeros((1, dimension), np.float32)
    if posteriors:
        return np.concatenate([scenes.posteriors(seed, 7, dimension), units[:2], units[-1:], same, zero])
    ordinary = scenes.features(seed, 7, dimension)
    kinds = [ordinary, -ordinary[:1], ordinary[:1] / 256, units[:2], -units[-1:], same, zero]
    return np.concatenate([*kinds, ordinary[:2] * np.float32(2.0**-60), ordinary[:2] * np.float32(2.0**40)])


def _check_made(distance: Distance, dimension: int, unit: int, what: str) -> None:
    require(distance.dimension == dimension, what, f"its dimension is {distance.dimension}, not {dimension}")
    require(distance.unit == unit, what, f"its unit is {distance.unit}, and its entry says {unit}")
    require(len(distance.streams) == 1, what, "it has several streams: a weighted sum is made of distances of one each")
    (stream,) = distance.streams
    shape = (stream.first, stream.stop, stream.weight, distance.shift)
    require(shape == (0, distance.columns, 1, 0), what, "its stream is not all columns, with weight 1")
    require(stream.bound <= LARGEST_SUM, what, f"bound {stream.bound} is above 2^24: sums would not be exact")


def _check_frames(distance: Distance, side: Side, posteriors: bool, what: str) -> Frames:
    values = features(posteriors, distance.dimension, 1 if side == "query" else 2)
    values.setflags(write=False)  # a worker's arrays may be read-only
    zero, ones = np.zeros(distance.dimension), np.ones(distance.dimension)
    prepared_frames = distance.prepare(values, zero, ones, side)
    frames = prepared_frames.frames
    require(frames.dtype == np.float32, what, f"frames are {frames.dtype}, not float32")
    require(frames.shape == (len(values), distance.columns), what, f"frames have the shape {frames.shape}")
    require(bool((frames == np.rint(frames)).all()), what, "a coordinate is no integer")
    require(bool((np.abs(frames) <= LARGEST_COORDINATE).all()), what, f"a coordinate is above {LARGEST_COORDINATE}")
    again = distance.prepare(values, zero, ones, side)
    require(again.frames.tobytes() == frames.tobytes(), what, "the same features give other frames the second time")
    parts = [distance.prepare(values[k : k + 1], zero, ones, side) for k in range(len(values))]
    alone = np.concatenate([part.frames for part in parts])
    require(alone.tobytes() == frames.tobytes(), what, "a frame depends on its neighbours: blocks would change results")
    require(
        sum(part.saturated for part in parts) == prepared_frames.saturated,
        what,
        "saturated frames do not add over blocks",
    )
    return frames


def _check_bounds(distance: Distance, query: Frames, document: Frames, what: str) -> None:
    terms = query.astype(np.float64)[:, None, :] * document.astype(np.float64)[None, :, :]
    largest = max(np.maximum(terms, 0).sum(axis=2).max(), np.maximum(-terms, 0).sum(axis=2).max())
    bound = distance.streams[0].bound
    require(
        largest <= bound,
        what,
        f"of {distance.dimension} dimensions a partial sum is {largest:.0f}, above its bound {bound}",
    )


def _check_map(distance: Distance, query: Frames, document: Frames, what: str) -> None:
    (stream,) = distance.streams
    for dot in (*range(-stream.bound, stream.bound + 1, max(1, stream.bound // 5000)), -stream.bound, 0, stream.bound):
        d = stream.distance(dot)
        require(0 <= d <= MAX_DISTANCE, what, f"the map of {dot} is {d}, not within 0..{MAX_DISTANCE}")
        if stream.fine is not None:
            fine = int(stream.fine(dot))
            near = 0 <= fine <= LARGEST and abs(fine - 8 * d) <= 8
            require(near, what, f"the fine map of {dot} is {fine}, not eight times {d}, within 0..{LARGEST}")
    dots = query.astype(np.int64) @ document.astype(np.int64).T
    plain = np.array([[stream.distance(int(dot)) for dot in row] for row in dots])
    same = bool((local_distances(query, document, distance) == plain).all())
    require(same, what, "its map means something else compiled than in plain Python: use + - * << >> &, least and most")


def _check_values(distance: Distance, posteriors: bool, exact: Exact, error: float, what: str) -> None:
    values = features(posteriors, distance.dimension)[:7]
    query, document = (scenes.prepared(distance, values, side) for side in _SIDES)
    actual = local_distances(query, document, distance) / distance.unit
    largest = MAX_DISTANCE / distance.unit
    for i, q in enumerate(values.tolist()):
        for j, x in enumerate(values.tolist()):
            expected = min(exact(q, x), largest)
            near = abs(actual[i, j] - expected) <= error
            require(near, what, f"between {q} and {x} it is {actual[i, j]:g}, and its definition says {expected:g}")


def _check_refuses(distance: Distance, what: str) -> None:
    wrong = np.array([[0.5, -0.25, 0.75]], np.float32)
    try:
        scenes.prepared(distance, wrong, "query")
    except DataError:
        return
    require(False, what, "it is between posteriors, and takes a negative probability")


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
    recurrence = create_recurrence(name, options)
    _check_longest(recurrence, entry.longest(checked(RECURRENCES, name, options or {})), what)
    distance = create("cosine", _DIMENSION)
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

    def curve(lane: slice) -> Ints:
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
    queries: Sequence[Singles],
    documents: Sequence[Singles],
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
