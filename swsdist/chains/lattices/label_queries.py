"""label-queries makes queries as a method of lattices takes them: sequences of labels, or lattices; a task per group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from swsdist.audio.formats import ffmpeg
from swsdist.audio.streams import are_permitted, is_command, permitted, refusal
from swsdist.chains.lattices.inputs import LatticeInputs
from swsdist.chains.lattices.options import LatticesOptions, Speech
from swsdist.config import Config
from swsdist.core.errors import DataError
from swsdist.core.fingerprint import fingerprint
from swsdist.core.needs import Needs
from swsdist.lattices.packed import Recipe
from swsdist.lattices.terms import WRITTEN, TermReader, Terms, cheapest
from swsdist.methods.lattice.places import QUERY_LATTICES, linear, query_row
from swsdist.methods.query.extraction import groups
from swsdist.pipeline.chain import Context, Stage, Table
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.registry.registries import METHODS
from swsdist.stages.buckets import Extracted
from swsdist.stages.inputs.corpus_documents import Row
from swsdist.stages.lattice_store import rejection
from swsdist.stages.queries import demand_examples, read_group
from swsdist.store.writing import raise_transient

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
    """By query, its recordings and its texts, each once; of one with neither a row."""
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
