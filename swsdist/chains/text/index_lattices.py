"""index-lattices turns files of lattices or transcripts into shards of a store of lattices, a task per few files."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from swsdist.chains.text.inputs import TextInputs, read_words
from swsdist.core.codes import text as codes
from swsdist.core.errors import DataError, UnusableError
from swsdist.core.fingerprint import fingerprint
from swsdist.core.types import DOCUMENTS
from swsdist.io.filesystem import Folder
from swsdist.lattices.collection import LatticeFile, chunks, document_id, read_file
from swsdist.lattices.lattice import Broken, Origin
from swsdist.lattices.packed import TICK, Packed, Recipe, pack
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Part, Task, TaskOutput
from swsdist.stages.task_results import Indexed
from swsdist.store import digest, parquet
from swsdist.store.lattice_shards import LATTICES, POSTINGS, LatticeShardWriter, lattices_name
from swsdist.store.manifest import REJECTED_DOCUMENTS, File, Manifest, NewTrack, Shard, commit, load

#: Kind of a store of lattices, and name of its only track.
LATTICE_STORE = "lattices"
#: Columns of DOCUMENTS that a task knows.
_LISTED = pa.schema(
    [
        *(DOCUMENTS.field(name) for name in ("doc_id", "channel", "path", "frames", "shard", "identity", "sha256")),
        pa.field("part", pa.int64(), False),
    ]
)


class IndexingLattices(NamedTuple):
    """The payload of a task: files, and how they are read."""

    files: list[LatticeFile]
    path: str
    recipe: Recipe
    words: str | None
    frame: float
    tiers: tuple[str, ...]


class IndexLattices(Stage[IndexingLattices]):
    """Make shards of lattices; of files that did not change they stay. The store's documents are those of the corpus."""

    name = "index-lattices"
    version = 1
    unit = "bytes"
    phase = "index"
    with_hours = "more"
    with_queries = "same"
    all_or_nothing = True
    # Digests cover the documents' lattices, not the files.
    tables = {
        "features": Table(LATTICES, None, digested=False),
        "postings": Table(POSTINGS, None, digested=False),
        "documents": Table(_LISTED, None, digested=False),
    }

    def place(self, inputs: Inputs) -> str:
        """The store."""
        return inputs.chain_inputs(TextInputs).store.folder.root

    def plan(self, inputs: Inputs) -> Iterator[Task[IndexingLattices]]:
        """A task per few files."""
        source = inputs.chain_inputs(TextInputs).lattices
        given, matters = source.options.lattices, source.matters()
        store = inputs.chain_inputs(TextInputs).store
        store.manifest = load(store.folder)  # until `finish` has another
        demand_lattices(store.folder, store.manifest)
        _ = inputs.chain_inputs(TextInputs).corpus.documents  # mistakes in them show before any work
        for files in chunks(source.files):
            names = [[file.path.removeprefix(source.path), file.identity, file.format] for file in files]
            payload = IndexingLattices(files, source.path, source.options.recipe, given.words, given.frame, given.tiers)
            size = sum(file.size for file in files)
            label = files[0].path.rpartition("/")[2] if len(files) == 1 else f"{len(files)} files"
            yield inputs.task(matters, names, label=label, work=max(size, 1), payload=payload)

    def warm(self, task: Task[IndexingLattices], context: Context) -> None:
        """Load the compiled kernels."""
        from swsdist.kernels import lattices  # noqa: F401

    def run(self, task: Task[IndexingLattices], context: Context) -> TaskOutput:
        """Read, prepare, write."""
        payload, folder = task.payload, context.folder(task)
        words = None if payload.words is None else read_words(payload.words, dict(context.storage))
        rejected: list[dict[str, Any]] = []
        rows: list[dict[str, Any]] = []
        parts: list[Part] = []
        keys: set[tuple[str, int]] = set()  # a shard has a document once
        writer: LatticeShardWriter | None = None
        done = 0

        def publish() -> None:
            assert writer is not None
            written = writer.publish()
            parts.append(Part("features", *written.lattices, written.documents))
            parts.append(Part("postings", *written.postings, written.labels))

        try:
            for file in payload.files:
                origin = Origin(file.path, context.storage, words, payload.frame, payload.tiers)
                for item in read_file(file.format, origin):
                    doc_id = document_id(item.key, file.path, payload.path)
                    try:
                        if isinstance(item, Broken):
                            raise item.error
                        if (doc_id, item.channel) in keys:
                            raise codes.DUPLICATE_LATTICE(where=file.path, document=doc_id)
                        packed = pack(item, payload.recipe)
                    except DataError as error:
                        rejected.append(_rejection(doc_id, getattr(item, "channel", 1), file.path, error))
                        continue
                    keys.add((doc_id, item.channel))
                    if writer is None or writer.full:
                        if writer is not None:
                            publish()
                        writer = LatticeShardWriter(folder, lattices_name(task.fingerprint, len(parts) // 2))
                    writer.append(doc_id, item.channel, packed)
                    rows.append(
                        {
                            "doc_id": doc_id,
                            "channel": item.channel,
                            "path": file.path,
                            "frames": packed.ticks,
                            "shard": writer.name,
                            "identity": file.identity,
                            "sha256": sha256_of(packed),
                            "part": writer.documents - 1,
                        }
                    )
                done += file.size
                context.report(done / task.work)
            if writer is not None:
                publish()
                writer = None
        finally:
            if writer is not None:
                writer.discard()
        listed = pa.Table.from_pylist(rows, _LISTED)
        # The name of the first shard, with which it is cleaned away.
        name = lattices_name(task.fingerprint, 0).replace(".parquet", ".documents.parquet")
        parts.append(Part("documents", *parquet.publish(folder, name, [listed], _LISTED), listed.num_rows))
        frames = sum(row["frames"] for row in rows)
        return TaskOutput(tuple(parts), Indexed(len(rows), frames, frames * TICK), rejected=rejected)

    def finish(self, inputs: Inputs) -> None:
        """Commit the store's state if it changed."""
        chain_inputs = inputs.chain_inputs(TextInputs)
        folder, source = chain_inputs.store.folder, chain_inputs.lattices
        receipts = inputs.outcome.receipts
        corpus = chain_inputs.corpus.documents
        recipe: dict[str, object] = {
            "name": self.name,
            "version": self.version,
            "options": source.options.recipe.model_dump(mode="json"),
        }
        known = corpus.select([name for name in corpus.column_names if name != "listed"]).to_pylist()
        state = f"{LATTICE_STORE}:{fingerprint(recipe, [receipt.fingerprint for receipt in receipts], known)}"
        old = load(folder)
        if old is not None and old.source == state and not inputs.outcome.failures:
            chain_inputs.store.manifest = old
            return
        by_key = {(row["doc_id"], row["channel"]): row for row in known}
        live: dict[tuple[str, int], dict[str, Any]] = {}
        rejected = [{**row, "identity": ""} for receipt in receipts for row in receipt.rejected]
        files: dict[str, dict[str, File]] = {}
        for receipt in receipts:
            shards = [part for part in receipt.outputs if part.table == "features"]
            postings = [part for part in receipt.outputs if part.table == "postings"]
            for lattices, beside in zip(shards, postings, strict=True):
                files[lattices.name] = {
                    LATTICE_STORE: File(lattices.name, lattices.size, lattices.sha256),
                    "postings": File(beside.name, beside.size, beside.sha256),
                }
            (listed,) = receipt.parts("documents")
            for row in parquet.read(folder, listed.name).to_pylist():
                key = row["doc_id"], row["channel"]
                if key not in by_key or key in live:
                    code = codes.DUPLICATE_LATTICE if key in live else codes.LATTICE_WITHOUT_DOCUMENT
                    error = code(where=row["path"], document=row["doc_id"])
                    rejected.append({**_rejection(*key, row["path"], error), "identity": ""})
                    continue
                live[key] = _document(row, by_key[key])
        refused = {(row["id"], row["part"]) for row in rejected}
        for key, row in by_key.items():
            if key not in live and key not in refused:
                error = codes.DOCUMENT_WITHOUT_LATTICE(where=source.path)
                rejected.append({**_rejection(*key, row["path"], error), "identity": ""})
        if not live:
            others = [row for row in rejected if row["reason"] == codes.LATTICE_WITHOUT_DOCUMENT.name]
            if others:
                document = next(iter(by_key))[0]
                raise codes.NO_LATTICE_OF_DOCUMENTS(where=source.path, lattices=others[0]["id"], document=document)
            first = rejected[0]
            raise codes.ALL_LATTICES_REJECTED(
                where=first["path"], count=len(rejected), reason=first["message"], advice=first["remedy"]
            )
        inputs.commits()
        rows = sorted(live.values(), key=lambda row: (row["shard"], row["part"]))
        documents, ticks = Counter(row["shard"] for row in rows), Counter[str]()
        for row in rows:
            ticks[row["shard"]] += row["frames"]
        table = pa.Table.from_pylist([{name: row[name] for name in DOCUMENTS.names} for row in rows], DOCUMENTS)
        used = [Shard(name, files[name], documents[name], ticks[name]) for name in files if documents[name]]
        chain_inputs.store.manifest = commit(
            folder,
            NewTrack(LATTICE_STORE, recipe, 1, table, columns=(LATTICE_STORE,)),
            TICK,
            used,
            pa.Table.from_pylist(rejected, REJECTED_DOCUMENTS),
            provisional=bool(inputs.outcome.failures),
            source=state,
            kind=LATTICE_STORE,
            libraries={},
        )

    def digests(self, inputs: Inputs) -> dict[str, str]:
        """Digest of the documents, with the SHA-256 of each one's lattice."""
        state = inputs.chain_inputs(TextInputs).store
        if state.manifest is None:
            return {}
        table = state.open().documents(columns=["doc_id", "channel", "duration", "sha256", "recording", "start"])
        return {"documents": digest.of_rows(table.sort_by([("doc_id", "ascending"), ("channel", "ascending")]))}


def demand_lattices(folder: Folder, manifest: Manifest | None) -> None:
    """Refuse a store of another kind, which this stage would replace.

    Raises:
        UserError: it holds something else.
    """
    if manifest is not None and manifest.kind != LATTICE_STORE:
        raise codes.STORE_OF_OTHER_KIND(where=folder.path(), kind=manifest.kind)


def sha256_of(packed: Packed) -> str:
    """SHA-256 of a lattice as a store holds it, apart from the numbers of labels."""
    result = hashlib.sha256()
    for array, dtype in (
        *((packed.times, "<i4"), (packed.visits, "<f4"), (packed.arcs, "<i4"), (packed.steps, "<i4")),
        *((packed.labels, "<i4"), (packed.chances, "<f4")),
    ):
        result.update(np.ascontiguousarray(array.astype(dtype)).tobytes())
    result.update("\0".join(packed.texts).encode())
    return result.hexdigest()


def _document(row: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """A row of DOCUMENTS, and its place in its shard."""
    seconds = known["duration"] if known["duration"] is not None else row["frames"] * TICK
    placed = {name: known.get(name) for name in ("recording", "start")}
    result = {**dict.fromkeys(DOCUMENTS.names), **row, "path": known["path"], "speaker": known["speaker"], **placed}
    return result | {"duration": seconds, "rows": 1, "mean": [0.0], "variance": [0.0]}


def _rejection(doc_id: str, channel: int, path: str, error: DataError) -> dict[str, Any]:
    """The row of REJECTED of a lattice, with its line in the message."""
    where = f"{error.where}: " if error.where and error.where != path else ""
    return {
        "kind": "document",
        "id": doc_id,
        "part": channel,
        "path": path,
        "reason": error.reason if isinstance(error, UnusableError) else error.code or "unreadable",
        "message": f"{where}{error.message}",
        "remedy": error.remedy,
    }
