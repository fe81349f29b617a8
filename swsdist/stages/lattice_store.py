"""Common parts of the stages that make a store of lattices: writing shards, and committing the store."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from swsdist.core.codes import families
from swsdist.core.codes import lattices as codes
from swsdist.core.errors import DataError
from swsdist.core.fingerprint import fingerprint
from swsdist.core.types import DOCUMENTS
from swsdist.io.filesystem import Folder
from swsdist.lattices.lattice import LeftOut
from swsdist.lattices.packed import TICK, Packed
from swsdist.pipeline.chain import Context, Inputs, Table
from swsdist.pipeline.task import Part, Task, TaskOutput
from swsdist.stages.buckets import Indexed
from swsdist.stages.inputs.state import StoreState
from swsdist.store import parquet
from swsdist.store.lattice_shards import LATTICES, POSTINGS, LatticeShardWriter, lattices_name
from swsdist.store.manifest import REJECTED_DOCUMENTS, File, Manifest, NewTrack, Shard, Unfinished, commit, load
from swsdist.store.reading import Store

#: Kind of a store of lattices, and name of its only track.
LATTICE_STORE = "lattices"

#: Columns of DOCUMENTS that a task knows, the document's row in its shard, and the SHA-256 of its recording, if it has one.
_LISTED = pa.schema(
    [
        *(
            DOCUMENTS.field(name)
            for name in (
                *("doc_id", "channel", "path", "frames", "shard", "identity", "sha256", "cut_off"),
                *("language", "speech_seconds", "left_out"),
            )
        ),
        pa.field("part", pa.int64(), False),
        pa.field("content", pa.string(), False),
    ]
)

#: Ending of the table of a task.
_TABLE = ".documents.parquet"

#: Tables of such a stage. Digests cover the documents' lattices, not the files.
LATTICE_TABLES: Mapping[str, Table] = {
    "features": Table(LATTICES, None, digested=False),
    "postings": Table(POSTINGS, None, digested=False),
    "documents": Table(_LISTED, None, digested=False),
}


class LatticeRow(NamedTuple):
    """A lattice of a document.

    Attributes:
        doc_id, channel: of the document.
        path, identity: of the file that it was made of.
        lattice: itself, or why it cannot be used.
        cut_off: intended duration of a truncated recording, s; 0 if unknown. None: it is complete.
        content: SHA-256 of the recording; empty if there is none, or its identity says as much.
    """

    doc_id: str
    channel: int
    path: str
    identity: str
    lattice: Packed | DataError
    cut_off: float | None = None
    content: str = ""


def write_lattices(task: Task[Any], context: Context, rows: Iterable[LatticeRow]) -> TaskOutput:
    """Write lattices into shards; those that cannot be used, and second ones of a document, are rejected."""
    folder = context.folder(task)
    rejected: list[dict[str, Any]] = []
    listed: list[dict[str, Any]] = []
    parts: list[Part] = []
    keys: set[tuple[str, int]] = set()  # a shard has a document once
    writer: LatticeShardWriter | None = None

    def publish(finished: LatticeShardWriter) -> None:
        written = finished.publish()
        parts.append(Part("features", *written.lattices, written.documents))
        parts.append(Part("postings", *written.postings, written.labels))

    try:
        for row in rows:
            lattice = row.lattice
            if (row.doc_id, row.channel) in keys and not isinstance(lattice, DataError):
                lattice = codes.DUPLICATE_LATTICE(where=row.path, document=row.doc_id)
            if isinstance(lattice, DataError):
                rejected.append(rejection(row.doc_id, row.channel, row.path, lattice))
                continue
            keys.add((row.doc_id, row.channel))
            rejected += _left_out(row, lattice.left_out)
            if writer is not None and writer.full:
                publish(writer)
                writer = None
            if writer is None:
                writer = LatticeShardWriter(folder, lattices_name(task.fingerprint, len(parts) // 2))
            writer.append(row.doc_id, row.channel, lattice)
            file = row.doc_id, row.channel, row.path, lattice.ticks, writer.name, row.identity
            left_out = [] if lattice.left_out is None else [*lattice.left_out.by_reason.values()]
            heard = lattice.language, lattice.speech_seconds, left_out or None
            values = *file, sha256_of(lattice), row.cut_off, *heard, writer.documents - 1, row.content
            listed.append(dict(zip(_LISTED.names, values, strict=True)))
        if writer is not None:
            publish(writer)
            writer = None
    finally:
        if writer is not None:
            writer.discard()
    table = pa.Table.from_pylist(listed, _LISTED)
    # The name of the first shard, with which it is cleaned away.
    name = f"{lattices_name(task.fingerprint, 0).removesuffix('.parquet')}{_TABLE}"
    parts.append(Part("documents", *parquet.publish(folder, name, [table], _LISTED), table.num_rows))
    ticks = sum(row["frames"] for row in listed)
    return TaskOutput(tuple(parts), Indexed(len(listed), ticks, ticks * TICK), rejected=rejected)


def commit_lattices(
    inputs: Inputs,
    state: StoreState,
    recipe: dict[str, object],
    corpus: Sequence[Mapping[str, Any]],
    refused: Sequence[Mapping[str, Any]],
    where: str,
    unfinished: Unfinished | None = None,
) -> None:
    """Commit the store's state if it changed.

    Args:
        inputs: of the stage.
        state: of the store.
        recipe: of the lattices.
        corpus: documents that may be searched: doc_id, channel, path, duration, speaker; of places, recording and start; of
            recordings, which may have been moved, identity.
        refused: rows of REJECTED_DOCUMENTS of earlier stages.
        where: source of the lattices, for messages.
        unfinished: of an interrupted stage, whose other documents are still to come.

    Raises:
        DataError: no lattice is of a document of the corpus, or all are rejected.
    """
    receipts = inputs.outcome.receipts
    source = f"{LATTICE_STORE}:{fingerprint(recipe, [receipt.fingerprint for receipt in receipts], list(corpus), len(refused))}"
    old = load(state.folder)
    if old is not None and old.source == source and not inputs.outcome.failures:
        state.manifest = old
        return
    by_key = {(row["doc_id"], row["channel"]): row for row in corpus}
    live: dict[tuple[str, int], dict[str, Any]] = {}
    rejected = [dict(row) for row in refused]
    for refusal in (row for receipt in receipts for row in receipt.rejected):
        now = by_key.get((refusal["id"], refusal["part"]), refusal)
        rejected.append({**refusal, "identity": "", "path": now["path"] if "identity" in now else refusal["path"]})
    files: dict[str, dict[str, File]] = {}
    for receipt in receipts:
        for lattices, beside in zip(receipt.parts("features"), receipt.parts("postings"), strict=True):
            files[lattices.name] = {
                LATTICE_STORE: File(lattices.name, lattices.size, lattices.sha256),
                "postings": File(beside.name, beside.size, beside.sha256),
            }
        (listed,) = receipt.parts("documents")
        for row in parquet.read(state.folder, listed.name).to_pylist():
            key = row["doc_id"], row["channel"]
            if key in by_key and key not in live:
                live[key] = _document(row, by_key[key])
                continue
            code = codes.DUPLICATE_LATTICE if key in live else codes.LATTICE_WITHOUT_DOCUMENT
            error = code(where=row["path"], document=row["doc_id"])
            rejected.append({**rejection(*key, row["path"], error), "identity": ""})
    reported = {(row["id"], row["part"]) for row in rejected if row["kind"] == "document"}
    for key, row in by_key.items() if unfinished is None else ():
        if key not in live and key not in reported:
            error = codes.DOCUMENT_WITHOUT_LATTICE(where=where)
            rejected.append({**rejection(*key, row["path"], error), "identity": ""})
    if not live and unfinished is not None:
        return
    if not live:
        others = [row for row in rejected if row["reason"] == codes.LATTICE_WITHOUT_DOCUMENT.name]
        if others:
            document = next(iter(by_key))[0]
            raise families.MISMATCH.of(DataError)(
                (
                    "no lattice is of a document of the corpus: lattices are of {lattices}, ...; documents "
                    "are {document}, ..."
                ),
                (
                    "name lattices after documents (doc_id), or leave out options.lattices.path: then the "
                    "documents are what lattices name"
                ),
                where=where,
                lattices=others[0]["id"],
                document=document,
            )
        first = rejected[0]
        raise families.EMPTY_INPUT.of(DataError)(
            "all {count} documents are rejected, the first for this: {reason}",
            "{advice}",
            where=first["path"],
            count=len(rejected),
            reason=first["message"],
            advice=first["remedy"],
        )
    inputs.commits()
    rows = sorted(live.values(), key=lambda row: (row["shard"], row["part"]))
    documents, ticks = Counter(row["shard"] for row in rows), Counter[str]()
    for row in rows:
        ticks[row["shard"]] += row["frames"]
    table = pa.Table.from_pylist([{name: row[name] for name in DOCUMENTS.names} for row in rows], DOCUMENTS)
    used = [Shard(name, files[name], documents[name], ticks[name]) for name in files if documents[name]]
    state.manifest = commit(
        state.folder,
        NewTrack(LATTICE_STORE, recipe, 1, table, columns=(LATTICE_STORE,)),
        TICK,
        used,
        pa.Table.from_pylist(rejected, REJECTED_DOCUMENTS),
        provisional=bool(inputs.outcome.failures) or unfinished is not None,
        unfinished=unfinished,
        source=source,
        kind=LATTICE_STORE,
        libraries={},
    )


def recognised(store: Store) -> Iterator[dict[str, Any]]:
    """Documents of a store of lattices: doc_id, channel, identity; and `first`, that with which they were recognised, and
    `content`.
    """
    tables = [name for name in store.folder.listing() if name.endswith(_TABLE)]
    rows = (row for name in tables for row in parquet.read(store.folder, name).to_pylist())
    by_place = {(row["doc_id"], row["channel"], row["shard"]): row for row in rows}
    for row in store.documents(columns=["doc_id", "channel", "identity", "shard"]).to_pylist():
        if (then := by_place.get((row["doc_id"], row["channel"], row["shard"]))) is not None:
            yield {**row, "first": then["identity"], "content": then.get("content")}


def demand_lattices(folder: Folder, manifest: Manifest | None) -> None:
    """Refuse a store of another kind, which a stage would replace.

    Raises:
        UserError: it holds something else.
    """
    if manifest is not None and manifest.kind != LATTICE_STORE:
        raise families.WRONG_KIND(
            "this store holds {kind}, not lattices",
            "name another one (index.store), or another run",
            where=folder.path(),
            kind=manifest.kind,
        )


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


def _document(row: dict[str, Any], listed: Mapping[str, Any]) -> dict[str, Any]:
    """A row of DOCUMENTS, and its place in its shard."""
    seconds = listed["duration"] if listed["duration"] is not None else row["frames"] * TICK
    placed = {name: listed.get(name) for name in ("recording", "start")} | {
        "identity": listed.get("identity", row["identity"])
    }
    result = {**dict.fromkeys(DOCUMENTS.names), **row, "path": listed["path"], "speaker": listed["speaker"], **placed}
    return result | {"duration": seconds, "rows": 1, "mean": [0.0], "variance": [0.0]}


def _left_out(row: LatticeRow, left_out: LeftOut | None) -> Iterator[dict[str, Any]]:
    """Rows of REJECTED of the items of a lattice that were left out."""
    if left_out is None:
        return
    for error in left_out.errors:
        yield rejection(row.doc_id, row.channel, row.path, error, "item")
    if more := left_out.count - len(left_out.errors):
        error = codes.MORE_LEFT_OUT(where=row.path, count=more)
        yield rejection(row.doc_id, row.channel, row.path, error, "item")


def rejection(name: str, part: int, path: str | None, error: DataError, kind: str = "document") -> dict[str, Any]:
    """The row of REJECTED of a lattice, with its line in the message; or of a query."""
    where = f"{error.where}: " if kind != "query" and error.where and error.where != path else ""
    return {
        "kind": kind,
        "id": name,
        "part": part,
        "path": path,
        "reason": error.reason,
        "message": f"{where}{error.message}",
        "remedy": error.remedy,
    }
