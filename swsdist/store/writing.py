"""Write a shard of a feature store: frames of documents or of query examples, computed, precomputed or copied.

Each document fills consecutive rows of one shard; a row holds at most BLOCK_FRAMES frames, a row group a few rows. An
unusable document is rejected with its reason, and the rest continue; its rows already written are dead, like those of
documents removed later: the documents table lists the live rows.

Precomputed frames: the row of a document names its item (`item`, a list, since tasks are plain JSON), or None if it has
no item.

Frames that the store already has are copied, for a recording that was renamed or copied after indexing, with the same
bytes. The row of such a document names their place under `held`, plain JSON::

    state       fingerprint of the state of the store
    shard       that contains them
    doc_id      of the stored document; its channel is the row's
    tracks      of the store, whose columns side by side are those of the extractor
    sha256      of the recording; None if its identity determines its bytes (S3)
"""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.audio import streams
from swsdist.audio.formats import ffmpeg
from swsdist.audio.formats.ffmpeg import OVERSHOOT, fit_segment
from swsdist.audio.reader import probe, read_blocks
from swsdist.audio.speech import Listener, pack_marks, unpack_marks
from swsdist.audio.streams import Digest, digested, digesting, sha256
from swsdist.core.arrays import Bools, Singles
from swsdist.core.codes import audio as audio_codes
from swsdist.core.codes import families
from swsdist.core.codes import storage as codes
from swsdist.core.errors import AudioError, CutOffError, DataError, ForeignError, StorageError, StoreError, UserError
from swsdist.core.types import DOCUMENTS, FRAMES, table_of
from swsdist.corpora.places import SLACK
from swsdist.features.blocks import in_blocks, streamed
from swsdist.features.extractors import identity, recipe_fingerprint
from swsdist.features.interface import (
    Columns,
    Dtype,
    Extractor,
    Layered,
    Precomputed,
    dtype_of,
    for_speaker,
    frame_count,
    frame_shift,
    frames_seconds,
    tracks_of,
)
from swsdist.features.statistics import Statistics
from swsdist.io.failures import as_file_fault
from swsdist.io.filesystem import Folder, is_remote
from swsdist.io.frames.item import MISSING, UNREADABLE, Item
from swsdist.store import parquet
from swsdist.store.manifest import REJECTED_DOCUMENTS
from swsdist.store.memory import keep
from swsdist.store.reading import Store
from swsdist.store.voices import Stretching

R = TypeVar("R")

#: Blocks of samples or frames, float32, and a result at their end.
Blocks = Generator[Singles, None, R]


def precomputed_frames(document: Mapping[str, Any], precomputed: Precomputed, folder: Folder) -> Blocks[float]:
    """Yield the frames of a document; return its duration: that of the recording, else of the table, else of the
    frames.

    A document that is a place in a recording has the duration of the place, at most to the end of the recording.

    Args:
        document: row with `item`, `key`, `duration`, `path`; of a place also `doc_id`, `start`, `end`, `listed`.
        precomputed: reader of its frames.
        folder: gives the storage options.

    Raises:
        FramesError: frames are missing, or contradict the options.
        AudioError: the place is not in the recording.
    """
    item = demand_item(document["item"], document["key"])
    end = document.get("end")
    path = document["path"] if document["path"] != item.file else None
    seconds = recording_seconds(path, folder.storage, None if end is None else end - OVERSHOOT)
    if document.get("start") is not None:
        start, end = document["start"], document["end"]
        if seconds is not None:
            start, end = fit_segment(start, end, seconds, document["doc_id"], document["listed"], document["path"])
        seconds = round(end - start, 6)
    elif seconds is None:
        seconds = document["duration"]
    frames = 0
    for block in precomputed.read(item, document["key"], folder.storage, seconds):
        frames += len(block)
        yield block
    return float(seconds) if seconds is not None else frames_seconds(precomputed, frames)


