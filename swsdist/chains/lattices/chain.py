"""The chain lattices: lattices of files, of a recogniser or of frames, in which queries are searched as text or as lattices.

::

    index-lattices -> label-queries -> search -> reduce -> ... as in the chain search

With frames these come before, and the first step is named `decode`::

    [fit-transforms] -> index -> decode ---> search -> reduce -> ... as in the chain search
                        examples -> queries -^
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import cast

from swsdist.audio.reader import probe_all
from swsdist.chains.check import Checking, assemble, findings, lattice_store_finding, rejection_finding
from swsdist.chains.lattices.frames import FrameSource
from swsdist.chains.lattices.index_lattices import IndexLatticeFiles, IndexLattices
from swsdist.chains.lattices.inputs import LatticeInputs
from swsdist.chains.lattices.label_queries import LabelQueries, examples_of
from swsdist.chains.lattices.recordings import FileSource
from swsdist.config import Config
from swsdist.core.codes import lattices as lattice_codes
from swsdist.core.codes import pipeline as codes
from swsdist.core.errors import UnusableError
from swsdist.core.needs import LEAST
from swsdist.lattices.terms import TermReader
from swsdist.pipeline.chain import Chain, Finding, Stage, Step
from swsdist.pipeline.ledger import Ledger
from swsdist.registry.registries import METHODS
from swsdist.stages.fit_transforms import FitTransforms
from swsdist.stages.index import Index
from swsdist.stages.inputs.search_inputs import SearchInputs
from swsdist.stages.lattice_store import LATTICE_STORE
from swsdist.stages.queries import Queries
from swsdist.stages.steps import steps


def check(inputs: LatticeInputs) -> Iterator[Finding]:
    """As `swsdist.chains.check.check`."""
    yield from findings(inputs, _Checking(inputs))


def check_words(inputs: SearchInputs) -> Iterator[Finding]:
    """As `swsdist.chains.check.check`, of a search beside which words are made (`others`)."""
    yield from findings(inputs, Checking(inputs))
    words = cast(LatticeInputs, inputs.others["words"])
    yield from (finding._replace(name="words") for finding in findings(words, _CheckingWords(words)))


class _Checking(Checking):
    def __init__(self, inputs: LatticeInputs) -> None:
        super().__init__(inputs)
        self._lattices, self._source = inputs, inputs.source

    def parts(self) -> Iterator[tuple[str, Callable[[], Iterator[Finding]]]]:
        """Those of a search; without frames a recogniser, or nothing, in place of features."""
        for name, look in super().parts():
            if name != "features" or self._lattices.frames is not None:
                yield from [(name, look)] if name != "cohort" else ()
            elif self._lattices.options.source == "recogniser":
                yield "recogniser", self._recogniser

    def _documents(self) -> Iterator[Finding]:
        if not isinstance(self._source, FileSource):
            yield from super()._documents()
            return
        rows = self._lattices.corpus.documents.select(["doc_id", "channel", "duration"]).to_pylist()
        self._seconds = {(r["doc_id"], r["channel"]): r["duration"] for r in rows if r["duration"] is not None}
        unread, files = len(rows) - len(self._seconds), len(self._source.files)
        text = f"{len(rows)}, {sum(self._seconds.values()) / 3600:.4g} h; {files} files of lattices or transcripts"
        yield Finding("documents", True, text)
        if unread:
            first = next(r["doc_id"] for r in rows if r["duration"] is None)
            yield Finding("documents", None, f"{unread} have no duration or cannot be read; the first: {first}")

    def _queries(self) -> Iterator[Finding]:
        if self._lattices.frames is not None:
            yield from super()._queries()
        options, known = self._lattices.options, self._source.known()
        reader = TermReader(options.written, options.labels, self._storage, known)
        rows = [row for some in examples_of(self._source.queries()).values() for row in some]
        spoken = [row for row in rows if row["path"] is not None]
        headers = probe_all(dict.fromkeys(row["path"] for row in spoken), self._storage)
        bad: list[tuple[str, UnusableError]] = []
        for row in rows:
            if row["path"] is None:
                try:
                    reader.rows(row)
                except UnusableError as error:
                    bad.append((row["query_id"], error))
            elif isinstance(header := headers[row["path"]], UnusableError):
                bad.append((f"{row['query_id']}, example {row['example']}", header))
        if self._lattices.frames is None:
            texts = sum(row["path"] is None and bool(row["term"]) for row in rows)
            text = f"{texts} written ones" + (f", {len(spoken)} spoken examples" if spoken else "")
            yield Finding("queries", True, text)
        of = len(rows) if self._lattices.frames is None else self._lattices.corpus.queries.num_rows
        yield from rejection_finding("queries", bad, of, "queries")

    def _recogniser(self) -> Iterator[Finding]:
        options = self._lattices.options.recogniser
        name, version, *_ = options.identities()
        options.loaded(LEAST[0])
        yield Finding("recogniser", True, f"{name} version {version}")

    def _features(self) -> Iterator[Finding]:
        yield from super()._features()
        if isinstance(self._source, FrameSource):
            self._source.decoder()  # reports mistakes

    def _store(self) -> Iterator[Finding]:
        if self._lattices.frames is not None:
            yield from Checking(self._lattices.frames)._store()
        yield lattice_store_finding(self._lattices.store.folder)


class _CheckingWords(_Checking):
    def parts(self) -> Iterator[tuple[str, Callable[[], Iterator[Finding]]]]:
        """What the search does not check."""
        yield from ((name, look) for name, look in super().parts() if name in ("recogniser", "store"))


def build(config: Config, ledger: Ledger) -> Chain:
    """The chain of a config.

    Raises:
        ConfigError: invalid options; features that are not used; or a method that does not search such lattices.
    """
    inputs = LatticeInputs.of(config, ledger)
    source, method = inputs.options.source, config.search.method
    takes = ("text", "lattices") if inputs.frames is not None else ("text",)
    methods = [name for name in METHODS if METHODS[name].reads == LATTICE_STORE and METHODS[name].queries in takes]
    if method not in methods:
        raise codes.NOT_A_LATTICE_METHOD(
            where="search.method", method=method, source=source, methods=", ".join(methods)
        )
    if inputs.frames is None and config.features != Config.model_fields["features"].default:
        raise lattice_codes.OPTION_OF_OTHER_SOURCE(where="features", key="features", sources="frames", source=source)
    if inputs.options.terms.patterns and METHODS[method].queries == "lattices":
        raise lattice_codes.PATTERNS_OF_LATTICES(where="options.terms.patterns", method=method)
    chain = assemble(config, ledger, tuple(_steps(config, inputs)), inputs)
    return dataclasses.replace(chain, check=check, stages=chain.steps)


def _steps(config: Config, inputs: LatticeInputs) -> Iterator[Step | Stage]:
    """The steps of a search, of which the source replaces the first, or adds to them."""
    frames, queries = inputs.frames, Step("queries", LabelQueries())
    index = IndexLatticeFiles() if inputs.options.source == "files" else IndexLattices()
    for step in steps(config):
        if frames is None:
            yield {"index": Step("index", index), "queries": queries}.get(step.name, step)
        elif step.name == "queries":
            yield Step("examples", Queries(), labels={"groups": "examples"}, inputs=frames)
            yield queries
            yield Step("decode", index)
        elif isinstance(step, FitTransforms | Index):
            yield Step(step.name, step, inputs=frames)
        else:
            yield step
