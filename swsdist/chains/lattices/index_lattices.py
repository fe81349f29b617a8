"""index-lattices turns files, recordings or frames into shards of a store of lattices."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from swsdist.audio.formats import ffmpeg
from swsdist.chains.lattices.inputs import LatticeInputs
from swsdist.chains.lattices.options import Documents, LatticesOptions
from swsdist.config import Config
from swsdist.core.needs import Needs
from swsdist.pipeline.chain import Context, Stage
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.task import Receipt, Task, TaskOutput
from swsdist.stages.buckets import Indexed
from swsdist.stages.inputs.state import doubt_gone
from swsdist.stages.lattice_store import LATTICE_TABLES, commit_lattices, demand_lattices, write_lattices
from swsdist.store import reading
from swsdist.store.manifest import Unfinished, load


class IndexLattices(Stage[Documents]):
    """Make lattices of documents; a document's depends on its file, recording or frames alone."""

    name = "index-lattices"
    version = 4
    unit = "s"
    phase = "index"
    grows_with_hours = "more"
    grows_with_queries = "same"
    may_take = {"shards": "features"}
    all_or_nothing = True
    tables = LATTICE_TABLES

    def needs(self, config: Config) -> tuple[Needs, ...]:
        """The recogniser's."""
        return LatticesOptions.model_validate(config.options).needs

    def place(self, inputs: Inputs) -> str:
        """The store of lattices."""
        return inputs.chain_inputs(LatticeInputs).store.folder.root

    def plan(self, inputs: Inputs) -> Iterator[Task[Documents]]:
        """A task per few files, some minutes of recordings, or shard of frames."""
        chain_inputs = inputs.chain_inputs(LatticeInputs)
        store = chain_inputs.store
        store.manifest = load(store.folder)  # until this stage commits another
        demand_lattices(store.folder, store.manifest)
        chain_inputs.planned.clear()
        for key_parts, label, work, documents in chain_inputs.source.parts():
            task = inputs.task(*key_parts, label=label, work=work, payload=documents)
            chain_inputs.planned[task.fingerprint] = work
            yield task

    def warm(self, task: Task[Documents], context: Context) -> None:
        """Load models and compiled kernels."""
        task.payload.warm(context)

    def run(self, task: Task[Documents], context: Context) -> TaskOutput:
        """Make lattices, write them."""
        with ffmpeg.recorded_versions() as used:
            output = write_lattices(task, context, task.payload.rows(task.work, context))
        assert isinstance(output.result, Indexed)
        return dataclasses.replace(output, result=output.result._replace(ffmpeg=sorted(used)))

    def makers(self, inputs: Inputs) -> Sequence[Receipt]:
        """Those of the store's shards."""
        return inputs.chain_inputs(LatticeInputs).store.makers(self.name)

    def finish(self, inputs: Inputs) -> None:
        """Commit the store if it changed."""
        self._commit(inputs, None)

    def commit_partial(self, inputs: Inputs) -> None:
        """Commit what is recognised so far, for searches; other sources are soon done."""
        chain_inputs = inputs.chain_inputs(LatticeInputs)
        receipts, planned, now = inputs.outcome.receipts, chain_inputs.planned, chain_inputs.store.manifest
        done = {receipt.fingerprint for receipt in receipts}
        held = {shard.name for shard in now.shards} if now is not None else set()
        fresh = {part.name for receipt in receipts for part in receipt.parts("features")} - held
        if chain_inputs.options.source == "recogniser" and fresh and len(done) < len(planned):
            left = sum(work for name, work in planned.items() if name not in done)
            self._commit(inputs, Unfinished(len(done), len(planned), left, None))

    def _commit(self, inputs: Inputs, unfinished: Unfinished | None) -> None:
        chain_inputs = inputs.chain_inputs(LatticeInputs)
        source, options = chain_inputs.source, chain_inputs.options
        recipe = {"name": self.name, "version": self.version, "options": options.labels.model_dump(mode="json")}
        if (maker := {"recogniser": "recogniser", "frames": "decoding"}.get(options.source)) is not None:
            recipe[maker] = getattr(options, maker).model_dump(mode="json")
        documents, refused = source.documents()
        store = chain_inputs.store
        if store.manifest is not None and unfinished is None:
            table = store.open().documents(columns=["doc_id", "channel"])
            stored = set(zip(table["doc_id"].to_pylist(), table["channel"].to_pylist(), strict=True))
            gone = stored - {(row["doc_id"], row["channel"]) for row in documents}
            doubt_gone(chain_inputs.notices, store.folder, len(gone), len(stored))
        commit_lattices(inputs, store, recipe, documents, refused, source.path, unfinished)

    def digests(self, inputs: Inputs) -> dict[str, str]:
        """Digest of the documents, with the SHA-256 of each one's lattice."""
        chain_inputs = inputs.chain_inputs(LatticeInputs)
        if chain_inputs.store.manifest is None:
            return {}
        columns = ["doc_id", "channel", "duration", "sha256", "recording", "start"]
        table = chain_inputs.store.open().documents(columns=columns)
        name = "documents" if chain_inputs.frames is None else "lattices"
        return {name: reading.of_rows(table.sort_by([("doc_id", "ascending"), ("channel", "ascending")]))}


class IndexLatticeFiles(IndexLattices):
    """The same of files."""

    unit = "bytes"
