"""The normalising statistics, a pinned model of a store: computed once, then applied to all later documents.

A scope is the collection, or a speaker. Its statistics are computed when the first state with a document of it is
committed, and then **frozen**: later documents do not change them, so no earlier result changes.

- A provisional state (tasks failed, documents are to come) keeps frozen statistics; it computes the others from the
  documents present, and the next commit recomputes them. So a failed task does not affect the final statistics.
- All are recomputed if **none** of the recordings behind the collection's statistics remains, by doc_id, channel and
  SHA-256: the statistics of one corpus do not normalise another. If some remain, all statistics stay, and the manifest
  counts the missing recordings (`counts["statistics_gone"]`), which a run reports; `swsdist store refit` recomputes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.core.fingerprint import fingerprint, stable_hash
from swsdist.core.types import STATISTICS
from swsdist.features.statistics import Statistics
from swsdist.io.filesystem import Folder
from swsdist.store import parquet

#: Documents whose means and variances are in memory at a time.
_DOCUMENTS = 1 << 16

#: `("collection", "")` or `("speaker", name)`.
Scope = tuple[str, str]


class Pinned(NamedTuple):
    """The statistics of a state.

    Attributes:
        file: of them.
        gone: number of missing recordings behind the collection's.
        anew: whether the collection's were computed now.
    """

    file: str
    gone: int
    anew: bool


def pinned(
    folder: Folder, track: str, documents: pa.Table, dimension: int, frozen: pa.Table | None, provisional: bool
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
    name = f"models/statistics-{fingerprint(track, table.to_pylist())}.parquet"
    parquet.publish(folder, name, [table], STATISTICS)
    return Pinned(name, gone, anew)


def fitted(
    documents: pa.Table, dimension: int, frozen: pa.Table | None, provisional: bool
) -> tuple[pa.Table, int, bool]:
    """STATISTICS of a state, sorted by scope; of the collection's the number of missing recordings behind them, and whether
    they are new.
    """
    # A million documents take several hundred MB, so columns are sorted piecewise.
    order = pc.sort_indices(documents, [("doc_id", "ascending"), ("channel", "ascending")]).to_numpy()
    marks = np.empty(len(order), np.uint64)
    for place, some in _pieces(documents, order, ("doc_id", "channel", "sha256")):
        rows = zip(*(column.to_pylist() for column in some.columns), strict=True)
        marks[place : place + some.num_rows] = [_mark(*row) for row in rows]
    before = [row for row in frozen.to_pylist() if row["frozen"]] if frozen is not None else []
    taken_from = {(row["scope"], row["name"]): np.array(row["taken_from"], np.uint64) for row in before}
    stay = provisional or any(
        scope == "collection" and bool(np.isin(there, marks).any()) for (scope, _), there in taken_from.items()
    )
    known: dict[Scope, dict[str, Any]] = {(row["scope"], row["name"]): row for row in before} if stay else {}
    anew = ("collection", "") not in known
    speakers = pc.fill_null(documents["speaker"], "").combine_chunks().dictionary_encode()
    names = speakers.dictionary.to_pylist()
    for scopes, codes in (
        ([("collection", "")], np.zeros(len(marks), np.int64)),
        ([("speaker", name) for name in names], speakers.indices.to_numpy().astype(np.int64)[order]),
    ):
        required = np.array([scope not in known and scope != ("speaker", "") for scope in scopes], bool)
        group = np.where(required[codes], codes, -1) if len(scopes) else codes
        of = _by_group(group)
        for k, value in _merged(documents, order, group, dimension).items():
            known[scopes[k]] = {
                "scope": scopes[k][0],
                "name": scopes[k][1],
                "frames": value.frames,
                "mean": value.mean.tolist(),
                "variance": value.variance.tolist(),
                "frozen": not provisional,
                "taken_from": np.sort(marks[of[k]]),
            }
    collection = known.get(("collection", ""))
    gone = 0 if collection is None else int((~np.isin(np.array(collection["taken_from"], np.uint64), marks)).sum())
    return pa.Table.from_pylist([known[scope] for scope in sorted(known)], STATISTICS), gone, anew


def _pieces(documents: pa.Table, order: NDArray[np.integer], columns: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
    """Yield columns in an order, in pieces, with the position of each piece's first row."""
    chosen = documents.select(list(columns))
    for place in range(0, len(order), _DOCUMENTS):
        yield place, chosen.take(pa.array(order[place : place + _DOCUMENTS])).combine_chunks()


def _by_group(group: NDArray[np.int64]) -> dict[int, NDArray[np.int64]]:
    """Positions of each group's documents; negative groups are skipped."""
    order = np.argsort(group, kind="stable")
    numbers, first = np.unique(group[order], return_index=True)
    result = zip(numbers.tolist(), np.split(order, first[1:]), strict=True) if len(numbers) else ()
    return {number: places for number, places in result if number >= 0}


def _merged(
    documents: pa.Table, order: NDArray[np.integer], group: NDArray[np.int64], dimension: int
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
    means: dict[int, NDArray[np.float64]] = {}
    scatters: dict[int, NDArray[np.float64]] = {}
    for place, batch in _pieces(documents, order, ("frames", "mean", "variance")):
        mean, variance = (
            pc.list_flatten(batch[name]).to_numpy().reshape(-1, dimension) for name in ("mean", "variance")
        )
        frames = batch["frames"].to_numpy()
        scatter = variance * frames[:, None]
        some = group[place : place + len(frames)].tolist()
        # In place: for a million documents, objects would take three times as long.
        for g, part, its_mean, its_scatter in zip(some, frames.tolist(), mean, scatter, strict=True):
            if g < 0:
                continue
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


def statistics_in(table: pa.Table) -> dict[Scope, Statistics]:
    """Rows of STATISTICS by scope."""
    columns = ["scope", "name", "frames", "mean", "variance"]
    return {
        (row["scope"], row["name"]): Statistics.from_variance(row["frames"], row["mean"], row["variance"])
        for row in table.select(columns).to_pylist()
    }


def _mark(doc_id: str, channel: int, sha256: str) -> int:
    """64-bit digest of a recording's doc_id, channel and SHA-256."""
    return stable_hash(f"{doc_id} {channel} {sha256}")
