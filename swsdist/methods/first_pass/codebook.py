"""Product quantisation of prepared frames: 16 codes in each part of a stream's columns, and a query's tables of bytes.

A stream's columns are cut into parts, and a part of a frame is represented by the nearest of 16 centroids, which are
means. Its product with a query is then a sum of numbers from a table (asymmetric distance computation). All values but
the tables are integers, so codebook and codes have the same bytes on any processor.

Columns are weighted by their size in queries, because an error in a column is multiplied by that.

Source: Jégou, Douze and Schmid (2011), "Product quantization for nearest neighbor search".
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import isqrt, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.core.arrays import Ints, Singles
from swsdist.kernels.distances.interface import Distance, Stream
from swsdist.kernels.lookup import INFINITE, encode

Frames = Singles

#: Centroids of a part.
CODES = 16

#: Frames that a codebook is trained on.
SAMPLE = 8192

#: Rounds of Lloyd's algorithm.
_ROUNDS = 12

#: A table reaches this multiple of the mean distance; what is farther counts as that far.
_REACH = 1.25


class Landmarks(NamedTuple):
    """Frames of the collection, prepared as queries and as documents; independent of shards."""

    query: Frames
    document: Frames


class Codebook(NamedTuple):
    """Centroids of the parts of all streams, one after the other; two parts of a stream make a byte.

    Attributes:
        columns: int64 (parts, width), of prepared frames; -1 fills up.
        weights, shifts: int64 (parts, width) and (parts,): nearness is of ``(coordinate * weight) >> shift``.
        nearest: int32 (parts, width, 16), centroids in those units.
        centroids: int64 (parts, 16, width), in units of prepared frames.
        means: int64 (streams,), mean distance of a stream between a query's frame and a document's, 0..4095.
    """

    columns: Ints
    weights: Ints
    shifts: Ints
    nearest: NDArray[np.int32]
    centroids: Ints
    means: Ints

    def codes(self, frames: Frames) -> NDArray[np.uint8]:
        """The codes of frames, uint8 (frames, parts), each 0..15."""
        out = np.empty((len(frames), len(self.columns)), np.uint8)
        encode(np.ascontiguousarray(frames), self.columns, self.weights, self.shifts, self.nearest, out)
        return out


class Tables(NamedTuple):
    """The tables of an example of n query frames, flat, for `kernels.lookup.scanner`.

    Attributes:
        entries: uint8 (n, bytes, 2, 32): for each part and code, what it adds to a distance, the 16 entries twice.
        less: uint8 (n, streams), subtracted from sums.
        factors: uint16 (streams,), scale of a stream's distance.
        streams: int64 (streams, 2): bytes per frame, and power of the sum, 1 or 2.
    """

    entries: NDArray[np.uint8]
    less: NDArray[np.uint8]
    factors: NDArray[np.uint16]
    streams: Ints


def fit(landmarks: Landmarks, distance: Distance, size: int) -> Codebook:
    """Choose centroids.

    Args:
        landmarks: of the collection.
        distance: their frames are prepared for it.
        size: bytes a frame and stream.
    """
    groups = [part for stream in distance.streams for part in _parts(stream, size)]
    width = max(map(len, groups))
    columns = np.full((len(groups), width), -1, np.int64)
    weights, shifts = np.zeros((len(groups), width), np.int64), np.zeros(len(groups), np.int64)
    document, query = landmarks.document.astype(np.int64), landmarks.query.astype(np.int64)
    limit = isqrt((1 << 31) // width) // 2 - 1
    size_of = np.array([isqrt(int(square) // len(query)) for square in (query * query).sum(axis=0)])
    for p, group in enumerate(groups):
        if len(group):
            columns[p, : len(group)] = group
            weights[p, : len(group)] = 1 + 254 * size_of[group] // max(1, int(size_of[group].max()))
            largest = int(np.abs(document[:, group] * weights[p, : len(group)]).max())
            shifts[p] = max(0, (largest // limit).bit_length())
    filled = np.where(columns >= 0, columns, 0)
    parts = np.where(columns >= 0, document[:, filled], 0)  # (frames, parts, width)
    scaled = (parts * weights) >> shifts[:, None]
    chosen = np.arange(CODES) * len(document) // CODES
    nearest = np.ascontiguousarray(scaled[chosen].transpose(1, 2, 0), np.int32)
    book = Codebook(
        columns, weights, shifts, nearest, np.zeros((len(groups), CODES, width), np.int64), _means(landmarks, distance)
    )
    for _ in range(_ROUNDS):
        counts, total = _sums(book.codes(landmarks.document), scaled)
        used = counts > 0
        centre = _divided(total, counts)
        nearest = np.where(used[:, None, :], centre.transpose(0, 2, 1), book.nearest).astype(np.int32)
        if np.array_equal(nearest, book.nearest):
            break
        book = book._replace(nearest=np.ascontiguousarray(nearest))
    counts, total = _sums(book.codes(landmarks.document), parts)
    return book._replace(centroids=_divided(total, counts))


def _parts(stream: Stream, size: int) -> list[Ints]:
    """The columns of each part of a stream: an even number of parts, the last perhaps empty."""
    columns = np.arange(stream.first, stream.stop)
    return np.array_split(columns, 2 * min(size, -(-len(columns) // 2)))


def _sums(codes: NDArray[np.uint8], values: Ints) -> tuple[Ints, Ints]:
    """Number and sum of the frames of each code.

    Args:
        codes: uint8 (frames, parts).
        values: int64 (frames, parts, width).

    Returns:
        int64 (parts, 16) and (parts, 16, width).
    """
    _, parts, width = values.shape
    counts, total = np.zeros((parts, CODES), np.int64), np.zeros((parts, CODES, width), np.int64)
    for p in range(parts):
        np.add.at(counts[p], codes[:, p], 1)
        np.add.at(total[p], codes[:, p], values[:, p])
    return counts, total


def _divided(total: Ints, counts: Ints) -> Ints:
    """Means, rounded, int64 (parts, 16, width); 0 of no frames."""
    divisor = np.maximum(counts, 1)[:, :, None]
    rounded: Ints = (2 * total + divisor) // (2 * divisor)
    return rounded


def _means(landmarks: Landmarks, distance: Distance) -> Ints:
    some = slice(None, None, max(1, len(landmarks.query) // 256))
    query, document = landmarks.query[some].astype(np.int64), landmarks.document[some].astype(np.int64)
    means = []
    for stream in distance.streams:
        dots = query[:, stream.first : stream.stop] @ document[:, stream.first : stream.stop].T
        values = [stream.distance(int(dot)) for dot in dots.ravel()[:: max(1, dots.size // 4096)]]
        means.append(max(1, sum(values) // len(values)))
    return np.array(means, np.int64)


class _Line(NamedTuple):
    """A map as a power of a line: ``(at_zero + slope * product) ** power``."""

    power: int
    at_zero: float
    slope: float


@lru_cache(64)
def _line(stream: Stream) -> _Line:
    """The map of a stream where it is not cut off: the line itself or its square, whichever is nearer in the middle."""
    dots = range(-stream.bound, stream.bound + 1, max(1, stream.bound // 512))
    inside = [dot for dot in dots if 0 < stream.distance(dot) < 4095] or [0, stream.bound]
    low, high = inside[0], max(inside[-1], inside[0] + 1)
    middle = (low + high) // 2

    def lines() -> Iterator[tuple[float, _Line]]:
        for power, root in ((1, float), (2, sqrt)):
            first, half, last = (root(stream.distance(dot)) for dot in (low, middle, high))
            slope = (last - first) / (high - low)
            missed = abs(first + slope * (middle - low) - half) / max(first, last, 1.0)
            yield missed, _Line(power, first - slope * low, slope)

    return min(lines())[1]


def tables(frames: Frames, distance: Distance, book: Codebook, size: int) -> Tables:
    """The tables of an example, by float64 operations with the same result on any machine.

    Costs are scaled such that an example of mean distance everywhere costs `INFINITE`.

    Args:
        frames: float32 (n, columns), prepared as a query.
        distance: of the frames.
        book: made for it.
        size: bytes a frame and stream.
    """
    n, part = len(frames), 0
    query = frames.astype(np.int64)
    entries, less, streams, units = [], [], [], list[float]()
    mean_of_all = 0
    for stream, mean in zip(distance.streams, book.means.tolist(), strict=True):
        line = _line(stream)
        count = len(_parts(stream, size))
        values = []
        for p in range(part, part + count):
            columns = book.columns[p][book.columns[p] >= 0]
            values.append((query[:, columns] @ book.centroids[p][:, : len(columns)].T) * line.slope)  # (n, 16)
        part += count
        lowest = [each.min(axis=1) for each in values]
        least = sum(lowest) + line.at_zero
        # Sums begin with the least of all parts together, which may be below 0, where no frame is.
        top = _REACH * (sqrt(mean) if line.power == 2 else mean)
        step = (top - min(0.0, float(least.min()))) / 255
        offset = np.rint(least / step)
        values = [np.rint((each - low[:, None]) / step) for each, low in zip(values, lowest, strict=True)]
        values[0] = values[0] + np.maximum(offset, 0)[:, None]
        entries.append(np.minimum(np.stack(values, axis=1), 255).astype(np.uint8))
        less.append(np.maximum(-offset, 0).astype(np.uint8))
        streams.append((count // 2, line.power))
        units.append(stream.weight * (step * step * 65536 if line.power == 2 else step * 256))
        mean_of_all += stream.weight * mean
    scale = min(INFINITE / (n * mean_of_all), 65535 / max(units))
    table = np.concatenate(entries, axis=1)
    return Tables(
        np.concatenate([table, table], axis=2).reshape(-1),
        np.stack(less, axis=1).reshape(-1),
        np.array([int(unit * scale) for unit in units], np.uint16),
        np.array(streams, np.int64),
    )
