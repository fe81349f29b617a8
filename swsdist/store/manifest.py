"""The manifest: the only commit point of a store.

A store is a folder::

    manifest.json                names all files below; a file that it does not name is not part of the store
    manifest-<fp>.json           permanent copy: a search continues with the state it began with
    documents-<fp>.parquet       a row per document (swsdist.core.types.DOCUMENTS), by shard and row; one per track
    rejected-<fp>.parquet        rejected documents, with reason and identity at that time
    models/codebook-<fp>.npz     codebook of a first pass: a pinned model
    codes/part-<fp>.parquet      its codes, a file per shard; named by their inputs, so not by the manifest
    models/NAME-<fp>.npz         a transform or an extractor, fitted: a pinned model; its successors end in .2.npz, ...
    models/statistics-<fp>.parquet   means and variances of speakers and collection: a pinned model; one per track
    models/voices-<fp>.parquet   groups of speech of unknown speakers: a pinned model of the first track
    shards/part-<fp>.parquet     frames (swsdist.core.types.FRAMES); a file per shard and track

A reader that has read the manifest sees one state of the store, whatever others write meanwhile.

A store has a **kind**, which names the content of its shards (`frames`), and a **tick**, seconds per unit of its
integer times. Documents are assigned to shards once; each **track** holds the frames of one recipe for all documents,
in files of the same partition. A **pinned model** is fitted once, then applied to all later documents; the manifest
names its file. A store derived from another names the state of that store as its **source**.

Paths: the documents table has the paths of recordings at the time of writing. The manifest keeps the path from the
store to the common folder of all recordings, so they are still found if both are moved together; it keeps none if that
folder is the root or one of the recordings is remote.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.accounts.hardware import versions
from swsdist.audio.streams import sha256
from swsdist.core.codes import families
from swsdist.core.codes import storage as codes
from swsdist.core.errors import StoreError
from swsdist.core.fingerprint import Naming, fingerprint
from swsdist.core.types import DOCUMENTS, REJECTED
from swsdist.features.extractors import recipe_fingerprint
from swsdist.features.interface import Dtype, Kind
from swsdist.io.filesystem import Folder, demand_inside
from swsdist.store import parquet, voices
from swsdist.store.parquet import SpooledDocuments
from swsdist.store.statistics import by_shard, pinned

#: Documents whose keys are Python objects at a time.
_PIECE = 1 << 16


def keys(documents: SpooledDocuments) -> Iterator[list[list[object]]]:
    """Sorted keys of a track's documents, in pieces."""
    table = documents.read(["doc_id", "channel", "identity", "shard"]).combine_chunks()
    order = pc.sort_indices(table, [(name, "ascending") for name in table.column_names])
    for first in range(0, len(order), _PIECE):
        some = table.take(order.slice(first, _PIECE))
        yield list(map(list, zip(*(column.to_pylist() for column in some.columns), strict=True)))


def speech(tracks: Iterable[SpooledDocuments], tick: float) -> dict[str, float]:
    """Seconds analysed for speech, and seconds of speech: from the first track with marks, or with seconds of speech."""
    heard = spoken = 0.0
    for documents in tracks:
        for batch in documents.pieces(["duration", "frames", "speech", "speech_seconds"]):
            marked, told = (batch.filter(pc.is_valid(batch[name])) for name in ("speech", "speech_seconds"))
            bits = b"".join(marked["speech"].to_pylist())
            heard += (pc.sum(marked["frames"]).as_py() or 0) * tick + (pc.sum(told["duration"]).as_py() or 0.0)
            spoken += int(np.bitwise_count(np.frombuffer(bits, np.uint8)).sum()) * tick
            spoken += pc.sum(told["speech_seconds"]).as_py() or 0.0
        if heard:
            break
    return {"heard_seconds": round(heard, 6), "speech_seconds": round(spoken, 6)}


def languages(documents: pa.Table) -> dict[str, int]:
    """Number of documents by `language`, the greatest first; documents of unknown language are left out."""
    counts = Counter(documents["language"].drop_null().to_pylist())
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def left_out(documents: pa.Table) -> list[dict[str, Any]]:
    """Sums of the documents' `left_out`: rows of LEFT_OUT, by reason."""
    sums: dict[str, dict[str, Any]] = {}
    for row in chain.from_iterable(documents["left_out"].drop_null().to_pylist()):
        held = sums.setdefault(row["reason"], {**row, "items": 0, "seconds": 0.0})
        held["items"] += row["items"]
        held["seconds"] += row["seconds"]
    return [sums[reason] for reason in sorted(sums)]


