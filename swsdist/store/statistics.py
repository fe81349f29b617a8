"""The statistics that normalise, as a pinned model of a store: taken once, then applied to all that comes later.

A scope is the collection, or a speaker. Its statistics are taken when a state of the store is committed that holds documents
of it, and then **frozen**: documents that are added later do not change them, so no earlier result changes.

- In a provisional state (tasks have failed, documents are to come) what was frozen is carried on untouched, and what was not is
  taken from the documents that are there and taken anew at the next commit. So it does not matter whether a task had failed.
- All are taken anew where **none** of the recordings that the collection's were taken from is there any more, by doc_id,
  channel and SHA-256: another corpus is not normalised by the one before it. Where some are left all stay, and the manifest
  counts those that are gone (`counts["statistics_gone"]`), which a run tells; `swsdist store refit` takes new ones.
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

#: Documents whose means and variances are in memory together.
_DOCUMENTS = 1 << 16

#: Whose statistics: `("collection", "")` or `("speaker", name)`.
Scope = tuple[str, str]


class Pinned(NamedTuple):
    """The file of a state's statistics, and how many recordings of the collection's are gone."""

    file: str
    gone: int


def pinned(
    folder: Folder, track: str, documents: pa.Table, dimension: int, frozen: pa.Table | None, provisional: bool
) -> Pinned:
    """Publish the statistics of a state.

    Args:
        folder: the store.
        track: whose frames.
        documents: DOCUMENTS of the track, the live ones.
        dimension: of its frames.
        frozen: STATISTICS of the state before, None at first.
        provisional: documents are missing that are to come.
    """
    table, gone = fitted(documents, dimension, frozen, provisional)
    # Named by what it holds: the same statistics keep their file.
    name = f"models/statistics-{fingerprint(track, table.to_pylist())}.parquet"
    parquet.publish(folder, name, [table], STATISTICS)
    return Pinned(name, gone)


def fitted(documents: pa.Table, dimension: int, frozen: pa.Table | None, provisional: bool) -> tuple[pa.Table, int]:
    """STATISTICS of a state, sorted by scope, and how many recordings of the collection's are gone."""
    # A million documents are several hundred MB, so of their columns only some rows are put in order at a time.
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
    return pa.Table.from_pylist([known[scope] for scope in sorted(known)], STATISTICS), gone


def _pieces(documents: pa.Table, order: NDArray[np.integer], columns: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
    """Some columns in an order, some rows at a time, and the place of the first of these."""
    chosen = documents.select(list(columns))
    for place in range(0, len(order), _DOCUMENTS):
        yield place, chosen.take(pa.array(order[place : place + _DOCUMENTS])).combine_chunks()


def _by_group(group: NDArray[np.int64]) -> dict[int, NDArray[np.int64]]:
    """Places of each group's documents; of those below 0 none."""
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
        group: int64 (documents,), in this order; below 0 for what is in none.
        dimension: of frames.

    Returns:
        By group, of those that have a document.
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
        # In place: there may be a million documents, and objects would take three times as long.
        for g, own, its_mean, its_scatter in zip(some, frames.tolist(), mean, scatter, strict=True):
            if g < 0:
                continue
            if g not in counts:
                counts[g], means[g], scatters[g] = 0, np.zeros(dimension), np.zeros(dimension)
            if not (count := counts[g] + own):
                continue
            difference = its_mean - means[g]
            means[g] += difference * (own / count)
            difference *= difference
            difference *= counts[g] * own / count
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
    """64 bits that stand for a recording's channel under a name."""
    return stable_hash(f"{doc_id} {channel} {sha256}")
