"""index turns audio into shards of the feature store."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from swsdist.audio.clips import write_silence
from swsdist.chains.search.inputs import SearchInputs, document_seconds
from swsdist.chains.search.told import Indexed
from swsdist.errors import StoreError
from swsdist.features.interface import columns_of, kind_of
from swsdist.features.registry import Extractor, create, demand, frame_shift, recipe
from swsdist.io.filesystem import Folder
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Done, Part, Task
from swsdist.store import digest, parquet
from swsdist.store.manifest import REJECTED_DOCUMENTS, Made, Manifest, commit, frozen_statistics, shard_of
from swsdist.store.reading import Store
from swsdist.store.sharding import cut
from swsdist.store.writing import documents_name, rejected_name, shard_name, write_shard
from swsdist.types import DOCUMENTS, FRAMES

#: What a document's features and its row in the store depend on.
_MATTERS = ("doc_id", "channel", "path", "identity", "speaker")


class Index(Stage):
    """New and changed documents are cut into new shards; all others stay where they are."""

    name = "index"
    version = 1
    unit = "s"
    # The live documents of all shards are digested, not the files.
    tables = {
        "features": Table(FRAMES, None, digested=False),
        "documents": Table(DOCUMENTS, None, digested=False),
        "rejected": Table(REJECTED_DOCUMENTS, None, digested=False),
    }

    def place(self, inputs: Inputs) -> str:
        """The store."""
        return inputs.own(SearchInputs).store.root

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        """A task a new shard."""
        own, config = inputs.own(SearchInputs), inputs.config
        manifest = own.load_manifest(anew=inputs.redo)
        known = _known(own, manifest)
        new = [row for key, row in own.wanted.items() if not _same(known.get(key), row)]
        lengths = document_seconds(new, config.storage)
        ranges = cut(lengths, config.index.shard_hours * 3600, config.index.shards)
        features = config.features[0]
        for k, chosen in enumerate(ranges):
            rows = new[chosen.start : chosen.stop]
            yield inputs.task(
                own.extractor_fingerprint,
                [[row[name] for name in _MATTERS] for row in rows],
                label=f"shard {k + 1} of {len(ranges)}: {len(rows)} documents",
                work=sum(lengths[chosen.start : chosen.stop]),
                payload={
                    "documents": rows,
                    "features": {"name": features.name, "options": features.options},
                    "recipe": own.extractor_fingerprint,
                },
            )

    def warm(self, task: Task, context: Context) -> None:
        """Index a second of silence into nowhere: decoder, extractor and writer are then loaded."""
        extractor = planned_extractor(task)
        with tempfile.TemporaryDirectory(prefix="swsdist-") as place:
            path = f"{place}/silence.wav"
            write_silence(path, extractor.sample_rate)
            row = {"doc_id": "silence", "channel": 1, "path": path, "speaker": None, "identity": "0:0"}
            write_shard(Folder(place), "warm", [row], extractor)

    def run(self, task: Task, context: Context) -> Done:
        """Decode, compute, write."""
        extractor = planned_extractor(task)
        indexed = write_shard(context.folder(task), task.fingerprint, task.payload["documents"], extractor)
        frames = sum(indexed.documents["frames"].to_pylist())
        rows = (frames, indexed.documents.num_rows, indexed.rejected.num_rows)
        return Done(
            tuple(
                Part(table, *out, count) for table, out, count in zip(self.tables, indexed.outputs, rows, strict=True)
            ),
            Indexed(indexed.documents.num_rows, frames, indexed.seconds),
            rejected=indexed.rejected.drop_columns(["identity"]).to_pylist(),
            bytes_read=indexed.bytes_read,
        )

    def finish(self, inputs: Inputs) -> None:
        """Commit the store's new state, if it is new."""
        own, ended = inputs.own(SearchInputs), inputs.mine
        old, wanted = own.manifest, own.wanted
        store = Store(own.store, old) if old is not None else None
        documents = store.documents() if store is not None else DOCUMENTS.empty_table()
        rejected = store.rejected() if store is not None else REJECTED_DOCUMENTS.empty_table()
        lost = own.lost_shards
        kept = _current(documents, wanted, "doc_id", "channel", lost)
        still = _current(rejected, wanted, "id", "part", lost)
        same = kept.num_rows == documents.num_rows and still.num_rows == rejected.num_rows
        if old is not None and same and not ended.receipts and not old.provisional:
            return
        extractor, track = own.extractor, inputs.config.features[0].track_name
        shards = {shard.name: shard for shard in (old.shards if old is not None else ())}
        parts, refused = [kept], [still]
        for receipt in ended.receipts:
            parts.append(parquet.read(own.store, documents_name(receipt.fingerprint)))
            refused.append(parquet.read(own.store, rejected_name(receipt.fingerprint)))
            output = next(o for o in receipt.outputs if o.name == shard_name(receipt.fingerprint))
            shards[output.name] = shard_of(track, parquet.Output(output.name, output.size, output.sha256))
        live = pa.concat_tables(parts).combine_chunks()
        bad = pa.concat_tables(refused).combine_chunks()
        if live.num_rows == 0:
            first = bad.to_pylist()[0] if bad.num_rows else None
            raise StoreError(
                f"none of the {len(wanted)} documents could be used",
                where=inputs.config.corpus.documents,
                remedy=f"the first: {first['path']}: {first['message']}" if first else "look at the failed tasks",
            )
        counts: dict[str, list[int]] = {}
        for name, frames in zip(live["shard"].to_pylist(), live["frames"].to_pylist(), strict=True):
            counts.setdefault(name, []).append(frames)
        used = [replace(shards[name], documents=len(f), frames=sum(f)) for name, f in counts.items()]
        # What was frozen is, whatever else of the store was lost, unless all is to be made anew.
        frozen = None if inputs.redo else frozen_statistics(own.store, track, own.extractor_fingerprint)
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
        own.manifest = commit(own.store, made, frame_shift(extractor), used, bad, provisional=provisional)

    def digests(self, inputs: Inputs) -> dict[str, str]:
        """Of the live documents and their frames, whatever the shards."""
        own = inputs.own(SearchInputs)
        return {} if own.manifest is None else digest.of_store(own.open_store())


def planned_extractor(task: Task) -> Extractor:
    """The extractor that a task was planned with, as it is on this machine.

    Raises:
        DataError: here it is another one.
    """
    extractor = create(**task.payload["features"])
    demand(extractor, task.payload["recipe"])
    return extractor


def _known(own: SearchInputs, manifest: Manifest | None) -> dict[tuple[str, int], dict[str, Any]]:
    """What the store holds or has rejected, by key."""
    if manifest is None:
        return {}
    store = Store(own.store, manifest)
    columns = ["doc_id", "channel", "path", "identity", "speaker", "shard"]
    lost = own.lost_shards
    rows = {
        (row["doc_id"], row["channel"]): row
        for row in store.documents(columns=columns).to_pylist()
        if row["shard"] not in lost
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