def precomputed_example(document: Mapping[str, Any], precomputed: Precomputed, folder: Folder) -> Singles:
    """Frames of a query example: all of its item, or those of its place in a document.

    Args:
        document: row with `item`, `key`, `cut` (whether to cut out the place), `begins` (start, in the recording, of
            the audio that the place is cut from, s), and `example`, its row of QUERIES with times in the recording.
        precomputed: reader of its frames.
        folder: gives the storage options.

    Returns:
        float32 (frames, dimension).

    Raises:
        FramesError: frames are missing, contradict the options, or do not contain the place.
    """
    row, key = document["example"], document["key"]
    item = demand_item(document["item"], key)
    start, end = row["start"], row["end"]
    if document["cut"]:
        frames = np.concatenate(list(precomputed.read(item, key, folder.storage)))
        shift, begins = frame_shift(precomputed), document.get("begins", 0.0)
        shown = f"from {start or 0:g} to {'the end' if end is None else f'{end:g}'} s"
        start, end = (None if time is None else round(time - begins, 9) for time in (start, end))
        first = 0 if start is None else round(max(0.0, start) / shift)
        # Only frames that lie entirely in the place.
        ticks = None if end is None else round((end - max(0.0, start or 0.0)) * precomputed.sample_rate)
        cut = frames[first:] if ticks is None else frames[first : first + frame_count(precomputed, ticks)]
        early = start is not None and start < -SLACK
        if len(cut) == 0 or early or (end is not None and end > frames_seconds(precomputed, len(frames)) + shift):
            of = f", which begins at {begins:g} s" if begins else ""
            raise codes.PLACE_OUTSIDE_FRAMES(
                where=item.file, key=key, place=shown, frames=len(frames), shift=shift, offset=of
            )
        return _varied(cut, key, item)
    seconds = end if end is not None or row["path"] == item.file else recording_seconds(row["path"], folder.storage)
    if seconds is not None:
        seconds -= start or 0.0
    return _varied(np.concatenate(list(precomputed.read(item, key, folder.storage, seconds))), key, item)


def _varied(frames: Singles, key: str, item: Item) -> Singles:
    """Frames of an example, if they vary.

    Raises:
        FramesError: all are equal, as in silence.
    """
    if len(frames) > 1 and (frames == frames[0]).all():
        raise codes.CONSTANT(where=item.file, key=key, frames=len(frames))
    return frames


def demand_item(item: list[Any] | None, key: str) -> Item:
    """The item of a row.

    Raises:
        FramesError: the row has no item, or its file is missing.
    """
    if item is None:
        raise families.NO_FRAMES(
            "there are no frames of {key!r}",
            (
                "add them; the key of a document is DOC_ID (of one of several channels DOC_ID-CHANNEL), "
                "of a query QUERY_ID-EXAMPLE"
            ),
            where="features.options.path",
            key=key,
        )
    result = Item(*item)
    if result.identity in (MISSING, UNREADABLE):
        if result.identity == MISSING:
            raise codes.MISSING_FRAMES_FILE(where=result.file, key=key)
        raise codes.UNREADABLE_FRAMES_FILE(where=result.file, key=key)
    return result


def recording_seconds(path: str | None, storage: Mapping[str, object], after: float | None = None) -> float | None:
    """Seconds of a recording, as `probe` finds them; None if missing or unreadable. Commands are not run."""
    if not path or streams.is_command(path):
        return None
    try:
        return probe(path, storage, after).duration
    except AudioError:
        return None


#: What a generator returns.


class ReadResult(NamedTuple):
    """Properties of a recording, found by reading it.

    Attributes:
        seconds: its duration.
        speech: bool (frames,), whether a frame contains speech; None if not detected.
        recording: recording that a query example is cut from, if it normalises the example.
        statistics: of that recording, for each track.
        cut_off: intended duration of a truncated recording, s; 0 if unknown. None: the recording is complete.
        bandwidth: Hz (`audio.speech`); None if not measured.
    """

    seconds: float
    speech: Bools | None = None
    recording: str | None = None
    statistics: Sequence[Statistics] | None = None
    cut_off: float | None = None
    bandwidth: float | None = None


