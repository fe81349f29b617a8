"""Extract the features of spoken examples, and write them as a store of queries.

Documents and examples share the same code (`store.writing.write_tracks`) and recipe.

An example that is a place in a recording is computed with the context the extractor needs, and then cut, so its edge
frames equal those of running speech. A file that was cut before has no context; the extractor repeats its edges.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.audio.speech import bandwidth_of
from swsdist.config.search import Dropping, Search
from swsdist.core.codes import methods as codes
from swsdist.core.fingerprint import stable_hash
from swsdist.core.types import EXAMPLES, REJECTED
from swsdist.features.blocks import regrouped
from swsdist.features.extractors import Source, recipe, recipe_fingerprint
from swsdist.features.interface import (
    Extractor,
    Precomputed,
    dtype_of,
    frame_shift,
    frames_seconds,
    kind_of,
    tracks_of,
)
from swsdist.features.statistics import Statistics
from swsdist.io.filesystem import Folder
from swsdist.io.remote.scratch import scratch
from swsdist.methods.query.averaging import averaged
from swsdist.methods.query.dropping import demand_kept
from swsdist.methods.query.example import Example
from swsdist.methods.query.example_frames import bounded, example_frames
from swsdist.methods.query.recording_statistics import with_recording_statistics
from swsdist.methods.query.speech_trimming import trim_to_speech
from swsdist.store.manifest import REJECTED_DOCUMENTS, File, Manifest, Shard, Track
from swsdist.store.parquet import Output, numbers, publish
from swsdist.store.reading import Store, Tracks
from swsdist.store.writing import Reading, ReadResult, precomputed_example, shard_name, write_tracks

#: Least (except in the last group) and most queries of a group.
GROUP_LEAST, GROUP_MOST = 64, 512


class Cut(NamedTuple):
    """Seconds trimmed before and after the speech of an example."""

    query_id: str
    example: int
    before: float
    after: float


class Extracted(NamedTuple):
    """Features of examples (EXAMPLES), unusable examples (REJECTED), seconds of the usable ones, and trimmed seconds."""

    examples: pa.Table
    rejected: pa.Table
    seconds: float
    cuts: tuple[Cut, ...]


class Group(NamedTuple):
    """A group of queries, written as a shard of a store of queries.

    Attributes:
        manifest: a state of the store with this group only.
        outputs: its files: frames and documents of each track, and the rejected examples.
        examples: EXAMPLES.
        rejected: REJECTED_DOCUMENTS of kind `query`.
        cuts: the trimmed seconds.
    """

    manifest: Manifest
    outputs: tuple[Output, ...]
    examples: pa.Table
    rejected: pa.Table
    cuts: tuple[Cut, ...]


def groups(query_ids: list[str]) -> list[list[str]]:
    """Split a sorted list of query ids into groups that are searched together.

    A stable hash of the ids sets the boundaries, so adding a query changes only its own group.
    """
    cut: list[list[str]] = []
    current: list[str] = []
    for query_id in sorted(set(query_ids)):
        current.append(query_id)
        ends = len(current) >= GROUP_LEAST and stable_hash(query_id) % 64 == 0
        if ends or len(current) == GROUP_MOST:
            cut.append(current)
            current = []
    return [*cut, current] if current else cut


def extract(
    rows: list[dict[str, Any]],
    extractor: Extractor | Precomputed | Sequence[Extractor | Precomputed],
    folder: Folder,
    search: Search | None = None,
    trim: bool = True,
    dropping: Dropping | None = None,
) -> Extracted:
    """Extract unnormalised features of examples; reject those that are unusable or too long to search.

    Args:
        rows: of QUERIES; rows without a path are rejected. For precomputed frames they also hold the columns that
            `stages.inputs.given.add_items_of_examples` adds, under the recipe "".
        extractor: the store's extractor, or several, whose columns are concatenated and cut to the shortest.
        folder: gives the storage options.
        search: names the recurrence, which limits the frames of an example, and whether examples of a query are
            averaged, which has its own limit; by default the defaults of a config.
        dropping: frames that the search leaves out; an example that has no others is rejected.
        trim: trim non-speech at both ends of complete recordings, and reject those without speech. If the frames of an
            example are precomputed, it is not trimmed for any extractor, because they cover the untrimmed example.
    """
    extractors = [extractor] if isinstance(extractor, Extractor | Precomputed) else list(extractor)
    sources = [
        Source(item.name, {}, item, "", tuple(track._replace(name=f"{k}.{track.name}") for track in tracks_of(item)))
        for k, item in enumerate(extractors)
    ]
    with tempfile.TemporaryDirectory(dir=scratch()) as place:
        group = write_group(Folder(place, folder.storage), "queries", rows, sources, search, trim, dropping)
    rejected = group.rejected.select(REJECTED.names)
    return Extracted(group.examples, rejected, sum(group.examples["duration"].to_pylist()), group.cuts)


def write_group(
    folder: Folder,
    fingerprint: str,
    rows: list[dict[str, Any]],
    sources: Sequence[Source],
    search: Search | None = None,
    trim: bool = True,
    dropping: Dropping | None = None,
) -> Group:
    """Compute the features of a group's examples, and publish them as a shard of a store of queries.

    Each query is a document of the shard; the number of the example takes the place of the channel.

    Args:
        folder: the store.
        fingerprint: of this task; names the outputs.
        rows: of QUERIES, with the `identity` of each file if known, and `statistics` if those of the recording
            normalise
            (`recording_statistics.with_statistics`).
        sources: extractors, with the tracks of each.
        search, trim, dropping: see `extract`.
    """
    cuts: dict[tuple[str, int], Cut] = {}
    trim = trim and not any(isinstance(source.extractor, Precomputed) for source in sources)
    reading = _reading(search or Search(), Counter(row["query_id"] for row in rows), cuts if trim else None)
    if any(isinstance(source.extractor, Precomputed) for source in sources):
        # Rows without statistics normalise all tracks alike: by the place, or by the store's statistics.
        rows = [row if row.get("statistics") else {**row, "statistics": None} for row in rows]
    wanted = [_as_document(row) for row in rows]
    outputs: list[Output] = []
    tracks: list[Track] = []
    rejected: dict[tuple[str, int], dict[str, Any]] = {}
    files: dict[str, File] = {}
    counts: list[tuple[int, int]] = []
    shard = shard_name(fingerprint)
    for k, source in enumerate(sources):
        # An example must be usable for every extractor.
        left = [row for row in wanted if (row["doc_id"], row["channel"]) not in rejected]
        if isinstance(source.extractor, Precomputed):
            left = [_with_frames(row, source.fingerprint) for row in left]
        left = [{**row, "dropping": _within(dropping, sources, k)} for row in left]
        before = sum(len(source.tracks) for source in sources[:k])
        left = [_with_statistics(row, before, before + len(source.tracks)) for row in left]
        name = fingerprint if k == 0 else f"{fingerprint}-{k}"
        made = write_tracks(folder, name, left, source.extractor, shard, reading, "query")
        for row in made[0].rejected.to_pylist():
            rejected.setdefault((row["id"], row["part"]), row)
        described = recipe(source.extractor)
        for indexed, track in zip(made, source.tracks, strict=True):
            frames, documents, _ = indexed.outputs
            outputs += [frames, documents]
            files[track.name] = File(*frames)
            counts.append((indexed.documents.num_rows, sum(indexed.documents["frames"].to_pylist())))
            tracks.append(
                Track(
                    track.name,
                    described,
                    recipe_fingerprint(described),
                    track.stop - track.first,
                    source.columns(track),
                    kind_of(source.extractor),
                    documents.name,
                )
            )
    table = pa.Table.from_pylist(list(rejected.values()), REJECTED_DOCUMENTS)
    refused = publish(folder, f"rejected-{fingerprint}.parquet", [table], REJECTED_DOCUMENTS)
    manifest = Manifest(
        fingerprint=fingerprint,
        kind="frames",
        tick=frame_shift(sources[0].extractor),
        tracks=tuple(tracks),
        shards=(Shard(shard, files, *counts[0]),),
        rejected=refused.name,
        models={},
        counts={},
    )
    examples = examples_of(Store(folder, manifest))
    used = zip(examples["query_id"].to_pylist(), examples["example"].to_pylist(), strict=True)
    made_of = tuple(cut for key in used if (cut := cuts.get(key)) is not None and (cut.before or cut.after))
    return Group(manifest, (*outputs, refused), examples, table, made_of)


def examples_of(store: Store) -> pa.Table:
    """All examples of a store of queries (EXAMPLES), with the columns of all tracks concatenated."""
    tracks = Tracks(store)
    examples: list[dict[str, Any]] = []
    for shard in store.manifest.shards:
        rows = tracks.documents(shard.name).to_pylist()
        frames: dict[tuple[str, int], list[NDArray[np.float32]]] = {}
        for block in tracks.blocks(shard.name, {(row["doc_id"], row["channel"]) for row in rows}):
            frames.setdefault((block.doc_id, block.channel), []).append(block.features)
        for row in rows:
            blocks = frames[row["doc_id"], row["channel"]]
            examples.append(
                {
                    "query_id": row["doc_id"],
                    "example": row["channel"],
                    "duration": row["duration"],
                    "frames": sum(map(len, blocks)),
                    "speaker": row["speaker"],
                    "features": b"".join(np.ascontiguousarray(block, "<f4").tobytes() for block in blocks),
                    "bandwidth": row["bandwidth"],
                    **({name: row[name] for name in ("mean", "variance")} if row["recording"] else {}),
                }
            )
    return pa.Table.from_pylist(examples, EXAMPLES)


def _as_document(row: dict[str, Any]) -> dict[str, Any]:
    """Convert the row of an example to a document of `store.writing`; a place in a file has no SHA-256."""
    uncut = row["path"] is not None and row["start"] is None and row["end"] is None
    document = {
        "doc_id": row["query_id"],
        "channel": row["example"],
        "path": row["path"],
        "identity": row.get("identity") or "",
        "speaker": row["speaker"],
        "example": row,
    }
    return document if uncut else {**document, "sha256": ""}


def _with_frames(document: dict[str, Any], recipe: str) -> dict[str, Any]:
    """Add the item of the precomputed frames, and whether a place is cut out of it."""
    example = document["example"]
    item, identity = example["items"][recipe], example["given"][recipe]
    return {
        **{name: value for name, value in document.items() if name != "sha256"},
        "item": item,
        "identity": identity,
        "key": example["key"],
        "cut": example["cut"][recipe],
        "begins": example.get("begins", 0.0),
    }


def _with_statistics(document: dict[str, Any], first: int, stop: int) -> dict[str, Any]:
    normalisation = document["example"].get("statistics")
    return document if normalisation is None else {**document, "statistics": normalisation[first:stop]}


def _stored(frames: NDArray[np.float32], extractor: Extractor | Precomputed) -> NDArray[np.float32]:
    """Frames as they are read from the store, rounded."""
    return frames.astype(numbers(dtype_of(extractor))).astype(np.float32)


def _within(dropping: Dropping | None, sources: Sequence[Source], k: int) -> Dropping | None:
    """Dropping in the columns of source k; None if its track is another source's."""
    ends = [0, *accumulate(sum(track.stop - track.first for track in source.tracks) for source in sources)]
    if dropping is None or not ends[k] <= dropping.track[0] < ends[k + 1]:
        return None
    return dropping.moved(-ends[k])


