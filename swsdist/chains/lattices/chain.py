"""The chain lattices: from lattices of files, of a recogniser or of frames to a scored report.

Queries are searched as text or as lattices::

    index-lattices -> label-queries -> search -> reduce -> ... as in the chain search

With lattices of frames these steps come before, and the first step is named `decode`::

    [fit-transforms] -> index -> decode ---> search -> reduce -> ... as in the chain search
                        examples -> queries -^
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa

from swsdist.audio.formats import ffmpeg
from swsdist.audio.reader import probe_all
from swsdist.audio.streams import are_permitted, is_command, permitted, refusal
from swsdist.chains.check import Checking, assemble, findings, lattice_store_finding, rejection_finding
from swsdist.chains.lattices.inputs import LatticeInputs
from swsdist.chains.lattices.options import Documents, LatticesOptions, Speech
from swsdist.chains.lattices.recordings import FileSource, FrameSource
from swsdist.config import Config
from swsdist.core.codes import families
from swsdist.core.codes import lattices as lattices_codes
from swsdist.core.errors import ConfigError, DataError, UnusableError
from swsdist.core.fingerprint import fingerprint
from swsdist.core.needs import LEAST, Needs
from swsdist.lattices.packed import Recipe
from swsdist.lattices.terms import WRITTEN, TermReader, Terms, cheapest
from swsdist.methods.lattice.places import QUERY_LATTICES, linear, query_row
from swsdist.methods.query.extraction import groups
from swsdist.pipeline.chain import Chain, Context, Finding, Inputs, Stage, Step, Table
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.task import Receipt, Task, TaskOutput
from swsdist.registry.registries import METHODS
from swsdist.stages.buckets import Extracted, Indexed
from swsdist.stages.fit_transforms import FitTransforms
from swsdist.stages.index import Index
from swsdist.stages.inputs.corpus_documents import Row
from swsdist.stages.inputs.search_inputs import SearchInputs
from swsdist.stages.inputs.state import doubt_gone
from swsdist.stages.lattice_store import (
    LATTICE_STORE,
    LATTICE_TABLES,
    commit_lattices,
    demand_lattices,
    rejection,
    write_lattices,
)
from swsdist.stages.queries import Queries, demand_examples, read_group
from swsdist.stages.steps import steps
from swsdist.store import reading
from swsdist.store.manifest import Unfinished, load
from swsdist.store.writing import raise_transient


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
        """Receipts of the store's shards."""
        return inputs.chain_inputs(LatticeInputs).store.makers(self.name)

    def finish(self, inputs: Inputs) -> None:
        """Commit the store if it changed."""
        self._commit(inputs, None)

    def commit_partial(self, inputs: Inputs) -> None:
        """Commit the documents recognised so far, for searches; other sources finish soon."""
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
    """Make lattices of the documents in files."""

    unit = "bytes"


#: Written queries that are searched together: one pass over the lattices for all of them.
_GROUP = 4096
#: Columns that the labels of a recording depend on.
_MATTERS = ("query_id", "example", "path", "channel", "start", "end", "identity")
#: Those of a text.
_TEXT = ("query_id", "example", "term")


class Labelling(NamedTuple):
    """The payload of a task.

    Attributes:
        examples: rows of QUERIES; those with a path are spoken.
        group: file of a group of examples, all spoken; empty: of none.
        cuts: of those that were trimmed.
        speech: how spoken ones become labels.
        terms, recipe, known: how texts do; of labels of documents only those that matter.
        lattices: whether the method takes lattices.
        commands: whether commands may be run to read audio.
    """

    examples: list[Row]
    group: str
    cuts: list[list[Any]]
    speech: Speech | None
    terms: Terms
    recipe: Recipe
    known: frozenset[str] | None
    lattices: bool
    commands: bool