#: Maps a row, an extractor and a folder (for its storage options) to blocks of frames, float32 (frames, dimension),
#: each of at most BLOCK_FRAMES; returns its result at the end.
Reading = Callable[[dict[str, Any], Extractor | Precomputed, Folder], Blocks[ReadResult]]

#: Prefixes of the identity of a missing or unreadable file (`stages.inputs.corpus_documents.identities`).
NO_FILE = ("missing", "unreadable")

#: Bytes of features in a row group, as float32: the least a reader holds.
ROW_GROUP_BYTES = 2_000_000


class Indexed(NamedTuple):
    """Result of indexing the documents of a shard."""

    outputs: tuple[parquet.Output, ...]
    documents: pa.Table
    rejected: pa.Table
    seconds: float


class ShardWriter:
    """Appends frames of documents to a Parquet file, as `dtype`, a bounded row group at a time."""

    def __init__(self, file: Any, dtype: Dtype = "float32") -> None:
        self._file = file
        self._rows: list[tuple[object, ...]] = []
        self._bytes = 0
        self._dtype = parquet.numbers(dtype)

    def append(self, doc_id: str, channel: int, first_frame: int, frames: Singles) -> None:
        """Add a row: float32 (frames, dimension), numbers of `dtype`, following the frames appended before."""
        data = np.ascontiguousarray(frames, self._dtype).tobytes()
        self._rows.append((doc_id, channel, first_frame, len(frames), data))
        self._bytes += frames.nbytes
        if self._bytes >= ROW_GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """End the row group."""
        if self._rows:
            self._file.write_table(table_of(self._rows, FRAMES))
            self._rows, self._bytes = [], 0


def shard_name(fingerprint: str) -> str:
    """Path of a shard in its store."""
    return f"shards/part-{fingerprint}.parquet"


def documents_name(fingerprint: str) -> str:
    """Path of the documents table of an uncommitted shard."""
    return f"shards/part-{fingerprint}.documents.parquet"


def rejected_name(fingerprint: str) -> str:
    """Path of the table of a shard's rejected documents."""
    return f"shards/part-{fingerprint}.rejected.parquet"


def track_file(fingerprint: str, track: str) -> str:
    """Path of the frames of a further track, made by the same task as the shard's first."""
    return f"shards/part-{fingerprint}-{track}.parquet"


def write_tracks(
    folder: Folder,
    fingerprint: str,
    documents: Iterable[dict[str, Any]],
    extractor: Extractor | Precomputed,
    partition: str | None = None,
    reading: Reading | None = None,
    kind: str = "document",
) -> list[Indexed]:
    """Compute the features of documents and publish them as a shard: all tracks that an extractor yields in one pass
    (`features.interface.tracks_of`), in sequence.

    All tracks hold the same documents in the same rows; each has the means and variances of its own columns.

    Args:
        folder: the store.
        fingerprint: of this task; names the outputs.
        extractor: computes the features.
        partition: name of the shard that holds these documents in the store's first track; by default this is the
            first.
        documents: rows with doc_id, channel, path, speaker, `identity`, and the columns that `reading` needs; `sha256`
            where it differs from that of the whole file (for precomputed frames it is that of the frames).
        reading: reads a row; by default a whole recording, with speech detection, or all of its precomputed frames.
        kind: name of a row in the reasons of rejections.
    """
    reading = reading or read_with_speech
    tracks = tracks_of(extractor)
    names = [shard_name(fingerprint), *(track_file(fingerprint, track.name) for track in tracks[1:])]
    live: list[list[dict[str, Any]]] = [[] for _ in tracks]
    rejected: list[dict[str, Any]] = []
    seconds = 0.0
    with ExitStack() as files:
        paths = [files.enter_context(folder.temporary(".parquet")) for _ in tracks]
        with ExitStack() as writers, ffmpeg.caching():
            shards = [
                ShardWriter(writers.enter_context(parquet.writer(path, FRAMES)), dtype_of(extractor)) for path in paths
            ]
            files_read, from_audio = _Files(folder), isinstance(extractor, Extractor)
            for document in documents:
                try:
                    if from_audio:
                        demand_file(document)
                        document = files_read.with_digest(document)
                    row, taken = _write_document(shards, tracks, document, extractor, folder, reading)
                except DataError as error:
                    raise_transient(document, error)
                    rejected.append(rejection(document, error, kind))
                    continue
                for rows, item in zip(live, taken, strict=True):
                    rows.append({**row, **item, "shard": partition or names[0]})
                seconds += row["duration"]
            for shard in shards:
                shard.flush()
        outputs = []
        for path, name in zip(paths, names, strict=True):
            output = parquet.describe(path, name)
            keep(folder, path, output.size, output.sha256)
            folder.publish(path, name)
            outputs.append(output)
    refused = pa.Table.from_pylist(rejected, REJECTED_DOCUMENTS)
    listed = parquet.publish(folder, rejected_name(fingerprint), [refused], REJECTED_DOCUMENTS)
    indexed = []
    for k, (rows, output) in enumerate(zip(live, outputs, strict=True)):
        table = pa.Table.from_pylist(rows, DOCUMENTS)
        name = documents_name(fingerprint if k == 0 else f"{fingerprint}-{tracks[k].name}")
        placed = parquet.publish(folder, name, [table], DOCUMENTS)
        indexed.append(Indexed((output, placed, listed), table, refused, seconds))
    return indexed


