"""The normalising statistics of a store, and the division of its documents into shards.

The statistics are a pinned model: computed once, then applied to all later documents. A scope is the collection, or a
speaker. Its statistics are computed when the first state with a document of it is committed, and then **frozen**: later
documents do not change them, so no earlier result changes.

- A provisional state (tasks failed, documents are to come) keeps frozen statistics; it computes the others from the
  documents present, and the next commit recomputes them. So a failed task does not affect the final statistics.
- All are recomputed if **none** of the recordings behind the collection's statistics remains, by doc_id, channel and
  SHA-256: the statistics of one corpus do not normalise another. If some remain, all statistics stay, and the manifest
  counts the missing recordings (`counts["statistics_gone"]`), which a run reports; `swsdist store refit` recomputes.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.core.arrays import Floats, Ints
from swsdist.core.fingerprint import Naming, stable_hash
from swsdist.core.types import DOCUMENTS, STATISTICS
from swsdist.features.statistics import Statistics
from swsdist.io.filesystem import Folder
from swsdist.io.remote.scratch import scratch
from swsdist.store import parquet
from swsdist.store.parquet import SpooledDocuments

#: Documents whose means and variances are in memory at a time.
_DOCUMENTS = 1 << 14

#: `("collection", "")` or `("speaker", name)`.
Scope = tuple[str, str]


class Pinned(NamedTuple):
    """The statistics of a state.

    Attributes:
        file: that holds them.
        gone: number of missing recordings behind the collection's.
        anew: whether the collection's were computed now.
    """

    file: str
    gone: int
    anew: bool


def pinned(
    folder: Folder, track: str, documents: SpooledDocuments, dimension: int, frozen: pa.Table | None, provisional: bool
) -> Pinned:
    """Publish the statistics of a state.

    Args:
        folder: the store.
        track: name of the track.
        documents: DOCUMENTS of the track, the live ones.
        dimension: of its frames.
        frozen: STATISTICS of the previous state, None at first.
        provisional: documents are still to come.
    """
    table, gone, anew = fitted(documents, dimension, frozen, provisional)
    # Named by content: equal statistics keep their file.
    rows = (table.slice(k, 1).to_pylist() for k in range(table.num_rows))
    name = f"models/statistics-{Naming(track).listing(rows)()}.parquet"
    parquet.publish(folder, name, [table], STATISTICS)
    return Pinned(name, gone, anew)


def fitted(
    documents: SpooledDocuments, dimension: int, frozen: pa.Table | None, provisional: bool
) -> tuple[pa.Table, int, bool]:
    """STATISTICS of a state, sorted by scope; and of the collection's, how many of their recordings are missing, and
    whether they are new.
    """
    order = pc.sort_indices(
        documents.read(["doc_id", "channel"]), [("doc_id", "ascending"), ("channel", "ascending")]
    ).to_numpy()
    marks = marks_of(documents)[order]
    # Marks of a million recordings are no Python objects.
    before = frozen.filter(frozen["frozen"]) if frozen is not None else STATISTICS.empty_table()
    rows = before.drop_columns(["taken_from"]).to_pylist()
    for row, there in zip(rows, before["taken_from"], strict=True):
        row["taken_from"] = there.values.to_numpy()
    taken_from = {(row["scope"], row["name"]): row["taken_from"] for row in rows}
    stay = provisional or any(
        scope == "collection" and bool(np.isin(there, marks).any()) for (scope, _), there in taken_from.items()
    )
    kept_rows: dict[Scope, dict[str, Any]] = {(row["scope"], row["name"]): row for row in rows} if stay else {}
    anew = ("collection", "") not in kept_rows
    speakers = pc.fill_null(documents.read(["speaker"])["speaker"], "").combine_chunks().dictionary_encode()
    names = speakers.dictionary.to_pylist()
    for scopes, codes in (
        ([("collection", "")], np.zeros(len(marks), np.int64)),
        ([("speaker", name) for name in names], speakers.indices.to_numpy().astype(np.int64)[order]),
    ):
        required = np.array([scope not in kept_rows and scope != ("speaker", "") for scope in scopes], bool)
        group = np.where(required[codes], codes, -1) if len(scopes) else codes
        of = _by_group(group)
        for k, value in _merged(documents, order, group, dimension).items():
            row = *scopes[k], value.frames, value.mean.tolist(), value.variance.tolist()
            kept_rows[scopes[k]] = dict(
                zip(STATISTICS.names, (*row, not provisional, np.sort(marks[of[k]])), strict=True)
            )
    collection = kept_rows.get(("collection", ""))
    gone = 0 if collection is None else int((~np.isin(collection["taken_from"], marks)).sum())
    return pa.Table.from_pylist([kept_rows[scope] for scope in sorted(kept_rows)], STATISTICS), gone, anew


def marks_of(documents: SpooledDocuments) -> NDArray[np.uint64]:
    """64-bit digest of each recording's doc_id, channel and SHA-256, uint64 (documents,)."""
    result = [np.empty(0, np.uint64)]
    for some in documents.pieces(["doc_id", "channel", "sha256"]):
        rows = zip(*(column.to_pylist() for column in some.columns), strict=True)
        result.append(np.array([stable_hash(" ".join(map(str, row))) for row in rows], np.uint64))
    return np.concatenate(result)


def _by_group(group: Ints) -> dict[int, Ints]:
    """Positions of each group's documents; negative groups are skipped."""
    order = np.argsort(group, kind="stable")
    numbers, first = np.unique(group[order], return_index=True)
    groups = zip(numbers.tolist(), np.split(order, first[1:]), strict=True) if len(numbers) else ()
    return {number: places for number, places in groups if number >= 0}


