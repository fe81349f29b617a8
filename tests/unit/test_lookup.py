"""Distances looked up in tables of bytes, and the recurrence over them: this processor's form, the plain one, an oracle."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest

from swsdist.config.search import Search
from swsdist.kernels.distances.interface import Distance, Side
from swsdist.kernels.distances.interface import create as distance_named
from swsdist.kernels.lookup import CHUNK, DISTANCES, GROUP, INFINITE, ROWS, mark_gaps, scanner
from swsdist.methods.dtw.shard import distance_of
from swsdist.methods.first_pass.codebook import CODES, Landmarks, fit, tables


class Case(NamedTuple):
    """Codes of documents, and the tables of a query."""

    codes: np.ndarray
    gap: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    entries: np.ndarray
    less: np.ndarray
    factors: np.ndarray
    streams: np.ndarray

    @property
    def n(self) -> int:
        return len(self.less)

    def minima(self, plain: bool, cuts: tuple[int, ...] = ()) -> np.ndarray:
        groups = len(self.gap) // GROUP
        found = np.full(groups * GROUP // CHUNK, 7, np.uint16)
        bounds = [0, *cuts, groups]
        for first, stop in pairwise(bounds):
            rooms = [np.full(size, 3, np.uint16) for size in (2 * self.n, ROWS, DISTANCES)]
            doubled = np.concatenate([self.entries, self.entries], axis=3).reshape(-1)
            where = self.codes.reshape(-1), self.gap, first, stop, self.n, doubled
            scanner(plain)(*where, self.less.reshape(-1), self.factors, self.streams, *rooms, found)
        return found

    def expected(self) -> np.ndarray:
        """By the recurrence's definition, a document and a frame at a time, in Python's integers."""
        found = np.full(len(self.gap) // CHUNK, INFINITE, np.int64)
        for start, length in zip(self.starts.tolist(), self.lengths.tolist(), strict=True):
            d = [[self._distance(i, start * GROUP + t) for t in range(length)] for i in range(self.n)]
            cost = [[INFINITE] * length for _ in range(self.n)]
            for i in range(self.n):
                for t in range(length):
                    best = 0 if i == 0 else min(cost[i - 1][max(0, t - 2) : t], default=INFINITE)
                    if i == 1 or (i > 1 and t > 0):
                        best = min(best, d[i - 1][t] + (0 if i == 1 else cost[i - 2][t - 1]))
                    cost[i][t] = min(INFINITE, best + d[i][t])
            for t in range(length):
                chunk = (start * GROUP + t) // CHUNK
                found[chunk] = min(found[chunk], cost[-1][t])
        return found

    def _distance(self, i: int, frame: int) -> int:
        pairs = self.codes[frame // GROUP, :, frame % GROUP].tolist()
        total, b = 0, 0
        for s, (size, power) in enumerate(self.streams.tolist()):
            part = 0
            for pair in pairs[b : b + size]:
                part += int(self.entries[i, b, 0, pair & 15]) + int(self.entries[i, b, 1, pair >> 4])
                b += 1
            part = max(0, min(255, part) - int(self.less[i, s]))
            total += (part * part if power == 2 else 256 * part) * int(self.factors[s]) >> 16
        return min(INFINITE, total)


def case(seed: int, n: int, streams: list[tuple[int, int]], lengths: list[int], largest: int = 60) -> Case:
    rng = np.random.default_rng(seed)
    width = sum(size for size, _ in streams)
    groups = [-(-(length + 2) // GROUP) for length in lengths]
    starts = np.cumsum([0, *groups[:-1]]).astype(np.int64)
    gap = np.empty(sum(groups) * GROUP, np.uint8)
    mark_gaps(starts, np.array(lengths, np.int64), gap)
    # A path of mean distances costs some 40000.
    typical = [min(255, largest * size) ** power * (1 if power == 2 else 256) for size, power in streams]
    factors = [min(65535, 40000 * 65536 // n // len(streams) // max(1, each)) for each in typical]
    return Case(
        rng.integers(0, 256, (sum(groups), width, GROUP), dtype=np.uint8),
        gap,
        starts,
        np.array(lengths, np.int64),
        rng.integers(0, largest, (n, width, 2, 16)).astype(np.uint8),
        rng.integers(0, 40, (n, len(streams))).astype(np.uint8),
        np.array(factors, np.uint16),
        np.array(streams, np.int64),
    )


CASES = [
    case(1, 1, [(1, 1)], [1]),
    case(2, 2, [(3, 2)], [30, 31, 32, 1, 90]),
    case(3, 9, [(5, 1)], [200, 5, 64]),
    case(4, 12, [(2, 2), (3, 1), (1, 2)], [70, 62, 30]),
    case(5, 25, [(5, 2)], [2500], largest=50),
    case(6, 8, [(5, 1)], [100], largest=256),
]


@pytest.mark.parametrize("one", CASES)
def test_both_forms_are_the_recurrence_of_the_definition(one: Case) -> None:
    expected = one.expected()
    assert expected.min() < INFINITE
    assert np.array_equal(one.minima(plain=True), expected)
    assert np.array_equal(one.minima(plain=False), expected)


def prepared(distance: Distance, values: np.ndarray, side: Side) -> np.ndarray:
    return distance.prepare(values, np.zeros(values.shape[1]), np.ones(values.shape[1]), side).frames


def scene(distance: Distance, seed: int, posteriors: bool = False) -> tuple[Landmarks, np.ndarray]:
    rng = np.random.default_rng(seed)
    centres = rng.normal(0, 1, (40, distance.dimension))
    values = (centres[rng.integers(0, 40, 3000)] + rng.normal(0, 0.3, (3000, distance.dimension))).astype(np.float32)
    if posteriors:
        exponents = np.exp(3 * values.astype(np.float64))
        values = (exponents / exponents.sum(axis=1, keepdims=True)).astype(np.float32)
    sides = (prepared(distance, values[:2000], side) for side in ("query", "document"))
    return Landmarks(*sides), values[2000:]


DISTANCES_MEASURED = [(name, False) for name in ("cosine", "cosine-squared", "euclidean-squared")]
DISTANCES_MEASURED += [(name, True) for name in ("bhattacharyya", "kl", "log-posterior-cosine-squared")]


@pytest.mark.parametrize(("name", "posteriors"), DISTANCES_MEASURED)
def test_looked_up_distances_follow_the_distances(name: str, posteriors: bool) -> None:
    distance = distance_named(name, 12)
    landmarks, values = scene(distance, 3, posteriors)
    book = fit(landmarks, distance, 4)
    query, document = prepared(distance, values[:20], "query"), prepared(distance, values[500:], "document")
    table = tables(query, distance, book, 4)
    codes = book.codes(document)
    entries = table.entries.reshape(20, 4, 2, 32)[..., :16].reshape(20, 8, 16)
    sums = np.stack([entries[i][np.arange(8), codes].astype(int).sum(axis=1) for i in range(20)])
    looked = np.maximum(0, np.minimum(255, sums) - table.less[:, None])
    (stream,) = distance.streams
    exact = np.array([[stream.distance(int(dot)) for dot in row] for row in query @ document.T])
    near = exact < np.median(exact)
    found = np.corrcoef(looked[near].astype(float) ** int(table.streams[0, 1]), exact[near])[0, 1]
    assert found > 0.85, found
    assert table.streams.tolist() == [[4, 2 if name.endswith("squared") and name != "euclidean-squared" else 1]]


def test_streams_have_the_shares_of_their_weights() -> None:
    streams = [{"columns": [0, 6], "weight": 2}, {"columns": [6, 12]}]
    distance = distance_of(Search(distance="cosine-squared", streams=streams), 12)
    landmarks, values = scene(distance, 4)
    table = tables(prepared(distance, values[:30], "query"), distance, fit(landmarks, distance, 3), 3)
    assert table.streams.tolist() == [[3, 2], [3, 2]]
    assert 1.8 < int(table.factors[0]) / int(table.factors[1]) < 2.2


def test_centroids_are_means_of_their_frames_and_codes_the_nearest() -> None:
    distance = distance_named("cosine", 5)
    landmarks, _ = scene(distance, 5)
    book = fit(landmarks, distance, 10)
    assert len(book.columns) == 6  # five columns, and an empty part for a complete byte
    assert sorted(book.columns[book.columns >= 0].tolist()) == [0, 1, 2, 3, 4]
    codes = book.codes(landmarks.document)
    for p in range(5):
        (column,) = book.columns[p][book.columns[p] >= 0]
        values = landmarks.document[:, column].astype(np.int64)
        scaled = (values * book.weights[p, 0]) >> book.shifts[p]
        far = np.abs(scaled[:, None] - book.nearest[p, 0].astype(np.int64))
        assert np.array_equal(codes[:, p], far.argmin(axis=1))
        for code in range(CODES):
            if (codes[:, p] == code).any():
                assert abs(values[codes[:, p] == code].mean() - book.centroids[p, code, 0]) <= 0.5
