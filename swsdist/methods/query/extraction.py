"""Extract the features of spoken examples, and write them as a store of queries.

Documents and examples share the same code (`store.writing.write_tracks`) and recipe.

An example that is a place in a recording is computed with the context the extractor needs, and then cut, so its edge
frames equal those of running speech. A file that was cut before has no context; the extractor repeats its edges.

With `search.documents_by: document`, an example that is a place is normalised by the mean and variance of its
recording. They come from the store if it contains the recording, otherwise from up to six minutes around the place.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.audio.reader import probe, read_blocks
from swsdist.audio.speech import bandwidth_of
from swsdist.config.search import Dropping, Search
from swsdist.core.arrays import Floats, Singles
from swsdist.core.codes import families
from swsdist.core.codes import methods as codes
from swsdist.core.errors import AudioError, CutOffError
from swsdist.core.fingerprint import stable_hash
from swsdist.core.types import EXAMPLES, REJECTED
from swsdist.features.blocks import in_blocks, regrouped
from swsdist.features.extractors import Source, recipe, recipe_fingerprint
from swsdist.features.interface import (
    Extractor,
    Precomputed,
    dtype_of,
    for_speaker,
    frame_count,
    frame_shift,
    frames_seconds,
    kind_of,
    surroundings,
    tracks_of,
)
from swsdist.features.statistics import Statistics
from swsdist.io.filesystem import Folder, is_remote
from swsdist.io.remote.scratch import scratch
from swsdist.kernels.arithmetic import LONGEST_QUERY
from swsdist.methods.query.example import Example, averaged
from swsdist.methods.query.speech_trimming import demand_kept, trim_to_speech
from swsdist.registry.registries import RECURRENCES
from swsdist.store.manifest import REJECTED_DOCUMENTS, File, Manifest, Shard, Track, relocated_paths
from swsdist.store.parquet import Output, numbers, publish
from swsdist.store.reading import Store, Tracks
from swsdist.store.writing import Reading, ReadResult, precomputed_example, shard_name, write_tracks

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
    samples: Iterator[Singles] = read_blocks(
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


#: Frames of an example that is averaged with others: a table of two such has 2^24 places.
LONGEST_AVERAGED = 1 << 12


def example_frames(row: dict[str, Any], extractor: Extractor, folder: Folder) -> Singles:
    """Frames of one example, float32 (frames, dimension).

    Raises:
        AudioError: the recording or the place cannot be used.
    """
    extractor = for_speaker(extractor, row["speaker"])
    rate, shift = extractor.sample_rate, frame_shift(extractor)
    start, end = row["start"], row["end"]
    context = surroundings(extractor)
    around = context * shift
    # Context to the left is a whole number of frames, so that the place begins on a frame.
    before = 0 if start is None else min(context, int(start / shift + 1e-6))
    parts = read_blocks(
        row["path"],
        channel=row["channel"],
        rate=rate,
        start=None if start is None else max(0.0, start - before * shift),  # that may be -2e-16
        end=None,
        storage=folder.storage,
    )
    if end is None:
        frames = np.concatenate(list(in_blocks(extractor, parts)))[before:]
        if len(frames) == 0:
            raise _too_short(row, extractor)
        return frames
    # Checked against the recording before the context is added to it.
    inside = sum(
        len(block)
        for block in read_blocks(
            row["path"], channel=row["channel"], rate=rate, start=start or 0.0, end=end, storage=folder.storage
        )
    )
    count = frame_count(extractor, inside)
    if count == 0:
        raise _too_short(row, extractor)
    need = round((before * shift + end - (start or 0.0) + around) * rate) + extractor.frame_length
    samples = np.concatenate(list(_first(parts, need)))
    return np.concatenate(list(in_blocks(extractor, [samples])))[before : before + count]


def _too_short(row: dict[str, Any], extractor: Extractor) -> AudioError:
    return codes.PLACE_TOO_SHORT(where=row["path"], seconds=extractor.frame_length / extractor.sample_rate)


def bounded(frames: Singles, row: dict[str, Any], search: Search, average: bool) -> Singles:
    """Check the number of frames of an example.

    Raises:
        AudioError: there are too many for the recurrence, or, if `average`, for averaging.
    """
    options = search.recurrence_settings()
    longest = RECURRENCES[search.recurrence].longest(options)
    use, fix = "searched", "cut it into shorter queries"
    if longest != LONGEST_QUERY:
        use += f" with search.recurrence: {search.recurrence}"
        use += "".join(f" and {name}: {value}" for name, value in options.items())
        fix += f", or set search.recurrence: bounded-slope, which takes {LONGEST_QUERY}"
    if average and longest > LONGEST_AVERAGED:
        longest, use, fix = LONGEST_AVERAGED, "averaged (search.examples: template)", "cut it into shorter queries"
    if len(frames) > longest:
        raise families.TOO_LONG(
            "the query has {frames} frames; at most {longest} can be {use}",
            "{fix}",
            where=row["path"],
            frames=len(frames),
            longest=longest,
            use=use,
            fix=fix,
        )
    return frames


def _first(blocks: Any, samples: int) -> Any:
    """The first samples of a stream."""
    for block in blocks:
        yield block[:samples]
        samples -= len(block)
        if samples <= 0:
            return


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
            `stages.inputs.corpus_documents.add_items_of_examples` adds, under the recipe "".
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
            normalise (`with_statistics`).
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
        frames: dict[tuple[str, int], list[Singles]] = {}
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


def _stored(frames: Singles, extractor: Extractor | Precomputed) -> Singles:
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
    ) -> Generator[Singles, None, ReadResult]:
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


def _duration(row: dict[str, Any], frames: Singles, extractor: Extractor | Precomputed) -> float:
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
            speaker; otherwise by the collection, or by it and all queries together; its own mean counts in addition if
            `search.corpus_frames` says so.
        search: names the distance, the offset removed from features, and whether examples are averaged.
        dimension: of the features.
        factor: number of frames averaged first.

    Raises:
        DataError: the distance compares posteriors, and the features of a query are none.
    """
    from swsdist.methods.dtw.shard import distance_of, offset_and_scale  # loads numba, which planning does not need

    distance = distance_of(search, dimension)
    collection = statistics["pooled" if search.queries_by == "pooled" else "collection", ""]
    by_speaker, examples = search.queries_by == "speaker", []
    averaging: dict[str, list[tuple[int, Floats, int]]] = {}
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