def _reading(search: Search, several: Mapping[str, int], cuts: dict[tuple[str, int], Cut] | None) -> Reading:
    """Return the reader of examples; `several` counts the examples of queries. Trimmed seconds go to `cuts`; None: no
    trimming.
    """
    places: dict[tuple[str, int], tuple[float | None, float | None]] = {}

    def trimmed(row: dict[str, Any], rate: int, folder: Folder) -> dict[str, Any]:
        key = row["query_id"], row["example"]
        if cuts is None or (row["start"] is not None and row["end"] is not None):
            return row
        if key not in places:  # later extractors use the places of the first
            speech = trim_to_speech(row, rate, folder.storage)
            places[key] = speech.start, speech.end
            cuts[key] = Cut(*key, round(speech.before, 3), round(speech.after, 3))
        return {**row, "start": places[key][0], "end": places[key][1]}

    def read(
        document: dict[str, Any], extractor: Extractor | Precomputed, folder: Folder
    ) -> Generator[NDArray[np.float32], None, ReadResult]:
        row = document["example"]
        average = search.examples == "template" and several[row["query_id"]] > 1
        if isinstance(extractor, Precomputed):
            frames = bounded(precomputed_example(document, extractor, folder), row, search, average)
            demand_kept(_stored(frames, extractor), row, document["dropping"], search.least_query_frames)
            yield from regrouped([frames])
            return with_recording_statistics(ReadResult(_duration(row, frames, extractor)), document, extractor, folder)
        if row["path"] is None:
            raise codes.TEXT_QUERY(where=f"query {row['query_id']}", method=search.method)
        row = trimmed(row, extractor.sample_rate, folder)
        frames = bounded(example_frames(row, extractor, folder), row, search, average)
        demand_kept(_stored(frames, extractor), row, document["dropping"], search.least_query_frames)
        yield from regrouped([frames])
        hz = bandwidth_of(row, extractor.sample_rate, folder.storage)
        return with_recording_statistics(
            ReadResult(_duration(row, frames, extractor), bandwidth=hz), document, extractor, folder
        )

    return read