def _merged(
    documents: SpooledDocuments, order: NDArray[np.integer], group: Ints, dimension: int
) -> dict[int, Statistics]:
    """Statistics of groups of documents, added in an order, as `Statistics` adds, to the last bit.

    Args:
        documents: DOCUMENTS.
        order: rows, (documents,).
        group: int64 (documents,), in this order; negative for documents without a group.
        dimension: of frames.

    Returns:
        By group, for groups with a document.
    """
    counts: dict[int, int] = {}
    means: dict[int, Floats] = {}
    scatters: dict[int, Floats] = {}
    chosen = group >= 0
    order, group = order[chosen], group[chosen]
    for place, frames, mean, variance in _moments(documents, order, dimension):
        scatter = variance * frames[:, None]
        some = group[place : place + len(frames)].tolist()
        # In place: for a million documents, objects would take three times as long.
        for g, part, its_mean, its_scatter in zip(some, frames.tolist(), mean, scatter, strict=True):
            if g not in counts:
                counts[g], means[g], scatters[g] = 0, np.zeros(dimension), np.zeros(dimension)
            if not (count := counts[g] + part):
                continue
            difference = its_mean - means[g]
            means[g] += difference * (part / count)
            difference *= difference
            difference *= counts[g] * part / count
            scatters[g] += its_scatter
            scatters[g] += difference
            counts[g] = count
    return {k: Statistics(count, means[k], scatters[k]) for k, count in counts.items()}


def _moments(
    documents: SpooledDocuments, order: NDArray[np.integer], dimension: int
) -> Iterator[tuple[int, Ints, Floats, Floats]]:
    """Yield frames (documents,), means and variances (documents, dimension) in an order, in pieces, with the position of the
    first; through a file of rows of equal length, since pieces of any order are all over the documents.
    """
    if not len(order):
        return
    every, frames = 8 * 2 * dimension, documents.read(["frames"])["frames"].to_numpy()
    with tempfile.TemporaryFile(dir=scratch()) as file:
        for some in documents.pieces(["mean", "variance"]):
            both = [pc.list_flatten(column).to_numpy().reshape(-1, dimension) for column in some.columns]
            file.write(np.concatenate(both, axis=1).tobytes())
        file.flush()
        for place in range(0, len(order), _DOCUMENTS):
            rows = order[place : place + _DOCUMENTS].astype(np.int64)
            values = np.empty((len(rows), 2, dimension))
            starts = [0, *(np.flatnonzero(np.diff(rows) != 1) + 1).tolist(), len(rows)]
            for first, last in pairwise(starts):
                os.preadv(file.fileno(), [values[first:last].data], int(rows[first]) * every)
            yield place, frames[rows], values[:, 0], values[:, 1]


def statistics_in(table: pa.Table) -> dict[Scope, Statistics]:
    """Rows of STATISTICS by scope."""
    columns = ["scope", "name", "frames", "mean", "variance"]
    return {
        (row["scope"], row["name"]): Statistics.from_variance(row["frames"], row["mean"], row["variance"])
        for row in table.select(columns).to_pylist()
    }


#: Most documents in a shard: a search's memory grows with them, by a candidate per document and query.
MOST_DOCUMENTS = 4096
#: Most row groups in a documents table: one per shard, so a search reads only that of its shard.
_MOST_GROUPS = 4096


def cut(seconds: Sequence[float], target: float, shards: int | None = None) -> list[range]:
    """Divide documents into shards: consecutive ranges of their indices.

    A shard is closed when it reaches the target, which its last document may exceed, or holds `MOST_DOCUMENTS`.

    Args:
        seconds: length of each document.
        target: seconds of audio per shard.
        shards: cut into this many instead, as evenly as complete documents allow; fewer only if there are fewer
            documents.
    """
    if shards is not None:
        return _cut_into(seconds, min(shards, len(seconds)))
    ranges: list[range] = []
    first, filled = 0, 0.0
    for k, length in enumerate(seconds):
        filled += length
        if filled >= target * (1 - 1e-9) or k + 1 - first >= MOST_DOCUMENTS:
            ranges.append(range(first, k + 1))
            first, filled = k + 1, 0.0
    return [*ranges, range(first, len(seconds))] if first < len(seconds) else ranges


def _cut_into(seconds: Sequence[float], shards: int) -> list[range]:
    """Cut into `shards` ranges, at most one per document; each ends at its share of the total."""
    total = sum(seconds)
    ranges: list[range] = []
    first, passed = 0, 0.0
    for k, length in enumerate(seconds):
        passed += length
        required = shards - len(ranges) - 1  # shards to come
        left = len(seconds) - k - 1
        reached = passed >= total * (len(ranges) + 1) / shards * (1 - 1e-9)
        if left == required or (reached and required > 0):
            ranges.append(range(first, k + 1))
            first = k + 1
    return ranges


def by_shard(documents: SpooledDocuments) -> Iterator[pa.Table]:
    """A table for each shard's consecutive documents; for several shards if there are very many."""
    names, count = documents.read(["shard"])["shard"], documents.num_rows
    changes = pc.not_equal(names.slice(1), names.slice(0, max(0, count - 1)))
    borders = [0, *(np.flatnonzero(changes) + 1).tolist(), count]
    every = -(-len(borders) // _MOST_GROUPS)
    del names, changes
    pieces, held = documents.pieces(), DOCUMENTS.empty_table()
    for first, last in pairwise([*borders[:-1:every], count]):
        some = [held]
        while sum(table.num_rows for table in some) < last - first:
            some.append(next(pieces))
        joined = pa.concat_tables(some)
        yield joined.slice(0, last - first)
        held = joined.slice(last - first)
