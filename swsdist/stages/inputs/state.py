"""The store of a run: its folder, its state, and its content of the required features.

Recordings that were moved, renamed or copied since indexing are found by content. Equal bytes with equal suffix,
channel and speaker give equal frames. A document that keeps its name keeps its place in its shard, and only its path
changes; for one with a new name the frames are copied. Local files are compared by SHA-256, and read only if their
length occurs in the store; on S3 the ETag identifies content.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from swsdist.audio.formats import ffmpeg, views
from swsdist.audio.streams import is_command, sha256
from swsdist.config import Config, config_from_dict
from swsdist.core.arrays import Bools, Ints
from swsdist.core.codes import families
from swsdist.core.codes import stages as codes
from swsdist.core.errors import StoreError, SwsdistError, recast
from swsdist.features.extractors import Source, create
from swsdist.features.interface import Extractor, Precomputed
from swsdist.io.filesystem import Folder, is_remote
from swsdist.io.notices import Notices
from swsdist.io.remote.scratch import scratch
from swsdist.pipeline.chain_run import Outcome, StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.operation.progress import Progress
from swsdist.pipeline.receipts import Listing
from swsdist.pipeline.task import Receipt
from swsdist.stages.inputs.corpus_documents import (
    CorpusDocuments,
    Key,
    RunFeatures,
    StoreContents,
    compare,
    describe,
    places_in,
)
from swsdist.store.manifest import Manifest, load, require, state_name
from swsdist.store.reading import Store

#: Files read in parallel.
_READERS = 4

#: Matches an identity after the length of the file; in a group, what says how it is read.
AFTER_SIZE = f":.*?({ffmpeg.READER})?$"


class ContentMatches(NamedTuple):
    """Documents of a corpus whose frames a store has under another path or name.

    Attributes:
        moved: positions of documents with unchanged names.
        held: for other documents, by key and by extractor (fingerprint): place of their frames
            (`swsdist.store.writing`).
    """

    moved: Ints
    held: dict[Key, dict[str, dict[str, Any]]]


def match_content(
    corpus: CorpusDocuments,
    places: Ints,
    state: StoreContents,
    store: Store | None,
    sources: tuple[Source, ...],
) -> ContentMatches:
    """Match documents to the content of a store.

    Args:
        corpus: its documents.
        places: positions of documents not matched by path and time of change.
        state: of the store, with its tables.
        store: None if there is no store.
        sources: all extractors; precomputed frames are matched by their own content.
    """
    nothing = ContentMatches(np.empty(0, np.int64), {})
    all_stored = store is not None and all(source.tracks[0].name in state.tables for source in sources)
    if store is None or not all_stored or not len(places):
        return nothing
    if not all(isinstance(source.extractor, Extractor) for source in sources):
        return nothing
    identities = corpus.identities[sources[0].fingerprint]  # identities of recordings are the same for all extractors
    sizes = _sizes(state.tables[sources[0].tracks[0].name]["identity"])
    likely = pc.is_in(_sizes(identities.take(pa.array(places))), sizes)
    places = places[np.asarray(likely.to_numpy(zero_copy_only=False), bool)]
    if not len(places):
        return nothing
    rows = [{**row, "place": place} for row, place in zip(corpus.rows(places), places.tolist(), strict=True)]
    rows = [row for row in rows if row.get("start") is None and not is_command(row["path"])]
    digests = _digests(store, dict.fromkeys(row["path"] for row in rows if not is_remote(row["path"])))
    olds = {
        source.fingerprint: _stored_by_content(store, source, state, identities.take(pa.array(places)))
        for source in sources
    }
    moved: list[int] = []
    stored: dict[Key, dict[str, dict[str, Any]]] = {}
    for row in rows:
        path = row["path"]
        digest = row["identities"][sources[0].fingerprint] if is_remote(path) else digests[path]
        if digest is None:
            continue
        token = digest, _ending(path), row["channel"], row["speaker"]
        several = {recipe: old.get(token) for recipe, old in olds.items()}
        if all(item is not None and row["doc_id"] in item for item in several.values()):
            moved.append(row["place"])
            continue
        for source in sources:
            item = several[source.fingerprint]
            if item:
                first = min(item)
                names = [track.name for track in source.tracks]
                stored.setdefault((row["doc_id"], row["channel"]), {})[source.fingerprint] = {
                    "state": store.manifest.fingerprint,
                    "shard": item[first],
                    "doc_id": first,
                    "tracks": names,
                    "sha256": None if is_remote(path) else digest,
                }
    return ContentMatches(np.array(moved, np.int64), stored)


def _digests(store: Store, paths: Iterable[str]) -> dict[str, str | None]:
    """SHA-256 of local files; unreadable ones get none, and the index reports why."""

    def digest_of(path: str) -> tuple[str, str | None]:
        try:
            return path, sha256(path, store.folder.storage)
        except (SwsdistError, OSError):
            return path, None

    with ThreadPoolExecutor(_READERS) as pool:
        return dict(pool.map(digest_of, paths))


def _stored_by_content(
    store: Store, source: Source, state: StoreContents, identities: pa.Array
) -> Mapping[tuple[str, str, int, str | None], dict[str, str]]:
    """By content, ending, channel and speaker: an extractor's documents whose files have equal length, with their
    shards.
    """
    columns = ["doc_id", "channel", "path", "identity", "sha256", "speaker", "shard"]
    table = store.documents(columns=columns, track=source.tracks[0].name)
    table = table.filter(pc.is_in(_sizes(table["identity"]), _sizes(identities)))
    there = [shard for shard, files in state.files.items() if all(track.name in files for track in source.tracks)]
    table = table.filter(pc.is_in(table["shard"], pa.array(there, pa.string())))
    result: dict[tuple[str, str, int, str | None], dict[str, str]] = {}
    for row in table.to_pylist():
        token = row["identity"] if is_remote(row["path"]) else row["sha256"]
        key = (token, _ending(row["path"]), row["channel"], row["speaker"])
        result.setdefault(key, {})[row["doc_id"]] = row["shard"]
    return result


def _sizes(identities: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Lengths of files, as text, and how they are read; for a command or other non-file, arbitrary text."""
    sizes = pc.replace_substring_regex(identities.cast(pa.large_string()), pattern=AFTER_SIZE, replacement=r"\1")
    return sizes.combine_chunks() if isinstance(sizes, pa.ChunkedArray) else sizes