class LabelQueries(Stage[Labelling]):
    """A written query becomes its alternatives, a spoken one what the source of the lattices makes of it.

    Several texts of a query are alternatives. Where the source takes no speech, a spoken query is searched by its texts.
    """

    name = "label-queries"
    version = 1
    unit = "examples"
    phase = "search"
    grows_with_hours = "same"
    grows_with_queries = "more"
    may_take = {"examples": "groups"}
    tables = {"groups": Table(None, None, digested=False)}

    def needs(self, config: Config) -> tuple[Needs, ...]:
        """The recogniser's."""
        return LatticesOptions.model_validate(config.options).needs

    def plan(self, inputs: Inputs) -> Iterator[Task[Labelling]]:
        """A task per group: of recordings, or texts, or both."""
        chain_inputs, storage = inputs.chain_inputs(LatticeInputs), inputs.config.storage
        options, source = chain_inputs.options, chain_inputs.source
        lattices = METHODS[inputs.config.search.method].queries == "lattices"
        terms, recipe, known, (speech, of_speech) = options.written, options.labels, source.known(), source.speech()
        of_texts = [terms.identities(storage), recipe.spelling, list(recipe.fillers), lattices]
        of_all, permission = fingerprint(sorted(known or ())), are_permitted()
        reader = TermReader(terms, recipe, storage, known) if known and terms.of_documents else None
        by_query = examples_of(source.queries())
        made = list(inputs.made("examples", Extracted))
        if not by_query:
            demand_examples(inputs, made)
        for receipt, group, (part,) in made:
            if group.examples:
                payload = Labelling([], part.name, group.cuts, speech, terms, recipe, known, lattices, permission)
                key_parts: tuple[Any, ...] = receipt.fingerprint, of_speech, lattices
                label = f"{group.examples} examples"
                yield inputs.task(*key_parts, label=label, work=group.examples, payload=payload)
        for query_ids in _groups(by_query):
            members = [row for query_id in query_ids for row in by_query[query_id]]
            spoken = [[row[name] for name in _MATTERS] for row in members if row["path"] is not None]
            texts = [[row[name] for name in _TEXT] for row in members if row["path"] is None]
            among, of_known = known, of_all
            if reader is not None and not spoken:  # what is spoken may be any word
                among = reader.among_labels(row["term"] for row in members if row["term"])
                of_known = fingerprint(sorted(among))
            key_parts = texts, of_texts, of_known, spoken, of_speech if spoken else None
            payload = Labelling(members, "", [], speech, terms, recipe, among, lattices, permission)
            yield inputs.task(*key_parts, label=f"{len(query_ids)} queries", work=len(members), payload=payload)

    def run(self, task: Task[Labelling], context: Context) -> TaskOutput:
        """Look up texts; recognise, or decode, spoken examples."""
        payload = task.payload
        examples = read_group(context, payload.group).to_pylist() if payload.group else payload.examples
        paths = [row["path"] for row in payload.examples if row["path"] is not None]
        given = [path for path in paths if is_command(path)]
        if given and not payload.commands:
            raise refusal(given[0])  # not a rejection: permission is no property of the queries
        reader = TermReader(payload.terms, payload.recipe, context.storage, payload.known)
        labelled = payload.speech.labeller(context) if payload.speech and (payload.group or paths) else None
        rows: list[dict[str, Any]] = []
        rejected: list[dict[str, Any]] = []
        seconds = 0.0
        with permitted(payload.commands), ffmpeg.recorded_versions() as used:
            for example in examples:
                try:
                    if labelled is not None and (payload.group or example["path"] is not None):
                        made, length = labelled(example, reader)
                    else:
                        made, length = _written(example, reader, payload.lattices), 0.0
                except DataError as error:
                    if example.get("identity"):  # of a recording
                        raise_transient(example, error)
                    key = example["query_id"], example["example"], example.get("path")
                    rejected.append(rejection(*key, error, "query"))
                    continue
                rows += made
                seconds += length
        schema = QUERY_LATTICES if payload.lattices else WRITTEN
        kept = rows if payload.lattices or payload.group else cheapest(rows)
        part = context.publish(task, "groups", [pa.Table.from_pylist(kept, schema)], schema)
        query_ids, usable = sorted({row["query_id"] for row in rows}), len(examples) - len(rejected)
        result = Extracted(usable, query_ids, usable, seconds, payload.cuts, sorted(used))
        return TaskOutput((part,), result, rejected=rejected)


def examples_of(rows: list[Row]) -> dict[str, list[Row]]:
    """Rows by query: its recordings and its texts, each once; a single row of a query with neither."""
    result: dict[str, dict[object, Row]] = {}
    for row in sorted(rows, key=lambda row: (row["query_id"], row["example"])):
        key = row["term"] or None if row["path"] is None else row["example"]
        result.setdefault(row["query_id"], {}).setdefault(key, row)
    return {
        query_id: [row for key, row in some.items() if key is not None or len(some) == 1]
        for query_id, some in result.items()
    }


def _groups(by_query: Mapping[str, list[Row]]) -> list[list[str]]:
    """Queries of each task."""
    if any(row["path"] is not None for rows in by_query.values() for row in rows):
        return groups(list(by_query))
    query_ids = sorted(by_query)
    return [query_ids[first : first + _GROUP] for first in range(0, len(query_ids), _GROUP)]


def _written(example: Row, reader: TermReader, lattices: bool) -> list[dict[str, Any]]:
    rows = reader.rows(example)
    if not lattices:
        return rows
    weighted = [(row["labels"], float(np.exp(-row["cost"]))) for row in rows]
    return [query_row(example["query_id"], example["example"], linear(weighted))]


def check(inputs: LatticeInputs) -> Iterator[Finding]:
    """Check the inputs, like `swsdist.chains.check.check`."""
    yield from findings(inputs, _Checking(inputs))


def check_words(inputs: SearchInputs) -> Iterator[Finding]:
    """Check the inputs of words made beside a search (`others`), like `swsdist.chains.check.check`."""
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
        raise families.UNSUPPORTED.of(ConfigError)(
            "the method {method} does not search lattices of the source {source}",
            "set search.method to one of: {methods}",
            where="search.method",
            method=method,
            source=source,
            methods=", ".join(methods),
        )
    if inputs.frames is None and config.features != Config.model_fields["features"].default:
        raise lattices_codes.OPTION_OF_OTHER_SOURCE(where="features", key="features", sources="frames", source=source)
    if inputs.options.terms.patterns and METHODS[method].queries == "lattices":
        raise families.UNSUPPORTED.of(ConfigError)(
            "the method {method} aligns whole labels: it searches no patterns",
            "leave options.terms.patterns out, or set search.method: lattice",
            where="options.terms.patterns",
            method=method,
        )
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
