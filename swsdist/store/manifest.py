"""The manifest: the only commit point of a store.

A store is a folder::

    manifest.json                names all that follows; what it does not name is not part of the store
    manifest-<fp>.json           the same, and stays: a search goes on with the state that it began with
    documents-<fp>.parquet       a row a document (swsdist.core.types.DOCUMENTS), in the order of shards and their rows; one a
    track
    rejected-<fp>.parquet        documents that could not be used, why, and the identity they had then
    models/codebook-<fp>.npz     codewords of a first pass: a pinned model
    postings/part-<fp>.parquet   posting lists by it, a file a shard; named by what they are made of, so not by the manifest
    models/statistics-<fp>.parquet   means and variances of speakers and of the collection: a pinned model; one a track
    shards/part-<fp>.parquet     frames (swsdist.core.types.FRAMES); a file a shard and track

A reader that has read the manifest sees one state of the store, whatever others write meanwhile.

A store has a **kind**, which says what its shards hold (`frames`), and a **tick**, seconds per unit of its integer times. Its
documents are cut into shards once; each **track** is a recipe's frames of all of them, in files of the same partition. What is
fitted once and then applied to all documents to come is a **pinned model**, a file that the manifest names. A store that is
made of another names the state of it as its **source**.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.codes import store as codes
from swsdist.core.fingerprint import Naming, fingerprint
from swsdist.core.path_safety import demand_inside
from swsdist.core.types import DOCUMENTS, REJECTED
from swsdist.features.extractors import recipe_fingerprint
from swsdist.features.interface import Kind
from swsdist.io.filesystem import Folder
from swsdist.store import parquet, totals
from swsdist.store.libraries import with_these
from swsdist.store.places import recordings_root
from swsdist.store.sharding import by_shard
from swsdist.store.statistics import pinned
from swsdist.store.unfinished import Unfinished, tasks_done

NAME = "manifest.json"
SCHEMA = "swsdist-store/4"

#: What the names of a store's own files begin with, but for its manifest.
PARTS = ("shards/", "models/", "postings/", "documents-", "rejected-", "manifest-")

#: What the shards of a store hold: `frames`, or what a method that searches it calls its own (`MethodEntry.reads`).
StoreKind = str

#: What the source of a store of queries begins with: it is made of groups, which are states of it.
GROUPS = "groups:"

#: Rejected documents keep the identity of their file, so that they are not tried again until it changes.
REJECTED_DOCUMENTS = REJECTED.append(pa.field("identity", pa.string(), False))


@dataclass(frozen=True)
class File:
    """A file of a track: its name in the store, bytes, and SHA-256."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Shard:
    """Some documents, whole: a file of each track.

    Attributes:
        name: of the partition, which the documents tables of all tracks name; that of the first track's file.
        files: by track.
        documents, frames: how many live, of the first track.
    """

    name: str
    files: dict[str, File]
    documents: int
    frames: int

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(file.size for file in self.files.values())


@dataclass(frozen=True)
class Track:
    """What one recipe made of all documents.

    Attributes:
        name: what configs and readers call it.
        recipe: of the extractor (`features.extractors.recipe`), or of what derived it.
        fingerprint: of the recipe.
        dimension: numbers a frame.
        columns: their names.
        kind: what they are: `features`, `posteriors`, `logits`.
        documents: its table DOCUMENTS.
    """

    name: str
    recipe: dict[str, object]
    fingerprint: str
    dimension: int
    columns: tuple[str, ...]
    kind: Kind
    documents: str


class NewTrack(NamedTuple):
    """A track that is to be committed.

    Attributes:
        name, recipe, dimension, columns, kind: as in `Track`.
        documents: table DOCUMENTS, the live ones, in the order of shards and rows.
        frozen: table STATISTICS of the state before (`frozen_statistics`); None at first.
    """

    name: str
    recipe: dict[str, object]
    dimension: int
    documents: pa.Table
    frozen: pa.Table | None = None
    columns: Sequence[str] | None = None
    kind: Kind = "features"


