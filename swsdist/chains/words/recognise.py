"""recognise turns audio into shards of a store of word lattices, a task per some minutes of audio."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from swsdist.audio.commands import are_permitted, permitted
from swsdist.audio.formats import ffmpeg
from swsdist.audio.places import caching
from swsdist.chains.words.inputs import WordInputs
from swsdist.config import Config
from swsdist.core.errors import DataError
from swsdist.core.fingerprint import stable_hash
from swsdist.corpora.kaldi import demand_permission
from swsdist.lattices.packed import Recipe, pack
from swsdist.lattices.recognition import RATE, Recogniser, Recognition
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.stages.inputs.recordings import Row
from swsdist.stages.lattice_store import (
    LATTICE_TABLES,
    LatticeRow,
    commit_lattices,
    digests_of,
    take_up,
    write_lattices,
)
from swsdist.stages.task_results import Indexed
from swsdist.store.sharding import MOST_DOCUMENTS, cut
from swsdist.store.writing import WithResult, demand_file, raise_transient, samples_of

#: Columns that the lattice of a document depends on, or its row.
_MATTERS = ("doc_id", "channel", "path", "identity")


class Recognising(NamedTuple):
    """The payload of a task: documents, how they are recognised, and whether commands may be run to read audio."""

    documents: list[Row]
    recogniser: Recognition
    recipe: Recipe
    commands: bool


class Recognise(Stage[Recognising]):
    """Word lattices of documents; a document's depends on its audio only."""

    name = "recognise"
    version = 2
    unit = "s"
    phase = "index"
    with_hours = "more"
    with_queries = "same"
    all_or_nothing = True
    tables = LATTICE_TABLES

    def place(self, inputs: Inputs) -> str:
        """The store."""
        return inputs.chain_inputs(WordInputs).store.folder.root

    def plan(self, inputs: Inputs) -> Iterator[Task[Recognising]]:
        """A task per shard."""
        chain_inputs, config = inputs.chain_inputs(WordInputs), inputs.config
        options, corpus = chain_inputs.options, chain_inputs.corpus_documents
        take_up(chain_inputs.store)
        matters = options.recogniser.identities(), options.recipe.matters()
        demand_permission(corpus.table["path"].to_pylist(), config.corpus.documents, config.storage)
        (recipe,) = corpus.identities
        places = np.array([place for _, place in sorted((key, place) for place, key in enumerate(corpus))])
        rows = [{**row, "identity": row["identities"][recipe]} for row in corpus.rows(places)]
        lengths = corpus.seconds(places, config.storage)
        ranges = _ranges(rows, lengths, config)
        for k, chosen in enumerate(ranges):
            some = rows[chosen.start : chosen.stop]
            payload = Recognising(some, options.recogniser, options.recipe, are_permitted())
            names = [[row[name] for name in _MATTERS] for row in some]
            label = f"shard {k + 1} of {len(ranges)}: {len(some)} documents"
            work = sum(lengths[chosen.start : chosen.stop])
            yield inputs.task(*matters, names, label=label, work=work, payload=payload)

    def warm(self, task: Task[Recognising], context: Context) -> None:
        """Load the models and the compiled kernels."""
        from swsdist.kernels import lattices  # noqa: F401

        Recogniser(task.payload.recogniser)

    def run(self, task: Task[Recognising], context: Context) -> TaskOutput:
        """Recognise, prepare, write."""
        payload, folder = task.payload, context.folder(task)
        recogniser = Recogniser(payload.recogniser)

        def rows() -> Iterator[LatticeRow]:
            done = 0
            for row in payload.documents:
                names = row["doc_id"], row["channel"], row["path"], row["identity"]
                try:
                    demand_file(row)
                    read = WithResult(samples_of(row, RATE, folder))
                    packed = pack(recogniser.lattice(row["doc_id"], row["channel"], read), payload.recipe)
                except DataError as error:
                    raise_transient(row, error)
                    yield LatticeRow(*names, error)
                    continue
                done += packed.ticks
                context.report(done / 1000 / max(task.work, 1e-3))
                yield LatticeRow(*names, packed, read.result)

        with permitted(payload.commands), ffmpeg.recorded_versions() as used, caching():
            output = write_lattices(task, context, rows())
        assert isinstance(output.result, Indexed)
        return dataclasses.replace(output, result=output.result._replace(ffmpeg=sorted(used)))

    def finish(self, inputs: Inputs) -> None:
        """Commit the store if it changed."""
        chain_inputs = inputs.chain_inputs(WordInputs)
        options = chain_inputs.options
        recipe: dict[str, object] = {
            "name": self.name,
            "version": self.version,
            "options": options.recipe.model_dump(mode="json"),
            "recogniser": options.recogniser.model_dump(mode="json"),
        }
        corpus = chain_inputs.corpus.documents
        known = corpus.select([name for name in corpus.column_names if name != "listed"]).to_pylist()
        commit_lattices(inputs, chain_inputs.store, recipe, known, [], inputs.config.corpus.documents)

    def digests(self, inputs: Inputs) -> dict[str, str]:
        """Digest of the lattices, document by document."""
        return digests_of(inputs.chain_inputs(WordInputs).store, "documents")


def _ranges(rows: Sequence[Row], seconds: Sequence[float], config: Config) -> list[range]:
    """Consecutive documents of about `index.shard_hours`, or so many shards. A document ends a shard by a hash of its name, so
    that adding one leaves other shards as they are: recognition is dear.
    """
    target = config.index.shard_hours * 3600
    if config.index.shards is not None:
        return cut(seconds, target, config.index.shards)
    result: list[range] = []
    first, length = 0, 0.0
    for k, row in enumerate(rows):
        length += seconds[k]
        share = stable_hash(f"{row['doc_id']} {row['channel']}") / 2**64
        if share < seconds[k] / target or length >= 4 * target or k + 1 - first == MOST_DOCUMENTS or k + 1 == len(rows):
            result.append(range(first, k + 1))
            first, length = k + 1, 0.0
    return result
