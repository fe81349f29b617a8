"""Means and variances of the recordings that queries are marked in: a query that is a place in one is normalised as the
documents are, by those of its own recording (`search.documents_by: document`).

They are those that the store holds of it, where it is indexed; else those of some minutes around the place.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.audio.formats.headers import CutOff
from swsdist.audio.reader import probe, read_blocks
from swsdist.config.search import Search
from swsdist.features.blocks import in_blocks
from swsdist.features.interface import Extractor, Given, spoken_by, tracks_of
from swsdist.features.statistics import Statistics
from swsdist.io.filesystem import Folder, is_remote
from swsdist.store.places import found_again
from swsdist.store.reading import Store
from swsdist.store.writing import Read

#: Seconds to both sides of a place of which statistics are taken, where the store has none; and how many make a mean.
_AROUND, _LEAST = 300.0, 10.0

_COLUMNS = ["doc_id", "channel", "path", "recording", "start", "duration", "shard"]


def are_wanted(search: Search) -> bool:
    """Whether documents are normalised by their own statistics, and so are queries that are places in one."""
    return search.documents_by == "document" and any(term.normalise != "none" for term in search.terms())


def with_statistics(rows: Sequence[dict[str, Any]], store: Store, tracks: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of QUERIES; those that are places have `statistics`: mean and variance of each track, [] where the store has none.

    Args:
        rows: of QUERIES.
        store: that is searched.
        tracks: names, from left to right.
    """
    marked = [k for k, row in enumerate(rows) if row["start"] is not None or row["end"] is not None]
    if not marked:
        return list(rows)
    found = [dict(row) for row in rows]
    documents = _documents(store, [rows[k] for k in marked])
    known: dict[tuple[str, str, str, int], list[Any]] = {}
    for k in marked:
        document = _holding(rows[k], documents)
        found[k]["statistics"] = [] if document is None else _of(document, store, tracks, known)
    return found


def _documents(store: Store, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Documents of the store that could hold some places."""
    table = store.documents(columns=_COLUMNS)
    now = found_again(store.folder, store.manifest.recordings, table["path"], table["path"])
    table = table.set_column(table.column_names.index("path"), "path", now)
    names = pa.array({row["doc_id"] for row in rows if row["doc_id"] is not None}, pa.string())
    real = {_real(row["path"]) for row in rows if row["path"] is not None}
    paths = pc.unique(table["path"])
    same = pa.array([path for path in paths.to_pylist() if path and _real(path) in real], pa.string())
    by_name = pc.or_kleene(pc.is_in(table["doc_id"], names), pc.is_in(table["recording"], names))
    found: list[dict[str, Any]] = table.filter(pc.or_kleene(by_name, pc.is_in(table["path"], same))).to_pylist()
    return found


def _real(path: str) -> str:
    return path if is_remote(path) else os.path.realpath(path)


def _holding(row: dict[str, Any], documents: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The document that a place is in, by its middle."""
    start = row["start"] or 0.0
    for document in documents:
        named = row["doc_id"] is not None and row["doc_id"] in (document["doc_id"], document["recording"])
        is_it = named or (row["path"] and document["path"] and _real(row["path"]) == _real(document["path"]))
        if is_it and document["channel"] == row["channel"]:
            first = document["start"] or 0.0
            middle = start if row["end"] is None else (start + row["end"]) / 2
            if first <= middle <= first + document["duration"]:
                return document
    return None


def _of(
    document: dict[str, Any], store: Store, tracks: Sequence[str], known: dict[tuple[str, str, str, int], list[Any]]
) -> list[Any]:
    found = []
    for track in tracks:
        key = document["shard"], track, document["doc_id"], document["channel"]
        if key not in known:
            table = store.documents(document["shard"], ["doc_id", "channel", "mean", "variance"], track)
            mine = pc.and_(pc.equal(table["doc_id"], key[2]), pc.equal(table["channel"], key[3]))
            known[key] = [[one["mean"], one["variance"]] for one in table.filter(mine).to_pylist()]
        found += known[key]
    return found if len(found) == len(tracks) else []  # a track may lack it


def normalised_by_own(read: Read, document: dict[str, Any], extractor: Extractor | Given, folder: Folder) -> Read:
    """What was read, with the statistics of the recording that it is a place in, where these normalise it.

    Args:
        read: of the place.
        document: `example`, a row of QUERIES; `statistics` of the extractor's tracks, as `with_statistics` gives them.
        extractor: of the store.
        folder: gives the storage options.

    Raises:
        AudioError: the recording cannot be read.
    """
    known = document.get("statistics")
    if known is None:
        return read
    if known:
        found = [Statistics.from_variance(1, mean, variance) for mean, variance in known]
    elif isinstance(extractor, Given) or (taken := _around(document["example"], extractor, folder)) is None:
        return read
    else:
        found = taken
    return read._replace(recording=document["path"] or document["doc_id"], statistics=found)


def _around(row: dict[str, Any], extractor: Extractor, folder: Folder) -> list[Statistics] | None:
    """Statistics of each track of an extractor, of the minutes around a place; None where a recording is too short for that.

    Raises:
        AudioError: the recording cannot be read.
    """
    length = probe(row["path"], folder.storage).duration
    if length < _LEAST:
        return None
    start = max(0.0, (row["start"] or 0.0) - _AROUND)
    end = min(length, (length if row["end"] is None else row["end"]) + _AROUND)
    extractor, tracks = spoken_by(extractor, row["speaker"]), tracks_of(extractor)
    total = [Statistics.zero(track.stop - track.first) for track in tracks]
    samples: Iterator[NDArray[np.float32]] = read_blocks(
        row["path"],
        channel=row["channel"],
        rate=extractor.sample_rate,
        start=start,
        end=end,
        storage=folder.storage,
    )
    with suppress(CutOff):  # what can be read of it is enough
        for frames in in_blocks(extractor, samples):
            parts = [Statistics.of(frames[:, track.first : track.stop]) for track in tracks]
            total = [one + part for one, part in zip(total, parts, strict=True)]
    return total