#: Recordings that are read to see whether they are the same.
_READ = 20


def recordings_root(folder: Folder, paths: pa.ChunkedArray) -> str | None:
    """Path from a store to the common folder of its recordings; None if that is the root or one of them is remote."""
    root, local = _folder_of(paths), folder.local()
    if root is None or local is None or len(os.path.commonpath([root, str(local)])) < 2:
        return None
    return os.path.relpath(root, local)


def relocated_paths(folder: Folder, way: str | None, paths: pa.ChunkedArray, every: pa.ChunkedArray) -> pa.ChunkedArray:
    """Current paths of a documents table.

    Args:
        folder: current folder of the store.
        way: path to the folder of the recordings, from `recordings_root`.
        paths: of some documents.
        every: of all.
    """
    root, local = _folder_of(every), folder.local()
    if way is None or root is None or local is None:
        return paths
    now = os.path.normpath(local / way)
    if now == root or not Path(now).is_dir():
        return paths
    ends = (path.as_py()[len(root) :] for path in every if path.is_valid)
    if not any(Path(now + end).exists() for end in ends):
        return paths
    return pc.binary_replace_slice(paths, 0, len(root.encode()), now).cast(pa.string())


def _folder_of(paths: pa.ChunkedArray) -> str | None:
    """The common folder of all, from the first and last path in sorted order."""
    ends = pc.min_max(paths).as_py()
    if not ends["min"] or not ends["min"].startswith("/") or not ends["max"].startswith("/"):
        return None
    folder: str = os.path.commonpath([os.path.dirname(end) for end in ends.values()])  # noqa: PTH120 (as text)
    return folder


class Found(NamedTuple):
    """Result of `find_recordings`: how many are there, of how many, and the first that is missing or has other content."""

    folder: str
    there: int
    of: int
    missing: str = ""
    other: str = ""


def find_recordings(documents: pa.Table, folder: str) -> Found:
    """Look for the recordings of a store in a folder, or in its subfolder with the name of their former folder.

    Names below it are unchanged. A recording is recognised by its size, and the smallest by their bytes.

    Args:
        documents: columns path, identity, sha256; local.
        folder: where they are now.
    """
    root = _folder_of(documents["path"]) or ""
    rows = {row["path"]: row for row in documents.to_pylist() if row["path"]}
    tried = (folder.rstrip("/"), os.path.join(folder, os.path.basename(root)))  # noqa: PTH118, PTH119
    best = Found(folder, 0, len(rows))
    for now in dict.fromkeys(tried):
        files = {path: Path(now + path[len(root) :]) for path in rows}
        there = [path for path, file in files.items() if file.is_file()]
        if len(there) <= best.there:
            continue
        others = [path for path in there if str(files[path].stat().st_size) != rows[path]["identity"].split(":")[0]]
        known = [path for path in there if rows[path]["sha256"] is not None and path not in others]
        smallest = sorted(known, key=lambda path: files[path].stat().st_size)[:_READ]
        others += [path for path in smallest if sha256(str(files[path])) != rows[path]["sha256"]]
        missing = next((str(file) for file in files.values() if not file.is_file()), "")
        best = Found(now, len(there), len(rows), missing, str(files[others[0]]) if others else "")
    return best


#: By name; several versions if parts were made with several.
Libraries = dict[str, tuple[str, ...]]


def made_with(more: Iterable[str] = ()) -> dict[str, str]:
    """Installed versions of the libraries that frames depend on: decoding, resampling, transforms.

    Args:
        more: further names, as in pip, from an extractor (`features.interface.libraries_of`).
    """
    installed = versions()
    names = ("numpy", "scipy", "soxr", "soundfile", "libsndfile")
    result = {name: installed[name] for name in names if name in installed}
    for name in more:
        try:
            result.setdefault(name, version(name))
        except PackageNotFoundError:
            continue
    return result