@dataclass(frozen=True)
class Manifest:
    """One state of a store.

    Attributes:
        fingerprint: of the state.
        kind: what its shards hold.
        tick: seconds per unit of its integer times: the shift of its frames.
        tracks: the first is what a reader gets that names none.
        shards: those that hold a live document.
        rejected: table of documents that could not be used.
        models: pinned models by name; `statistics.TRACK` of each track.
        counts: documents, frames, seconds, rejected, cut_off (their recording is); and `statistics_gone`, how many of the
            documents that the collection's statistics were taken from are no longer there, or are others now.
        source: fingerprint of the state that it was made of; of a store of queries `groups:` and a fingerprint; else
            None.
        provisional: shards are missing, since their tasks failed: what is fitted on them is not pinned yet.
        libraries: versions that its parts were made with, by name; of those that frames depend on. They are in no fingerprint.
        unfinished: its index was interrupted; the state is for searches, and going on begins at the one before it.
        recordings: the way from the store to the folder that they are all in (`swsdist.store.places`).
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
            StoreError: there is none of that name.
        """
        for track in self.tracks:
            if name is None or track.name == name:
                return track
        raise codes.NO_SUCH_STORE_TRACK(
            where="features", track=name, tracks=", ".join(track.name for track in self.tracks)
        )

    @classmethod
    def from_json(cls, values: dict[str, Any], where: str = NAME) -> Manifest:
        """From what `dataclasses.asdict` gives, as it stands in a file.

        Raises:
            KeyError, TypeError, StoreError: it is not that, or names files outside of the store.
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
        made = {"tracks": tracks, "shards": shards, "libraries": libraries, "unfinished": unfinished}
        return cls(**{**values, **made})

    def shard(self, name: str) -> Shard:
        """The shard of a name."""
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Shard]:
        return {shard.name: shard for shard in self.shards}

    @property
    def of_queries(self) -> bool:
        """Whether it is a store of queries, which its run alone writes to."""
        return (self.source or "").startswith(GROUPS)

    @property
    def progress(self) -> str | None:
        """How far its index is, for people; None: it is whole."""
        return None if self.unfinished is None else self.unfinished.describe(self.counts["seconds"])

    @property
    def tables(self) -> tuple[str, ...]:
        """All files beside the shards."""
        return (*(track.documents for track in self.tracks), self.rejected, *self.models.values())

    @property
    def shift(self) -> float:
        """Seconds from one frame to the next."""
        return self.tick


def state_name(fingerprint: str) -> str:
    """Where a state of the store stays, after later ones have taken its place."""
    return f"manifest-{fingerprint}.json"


def load(folder: Folder, name: str = NAME) -> Manifest | None:
    """The manifest, or None where there is no store yet.

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
            raise codes.UNKNOWN_STORE_SCHEMA(where=where, schema=values["schema"], known=SCHEMA, folder=folder.path())
        return Manifest.from_json(values, where)
    except (ValueError, KeyError, TypeError) as error:
        raise codes.DAMAGED_MANIFEST(where=where, error=error) from None


def require(folder: Folder, name: str = NAME) -> Manifest:
    """The manifest of a store that must be there.

    Raises:
        StoreError: there is none, or not in this state any more.
    """
    manifest = load(folder, name)
    if manifest is None and folder.exists(NAME):
        raise codes.STORE_STATE_GONE(where=folder.path(name))
    if manifest is None and (done := tasks_done(folder)):
        raise codes.UNFINISHED_STORE(where=folder.path(), done=done)
    if manifest is None:
        raise codes.NO_STORE(where=folder.path())
    return manifest


def frozen_statistics(folder: Folder, track: str, recipe: str) -> pa.Table | None:
    """The statistics of a track that the store's current state pins, whatever else of that state is lost.

    Args:
        folder: the store.
        track: its name.
        recipe: fingerprint of the recipe that the track must have.

    Returns:
        STATISTICS; None where there is no store, no such track, it is of another recipe, or the file is gone.
    """
    manifest = load(folder)
    known = (
        [] if manifest is None else [one for one in manifest.tracks if (one.name, one.fingerprint) == (track, recipe)]
    )
    if manifest is None or not known or not folder.exists(manifest.models[f"statistics.{track}"]):
        return None
    return parquet.read(folder, manifest.models[f"statistics.{track}"])


