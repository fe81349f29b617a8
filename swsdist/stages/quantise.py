"""quantise: shards of the store -> a codebook, pinned in the store, and codes of each shard; for a first pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from swsdist.config.search import Search
from swsdist.methods.method import create
from swsdist.methods.sample import (
    EVERYTHING,
    codebook_file,
    codebook_name,
    codes_name,
    contents,
    landmark_documents,
    sample_limit,
)
from swsdist.pipeline.chain import Context, Stage, Table
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.task import Part, Receipt, Task, TaskOutput
from swsdist.stages.inputs.search_inputs import SearchInputs
from swsdist.store import parquet
from swsdist.store.manifest import pin
from swsdist.store.reading import Store


class Quantising(NamedTuple):
    """The payload of a task; without a shard, of the task for the codebook."""

    store: tuple[str, str]
    search: Search
    codebook: str = ""
    shard: str = ""
    content: str = ""


class Quantise(Stage[Quantising]):
    """The codebook is made of some documents, chosen once; it also codes later documents.

    Round 0 makes the codebook, unless one is pinned, and the next round the codes of each shard.
    """

    name = "quantise"
    version = 2
    unit = "frames"
    phase = "index"
    takes = {"shards": "features"}
    grows_with_hours = "more"
    grows_with_queries = "same"
    rounds = True
    # Digests cover search results instead; the pinned codebook is named by content.
    tables = {"codebook": Table(None, None, digested=False), "codes": Table(None, None, digested=False)}

    def place(self, inputs: Inputs) -> str:
        """The store."""
        return inputs.chain_inputs(SearchInputs).store.folder.root

    def plan(self, inputs: Inputs) -> Iterator[Task[Quantising]]:
        """A task for the codebook, or one per shard."""
        chain_inputs, settings = inputs.chain_inputs(SearchInputs), inputs.config.search
        store = chain_inputs.store.open()
        if sample_limit(settings, store.manifest.counts) == EVERYTHING:
            return  # all is searched exactly
        codebook = codebook_file(store, settings)
        if codebook is None and inputs.round == 0:
            yield self._codebook(inputs, store)
            return
        if inputs.round > (1 if codebook is None else 0):
            return
        codebook = codebook or _new_codebook(inputs)
        if codebook is None:
            return  # its task failed: the search makes its own
        shards = store.manifest.shards
        index = contents(store, settings, [shard.name for shard in shards])
        for shard in shards:
            content, label = index[shard.name], f"{shard.documents} documents"
            payload = Quantising(chain_inputs.store.state, settings, codebook, shard.name, content)
            yield inputs.task(codebook, content, label=label, work=shard.frames, payload=payload)

    def _codebook(self, inputs: Inputs, store: Store) -> Task[Quantising]:
        settings = inputs.config.search
        rows = store.documents(columns=["doc_id", "channel", "shard", "frames"]).to_pylist()
        chosen = landmark_documents([(row["doc_id"], row["channel"]) for row in rows])
        used = [row for row in rows if (row["doc_id"], row["channel"]) in chosen]
        index = contents(store, settings, sorted({row["shard"] for row in used}))
        key_parts = codebook_name(store, settings), [list(key) for key in chosen], sorted(index.values())
        label = f"codebook, from {len(used)} documents"
        payload = Quantising(inputs.chain_inputs(SearchInputs).store.state, settings)
        return inputs.task(
            *key_parts, label=label, work=1, payload=payload
        )  # of so many documents, however many there are

    def warm(self, task: Task[Quantising], context: Context) -> None:
        """Load the search's modules."""
        create(task.payload.search).warm()

    def run(self, task: Task[Quantising], context: Context) -> TaskOutput:
        """Make the codebook, or code the frames of a shard."""
        from swsdist.methods.first_pass.search import fit_codebook, index_shard  # loads numba, which planning avoids

        payload = task.payload
        store = Store.at(*payload.store, storage=context.storage)
        if not payload.shard:
            model = fit_codebook(store, payload.search)
            name = f"models/codebook-{model.fingerprint}.npz"
            output = parquet.publish_bytes(store.folder, name, model.to_bytes())
            return TaskOutput((Part("codebook", *output, len(model.arrays["columns"])),))
        table = index_shard(store, payload.shard, payload.search, payload.codebook)
        name = codes_name(payload.codebook, payload.content)
        output = parquet.publish(store.folder, name, [table], table.schema)
        return TaskOutput((Part("codes", *output, table.num_rows),))

    def makers(self, inputs: Inputs) -> Sequence[Receipt]:
        """Those of this plan, and that of the pinned codebook."""
        manifest = inputs.chain_inputs(SearchInputs).store.manifest
        pinned = manifest and codebook_file(inputs.chain_inputs(SearchInputs).store.open(), inputs.config.search)
        made = inputs.ledger.receipts(self.name, inputs.place).values() if pinned else ()
        books = [receipt for receipt in made if any(part.name == pinned for part in receipt.outputs)]
        return [*books, *(receipt for receipt in inputs.outcome.receipts if receipt not in books)]

    def finish(self, inputs: Inputs) -> None:
        """Pin the codebook, unless documents for it are still to come."""
        chain_inputs = inputs.chain_inputs(SearchInputs)
        assert chain_inputs.store.manifest is not None  # index has finished
        name, result = codebook_name(chain_inputs.store.open(), inputs.config.search), _new_codebook(inputs)
        if result and name not in chain_inputs.store.manifest.models and not chain_inputs.store.manifest.provisional:
            inputs.commits()
            chain_inputs.store.manifest = pin(chain_inputs.store.folder, chain_inputs.store.manifest, {name: result})


def _new_codebook(inputs: Inputs) -> str | None:
    """The codebook made by round 0."""
    parts = [part for receipt in inputs.outcome.receipts for part in receipt.parts("codebook")]
    return parts[0].name if parts else None