def _duration(row: dict[str, Any], frames: NDArray[np.float32], extractor: Extractor | Precomputed) -> float:
    if row["start"] is not None and row["end"] is not None:
        return float(row["end"] - row["start"])
    return frames_seconds(extractor, len(frames))


def prepared(
    table: pa.Table, statistics: dict[tuple[str, str], Statistics], search: Search, dimension: int, factor: int = 1
) -> list[Example]:
    """Prepare examples for the search, in the table's order, or one template per query, in the order of first examples.

    Examples of fewer frames than `search.least_query_frames` are left out. A template has the least number of its examples.

    Args:
        table: EXAMPLES.
        statistics: the store's frozen statistics. A query is normalised by its recording, if its statistics exist and
            `search.documents_by` says so; otherwise by its speaker, if `search.queries_by` says so and the store knows the
            speaker; otherwise by the collection, or by it and all queries together; its own mean counts beside theirs if
            `search.corpus_frames` says so.
        search: names the distance, the offset removed from features, and whether examples are averaged.
        dimension: of the features.
        factor: number of frames averaged first.

    Raises:
        DataError: the distance compares posteriors, and the features of a query are none.
    """
    from swsdist.methods.dtw.distance import distance_of, offset_and_scale  # loads numba, which planning does not need

    distance = distance_of(search, dimension)
    collection = statistics["pooled" if search.queries_by == "pooled" else "collection", ""]
    by_speaker, examples = search.queries_by == "speaker", []
    averaging: dict[str, list[tuple[int, NDArray[np.float64], int]]] = {}
    for row in table.to_pylist():
        if row["frames"] < search.least_query_frames:
            continue
        normalisation = statistics.get(("speaker", row["speaker"] or ""), collection) if by_speaker else collection
        features = np.frombuffer(row["features"], "<f4").reshape(-1, dimension)
        if row["mean"] is not None:
            if search.documents_by == "document":
                normalisation = Statistics.from_variance(1, row["mean"], row["variance"])
        elif search.corpus_frames is not None:
            normalisation = normalisation.near(Statistics.of(features), search.corpus_frames)
        where = f"query {row['query_id']}, example {row['example']}"
        features = np.concatenate(list(averaged([features], factor)))
        offset, scale = offset_and_scale(search, normalisation)
        spoken = distance.prepare(features, offset, scale, "query", where)
        if search.examples == "template":
            # The first step of `prepare`: two correctly rounded operations, so numpy yields the same bytes.
            averaging.setdefault(row["query_id"], []).append(
                (row["example"], (features - offset) / scale, spoken.saturated)
            )
            continue
        examples.append(Example(row["query_id"], row["example"], spoken.frames, spoken.saturated))
    if averaging:
        from swsdist.methods.query.template import template

        for query_id, several in averaging.items():
            numbers, values, saturated = zip(*several, strict=True)
            frames = template(values, distance, f"query {query_id}")
            examples.append(Example(query_id, min(numbers), frames, sum(saturated)))
    return examples
