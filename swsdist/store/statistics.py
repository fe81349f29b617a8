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

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.features.statistics import Statistics
from swsdist.fingerprint import fingerprint, stable_hash
from swsdist.io.filesystem import Folder
from swsdist.store import parquet
from swsdist.types import STATISTICS

#: Documents whose means and variances are in memory together.
_DOCUMENTS = 1 << 14

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
    ordered = documents.sort_by([("doc_id", "ascending"), ("channel", "ascending")])
    marks = np.array(
        [_mark(*row) for row in zip(*(ordered[n].to_pylist() for n in ("doc_id", "channel", "sha256")), strict=True)],
        np.uint64,
    )
    there = set(marks.tolist())
    before = [row for row in frozen.to_pylist() if row["frozen"]] if frozen is not None else []
    stay = provisional or any(
        row["scope"] == "collection" and not there.isdisjoint(row["taken_from"]) for row in before
    )
    known: dict[Scope, dict[str, Any]] = {(row["scope"], row["name"]): row for row in before} if stay else {}
    speakers = pc.fill_null(ordered["speaker"], "").combine_chunks().dictionary_encode()
    names = speakers.dictionary.to_pylist()
    whole = np.zeros(len(marks), np.int64)
    for scopes, codes in (
        ([("collection", "")], whole),
        ([("speaker", name) for name in names], speakers.indices.to_numpy().astype(np.int64)),
    ):
        wanted = np.array([scope not in known and scope != ("speaker", "") for scope in scopes], bool)
        group = np.where(wanted[codes], codes, -1) if len(scopes) else whole
        of = _by_group(group)
        for k, value in _merged(ordered, group, dimension).items():
            known[scopes[k]] = {
                "scope": scopes[k][0],
                "name": scopes[k][1],
                "frames": value.frames,
                "mean": value.mean.tolist(),
                "variance": value.variance.tolist(),
                "frozen": not provisional,
                "taken_from": np.sort(marks[of[k]]).tolist(),
            }
    collection = known.get(("collection", ""))
    gone = len(set(collection["taken_from"]) - there) if collection is not None else 0
    return pa.Table.from_pylist([known[scope] for scope in sorted(known)], STATISTICS), gone


def _by_group(group: NDArray[np.int64]) -> dict[int, NDArray[np.int64]]:
    """Places of each group's documents; of those below 0 none."""
    order = np.argsort(group, kind="stable")
    numbers, first = np.unique(group[order], return_index=True)
    found = zip(numbers.tolist(), np.split(order, first[1:]), strict=True) if len(numbers) else ()
    return {number: places for number, places in found if number >= 0}


def _merged(documents: pa.Table, group: NDArray[np.int64], dimension: int) -> dict[int, Statistics]:
    """Statistics of groups of documents, added in the order of these, as `Statistics` adds, to the last bit.

    Args:
        documents: DOCUMENTS.
        group: int64 (documents,), below 0 for what is in none.
        dimension: of frames.

    Returns:
        By group, of those that have a document.
    """
    counts: dict[int, int] = {}
    means: dict[int, NDArray[np.float64]] = {}
    scatters: dict[int, NDArray[np.float64]] = {}
    place = 0
    for batch in documents.select(["frames", "mean", "variance"]).to_batches(max_chunksize=_DOCUMENTS):
        mean, variance = (batch[name].flatten().to_numpy().reshape(-1, dimension) for name in ("mean", "variance"))
        frames = batch["frames"].to_numpy()
        scatter = variance * frames[:, None]
        some = group[place : place + len(frames)].tolist()
        place += len(frames)
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