def with_these(
    libraries: Mapping[str, Sequence[str]],
    parts: Iterable[Mapping[str, str]] = (),
    ffmpeg: Iterable[str] = (),
    more: Iterable[str] = (),
) -> Libraries:
    """Versions that a store's parts were made with.

    Args:
        libraries: recorded before.
        parts: `made_with` of each new part; by default the installed versions.
        ffmpeg: versions of ffmpeg that decoded new parts; listed only if it ever decoded a part.
        more: names of further libraries that frames depend on.
    """
    some = list(parts) or [made_with(more)]
    names = dict.fromkeys([*(name for item in some for name in item), *(name for name in more if name in libraries)])
    result = {
        name: tuple(sorted({*libraries.get(name, ()), *(item[name] for item in some if name in item)}))
        for name in names
    }
    decoders = tuple(sorted({*libraries.get("ffmpeg", ()), *ffmpeg}))
    return {**result, "ffmpeg": decoders} if decoders else result


#: A task's list of documents, written at its end; lists of its further tracks have other names.
_LIST = re.compile(r"shards/part-[0-9a-f]{32}\.documents\.parquet")


@dataclass(frozen=True)
class Unfinished:
    """Progress of an interrupted index.

    Attributes:
        done, tasks: numbers of finished tasks, and of all.
        seconds: of audio left.
        before: fingerprint of the state that it resumes from; None: there was no state.
    """

    done: int
    tasks: int
    seconds: float
    before: str | None

    def describe(self, seconds: float) -> str:
        """Describe the progress for people, given the seconds already indexed."""
        part = seconds / max(seconds + self.seconds, 1e-9)
        return f"{self.done} of {self.tasks} tasks, {100 * part:.0f} % of the audio, are indexed"


def tasks_done(folder: Folder) -> int:
    """Number of an index's tasks that have written their shards to a store."""
    return sum(_LIST.fullmatch(name) is not None for name in folder.listing("shards"))


NAME = "manifest.json"
SCHEMA = "swsdist-store/7"
#: Folder in that of a store of frames, of the store of words of the same documents.
WORDS = "words"

#: Prefixes of all files of a store except its manifest.
PARTS = ("shards/", "models/", "postings/", "codes/", "documents-", "rejected-", "manifest-")

#: Content of the shards of a store: `frames`, or the name that a search method gives its own content
#: (`MethodEntry.reads`).
StoreKind = str

#: Prefix of the source of a store of queries: it is made of groups, which are states of it.
GROUPS = "groups:"

#: Rejected documents keep the identity of their file, so they are not tried again until it changes.
REJECTED_DOCUMENTS = REJECTED.append(pa.field("identity", pa.string(), False))


