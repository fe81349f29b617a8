"""index: audio -> shards of the feature store."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pyarrow as pa

from swsdist.audio.clips import write_silence
from swsdist.audio.reader import probe
from swsdist.errors import AudioError, StoreError
from swsdist.features.interface import columns_of, kind_of
from swsdist.features.registry import create, frame_shift, recipe
from swsdist.fingerprint import fingerprint
from swsdist.io.filesystem import Folder
from swsdist.pipeline.state import State, identities
from swsdist.pipeline.task import Context, Done, Stage, Task
from swsdist.store import parquet
from swsdist.store.manifest import REJECTED_DOCUMENTS, Made, Manifest, commit, frozen_statistics, shard_of
from swsdist.store.reading import Store
from swsdist.store.sharding import cut
from swsdist.store.writing import documents_name, rejected_name, shard_name, write_shard
from swsdist.types import DOCUMENTS

#: What a document's features and its row in the store depend on.
_MATTERS = ("doc_id", "channel", "path", "identity", "speaker")


class Index(Stage):
    """Documents that the store does not hold yet, as they are now, are cut into new shards; others stay where they are."""

    name = "index"
    version = 1
    phase = "index"
    unit = "s"
    in_store = True

    def plan(self, state: State) -> Iterator[Task]:
        """A task a new shard."""
        manifest = state.load_manifest(anew=self.name in state.redo)
        wanted = _wanted(state)
        known = _known(state, manifest)
        new = [row for key, row in wanted.items() if not _same(known.get(key), row)]
        lengths = document_seconds(new, state.config.storage)
        ranges = cut(lengths, state.config.index.shard_hours * 3600, state.config.index.shards)
        for k, chosen in enumerate(ranges):
            rows = new[chosen.start : chosen.stop]
            matters = [[row[name] for name in _MATTERS] for row in rows]
            name = fingerprint(self.name, self.version, state.extractor_fingerprint, matters)
            label = f"shard {k + 1} of {len(ranges)}: {len(rows)} documents"
            yield Task(self.name, name, label, sum(lengths[chosen.start : chosen.stop]), {"documents": rows})

    def warm(self, context: Context) -> None:
        """Index a second of silence into nowhere: decoder, extractor and writer are then loaded."""
        features = context.config.features[0]
        extractor = create(features.name, features.options)
        with tempfile.TemporaryDirectory(prefix="swsdist-") as place:
            path = f"{place}/silence.wav"
            write_silence(path, extractor.sample_rate)
            row = {"doc_id": "silence", "channel": 1, "path": path, "speaker": None, "identity": "0:0"}
            write_shard(Folder(place), "warm", [row], extractor)

    def run(self, task: Task, context: Context) -> Done:
        """Decode, compute, write."""
        features = context.config.features[0]
        extractor = create(features.name, features.options)
        indexed = write_shard(context.store, task.fingerprint, task.payload["documents"], extractor)
        return Done(
            indexed.outputs,
            summary={
                "documents": indexed.documents.num_rows,
                "frames": sum(indexed.documents["frames"].to_pylist()),
                "seconds": indexed.seconds,
            },
            rejected=indexed.rejected.drop_columns(["identity"]).to_pylist(),
            bytes_read=indexed.bytes_read,
        )

    def finish(self, state: State) -> None:
        """Commit the store's new state, if it is new."""
        old = state.manifest
        wanted = _wanted(state)
        store = Store(state.store, old) if old is not None else None
        documents = store.documents() if store is not None else DOCUMENTS.empty_table()
        rejected = store.rejected() if store is not None else REJECTED_DOCUMENTS.empty_table()
        lost = state.lost_shards
        kept = _current(documents, wanted, "doc_id", "channel", lost)
        still = _current(rejected, wanted, "id", "part", lost)
        ended = state.ended[self.name]
        same = kept.num_rows == documents.num_rows and still.num_rows == rejected.num_rows
        if old is not None and same and not ended.receipts and not old.provisional:
            return
        extractor = state.extractor
        shards = {shard.name: shard for shard in (old.shards if old is not None else ())}
        parts, refused = [kept], [still]
        for receipt in ended.receipts:
            parts.append(parquet.read(state.store, documents_name(receipt.fingerprint)))
            refused.append(parquet.read(state.store, rejected_name(receipt.fingerprint)))
            output = next(o for o in receipt.outputs if o.name == shard_name(receipt.fingerprint))
            shards[output.name] = shard_of(state.config.features[0].track_name, output)
        live = pa.concat_tables(parts).combine_chunks()
        bad = pa.concat_tables(refused).combine_chunks()
        if live.num_rows == 0:
            first = bad.to_pylist()[0] if bad.num_rows else None
            raise StoreError(
                f"none of the {len(wanted)} documents could be used",
                where=state.config.corpus.documents,
                remedy=f"the first: {first['path']}: {first['message']}" if first else "look at the failed tasks",
            )
        counts: dict[str, list[int]] = {}
        for name, frames in zip(live["shard"].to_pylist(), live["frames"].to_pylist(), strict=True):
            counts.setdefault(name, []).append(frames)
        used = [replace(shards[name], documents=len(f), frames=sum(f)) for name, f in counts.items()]
        # What was frozen is, whatever else of the store was lost, unless all is to be made anew.
        anew = self.name in state.redo
        track = state.config.features[0].track_name
        frozen = None if anew else frozen_statistics(state.store, track, state.extractor_fingerprint)
        made = Made(
            track,
            recipe(extractor),
            extractor.dimension,
            live,
            frozen,
            columns_of(extractor),
            kind_of(extractor),
        )
        provisional = bool(ended.failures)
        state.manifest = commit(state.store, made, frame_shift(extractor), used, bad, provisional=provisional)