def _write_document(
    shards: Sequence[ShardWriter],
    tracks: Sequence[Columns],
    document: dict[str, Any],
    extractor: Extractor | Precomputed,
    folder: Folder,
    reading: Reading,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The row of a document, and the columns that differ by track."""
    statistics = [Statistics.zero(track.stop - track.first) for track in tracks]
    stretches = [Stretching(track.stop - track.first) for track in tracks]
    rows = first = 0
    # Fetch a remote recording once, for frames and digest; a local one decodes faster by its path.
    fetched = "sha256" not in document and _is_fetched(document["path"]) and isinstance(extractor, Extractor)
    digest = Digest(document["path"]) if fetched else None
    read, running = WithResult(reading(document, extractor, folder)), hashlib.sha256()
    with digesting(digest):
        for frames in read:
            if "sha256" not in document and digest is None:
                running.update(frames.data)
            for k, (shard, track) in enumerate(zip(shards, tracks, strict=True)):
                part = frames[:, track.first : track.stop]
                shard.append(document["doc_id"], document["channel"], first, part)
                statistics[k] = statistics[k] + Statistics.of(part)
                if document["speaker"] is None:
                    stretches[k].add(part)
            first += len(frames)
            rows += 1
    if digest is not None:
        document = {**document, "sha256": digested(digest, folder.storage)}
    row = {
        "doc_id": document["doc_id"],
        "channel": document["channel"],
        "path": document["path"],
        "duration": read.result.seconds,
        "frames": first,
        "rows": rows,
        "identity": document["identity"],
        "sha256": document["sha256"] if "sha256" in document else running.hexdigest(),
        "speaker": document["speaker"],
        "speech": None if read.result.speech is None else pack_marks(read.result.speech),
        "recording": document.get("recording") or read.result.recording,
        "start": document.get("start"),
        "cut_off": read.result.cut_off,
        "bandwidth": read.result.bandwidth,
    }
    by_track = zip(read.result.statistics or statistics, stretches, strict=True)
    return row, [
        {"mean": moments.mean.tolist(), "variance": moments.variance.tolist(), "stretches": cut.column}
        for moments, cut in by_track
    ]


class _Files:
    """The files of a shard's documents: digests the recording of several once."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._digests: dict[str, str] = {}

    def with_digest(self, document: dict[str, Any]) -> dict[str, Any]:
        """A document with the SHA-256 of its file, or, if it is a place, of the file's and the place. A remote file that is
        read to its end is digested as it is read.
        """
        path, is_place = document["path"], document.get("start") is not None
        if "sha256" in document or (not is_place and _is_fetched(path)):
            return document
        if path not in self._digests:
            self._digests[path] = sha256(path, self._folder.storage)
        if not is_place:
            return {**document, "sha256": self._digests[path]}
        text = f"{self._digests[path]} {document['start']!r} {document['end']!r}"
        return {**document, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def _is_fetched(path: str) -> bool:
    return not streams.is_command(path) and is_remote(path)


def read_with_speech(
    document: dict[str, Any], extractor: Extractor | Precomputed, folder: Folder
) -> Blocks[ReadResult]:
    """`read_recording` with speech detection; precomputed frames skip it."""
    if isinstance(extractor, Precomputed):
        return (yield from read_recording(document, extractor, folder))
    listener, frames = Listener(extractor.sample_rate), 0
    read = WithResult(read_recording(document, extractor, folder, listener))
    for block in read:
        frames += len(block)
        yield block
    marks = listener.marks(frames, extractor.hop, extractor.frame_length)
    return read.result._replace(speech=marks, bandwidth=listener.bandwidth)


def read_recording(
    document: dict[str, Any], extractor: Extractor | Precomputed, folder: Folder, listener: Listener | None = None
) -> Blocks[ReadResult]:
    """The `Reading` of a document: a channel of a recording, up to its end or truncation, or a place in it."""
    if isinstance(extractor, Precomputed):
        return ReadResult((yield from precomputed_frames(document, extractor, folder)))
    extractor = for_speaker(extractor, document["speaker"])
    samples, read = 0, WithResult(samples_of(document, extractor.sample_rate, folder))

    def counted() -> Iterator[Singles]:
        nonlocal samples
        for block in read:
            samples += len(block)
            if listener is not None:
                listener.add(block)
            yield block

    yield from in_blocks(extractor, counted())
    return ReadResult(samples / extractor.sample_rate, cut_off=read.result)


def samples_of(document: dict[str, Any], rate: int, folder: Folder) -> Blocks[float | None]:
    """Samples of a document, float32 (samples,) a block: a channel of a recording, up to its end or truncation, or a place in
    it. Returns the intended duration of a truncated recording, s; 0 if unknown. None: the recording is complete.

    Raises:
        AudioError: the recording or the place cannot be used.
    """
    start, end = _place(document, folder) if document.get("start") is not None else (None, None)
    some = False
    try:
        for block in read_blocks(
            document["path"], channel=document["channel"], rate=rate, start=start, end=end, storage=folder.storage
        ):
            some = True
            yield block
    except CutOffError as error:
        if start is not None or not some:
            raise
        return error.expected_seconds or 0.0
    return None


def with_progress(reading: Reading, report: Callable[[float], None]) -> Reading:
    """A reading that also reports the seconds of frames yielded so far, over all rows, to `report`."""
    seconds = 0.0

    def read(document: dict[str, Any], extractor: Extractor | Precomputed, folder: Folder) -> Blocks[ReadResult]:
        nonlocal seconds
        shift, blocks = frame_shift(extractor), WithResult(reading(document, extractor, folder))
        for frames in blocks:
            yield frames
            seconds += len(frames) * shift
            report(seconds)
        return blocks.result

    return read


def _place(document: dict[str, Any], folder: Folder) -> tuple[float, float]:
    """Start and end (s) in the recording.

    Raises:
        AudioError: the recording cannot be used, or the place is not in it.
    """
    path, start, end = document["path"], float(document["start"]), float(document["end"])
    length = probe(path, folder.storage, after=end - ffmpeg.OVERSHOOT).duration
    return ffmpeg.fit_segment(start, end, length, document["doc_id"], document["listed"], path)


def demand_file(document: dict[str, Any]) -> None:
    """Reject a file that was missing or unreadable at planning, even if it is readable now.

    Raises:
        AudioError: it was missing or unreadable.
    """
    if document["identity"].startswith(NO_FILE):
        if document["identity"] == "missing":
            raise families.MISSING_RECORDING(
                "there is no such file", "check the path, and what it is relative to", where=document["path"]
            )
        irregular = document["identity"].endswith("not a file")
        advice = "remove it: a recording is a file" if irregular else "check its permissions"
        raise families.UNREADABLE_RECORDING(
            "the file is {identity}", "{advice}", where=document["path"], identity=document["identity"], advice=advice
        )


def raise_transient(document: dict[str, Any], error: DataError) -> None:
    """Raise if a file that existed at planning is missing here and now, instead of rejecting it.

    Args:
        document: a row with its `path` and `identity`.
        error: why it cannot be used.

    Raises:
        UserError: ffmpeg, or the program of a command, is missing on this machine.
        OSError: the file is missing: the task is retried, or fails and is repeated by the next run.
    """
    if isinstance(error, streams.UnrunnableError) and streams.ABSENT not in document["identity"]:
        raise families.NOT_INSTALLED.of(UserError)(
            "this worker ({host}) cannot run a command whose program was there when the work was planned: {error}",
            "install it on all nodes, where their PATH has it",
            where=document["path"],
            host=socket.gethostname(),
            error=error.message,
        )
    lacking = isinstance(error, ForeignError) and error.code == audio_codes.NEEDS_FFMPEG.name
    known = document["identity"]
    if lacking and ffmpeg.is_for(document["path"]) and known and not known.endswith(ffmpeg.ABSENT):
        raise families.NOT_INSTALLED.of(UserError)(
            "this worker ({host}) has no ffmpeg, although there was one when the work was planned",
            "install it on all nodes (pip install imageio-ffmpeg, or a package of the system)",
            where=document["path"],
            host=socket.gethostname(),
        )
    cause = error.__cause__
    if not isinstance(cause, OSError) or not document["identity"] or document["identity"].startswith(NO_FILE):
        return
    if as_file_fault(cause, document["path"]).code == codes.MISSING_FILE.name:
        raise cause


class WithResult(Generic[R]):
    """Iterates over a generator and keeps its return value in `result`."""

    def __init__(self, blocks: Blocks[R]) -> None:
        self._blocks = blocks
        self.result: R

    def __iter__(self) -> Iterator[Singles]:
        self.result = yield from self._blocks


def rejection(document: dict[str, Any], error: DataError, kind: str = "document") -> dict[str, Any]:
    """The row of REJECTED_DOCUMENTS for an unusable document (or other `kind` of row)."""
    refused = isinstance(error.__cause__, OSError | StorageError)
    return {
        "kind": kind,
        "id": document["doc_id"],
        "part": document["channel"],
        "path": document["item"][1] if document.get("item") else document["path"],
        "reason": error.reason,
        "message": error.message,
        "remedy": error.remedy,
        # Identities ignore permissions: with permissions corrected the identity differs from this, and the file is
        # tried again.
        "identity": f"unreadable: {error.message}" if refused else document["identity"],
    }


#: Most bytes of frames to keep: of MFCC with deltas an hour.
_MOST_BYTES = 64 << 20

#: Columns that a recording's frames depend on.
_MATTERS = ("path", "identity", "channel", "start", "end", "speaker")


class _Kept(NamedTuple):
    """Frames of a recording, and the result of reading them."""

    blocks: list[Singles]
    result: ReadResult

    @property
    def bytes(self) -> int:
        """Of the frames."""
        return sum(block.nbytes for block in self.blocks)


class KeptFrames:
    """Frames of the last recordings, as many as `_MOST_BYTES` hold."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], _Kept] = {}
        self._bytes = 0

    def reading(self, extractor: Extractor | Precomputed, *, listen: bool, keep: bool) -> Reading:
        """`read_with_speech` if `listen`, else `read_recording`, for an extractor; kept frames are not computed again.

        With `keep` they are kept for a further reading.
        """
        reading = read_with_speech if listen else read_recording
        if isinstance(extractor, Precomputed):
            return reading
        outer = extractor if isinstance(extractor, Layered) else None
        inner = extractor if outer is None else outer.inner
        made_by = recipe_fingerprint(identity(inner))

        def read(document: dict[str, Any], _: Extractor | Precomputed, folder: Folder) -> Blocks[ReadResult]:
            key = (made_by, *(document.get(name) for name in _MATTERS))
            kept = self._released(key)
            if kept is None or (listen and kept.result.speech is None):
                frames = WithResult(reading(document, inner, folder))
            else:
                frames = WithResult(_again(kept))
            if keep:
                frames = WithResult(self._keeping(key, frames))
            yield from frames if outer is None else streamed(outer, frames)
            return frames.result if listen else frames.result._replace(speech=None, bandwidth=None)

        return read

    def _keeping(self, key: tuple[object, ...], frames: WithResult[ReadResult]) -> Blocks[ReadResult]:
        """The same frames, which are kept if there is room. What ffmpeg decodes is not: a task records its version."""
        blocks: list[Singles] = []
        size = 0
        with ffmpeg.recorded_versions() as used:
            for block in frames:
                size += block.nbytes
                if size <= _MOST_BYTES:
                    blocks.append(block)
                yield block
        if size <= _MOST_BYTES and not used:
            self._kept[key] = _Kept(blocks, frames.result)
            self._bytes += size
            while self._bytes > _MOST_BYTES:
                self._released(next(iter(self._kept)))
        return frames.result

    def _released(self, key: tuple[object, ...]) -> _Kept | None:
        kept = self._kept.pop(key, None)
        self._bytes -= 0 if kept is None else kept.bytes
        return kept


def _again(kept: _Kept) -> Blocks[ReadResult]:
    yield from kept.blocks
    return kept.result


def reuse_frames(reading: Reading) -> Reading:
    """A reading that copies frames that the store has, and computes others by `reading`."""

    def read(document: dict[str, Any], extractor: Extractor | Precomputed, folder: Folder) -> Blocks[ReadResult]:
        stored = document.get("held")
        # A file may have changed since the work was planned.
        if stored is None or stored["sha256"] != document.get("sha256", stored["sha256"]):
            return (yield from reading(document, extractor, folder))
        try:
            return (yield from _copied(stored, document["channel"], folder))
        except StoreError as error:  # the recording itself may be readable
            raise codes.STORED_FRAMES_DAMAGED(where=error.where, error=error.message, advice=error.remedy) from error

    return read


def _copied(stored: dict[str, Any], channel: int, folder: Folder) -> Blocks[ReadResult]:
    store = Store.at(folder.root, stored["state"], storage=folder.storage)
    columns = ["doc_id", "channel", "duration", "frames", "speech", "cut_off", "bandwidth"]
    table = store.documents(stored["shard"], columns, stored["tracks"][0])
    selected = pc.and_(pc.equal(table["doc_id"], stored["doc_id"]), pc.equal(table["channel"], channel))
    (row,) = table.filter(selected).to_pylist()
    for blocks in zip(*(_blocks(store, stored, channel, track) for track in stored["tracks"]), strict=True):
        yield blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)
    speech = None if row["speech"] is None else unpack_marks(row["speech"], row["frames"])
    return ReadResult(row["duration"], speech, cut_off=row["cut_off"], bandwidth=row["bandwidth"])


def _blocks(store: Store, stored: dict[str, Any], channel: int, track: str) -> Iterator[Singles]:
    """Blocks of the document's frames in one track; a row group at a time."""
    entry, name = store.manifest.track(track), store.manifest.shard(stored["shard"]).files[track].name
    with parquet.reader(store.folder, name, keep=True) as file:
        for group in parquet.row_groups_with(file, "doc_id", stored["doc_id"]):
            rows = file.read_row_group(group, use_threads=False)
            selected = pc.and_(pc.equal(rows["doc_id"], stored["doc_id"]), pc.equal(rows["channel"], channel))
            for blob in rows["features"].filter(selected):
                frames = np.frombuffer(blob.as_buffer(), parquet.numbers(entry.dtype)).reshape(-1, entry.dimension)
                yield frames.astype(np.float32, copy=False)
