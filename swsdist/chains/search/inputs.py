"""The search chain knows these before its first step: corpus, queries, references, extractor, and the state of its store."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import pyarrow as pa

from swsdist.audio.reader import probe
from swsdist.config import Config
from swsdist.errors import AudioError, UserError
from swsdist.features.interface import tracks_of
from swsdist.features.registry import Extractor, create, frame_shift, identity, recipe_fingerprint
from swsdist.io.corpus import read_documents, read_queries, read_references
from swsdist.io.filesystem import Folder, Info, identify, is_remote, locate
from swsdist.pipeline.ledger import Ledger
from swsdist.store.manifest import Manifest, load, require, state_name
from swsdist.store.reading import Store


class SearchInputs:
    """Tables are read when first asked for. Plans of one ledger that agree on what is said here share it."""

    def __init__(self, config: Config, ledger: Ledger) -> None:
        self.config = config
        self.ledger = ledger
        self.store = Folder(config.store, config.storage)
        self.manifest: Manifest | None = None

    @classmethod
    def of(cls, config: Config, ledger: Ledger) -> SearchInputs:
        """Those of a config, shared where they are the same."""
        values = config.model_dump(mode="json", include={"run", "corpus", "features", "index", "storage"})
        values["store"] = config.store
        return ledger.remember(("search", json.dumps(values, sort_keys=True)), lambda: cls(config, ledger))

    # -- tables ---------------------------------------------------------------------------------------------------

    @cached_property
    def documents(self) -> pa.Table:
        """The corpus: CORPUS."""
        return read_documents(self.config.corpus.documents, self.config.storage, self.config.corpus.talkers)

    @cached_property
    def wanted(self) -> dict[tuple[str, int], dict[str, Any]]:
        """The corpus by key, each row with the identity of its file; plain values."""
        rows = self.documents.select(["doc_id", "channel", "path", "speaker", "duration"]).to_pylist()
        found = identities([row["path"] for row in rows], self.config.storage)
        return {(row["doc_id"], row["channel"]): {**row, "identity": i} for row, i in zip(rows, found, strict=True)}

    @cached_property
    def queries(self) -> pa.Table:
        """The query examples that are used: QUERIES."""
        if self.config.corpus.queries is None:
            raise UserError(
                "there are no queries to search", where="corpus.queries", remedy="name a table or a folder of queries"
            )
        return read_queries(
            self.config.corpus.queries, self.documents, self.config.corpus.examples, self.config.storage
        )

    @cached_property
    def examples(self) -> list[dict[str, Any]]:
        """Rows of `queries`, each with the identity of its file."""
        rows = self.queries.to_pylist()
        paths = [row["path"] for row in rows if row["path"] is not None]
        found = dict(zip(paths, identities(paths, self.config.storage), strict=True))
        return [{**row, "identity": found.get(row["path"], "text")} for row in rows]

    @cached_property
    def references(self) -> pa.Table | None:
        """True occurrences: REFERENCES; None where none are given."""
        path = self.config.corpus.references
        if path is None:
            return None
        return read_references(path, self.documents, self.queries, self.config.storage)

    @cached_property
    def extractor(self) -> Extractor:
        """The one that the config names."""
        one, *more = self.config.features
        extractor = create(one.name, one.options)
        tracks = len(tracks_of(extractor)) + len(more)
        if tracks > 1:
            raise UserError(
                f"the search chain indexes one track, the config names {tracks}",
                where="features",
                remedy="name one extractor, of one track",
            )
        return extractor

    @cached_property
    def extractor_fingerprint(self) -> str:
        """Of its name, version and options, and of the content of its files."""
        return recipe_fingerprint(identity(self.extractor))

    def expected_cells(self) -> float:
        """Query frames times document frames, from durations."""
        storage = self.config.storage
        documents = document_seconds(self.documents.to_pylist(), storage)
        queries = self.queries.to_pylist()
        whole = [row for row in queries if row["start"] is None or row["end"] is None]
        cut = sum(row["end"] - row["start"] for row in queries if row["start"] is not None and row["end"] is not None)
        cut += sum(document_seconds([{**row, "duration": None} for row in whole], storage))
        shift = frame_shift(self.extractor)
        return float(cut / shift * sum(documents) / shift)

    @cached_property
    def seconds(self) -> float:
        """Seconds of audio, documents of channel 1 only, as STDEval counts: the corpus table's durations, or as measured.

        A document without either (it was rejected, and the table does not tell) counts as nothing.
        """
        measured: dict[tuple[str, int], float] = {}
        if self.manifest is not None:
            table = Store(self.store, self.manifest).documents(columns=["doc_id", "channel", "duration"])
            measured = {(row["doc_id"], row["channel"]): row["duration"] for row in table.to_pylist()}
        total = 0.0
        for row in self.documents.select(["doc_id", "channel", "duration"]).to_pylist():
            if row["channel"] == 1:
                known = row["duration"] if row["duration"] is not None else measured.get((row["doc_id"], 1), 0.0)
                total += known
        return round(total, 6)

    # -- for the pipeline -----------------------------------------------------------------------------------------

    @property
    def hours(self) -> float:
        """Hours of audio, as far as the corpus table or the store tells."""
        if self.manifest is not None:
            return float(self.manifest.counts["seconds"]) / 3600
        known: list[float | None] = self.documents["duration"].to_pylist()
        return sum(value or 0.0 for value in known) / 3600

    @property
    def state(self) -> dict[str, str]:
        """Where the store is, and its state."""
        return {"store": self.store.root, "manifest": self.manifest.fingerprint if self.manifest is not None else ""}

    def recall(self, state: Mapping[str, str]) -> None:
        """Take the store in the state that a plan had."""
        if state.get("manifest"):
            self.manifest = require(self.store, state_name(state["manifest"]))

    def read(self, steps: frozenset[str]) -> None:
        """Read the tables that these steps need."""
        if self.documents.num_rows and "queries" in steps and self.queries.num_rows and "align.train" in steps:
            _ = self.references

    # -- the store ------------------------------------------------------------------------------------------------

    @property
    def listing(self) -> dict[str, Info]:
        """Files of the store."""
        return self.ledger.listing(self.store.root)

    @property
    def lost_shards(self) -> frozenset[str]:
        """Shards that the manifest names and that are not there, or not in their full size."""
        if self.manifest is None:
            return frozenset()
        listing = self.listing
        return frozenset(
            shard.name
            for shard in self.manifest.shards
            if any(file.name not in listing or listing[file.name].size != file.size for file in shard.files.values())
        )

    def load_manifest(self, anew: bool = False) -> Manifest | None:
        """The store's state, if it is one of this config's extractor and its tables are there.

        Args:
            anew: the store is made anew, whatever it holds.
        """
        manifest = load(self.store)
        if manifest is None or manifest.extractor_fingerprint == self.extractor_fingerprint:
            listing = self.listing
            tables = manifest.tables if manifest is not None else ()
            self.manifest = None if anew or any(name not in listing for name in tables) else manifest
            return self.manifest
        if self.config.index.store is not None:
            raise UserError(
                f"the store holds other features: {describe(manifest.extractor)}",
                where=self.store.path(),
                remedy="name another store in index.store, or remove this one; or set features to what it holds",
            )
        self.manifest = None  # the run's own store: the new features take the place of the old
        return None

    def open_store(self) -> Store:
        """The store in the state that `index` has left."""
        assert self.manifest is not None  # index has come to its end
        return Store(self.store, self.manifest)


def describe(extractor: dict[str, Any]) -> str:
    """An extractor in one line."""
    options = ", ".join(f"{key}={value}" for key, value in extractor["options"].items())
    return f"{extractor['name']} version {extractor['version']} ({options})"


def identities(paths: list[str], storage: Any) -> list[str]:
    """Size and modification of each file, `missing` where there is none; on S3 from one listing a folder."""
    listed: dict[str, dict[str, Info]] = {}

    def one(path: str) -> str:
        if is_remote(path):
            folder, name = locate(path, storage)
            if folder.root in listed:
                info = listed[folder.root].get(name)
                return info.identity if info is not None else "missing"
        try:
            return identify(path, storage)
        except FileNotFoundError:
            return "missing"
        except OSError as error:
            return f"unreadable: {error.strerror}"

    remote = sorted({locate(path, storage)[0].root for path in paths if is_remote(path)})
    if len(remote) * 8 < len(paths):
        for root in remote:
            listed[root] = Folder(root, storage).listing()
    if any(is_remote(path) for path in paths):
        with ThreadPoolExecutor(16) as pool:
            return list(pool.map(one, paths))
    return [one(path) for path in paths]


def document_seconds(rows: list[dict[str, Any]], storage: Any) -> list[float]:
    """Seconds of each document: the table's, else its header's; 0 where neither tells (indexing will say why)."""

    def one(row: dict[str, Any]) -> float:
        if row["duration"] is not None:
            return float(row["duration"])
        try:
            return probe(row["path"], storage).duration
        except AudioError:
            return 0.0

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(one, rows))
