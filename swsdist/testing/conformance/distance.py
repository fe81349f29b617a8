"""Checks local distances; see `swsdist.kernels.distances.interface` for the requirements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from swsdist.core.errors import DataError
from swsdist.kernels.arithmetic import MAX_DISTANCE
from swsdist.kernels.distances.interface import LARGEST_COORDINATE, LARGEST_SUM, Distance, Side, create
from swsdist.kernels.products import LARGEST, local_distances
from swsdist.registry.registries import DISTANCES
from swsdist.testing import scenes
from swsdist.testing.conformance.entry import check_entry, require

Frames = NDArray[np.float32]

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
