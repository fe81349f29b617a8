"""Inputs of the chain lattices: a store of lattices, and a store of frames if lattices are decoded from frames."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from swsdist.chains.lattices.options import LatticesOptions, Source
from swsdist.chains.lattices.recordings import FileSource, FrameSource, LatticeCorpus, RecordingSource
from swsdist.config import Config
from swsdist.core.codes import lattices as codes
from swsdist.io.filesystem import Folder
from swsdist.io.notices import Notices
from swsdist.lattices.packed import TICK
from swsdist.pipeline.ledger import Ledger
from swsdist.registry.entries import checked
from swsdist.registry.registries import CHAINS
from swsdist.stages.inputs.corpus import Corpus
from swsdist.stages.inputs.search_inputs import SearchInputs

_SOURCES: dict[str, type[Source]] = {"files": FileSource, "recogniser": RecordingSource, "frames": FrameSource}
#: Seconds that a lattice may last longer than its document.
_BEYOND = 0.5


class FrameInputs(SearchInputs):
    """Inputs of the steps that make frames; written queries have none."""

    @cached_property
    def examples(self) -> list[dict[str, Any]]:
        """Rows of the spoken queries."""
        queries = self.corpus.queries
        return self.with_identities(queries.filter(queries["path"].is_valid()))


class LatticeInputs(SearchInputs):
    """Inputs of a search in lattices, whose store is `store`.

    Attributes:
        options: of the chain.
        frames: inputs of the steps that make frames; None: there are none.
        source: of the lattices.
        planned: work of each planned task, by fingerprint.
    """

    def __init__(self, config: Config, ledger: Ledger) -> None:
        super().__init__(config, ledger)
        options = checked(CHAINS, config.chain, config.options, "options")  # type: ignore[type-var]
        self.options = LatticesOptions.model_validate(options)
        self.frames: FrameInputs | None = None
        self.planned: dict[str, float] = {}
        if self.options.source == "frames":
            self.frames = FrameInputs(config, ledger)
            self.frames.notices = self.notices
            self.others["frames"] = self.frames
            self.store.folder = Folder(config.searched_store, config.storage)
        self.source = _SOURCES[self.options.source](self, self.options, self.frames)

    @cached_property
    def corpus(self) -> Corpus:
        """The tables of the corpus; its documents are those of lattices in files, unless these have a path of their own."""
        if self.frames is not None:
            return self.frames.corpus
        if not isinstance(self.source, FileSource):
            return super().corpus
        if self.options.lattices.path is not None:
            return Corpus(self.config, self.notices, audio=True, documents_audio=False)
        return LatticeCorpus(self.config, self.notices, self.source)

    def check_measured(self, spoken: Mapping[tuple[str, int], float], *, force: bool = True) -> Notices:
        """The notices of every chain, and words after the end of their document."""
        result = super().check_measured(spoken, force=force)
        if self.store.manifest is not None:
            table = self.store.open().documents(columns=["doc_id", "frames", "duration"])
            ends = table["frames"].to_numpy() * TICK
            late = np.flatnonzero(ends > table["duration"].to_numpy() + _BEYOND)
            if len(late):
                first = f"{table['doc_id'][late[0]]}, {ends[late[0]]:.1f} s"
                result.add(codes.TEXT_BEYOND_END, where=first, count=len(late))
        return result

    def expected_cells(self) -> float:
        """Expected cells: of frames like other chains; else terms times milliseconds of documents, from durations."""
        if self.frames is not None:
            return super().expected_cells()
        seconds = sum(value or 0.0 for value in self.corpus.documents["duration"].to_pylist())
        return float(self.corpus.queries.num_rows * seconds * 1000)