@dataclass(frozen=True)
class File:
    """A file of a track: its name in the store, bytes, and SHA-256."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Shard:
    """A set of complete documents: a file for each track.

    Attributes:
        name: of the partition, used by the documents tables of all tracks; that of the first track's file.
        files: by track.
        documents, frames: numbers of live ones, in the first track.
    """

    name: str
    files: dict[str, File]
    documents: int
    frames: int

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files.values())


@dataclass(frozen=True)
class Track:
    """The frames of all documents by one recipe.

    Attributes:
        name: used by configs and readers.
        recipe: of the extractor (`features.extractors.recipe`), or of the derivation.
        fingerprint: of the recipe.
        dimension: numbers per frame.
        columns: their names.
        kind: `features`, `posteriors`, or `logits`.
        documents: its table DOCUMENTS.
    """

    name: str
    recipe: dict[str, object]
    fingerprint: str
    dimension: int
    columns: tuple[str, ...]
    kind: Kind
    documents: str

    @property
    def dtype(self) -> Dtype:
        """Type of the numbers in the shards, little-endian; readers give float32."""
        return cast(Dtype, self.recipe.get("dtype", "float32"))


class NewTrack(NamedTuple):
    """A track to commit.

    Attributes:
        name, recipe, dimension, columns, kind: as in `Track`.
        documents: DOCUMENTS, the live ones, in the order of shards and rows; spooled if they may be very many.
        frozen: table STATISTICS of the previous state (`frozen_statistics`); None at first.
    """

    name: str
    recipe: dict[str, object]
    dimension: int
    documents: pa.Table | SpooledDocuments
    frozen: pa.Table | None = None
    columns: Sequence[str] | None = None
    kind: Kind = "features"


@dataclass(frozen=True)
class Manifest:
    """One state of a store.

    Attributes:
        fingerprint: of the state.
        kind: content of the shards.
        tick: seconds per unit of its integer times: the shift of its frames.
        tracks: the first is the default of readers.
        shards: those with a live document.
        rejected: table of rejected documents.
        models: pinned models by name: `KIND.TRACK`.
        counts: documents, frames, seconds, rejected, cut_off (documents whose recording is cut off); and
            `statistics_gone`, documents behind the collection's statistics that have disappeared or changed; `fitted_to`,
            documents when the models of features were fitted.
        source: fingerprint of the state it was derived from; for a store of queries `groups:` and a fingerprint; else
            None.
        provisional: shards are missing because their tasks failed: models fitted on them are not pinned yet.
        libraries: versions, by name, of the libraries that frames depend on. They are in no fingerprint.
        unfinished: its index was interrupted; searches may read the state, and indexing resumes from the previous one.
        recordings: path from the store to the folder that contains all recordings (`swsdist.store.manifest`).
    """

    fingerprint: str
    kind: StoreKind
    tick: float
    tracks: tuple[Track, ...]
    shards: tuple[Shard, ...]
    rejected: str
    models: dict[str, str]
    counts: dict[str, float]
    source: str | None = None
    provisional: bool = False
    libraries: dict[str, tuple[str, ...]] = field(default_factory=dict)
    schema: str = field(default=SCHEMA)
    unfinished: Unfinished | None = None
    recordings: str | None = None

    def track(self, name: str | None = None) -> Track:
        """A track by name; the first by default.

        Raises:
            StoreError: no track has that name.
        """
        for track in self.tracks:
            if name is None or track.name == name:
                return track
        raise codes.NO_SUCH_STORE_TRACK(
            where="features", track=name, tracks=", ".join(track.name for track in self.tracks)
        )

    @classmethod
    def from_json(cls, values: dict[str, Any], where: str = NAME) -> Manifest:
        """Parse the JSON form of `dataclasses.asdict`.

        Raises:
            KeyError, TypeError, StoreError: the values are malformed, or name files outside of the store.
        """
        for key, name in (("rejected", values["rejected"]), *values["models"].items()):
            demand_inside(name, where, key)
        for track in values["tracks"]:
            demand_inside(track["documents"], where, "tracks.documents")
        for file in (file for shard in values["shards"] for file in shard["files"].values()):
            demand_inside(file["name"], where, "shards.files.name")
        tracks = tuple(Track(**{**track, "columns": tuple(track["columns"])}) for track in values["tracks"])
        shards = tuple(
            Shard(**{**shard, "files": {name: File(**file) for name, file in shard["files"].items()}})
            for shard in values["shards"]
        )
        libraries = {name: tuple(known) for name, known in values.get("libraries", {}).items()}
        unfinished = Unfinished(**values["unfinished"]) if values.get("unfinished") else None
        result = {"tracks": tracks, "shards": shards, "libraries": libraries, "unfinished": unfinished}
        return cls(**{**values, **result})

    def shard(self, name: str) -> Shard:
        """The shard with this name."""
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Shard]:
        return {shard.name: shard for shard in self.shards}

    @property
    def of_queries(self) -> bool:
        """Whether this is a store of queries, written only by its run."""
        return (self.source or "").startswith(GROUPS)

    @property
    def fitted(self) -> tuple[str, ...]:
        """Kinds of its models of extractors and transforms, which its frames depend on, sorted."""
        return tuple(sorted({name.partition(".")[0] for name in self.models} - {"statistics", "voices", "codebook"}))

    @property
    def progress(self) -> str | None:
        """Progress of an unfinished index, for people; None if it is complete."""
        return None if self.unfinished is None else self.unfinished.describe(self.counts["seconds"])

    @property
    def tables(self) -> tuple[str, ...]:
        """All files except shards."""
        return (*(track.documents for track in self.tracks), self.rejected, *self.models.values())

    @property
    def shift(self) -> float:
        """Seconds between frames."""
        return self.tick


def state_name(fingerprint: str) -> str:
    """Permanent file name of a state."""
    return f"manifest-{fingerprint}.json"


def load(folder: Folder, name: str = NAME) -> Manifest | None:
    """The manifest, or None if there is no store yet.

    Args:
        folder: the store.
        name: the current state, or an earlier one (`state_name`).

    Raises:
        StoreError: it is damaged, was written by a later version, or names files outside of the store.
    """
    where = folder.path(demand_inside(name, folder.path(), "a state of the store"))
    try:
        text = folder.read_bytes(name)
    except FileNotFoundError:
        return None
    try:
        values = json.loads(text)
        if values["schema"] != SCHEMA:
            raise families.MISMATCH.of(StoreError)(
                "the store has schema {schema}, and this version reads {known}",
                "use the version of swsdist that wrote it; or remove {folder} and run `swsdist index` again",
                where=where,
                schema=values["schema"],
                known=SCHEMA,
                folder=folder.path(),
            )
        return Manifest.from_json(values, where)
    except (ValueError, KeyError, TypeError) as error:
        raise families.DAMAGED_FILE(
            "the manifest is damaged ({error})", "remove it and index again: no shard is lost", where=where, error=error
        ) from None


def words_store(store: str, storage: Mapping[str, object] = {}) -> str | None:
    """The store of words inside a store of frames; None: there is none."""
    folder = f"{store.rstrip('/')}/{WORDS}"
    return None if load(Folder(folder, storage)) is None else folder


def require(folder: Folder, name: str = NAME) -> Manifest:
    """The manifest of an existing store.

    Raises:
        StoreError: the store or this state of it does not exist.
    """
    manifest = load(folder, name)
    if manifest is None and folder.exists(NAME):
        raise families.CHANGED_INPUT.of(StoreError)(
            "this state of the store is gone: the store was compacted, or has changed since",
            "run the config again, on the store as it is now",
            where=folder.path(name),
        )
    if manifest is None and (done := tasks_done(folder)):
        raise codes.UNFINISHED_STORE(where=folder.path(), done=done)
    if manifest is None:
        raise codes.NO_STORE(where=folder.path(), folder=folder.path())
    return manifest


def frozen_statistics(folder: Folder, track: str, recipe: str) -> pa.Table | None:
    """The pinned statistics of a track in the current state, even if other files of that state are lost.

    Args:
        folder: the store.
        track: its name.
        recipe: fingerprint that the track's recipe must have.

    Returns:
        STATISTICS; None if the store, track or file is missing, or the recipe differs.
    """
    manifest = load(folder)
    if manifest is None or (track, recipe) not in ((item.name, item.fingerprint) for item in manifest.tracks):
        return None
    name = manifest.models[f"statistics.{track}"]
    return parquet.read(folder, name) if folder.exists(name) else None


def commit(
    folder: Folder,
    new_tracks: NewTrack | Sequence[NewTrack],
    tick: float,
    shards: Iterable[Shard],
    rejected: pa.Table,
    *,
    provisional: bool = False,
    models: Mapping[str, str] | None = None,
    source: str | None = None,
    kind: StoreKind = "frames",
    libraries: Mapping[str, Sequence[str]] | None = None,
    unfinished: Unfinished | None = None,
) -> Manifest:
    """Commit a new current state.

    Args:
        folder: the store.
        new_tracks: its tracks, the default first.
        tick: seconds per unit of its integer times, for all tracks.
        shards: those with a live document.
        rejected: REJECTED_DOCUMENTS.
        provisional: documents are still to come, so models fitted now are fitted anew at the next commit.
        models: files of further pinned models by name, already written.
        source: fingerprint of the state that the store is derived from.
        kind: content of the shards.
        libraries: versions used to make its parts; by default the installed ones.
        unfinished: the state belongs to an interrupted index.
    """
    tracks, shards = [new_tracks] if isinstance(new_tracks, NewTrack) else list(new_tracks), tuple(shards)
    is_made_anew = kind != "frames" or (source or "").startswith(GROUPS)
    before = None if is_made_anew else load(folder)
    documents = {track.name: _spooled(track.documents) for track in tracks}
    fitted = {
        track.name: pinned(folder, track.name, documents[track.name], track.dimension, track.frozen, provisional)
        for track in tracks
    }
    files = {**(models or {}), **{f"statistics.{name}": fit.file for name, fit in fitted.items()}}
    marked: dict[str, pa.ChunkedArray] = {}
    if kind == "frames" and not (source or "").startswith(GROUPS):
        # Those of a track stay as long as its statistics: another run may have it first.
        stay = {f"voices.{recipe_fingerprint(track.recipe)}" for track in tracks if not fitted[track.name].anew}
        files = {key: path for key, path in files.items() if not key.startswith("voices.") or key in stay}
        of_track = f"voices.{recipe_fingerprint(tracks[0].recipe)}"
        pinned_before = files.get(of_track)
        column, file = voices.pinned(folder, documents[tracks[0].name], tick, pinned_before)
        marked = {track.name: voices.nothing(documents[track.name].num_rows) for track in tracks[1:]}
        if column is not None:
            marked[tracks[0].name] = column
        # Those that a provisional state fits are fitted anew at the next commit.
        if file is not None and (pinned_before is not None or not provisional):
            files[of_track] = file
    recipes = [[track.name, recipe_fingerprint(track.recipe)] for track in tracks]
    cut = [[shard.name, sorted(file.name for file in shard.files.values())] for shard in shards]
    naming = Naming(SCHEMA, kind, recipes, cut).listings(map(keys, documents.values()))
    name = naming(sorted(files.items()), rejected.to_pylist(), source, provisional)
    first = documents[tracks[0].name]
    fitted_to = {} if provisional else {"fitted_to": float(first.num_rows)}
    if before is not None and recipes == [[item.name, item.fingerprint] for item in before.tracks]:
        had = {name: count for name, count in before.counts.items() if name == "fitted_to"}
        fitted_to = fitted_to if before.provisional and not had else had
    manifest = Manifest(
        fingerprint=name,
        kind=kind,
        tick=tick,
        tracks=tuple(_track(item, name, k) for k, item in enumerate(tracks)),
        shards=shards,
        rejected=f"rejected-{name}.parquet",
        models=files,
        counts={
            "documents": first.num_rows,
            "frames": pc.sum(first.read(["frames"])["frames"]).as_py() or 0,
            "seconds": round(sum(map(float, np.sort(first.read(["duration"])["duration"].to_numpy()))), 6),
            **speech(documents.values(), tick),
            "rejected": pc.sum(pc.equal(rejected["kind"], "document")).as_py() or 0,
            "cut_off": first.num_rows - first.read(["cut_off"])["cut_off"].null_count,
            "statistics_gone": fitted[tracks[0].name].gone,
            **({} if is_made_anew else fitted_to),
        },
        source=source,
        provisional=provisional,
        libraries={name: tuple(names) for name, names in (with_these({}) if libraries is None else libraries).items()},
        unfinished=unfinished,
        recordings=recordings_root(folder, first.read(["path"])["path"]),
    )
    for track in manifest.tracks:
        tables = voices.replaced(by_shard(documents[track.name]), marked.get(track.name))
        parquet.publish(folder, track.documents, tables, DOCUMENTS)
    parquet.publish(folder, manifest.rejected, [rejected], REJECTED_DOCUMENTS)
    _publish(folder, manifest)
    return manifest


def _spooled(documents: pa.Table | SpooledDocuments) -> SpooledDocuments:
    return documents if isinstance(documents, SpooledDocuments) else SpooledDocuments([documents])


def pin(folder: Folder, manifest: Manifest, models: Mapping[str, str]) -> Manifest:
    """Commit the same state with further pinned models, whose files are already written."""
    files = {**manifest.models, **models}
    result = replace(manifest, fingerprint=fingerprint(manifest.fingerprint, sorted(files.items())), models=files)
    _publish(folder, result)
    return result


def locate_recordings(folder: Folder, recordings: str) -> None:
    """Record the common folder in which the recordings of the current state are now.

    The caller holds the lock of the store.
    """
    moved = replace(require(folder), recordings=os.path.relpath(recordings, folder.root))
    folder.write_bytes(NAME, _text(moved))


def write_state(folder: Folder, manifest: Manifest) -> parquet.Output:
    """Write a state under its permanent name, without making it current."""
    name, text = state_name(manifest.fingerprint), _text(manifest)
    folder.write_bytes(name, text)
    return parquet.Output(name, len(text), hashlib.sha256(text).hexdigest())


def _text(manifest: Manifest) -> bytes:
    return json.dumps(asdict(manifest), indent=1, ensure_ascii=False).encode()


def _publish(folder: Folder, manifest: Manifest) -> None:
    write_state(folder, manifest)
    folder.write_bytes(NAME, _text(manifest))


def _track(new_track: NewTrack, state: str, place: int) -> Track:
    columns = (f"c{k}" for k in range(new_track.dimension)) if new_track.columns is None else new_track.columns
    table = f"documents-{state}.parquet" if place == 0 else f"documents-{state}-{place}.parquet"
    return Track(
        new_track.name,
        new_track.recipe,
        recipe_fingerprint(new_track.recipe),
        new_track.dimension,
        tuple(columns),
        new_track.kind,
        table,
    )