def _wanted(state: State) -> dict[tuple[str, int], dict[str, Any]]:
    """The corpus by key, each row with the identity of its file; plain values."""
    cached: dict[tuple[str, int], dict[str, Any]] | None = state.__dict__.get("_wanted")
    if cached is None:
        rows = state.documents.select(["doc_id", "channel", "path", "speaker", "duration"]).to_pylist()
        found = identities([row["path"] for row in rows], state.config.storage)
        cached = {(row["doc_id"], row["channel"]): {**row, "identity": i} for row, i in zip(rows, found, strict=True)}
        state.__dict__["_wanted"] = cached
    return cached


def _known(state: State, manifest: Manifest | None) -> dict[tuple[str, int], dict[str, Any]]:
    """What the store holds or has rejected, by key."""
    if manifest is None:
        return {}
    store = Store(state.store, manifest)
    columns = ["doc_id", "channel", "path", "identity", "speaker", "shard"]
    rows = {
        (row["doc_id"], row["channel"]): row
        for row in store.documents(columns=columns).to_pylist()
        if row["shard"] not in state.lost_shards
    }
    for row in store.rejected().to_pylist():
        rows[row["id"], row["part"]] = row
    return rows


def _same(known: dict[str, Any] | None, row: dict[str, Any]) -> bool:
    """Whether the store's row is of the file as it is now. A rejected one has no speaker."""
    return known is not None and all(
        known[name] == row[name] for name in ("path", "identity", "speaker") if name in known
    )


def _current(
    table: pa.Table, wanted: dict[tuple[str, int], dict[str, Any]], name: str, part: str, lost: frozenset[str]
) -> pa.Table:
    """The rows of a table that are of the corpus as it is now, and whose shard is there."""
    needed = (name, part, "path", "identity", "speaker", "shard")
    columns = [column for column in table.schema.names if column in needed]
    mask = [
        row.get("shard") not in lost and (row[name], row[part]) in wanted and _same(row, wanted[row[name], row[part]])
        for row in table.select(columns).to_pylist()
    ]
    return table.filter(pa.array(mask, pa.bool_()))


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