def _ending(path: str) -> str:
    name = views.split(path)[0].rpartition("/")[2]
    return name.rpartition(".")[2].lower() if "." in name else ""


#: Documents that a store may lose whatever its size.
_SEVERAL = 10


class DocumentCounts(NamedTuple):
    """Numbers of new, changed and missing documents of the corpus relative to a store; of the new, rejected ones count too.

    Of the new and changed documents, `held` have frames in the store under another name; `moved` ones have the name and the
    bytes that the store knows, at another path or time.
    """

    new: int
    changed: int
    gone: int
    moved: int = 0
    held: int = 0


class Comparison(NamedTuple):
    """Comparison of corpus and store by document.

    Attributes:
        counts: over all documents.
        same: for each document of the corpus, whether its frames stay.
        moved: positions of documents that the store has under another path.
        held: for new ones, by key and extractor: place of their frames in the store.
    """

    counts: DocumentCounts
    same: Bools
    moved: Ints
    held: Mapping[Key, dict[str, dict[str, Any]]]


class StoreState:
    """A store in the state used by a plan; `load` takes the folder's current state."""

    def __init__(self, config: Config, features: RunFeatures, ledger: Ledger) -> None:
        self._config, self.features, self._ledger = config, features, ledger
        self.folder = Folder(config.store, config.storage)
        self.manifest: Manifest | None = None
        self.contents = StoreContents()
        self.lost: list[str] = []  # tables and models that the state names and the folder lacks
        self.interrupted = False  # whether an index was interrupted: `manifest` is the state that it resumes from
        #: `keys_of` the stored and rejected documents when the state was read.
        self.earlier_keys: pa.Array = pa.array([], pa.large_string())
        self.comparison: Comparison | None = None  # with the corpus, set when the index is planned
        #: By fingerprint of a planned index task: its extractor, its shard, and its work, s.
        self.planned: dict[str, tuple[Source, str, float]] = {}

    @property
    def listing(self) -> Listing:
        """Files of the store."""
        return self._ledger.listing(self.folder.root)

    def recall(self, fingerprint: str) -> None:
        """Return to the state that a plan had."""
        if fingerprint:
            self.manifest = require(self.folder, state_name(fingerprint))

    def makers(self, stage: str) -> list[Receipt]:
        """Receipts of the tasks of a stage that made its shards; empty if another run made a part, or it was compacted."""
        if self.manifest is None:
            return []
        by_file = {
            part.name: receipt
            for receipt in self._ledger.receipts(stage, self.folder.root).values()
            for part in receipt.outputs
        }
        files = [file.name for shard in self.manifest.shards for file in shard.files.values()]
        if any(name not in by_file for name in files):
            return []
        # Several tracks of one pass share a receipt.
        return list({by_file[name].fingerprint: by_file[name] for name in files}.values())

    def open(self) -> Store:
        """The store in the state that `index` committed."""
        assert self.manifest is not None  # index has finished
        return Store(self.folder, self.manifest)

    @property
    def state(self) -> tuple[str, str]:
        """Folder and fingerprint of the state that `index` committed, as for `Store.at`."""
        return self.folder.root, self.open().manifest.fingerprint

    @property
    def moved(self) -> Ints:
        """Positions of documents of the corpus that the store has under another path."""
        return np.empty(0, np.int64) if self.comparison is None else self.comparison.moved

    def load(self, anew: bool = False) -> StoreContents:
        """The store's content of the required tracks; sets `manifest` to its state, without lost models, if that exists and
        its tables do.

        Args:
            anew: ignore the current content.

        Raises:
            UserError: it is no store of documents, or a shared store of other features.
        """
        manifest, listing = load(self.folder), self.listing
        self.manifest, self.contents, self.lost = None, StoreContents(), []
        self.interrupted = manifest is not None and manifest.unfinished is not None
        if manifest is not None and manifest.unfinished is not None:
            before = manifest.unfinished.before
            manifest = load(self.folder, state_name(before)) if before is not None else None
        if manifest is None:
            return self.contents
        if manifest.of_queries:
            raise families.WRONG_KIND(
                "this is a run's store of queries",
                "name another folder for the store of the documents",
                where=f"index.store: {self.folder.path()}",
            )
        recipes = dict(self.features.recipes)
        kept = [track.name for track in manifest.tracks if recipes.get(track.name) == track.fingerprint]
        others = [track for track in manifest.tracks if track.name in recipes and track.name not in kept]
        if self._config.index.store is not None and (others or not kept):
            stored = (others or manifest.tracks)[0]
            raise families.MISMATCH(
                "the store holds other features: {features}, as track {track}",
                "name another store in index.store, or remove this one; or set features to those it holds",
                where=self.folder.path(),
                features=describe(stored.recipe),
                track=stored.name,
            )
        # In the run's own store new features replace the old.
        if anew or not kept:
            return self.contents
        self.lost = [name for name in manifest.tables if name not in listing]
        models = {key: name for key, name in manifest.models.items() if name not in self.lost}
        if len(self.lost) > len(manifest.models) - len(models):
            return self.contents
        self.manifest = manifest = replace(manifest, models=models)
        self.contents = self._state_of(manifest, kept)
        self.earlier_keys = self.contents.keys
        return self.contents

    def _state_of(self, manifest: Manifest, kept: list[str]) -> StoreContents:
        listing, state, sources = self.listing, StoreContents(kept=kept), self.features.sources
        state.left = any(track.name not in kept for track in manifest.tracks)
        for shard in manifest.shards:
            there = {
                name: file
                for name, file in shard.files.items()
                if name in kept and listing.size(file.name) == file.size
            }
            lacking = [source for source in sources if any(track.name not in there for track in source.tracks)]
            if len(lacking) == len(sources):
                continue  # nothing is left of it: its documents are new
            # The tracks of one pass are stored together or not at all.
            gone = {track.name for source in lacking for track in source.tracks}
            state.files[shard.name] = {name: file for name, file in there.items() if name not in gone}
            if lacking:
                state.lacking[shard.name] = lacking
        store = Store(self.folder, manifest)
        columns = ["doc_id", "channel", "path", "identity", "speaker", "shard"]
        there = pa.array(list(state.files), pa.string())
        tables = {name: store.documents(columns=columns, track=name, codes=["shard"]) for name in kept}
        tables = {name: _of_shards(table, there) for name, table in tables.items()}
        state.tables = tables
        if not state.left:  # else the rejection may be by a track that is no longer required
            state.rejected = store.rejected()
        return state

    def compare(self, corpus: CorpusDocuments) -> Comparison:
        """Compare the corpus with the content of the store."""
        state = self.contents
        present, same = compare(corpus, state, dict(self.features.recipes))
        store = None if self.manifest is None else self.open()
        result: ContentMatches = match_content(corpus, np.flatnonzero(~same), state, store, self.features.sources)
        same[result.moved] = True
        new, fresh = int((~same).sum()), int((~present).sum())
        gone = int((places_in(state.stored, corpus.keys_) < 0).sum())
        counts = DocumentCounts(fresh, new - fresh, gone, len(result.moved), len(result.held))
        self.comparison = Comparison(counts, same, result.moved, result.held)
        return self.comparison


