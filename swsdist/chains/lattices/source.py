"""What the chain lattices makes lattices of: files, recordings or frames, a class each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from swsdist.chains.lattices.options import LatticesOptions
from swsdist.lattices.terms import TermReader
from swsdist.pipeline.stage import Context
from swsdist.stages.inputs.recordings import Row
from swsdist.stages.inputs.search_inputs import SearchInputs
from swsdist.stages.lattice_store import LatticeRow
from swsdist.store.lattice_shards import labels_of

#: A spoken example, and a reader of written ones, to rows of the method's queries and seconds; raises a DataError.
Labeller = Callable[[Row, TermReader], tuple[list[dict[str, Any]], float]]


class Documents(Protocol):
    """Documents of a task, and how they become lattices."""

    def warm(self, context: Context) -> None:
        """Load models and compiled kernels."""
        ...

    def rows(self, work: float, context: Context) -> Iterator[LatticeRow]:
        """Their lattices; `work` is the task's."""
        ...


class Speech(Protocol):
    """How spoken queries become labels."""

    def labeller(self, context: Context) -> Labeller:
        """What does so on this worker."""
        ...


class Part(NamedTuple):
    """A task that makes lattices; see `swsdist.pipeline.inputs.Inputs.task`."""

    key_parts: Sequence[Any]
    label: str
    work: float
    documents: Documents


class Source(ABC):
    """A source of lattices.

    Args:
        inputs: of the chain.
        options: of the chain.
        frames: inputs of the steps that make frames; None: there are none.

    Attributes:
        path: for messages: where its documents are.
    """

    def __init__(self, inputs: SearchInputs, options: LatticesOptions, frames: SearchInputs | None) -> None:
        self._inputs, self._config, self._options, self._frames = inputs, inputs.config, options, frames
        self.path = inputs.config.corpus.documents

    @abstractmethod
    def parts(self) -> Iterator[Part]:
        """The tasks that make the lattices of all documents, always in the same order."""

    def documents(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Documents that may be searched, and those that are rejected already; see `commit_lattices`."""
        table = self._inputs.corpus.documents
        return table.select([name for name in table.column_names if name != "listed"]).to_pylist(), []

    def queries(self) -> list[Row]:
        """Rows of QUERIES, without those that other steps make frames of; those with a path are spoken."""
        rows: list[Row] = self._inputs.corpus.queries.to_pylist()
        return rows

    def speech(self) -> tuple[Speech | None, Any]:
        """What makes labels of spoken queries, and all that these depend on besides the queries, as a JSON value."""
        return None, None

    def known(self) -> frozenset[str] | None:
        """Labels that documents can hold, or that the documents of the store hold; None: unknown, or not asked for."""
        store = self._inputs.store
        if not self._options.written.of_documents or store.manifest is None:
            return None
        return labels_of(store.folder, store.manifest.shards)
