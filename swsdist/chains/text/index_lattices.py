"""index-lattices turns files of lattices or transcripts into shards of a store of lattices, a task per few files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from swsdist.chains.text.inputs import TextInputs, read_words
from swsdist.core.errors import DataError
from swsdist.lattices.collection import LatticeFile, chunks, document_id, read_file
from swsdist.lattices.lattice import Broken, Lattice, Origin
from swsdist.lattices.packed import Packed, Recipe, pack
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.registry.registries import LATTICE_FORMATS
from swsdist.stages.lattice_store import (
    LATTICE_TABLES,
    LatticeRow,
    commit_lattices,
    digests_of,
    take_up,
    write_lattices,
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
    version = 2
    unit = "bytes"
    phase = "index"
    with_hours = "more"
    with_queries = "same"
    all_or_nothing = True
    tables = LATTICE_TABLES

    def place(self, inputs: Inputs) -> str:
        """The store."""
        return inputs.chain_inputs(TextInputs).store.folder.root

    def plan(self, inputs: Inputs) -> Iterator[Task[IndexingLattices]]:
        """A task per few files."""
        source = inputs.chain_inputs(TextInputs).lattices
        given, matters = source.options.lattices, source.matters()
        take_up(inputs.chain_inputs(TextInputs).store)
        _ = inputs.chain_inputs(TextInputs).corpus.documents  # mistakes in them show before any work
        for files in chunks(source.files):
            names = [
                [file.path.removeprefix(source.path), file.identity, LATTICE_FORMATS.identity(file.format)]
                for file in files
            ]
            payload = IndexingLattices(files, source.path, source.options.recipe, given.words, given.frame, given.tiers)
            size = sum(file.size for file in files)
            label = files[0].path.rpartition("/")[2] if len(files) == 1 else f"{len(files)} files"
            yield inputs.task(matters, names, label=label, work=max(size, 1), payload=payload)

    def warm(self, task: Task[IndexingLattices], context: Context) -> None:
        """Load the compiled kernels."""
        from swsdist.kernels import lattices  # noqa: F401

    def run(self, task: Task[IndexingLattices], context: Context) -> TaskOutput:
        """Read, prepare, write."""
        payload = task.payload
        words = None if payload.words is None else read_words(payload.words, dict(context.storage))

        def rows() -> Iterator[LatticeRow]:
            done = 0
            for file in payload.files:
                origin = Origin(file.path, context.storage, words, payload.frame, payload.tiers)
                for item in read_file(file.format, origin):
                    doc_id = document_id(item.key, file.path, payload.path)
                    channel = getattr(item, "channel", 1)
                    row = LatticeRow(doc_id, channel, file.path, file.identity, _packed(item, payload.recipe))
                    yield row._replace(left_out=getattr(item, "left_out", None))
                done += file.size
                context.report(done / task.work)

        return write_lattices(task, context, rows())

    def finish(self, inputs: Inputs) -> None:
        """Commit the store's state if it changed."""
        chain_inputs = inputs.chain_inputs(TextInputs)
        source = chain_inputs.lattices
        recipe: dict[str, object] = {
            "name": self.name,
            "version": self.version,
            "options": source.options.recipe.model_dump(mode="json"),
        }
        corpus = chain_inputs.corpus.documents
        known = corpus.select([name for name in corpus.column_names if name != "listed"]).to_pylist()
        commit_lattices(inputs, chain_inputs.store, recipe, known, [], source.path)

    def digests(self, inputs: Inputs) -> dict[str, str]:
        """Digest of the documents, with the SHA-256 of each one's lattice."""
        return digests_of(inputs.chain_inputs(TextInputs).store, "documents")


def _packed(item: Lattice | Broken, recipe: Recipe) -> Packed | DataError:
    """A lattice as a store holds it, or why it cannot be used."""
    try:
        if isinstance(item, Broken):
            raise item.error
        return pack(item, recipe)
    except DataError as error:
        return error
