"""Means and variances for queries that are places in recordings, normalised by recording like documents.

They apply with `search.documents_by: document`. They come from the store if it contains the recording, otherwise from
up to six minutes around the place.
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

from swsdist.audio.reader import probe, read_blocks
from swsdist.config.search import Search
from swsdist.core.errors import CutOffError
from swsdist.features.blocks import in_blocks
from swsdist.features.interface import Extractor, Precomputed, for_speaker, tracks_of
from swsdist.features.statistics import Statistics
from swsdist.io.filesystem import Folder, is_remote
from swsdist.store.manifest import relocated_paths
from swsdist.store.reading import Store
from swsdist.store.writing import ReadResult

#: Length of a stretch, and least length of a recording, in s. Without a store, statistics cover the stretch where a place
#: begins, and its neighbours.
_STRETCH, _LEAST = 120.0, 10.0

_COLUMNS = ["doc_id", "channel", "path", "recording", "start", "duration", "shard"]


#: A shard's track means and variances, and the row of each document and channel.
_Means = tuple[pa.Table, dict[tuple[str, int], int]]


def uses_recording_statistics(search: Search) -> bool:
    """Whether documents, and queries that are places in recordings, are normalised by their recording."""
    return search.documents_by == "document" and any(term.normalise != "none" for term in search.terms())


def with_statistics(rows: Sequence[dict[str, Any]], store: Store, tracks: Sequence[str]) -> list[dict[str, Any]]:
    """Add `statistics` to rows of QUERIES that are places: mean and variance of each track, [] if the store has none.

    Args:
        rows: of QUERIES.
        store: the searched store.
        tracks: names, in column order.
    """
    marked = [k for k, row in enumerate(rows) if row["start"] is not None or row["end"] is not None]
    if not marked:
        return list(rows)
    matches = [dict(row) for row in rows]
    documents = _documents(store, [rows[k] for k in marked])
    loaded: dict[tuple[str, str], _Means] = {}
    for k in marked:
        document = _holding(rows[k], documents)
        matches[k]["statistics"] = [] if document is None else _of(document, store, tracks, loaded)
    return matches


#: Documents by name, or by the real path of their file, and channel.
_Places = dict[tuple[str, int], list[dict[str, Any]]]


def _documents(store: Store, rows: Sequence[dict[str, Any]]) -> _Places:
    """Documents of the store that may contain some places."""
    table = store.documents(columns=_COLUMNS)
    now = relocated_paths(store.folder, store.manifest.recordings, table["path"], table["path"])
    table = table.set_column(table.column_names.index("path"), "path", now)
    ids = pa.array({row["doc_id"] for row in rows if row["doc_id"] is not None}, pa.string())
    meant = pc.or_kleene(pc.is_in(table["doc_id"], ids), pc.is_in(table["recording"], ids))
    files = {row["path"] for row in rows if row["doc_id"] is None and row["path"] is not None}
    if files:  # a link may differ in name from its file
        ends = pa.array({path.rsplit("/", 1)[-1] for file in files for path in (file, _real(file))}, pa.string())
        end = pc.replace_substring_regex(table["path"], "^.*/", "")
        meant = pc.or_kleene(meant, pc.is_in(end, ends))
    documents: _Places = {}
    for row in table.filter(meant).to_pylist():
        for name in {row["doc_id"], row["recording"] or row["doc_id"], f"\0{_real(row['path'])}"}:
            documents.setdefault((name, row["channel"]), []).append(row)
    return documents


def _real(path: str) -> str:
    return path if is_remote(path) else os.path.realpath(path)


def _holding(row: dict[str, Any], documents: _Places) -> dict[str, Any] | None:
    """The document that contains the middle of a place."""
    name = row["doc_id"] if row["doc_id"] is not None else f"\0{_real(row['path'] or '')}"
    start = row["start"] or 0.0
    middle = start if row["end"] is None else (start + row["end"]) / 2
    for document in documents.get((name, row["channel"]), ()):
        first = document["start"] or 0.0
        if first <= middle <= first + document["duration"]:
            return document
    return None


def _of(
    document: dict[str, Any], store: Store, tracks: Sequence[str], loaded: dict[tuple[str, str], _Means]
) -> list[Any]:
    """Mean and variance of each track of a document; each shard is read once."""
    moments = []
    for track in tracks:
        key = document["shard"], track
        if key not in loaded:
            table = store.documents(document["shard"], ["doc_id", "channel", "mean", "variance"], track)
            keys = zip(table["doc_id"].to_pylist(), table["channel"].to_pylist(), strict=True)
            loaded[key] = table.select(["mean", "variance"]), {item: k for k, item in enumerate(keys)}
        values, rows = loaded[key]
        if (k := rows.get((document["doc_id"], document["channel"]))) is not None:
            moments.append([values["mean"][k].as_py(), values["variance"][k].as_py()])
    return moments if len(moments) == len(tracks) else []  # a track may lack the document


def with_recording_statistics(
    read: ReadResult, document: dict[str, Any], extractor: Extractor | Precomputed, folder: Folder
) -> ReadResult:
    """Add the statistics of the recording that contains a place, if they normalise the place.

    Args:
        read: of the place.
        document: `example`, a row of QUERIES; `statistics` of the extractor's tracks, as `with_statistics` gives them.
        extractor: of the store.
        folder: gives the storage options.

    Raises:
        AudioError: the recording cannot be read.
    """
    loaded = document.get("statistics")
    if loaded is None:
        return read
    if loaded:
        statistics = [Statistics.from_variance(1, mean, variance) for mean, variance in loaded]
    elif isinstance(extractor, Precomputed) or (taken := _around(document["example"], extractor, folder)) is None:
        return read
    else:
        statistics = taken
    return read._replace(recording=document["path"] or document["doc_id"], statistics=statistics)


def _around(row: dict[str, Any], extractor: Extractor, folder: Folder) -> list[Statistics] | None:
    """Statistics of each track of an extractor, over the minutes around a place; None if a recording is too short.

    Raises:
        AudioError: the recording cannot be read.
    """
    length = probe(row["path"], folder.storage).duration
    if length < _LEAST:
        return None
    stretch = (row["start"] or 0.0) // _STRETCH
    start, end = max(0.0, (stretch - 1) * _STRETCH), min(length, (stretch + 2) * _STRETCH)
    extractor, tracks = for_speaker(extractor, row["speaker"]), tracks_of(extractor)
    total = [Statistics.zero(track.stop - track.first) for track in tracks]
    samples: Iterator[NDArray[np.float32]] = read_blocks(
        row["path"],
        channel=row["channel"],
        rate=extractor.sample_rate,
        start=start,
        end=end,
        storage=folder.storage,
    )
    with suppress(CutOffError):  # the readable part is enough
        for frames in in_blocks(extractor, samples):
            parts = [Statistics.of(frames[:, track.first : track.stop]) for track in tracks]
            total = [sums + part for sums, part in zip(total, parts, strict=True)]
    return total
