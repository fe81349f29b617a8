"""Voices: groups of documents, and of stretches of long ones, that stand for unknown speakers.

A recording's mean and variances are those of a voice and a channel. Stretches are grouped by them: each group is a
Gaussian with diagonal covariance, of its frames, and a stretch belongs to the group under which its n frames, of mean m
and variances v, are most likely::

    ln p = -n/2 sum_d (ln V_d + (v_d + (m_d - M_d)^2) / V_d)

There is a group for each quarter of an hour, because small groups give unreliable moments of scores. Groups are split
where the means of their stretches differ most, until there are enough.

The groups are a pinned model: fitted when the first state is committed that has a document without a speaker, then
applied to all later documents. They are fitted again whenever the statistics of the collection are
(`swsdist.store.statistics`).

Source: clusters of speech, each one Gaussian: Chen and Gopalakrishnan (1998), "Speaker, environment and channel change
detection and clustering via the Bayesian information criterion".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.core.arrays import Bools, Floats, Ints, Singles
from swsdist.core.fingerprint import fingerprint
from swsdist.core.types import DOCUMENTS, VOICES, with_values
from swsdist.features.statistics import Statistics
from swsdist.io.filesystem import Folder
from swsdist.store import parquet
from swsdist.store.parquet import SpooledDocuments
from swsdist.store.statistics import marks_of

#: Frames of a stretch; a rest that is shorter belongs to the last one.
STRETCH = 1024

_SECONDS, _MOST = 900.0, 64  # of a group; groups
#: Stretches that groups are fitted to, chosen by a hash.
_FITTED = 8192
#: Most rounds after a split.
_ROUNDS = 10
#: Least variance of a group, as a part of the collection's.
_FLOOR = 0.01
#: Stretches in memory at a time.
_PIECE = 1 << 14

#: Columns that voices depend on.
_COLUMNS = ("speaker", "frames", "mean", "variance", "stretches")


class Stretching:
    """Cuts the frames of a document into stretches.

    Args:
        dimension: of a frame.
    """

    def __init__(self, dimension: int) -> None:
        self._none = self._open = Statistics.zero(dimension)
        self._done: list[Statistics] = []

    def add(self, frames: Singles) -> None:
        """The next frames, float32 (frames, dimension)."""
        while len(frames):
            part = frames[: STRETCH - self._open.frames]
            self._open, frames = self._open + Statistics.of(part), frames[len(part) :]
            if self._open.frames == STRETCH:
                self._done.append(self._open)
                self._open = self._none

    @property
    def column(self) -> list[float] | None:
        """Column `stretches` of DOCUMENTS: mean and variances of each stretch; None for less than two."""
        if len(self._done) < 2:
            return None
        several = [*self._done[:-1], self._done[-1] + self._open]
        values: list[float] = np.concatenate(
            [part for stretch in several for part in (stretch.mean, stretch.variance)]
        ).tolist()
        return values


class Stretches(NamedTuple):
    """Stretches of speech: frames, float64 (stretches,); means and variances, float64 (columns, stretches)."""

    frames: Floats
    mean: Floats
    variance: Floats

    def take(self, chosen: NDArray[np.integer] | Bools) -> Stretches:
        """The chosen stretches, by indices or a mask."""
        return Stretches(self.frames[chosen], self.mean[:, chosen], self.variance[:, chosen])

    def gaussian(self, floor: Floats | float = 0.0) -> Gaussian:
        """The Gaussian of all frames; no variance is below `floor`, a number or float64 (columns,)."""
        total = self.frames.sum()
        mean = _total(self.frames * self.mean) / total
        difference = self.mean - mean[:, None]
        variance = _total(self.frames * (self.variance + difference * difference)) / total
        return Gaussian(int(total), mean, np.maximum(variance, floor))


class Gaussian(NamedTuple):
    """A group: number of frames; mean and variance of each column, float64 (columns,)."""

    frames: int
    mean: Floats
    variance: Floats

    def distance(self, stretches: Stretches) -> Floats:
        """-2 ln p per frame, up to a constant: float64 (stretches,)."""
        difference = stretches.mean - self.mean[:, None]
        terms = (stretches.variance + difference * difference) / self.variance[:, None]
        return np.asarray(_total(terms.T) + sum(map(math.log, self.variance.tolist())))


def pinned(
    folder: Folder, documents: SpooledDocuments, tick: float, file: str | None
) -> tuple[pa.ChunkedArray | None, str | None]:
    """A voice for each stretch of the documents without a speaker.

    Args:
        folder: the store.
        documents: DOCUMENTS.
        tick: seconds from one frame to the next.
        file: the pinned model; None: there is none, or it is to be fitted again.

    Returns:
        Column `voices` of DOCUMENTS, and the file of the model; None for the column if nothing is to be changed, and for the
        file if each document has a speaker.
    """
    if not documents.read(["speaker"])["speaker"].null_count:
        return None, file
    if file is not None:
        rows = parquet.read(folder, file).to_pylist()
        groups = [Gaussian(row["frames"], np.array(row["mean"]), np.array(row["variance"])) for row in rows]
    elif groups := fit_voices(documents, tick):
        table = pa.Table.from_pylist(
            [
                {"frames": group.frames, "mean": group.mean.tolist(), "variance": group.variance.tolist()}
                for group in groups
            ],
            VOICES,
        )
        file = f"models/voices-{fingerprint(table.to_pylist())}.parquet"
        parquet.publish(folder, file, [table], VOICES)
    else:
        return None, None
    column = [
        _voices(some.slice(k, stop - k), groups) for some in documents.pieces(_COLUMNS) for k, stop in _pieces(some)
    ]
    return pa.chunked_array(column, DOCUMENTS.field("voices").type), file


def nothing(documents: int) -> pa.ChunkedArray:
    """Column `voices` for documents without voices; `documents` is their number."""
    return pa.chunked_array([pa.nulls(documents, DOCUMENTS.field("voices").type)])


def replaced(tables: Iterable[pa.Table], column: pa.ChunkedArray | None) -> Iterator[pa.Table]:
    """Tables of consecutive documents with a new column `voices`; with None they keep their own."""
    first = 0
    for table in tables:
        if column is not None:
            table = with_values(table, "voices", column.slice(first, table.num_rows))
            first += table.num_rows
        yield table


def fit_voices(documents: SpooledDocuments, tick: float) -> list[Gaussian]:
    """The groups of the documents without a speaker.

    Args:
        documents: DOCUMENTS, in any order.
        tick: seconds from one frame to the next.
    """
    listed = [(_nameless(some), _counts(some), some["frames"].to_numpy()) for some in documents.pieces(_COLUMNS)]
    if not listed:
        return []
    nameless, counts, frames = (np.concatenate(several) for several in zip(*listed, strict=True))
    rows = np.flatnonzero(nameless)
    if not len(rows):
        return []
    rows = rows[np.argsort(marks_of(documents)[rows])]
    ends = np.cumsum(counts[rows])
    places = np.arange(0, ends[-1], math.ceil(ends[-1] / _FITTED))
    ranks = np.searchsorted(ends, places, side="right")
    rows, stretch = rows[ranks], places - ends[ranks] + counts[rows[ranks]]
    chosen, first = [], 0
    for some in documents.pieces(_COLUMNS):
        for k, stop in _pieces(some):
            kept = np.flatnonzero((rows >= first + k) & (rows < first + stop))
            stretches, many = stretches_of(some.slice(k, stop - k))
            chosen.append((kept, stretches.take((np.cumsum(many) - many)[rows[kept] - first - k] + stretch[kept])))
        first += some.num_rows
    order = np.argsort(np.concatenate([kept for kept, _ in chosen]))
    joined = Stretches(
        *(np.concatenate(several, axis=-1) for several in zip(*(part for _, part in chosen), strict=True))
    )
    seconds = tick * int(frames[nameless].sum())
    return grouped(joined.take(order), min(_MOST, max(1, round(seconds / _SECONDS))))


def grouped(stretches: Stretches, many: int) -> list[Gaussian]:
    """Groups of stretches, at most `many`."""
    collection = stretches.gaussian()
    floor = np.where(collection.variance > 0, _FLOOR * collection.variance, 1.0)
    groups = [collection._replace(variance=np.maximum(collection.variance, floor))]
    while True:
        group = _nearest(stretches, groups)
        for _ in range(_ROUNDS):
            groups = [stretches.take(group == k).gaussian(floor) for k in np.unique(group).tolist()]
            before, group = group, _nearest(stretches, groups)
            if np.array_equal(group, before):
                break
        parts = [_halves(stretches.take(group == k), floor) for k in range(len(groups))]
        widest = sorted((-spread, k) for k, (spread, _) in enumerate(parts) if spread > 0)[: many - len(groups)]
        if not widest:
            return groups
        split = {k for _, k in widest}
        groups = [group for k, old in enumerate(groups) for group in (parts[k][1] if k in split else [old])]


def stretches_of(documents: pa.Table) -> tuple[Stretches, Ints]:
    """Stretches of documents, one after the other, and how many each has, int64 (documents,)."""
    counts = _counts(documents)
    mean, variance, cut = (pc.list_flatten(documents[name]).to_numpy() for name in ("mean", "variance", "stretches"))
    dimension = len(mean) // max(len(counts), 1)
    first = np.cumsum(counts) - counts
    moments = np.empty((counts.sum(), 2, dimension))
    moments[first, 0], moments[first, 1] = mean.reshape(-1, dimension), variance.reshape(-1, dimension)
    moments[np.repeat(counts > 1, counts)] = cut.reshape(-1, 2, dimension)
    frames = np.full(len(moments), float(STRETCH))
    frames[first + counts - 1] = documents["frames"].to_numpy() - STRETCH * (counts - 1)
    return Stretches(frames, *moments.transpose(1, 2, 0)), counts


def _nameless(documents: pa.Table) -> Bools:
    """Which documents are of speech by nobody named."""
    return np.asarray(pc.and_(pc.is_null(documents["speaker"]), pc.greater(documents["frames"], 0)).to_numpy())


def _counts(documents: pa.Table) -> Ints:
    """How many stretches each document has."""
    numbers = pc.fill_null(pc.list_value_length(documents["stretches"]), 0).to_numpy()
    dimensions = pc.list_value_length(documents["mean"]).to_numpy()
    return np.asarray(np.maximum(numbers // (2 * dimensions), 1), np.int64)


def _pieces(documents: pa.Table) -> Iterator[tuple[int, int]]:
    """Rows from and to of pieces with a bounded number of stretches, but for a single document that has more."""
    first, total = 0, 0
    for k, count in enumerate(_counts(documents).tolist()):
        if total + count > _PIECE and k > first:
            yield first, k
            first, total = k, 0
        total += count
    if documents.num_rows:
        yield first, documents.num_rows


def _halves(stretches: Stretches, floor: Floats) -> tuple[float, list[Gaussian]]:
    """How far the means of stretches spread, and two groups of them, divided at the mean of the widest column."""
    if not len(stretches.frames):
        return 0.0, []
    mean, variance = (item[:, None] for item in stretches.gaussian(floor)[1:])
    difference = stretches.mean - mean
    spread = _total(stretches.frames * difference * difference / variance)
    above = difference[int(np.argmax(spread))] > 0
    if above.all() or not above.any():
        return 0.0, []
    return float(sum(spread.tolist())), [stretches.take(above).gaussian(floor), stretches.take(~above).gaussian(floor)]


def _nearest(stretches: Stretches, groups: list[Gaussian]) -> Ints:
    return np.asarray(np.argmin([group.distance(stretches) for group in groups], axis=0), np.int64)


def _voices(documents: pa.Table, groups: list[Gaussian]) -> pa.Array:
    """Column `voices` of DOCUMENTS."""
    nameless = _nameless(documents)
    if not nameless.any():
        return pa.nulls(documents.num_rows, DOCUMENTS.field("voices").type)
    stretches, counts = stretches_of(documents.filter(pa.array(nameless)))
    voices = np.split(_nearest(stretches, groups), np.cumsum(counts)[:-1])
    unassigned = iter(voices)
    rows = [next(unassigned).tolist() if lacks_name else None for lacks_name in nameless.tolist()]
    return pa.array(rows, DOCUMENTS.field("voices").type)


def _total(values: Floats) -> Floats:
    """Sums over the last axis, item by item: the same on any processor."""
    return np.asarray(np.add.accumulate(values, axis=-1)[..., -1])
