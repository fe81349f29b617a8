"""What the driver knows of a run: its inputs, what stages have done, and where things lie."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from swsdist.config import Config
from swsdist.errors import UserError
from swsdist.features.interface import tracks_of
from swsdist.features.registry import Extractor, create, identity, recipe_fingerprint
from swsdist.io.corpus import read_documents, read_queries, read_references
from swsdist.io.filesystem import Folder, Info, identify, is_remote, locate
from swsdist.kernels.scales import weighted
from swsdist.pipeline.task import Context, Failure, Receipt, Stage, Task, receipt_name
from swsdist.store.manifest import Manifest, load


@dataclass
class Ended:
    """A stage that has come to its end in this run."""

    receipts: list[Receipt] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    done: int = 0
    skipped: int = 0
    wall: float = 0.0

    @property
    def tasks(self) -> int:
        """How many were planned."""
        return len(self.receipts) + len(self.failures)


class State:
    """The driver's knowledge. Tables are read when first asked for."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.run = Folder(config.run, config.storage)
        self.store = Folder(config.store, config.storage)
        self.ended: dict[str, Ended] = {}
        self.redo: frozenset[str] = frozenset()
        self.manifest: Manifest | None = None
        self._listings: dict[str, dict[str, Info]] = {}

    @property
    def context(self) -> Context:
        """What is sent to where the tasks run."""
        return Context(self.config, self.run, self.store)

    # -- inputs ---------------------------------------------------------------------------------------------------

    @cached_property
    def documents(self) -> pa.Table:
        """The corpus: CORPUS."""
        return read_documents(self.config.corpus.documents, self.config.storage, self.config.corpus.talkers)

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

    @property
    def unit(self) -> int:
        """The integer that stands for a local distance of 1."""
        return weighted([(term.distance, term.weight) for term in self.config.search.terms()]).unit

    @cached_property
    def seconds(self) -> float:
        """Seconds of audio, documents of channel 1 only, as STDEval counts: the corpus table's durations, or as measured.

        A document without either (it was rejected, and the table does not tell) counts as nothing.
        """
        measured: dict[tuple[str, int], float] = {}
        if self.manifest is not None:
            from swsdist.store.reading import Store

            table = Store(self.store, self.manifest).documents(columns=["doc_id", "channel", "duration"])
            measured = {(row["doc_id"], row["channel"]): row["duration"] for row in table.to_pylist()}
        total = 0.0
        for row in self.documents.select(["doc_id", "channel", "duration"]).to_pylist():
            if row["channel"] == 1:
                known = row["duration"] if row["duration"] is not None else measured.get((row["doc_id"], 1), 0.0)
                total += known
        return round(total, 6)

    # -- what is there --------------------------------------------------------------------------------------------

    def forget_listings(self) -> None:
        """List the folders anew when next asked."""
        self._listings = {}

    def _listing(self, folder: Folder) -> dict[str, Info]:
        if folder.root not in self._listings:
            self._listings[folder.root] = folder.listing()
        return self._listings[folder.root]

    def folder_of(self, stage: Stage) -> Folder:
        """Where a stage's receipts and outputs lie."""
        return self.store if stage.in_store else self.run

    def receipt(self, stage: Stage, task: Task) -> Receipt | None:
        """The receipt of a task that is done: it is there, and so are its outputs, in their full size."""
        folder = self.folder_of(stage)
        listing = self._listing(folder)
        name = receipt_name(task.stage, task.fingerprint)
        if name not in listing:
            return None
        try:
            receipt = Receipt.from_json(folder.read_bytes(name))
        except (ValueError, TypeError, KeyError):
            return None  # cut off or of another version: the task is done again
        whole = all(o.name in listing and listing[o.name].size == o.size for o in receipt.outputs)
        return receipt if whole else None

    @property
    def lost_shards(self) -> frozenset[str]:
        """Shards that the manifest names and that are not there, or not in their full size."""
        if self.manifest is None:
            return frozenset()
        listing = self._listing(self.store)
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
            listing = self._listing(self.store)
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