def doubt_gone(notices: Notices, folder: Folder, gone: int, of: int) -> None:
    """Refuse to lose most of a store's documents: its archive may be another, or be mounted in part.

    Raises:
        ImplausibleError: `gone` of its documents are more than half, and not only a few.
    """
    if gone >= _SEVERAL and 2 * gone > of:
        notices.doubt(codes.MOST_ARE_GONE, where=folder.path(), count=gone, of=of)


def _of_shards(table: pa.Table, shards: pa.Array) -> pa.Table:
    """The documents of some shards; no copy for all shards."""
    mask = pc.is_in(table["shard"], shards)
    return table if pc.all(mask).as_py() else table.filter(mask)


#: Arguments of `store import` by key of a config.
_OPTIONS = {"features.options.path": "SOURCE", "index.store": "STORE", "corpus.documents": "--documents"}
_OPTION = re.compile(r"features\.options\.(\w+)|index\.store|corpus\.documents")


def as_options(text: str) -> str:
    """Reword a message about a config for the arguments of `store import`, whose users have no config."""
    return _OPTION.sub(lambda result: _OPTIONS.get(result[0], f"--{result[1]}"), text)


def import_store(
    store: str,
    options: Mapping[str, object],
    *,
    track: str | None = None,
    documents: str | None = None,
    shard_hours: float = 1.0,
    storage: Mapping[str, object] | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Make or update a store in this process. Unchanged documents stay; missing ones are removed.

    Args:
        store: its folder, local or `s3://`.
        options: of the extractor `external`.
        track: name of the track; by default `external`.
        documents: table of the documents (doc_id, maybe channel, path, duration, speaker); by default each key is one.
        shard_hours: hours of audio per shard.
        storage: options for s3fs.
        progress: receives events.

    Returns:
        The result; its chain run's `rejected` lists unusable documents.

    Raises:
        UserError, DataError: an option is wrong, or no frames can be read.
        IncompleteError: some shards could not be made; repeat the call to continue.
    """
    extractor = create("external", dict(options))
    assert isinstance(extractor, Precomputed)
    with tempfile.TemporaryDirectory(dir=scratch()) as place:
        if documents is None:
            documents = str(Path(place) / "keys.parquet")
            pq.write_table(
                pa.table({"doc_id": pa.array(list(extractor.items(False, storage or {})), pa.string())}), documents
            )
        features: dict[str, Any] = {"name": "external", "options": dict(options)}
        values = {
            "run": str(Path(place) / "run"),
            "corpus": {"documents": documents},
            "features": features if track is None else {**features, "track": track},
            "index": {"store": store, "shard_hours": shard_hours},
            "executor": {"kind": "serial"},
            "storage": dict(storage or {}),
        }
        try:
            outcome = run_stages(config_from_dict(values), StepSelection(table="documents"), progress or Progress())
        except StoreError as error:
            if error.where is None or not error.where.startswith(place):
                raise
            # The temporary table of keys no longer exists.
            raise recast(error, type(error), where=str(options["path"])) from None
    if outcome.failures:
        raise families.TASKS_FAILED(
            "{shards} shards are not done; the first: {error}",
            "mend the cause and import again: what was done is kept",
            where=store,
            shards=len(outcome.failures),
            error=outcome.failures[0].message.splitlines()[0],
        )
    return outcome
