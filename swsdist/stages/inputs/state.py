"""The store of a run: its folder, its state, and what that holds of the features that are wanted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.config import Config
from swsdist.core.codes import stages as codes
from swsdist.features.sources import Source
from swsdist.io.filesystem import Folder
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.records.listing import Listing
from swsdist.stages.inputs.content_matches import ContentMatches, match_content
from swsdist.stages.inputs.corpus_documents import CorpusDocuments, Key, StoreContents, compare, places_in
from swsdist.stages.inputs.features import RunFeatures
from swsdist.stages.inputs.settings import describe
from swsdist.store.manifest import Manifest, load, require, state_name
from swsdist.store.reading import Store


class DocumentCounts(NamedTuple):
    """The corpus beside what a store held of it: documents that are new, changed, gone, moved; rejected ones count too.

    Of the new and changed ones `held` have frames in the store, under another name.
    """

    new: int
    changed: int
    gone: int
    moved: int = 0
    held: int = 0


class Comparison(NamedTuple):
    """The same document by document.

    Attributes:
        counts: of all.
        same: of each document of the corpus, whether its frames stay.
        moved: places of those that the store knows under another path.
        held: of new ones, by key and extractor: where the store has their frames.
    """

    counts: DocumentCounts
    same: NDArray[np.bool_]
    moved: NDArray[np.int64]
    held: Mapping[Key, dict[str, dict[str, Any]]]


class StoreState:
    """A store, in the state that a plan means; `load` takes what the folder has now."""

    def __init__(self, config: Config, features: RunFeatures, ledger: Ledger) -> None:
        self._config, self.features, self._ledger = config, features, ledger
        self.folder = Folder(config.store, config.storage)
        self.manifest: Manifest | None = None
        self.contents = StoreContents()
        self.interrupted = False  # an index was: `manifest` is the state that it goes on from
        #: `keys_of` what the store held, or had rejected, when its state was read.
        self.earlier_keys: pa.Array = pa.array([], pa.large_string())
        self.comparison: Comparison | None = None  # with the corpus, when the index was planned
        #: By fingerprint of a task of the index that was planned: its extractor, the shard that it is of, and its work, s.
        self.planned: dict[str, tuple[Source, str, float]] = {}

    @property
    def listing(self) -> Listing:
        """Files of the store."""
        return self._ledger.listing(self.folder.root)

    def recall(self, fingerprint: str) -> None:
        """Take the state that a plan had."""
        if fingerprint:
            self.manifest = require(self.folder, state_name(fingerprint))

    def open(self) -> Store:
        """The store in the state that `index` has left."""
        assert self.manifest is not None  # index has come to its end
        return Store(self.folder, self.manifest)

    @property
    def state(self) -> tuple[str, str]:
        """Its folder, and the fingerprint of the state that `index` has left, as `Store.at` takes them."""
        return self.folder.root, self.open().manifest.fingerprint

    @property
    def moved(self) -> NDArray[np.int64]:
        """Places of documents of the corpus that it knows under another path."""
        return np.empty(0, np.int64) if self.comparison is None else self.comparison.moved

    def load(self, anew: bool = False) -> StoreContents:
        """What the store holds of the tracks that are wanted; `manifest` becomes its state, if there is any and its tables are
        there.

        Args:
            anew: the store is made anew, whatever it holds.

        Raises:
            UserError: it is no store of documents, or one of other features that several runs share.
        """
        manifest, listing = load(self.folder), self.listing
        self.manifest, self.contents = None, StoreContents()
        self.interrupted = manifest is not None and manifest.unfinished is not None
        if manifest is not None and manifest.unfinished is not None:
            before = manifest.unfinished.before
            manifest = load(self.folder, state_name(before)) if before is not None else None
        if manifest is None:
            return self.contents
        if manifest.of_queries:
            raise codes.QUERY_STORE_AS_INDEX(where=f"index.store: {self.folder.path()}")
        recipes = dict(self.features.recipes)
        kept = [track.name for track in manifest.tracks if recipes.get(track.name) == track.fingerprint]
        others = [track for track in manifest.tracks if track.name in recipes and track.name not in kept]
        if self._config.index.store is not None and (others or not kept):
            held = (others or manifest.tracks)[0]
            raise codes.OTHER_FEATURES_IN_STORE(
                where=self.folder.path(), features=describe(held.recipe), track=held.name
            )
        # In the run's own store new features take the place of the old.
        if anew or not kept or any(name not in listing for name in manifest.tables):
            return self.contents
        self.manifest = manifest
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
            # What an extractor yields in one pass is there as a whole, or not at all.
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
        if not state.left:  # else who rejected them may have been a track that is no longer wanted
            state.rejected = store.rejected()
        return state

    def compare(self, wanted: CorpusDocuments) -> Comparison:
        """The corpus beside what the store holds."""
        state = self.contents
        known, same = compare(wanted, state, dict(self.features.recipes))
        store = None if self.manifest is None else self.open()
        found: ContentMatches = match_content(wanted, np.flatnonzero(~same), state, store, self.features.sources)
        same[found.moved] = True
        new, fresh = int((~same).sum()), int((~known).sum())
        gone = int((places_in(state.keys, wanted.keys_) < 0).sum())
        counts = DocumentCounts(fresh, new - fresh, gone, len(found.moved), len(found.held))
        self.comparison = Comparison(counts, same, found.moved, found.held)
        return self.comparison


def _of_shards(table: pa.Table, shards: pa.Array) -> pa.Table:
    """The documents of some shards; no copy where these are all."""
    mask = pc.is_in(table["shard"], shards)
    return table if pc.all(mask).as_py() else table.filter(mask)