def commit(
    folder: Folder,
    made: NewTrack | Sequence[NewTrack],
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
    """Make this the state of the store.

    Args:
        folder: the store.
        made: its tracks, the first first.
        tick: seconds per unit of its integer times; of all tracks.
        shards: those that hold a live document.
        rejected: REJECTED_DOCUMENTS.
        provisional: documents are missing that are to come, so what is fitted now is fitted anew at the next commit.
        models: files of further pinned models by name, which are there already.
        source: fingerprint of the state that the store is made of.
        kind: what the shards hold.
        libraries: versions that its parts were made with; by default those that are here.
        unfinished: it is of an index that was interrupted.
    """
    tracks, shards = [made] if isinstance(made, NewTrack) else list(made), tuple(shards)
    fitted = {
        one.name: pinned(folder, one.name, one.documents, one.dimension, one.frozen, provisional) for one in tracks
    }
    files = {**(models or {}), **{f"statistics.{name}": fit.file for name, fit in fitted.items()}}
    recipes = [[one.name, recipe_fingerprint(one.recipe)] for one in tracks]
    cut = [[shard.name, sorted(file.name for file in shard.files.values())] for shard in shards]
    naming = Naming(SCHEMA, kind, recipes, cut).listings(totals.keys(one.documents) for one in tracks)
    name = naming(sorted(files.items()), rejected.to_pylist(), source, provisional)
    first = tracks[0].documents
    manifest = Manifest(
        fingerprint=name,
        kind=kind,
        tick=tick,
        tracks=tuple(_track(one, name, k) for k, one in enumerate(tracks)),
        shards=shards,
        rejected=f"rejected-{name}.parquet",
        models=files,
        counts={
            "documents": first.num_rows,
            "frames": pc.sum(first["frames"]).as_py() or 0,
            "seconds": round(sum(map(float, np.sort(first["duration"].to_numpy()))), 6),
            **totals.speech([one.documents for one in tracks], tick),
            "rejected": rejected.num_rows,
            "cut_off": first.num_rows - first["cut_off"].null_count,
            "statistics_gone": fitted[tracks[0].name].gone,
        },
        source=source,
        provisional=provisional,
        libraries={name: tuple(known) for name, known in (with_these({}) if libraries is None else libraries).items()},
        unfinished=unfinished,
        recordings=recordings_root(folder, first["path"]),
    )
    for one, track in zip(tracks, manifest.tracks, strict=True):
        parquet.publish(folder, track.documents, by_shard(one.documents), DOCUMENTS)
    parquet.publish(folder, manifest.rejected, [rejected], REJECTED_DOCUMENTS)
    _publish(folder, manifest)
    return manifest


def pin(folder: Folder, manifest: Manifest, models: Mapping[str, str]) -> Manifest:
    """Make this the state of the store: the same, with further pinned models, files of it that are there already."""
    files = {**manifest.models, **models}
    made = replace(manifest, fingerprint=fingerprint(manifest.fingerprint, sorted(files.items())), models=files)
    _publish(folder, made)
    return made


def write_state(folder: Folder, manifest: Manifest) -> parquet.Output:
    """Write a state that can be asked for by its name, and is not that of the store."""
    name, text = state_name(manifest.fingerprint), _text(manifest)
    folder.write_bytes(name, text)
    return parquet.Output(name, len(text), hashlib.sha256(text).hexdigest())


def _text(manifest: Manifest) -> bytes:
    return json.dumps(asdict(manifest), indent=1, ensure_ascii=False).encode()


def _publish(folder: Folder, manifest: Manifest) -> None:
    write_state(folder, manifest)
    folder.write_bytes(NAME, _text(manifest))


def _track(one: NewTrack, state: str, place: int) -> Track:
    columns = tuple(one.columns) if one.columns is not None else tuple(f"c{k}" for k in range(one.dimension))
    table = f"documents-{state}.parquet" if place == 0 else f"documents-{state}-{place}.parquet"
    return Track(one.name, one.recipe, recipe_fingerprint(one.recipe), one.dimension, columns, one.kind, table)
