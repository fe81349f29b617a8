"""collect-terms makes written terms into sequences of labels, a task per group of queries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from swsdist.chains.text.inputs import TextInputs
from swsdist.core.codes import searcher as codes
from swsdist.core.errors import TermError
from swsdist.lattices.packed import Recipe
from swsdist.lattices.terms import WRITTEN, TermReader, Terms
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.registry.registries import METHODS
from swsdist.stages.task_results import Extracted

#: Terms that are searched together: one pass over the lattices for all of them.
_GROUP = 4096


class Collecting(NamedTuple):
    """The payload of a task: query, text (None: it has none) and path of each query."""

    queries: list[tuple[str, str | None, str | None]]
    terms: Terms
    recipe: Recipe


class CollectTerms(Stage[Collecting]):
    """Written queries as the method takes them. A query with a text and spoken examples is searched by its text."""

    name = "collect-terms"
    version = 1
    unit = "examples"
    phase = "search"
    with_hours = "same"
    with_queries = "more"
    tables = {"groups": Table(WRITTEN, order=("cost", "labels"), digested=False)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Collecting]]:
        """A task per group."""
        chain_inputs = inputs.chain_inputs(TextInputs)
        options = chain_inputs.lattices.options
        by_query: dict[str, tuple[str | None, str | None]] = {}
        for row in chain_inputs.corpus.queries.to_pylist():
            text, path = by_query.get(row["query_id"], (None, None))
            by_query[row["query_id"]] = text or row["term"], path or row["path"]
        spelling = options.recipe.spelling, list(options.recipe.fillers)
        identities = options.terms.identities(inputs.config.storage)
        queries = [(query_id, *by_query[query_id]) for query_id in sorted(by_query)]
        for first in range(0, len(queries), _GROUP):
            some = queries[first : first + _GROUP]
            payload = Collecting(some, options.terms, options.recipe)
            matters = [(query_id, text) for query_id, text, _ in some], identities, spelling
            yield inputs.task(*matters, label=f"{len(some)} terms", work=len(some), payload=payload)

    def run(self, task: Task[Collecting], context: Context) -> TaskOutput:
        """Look up each term's words."""
        payload = task.payload
        reader = TermReader(payload.terms, payload.recipe, context.storage)
        rows: list[dict[str, Any]] = []
        rejected: list[dict[str, Any]] = []
        for query_id, text, path in payload.queries:
            try:
                if text is None:
                    raise codes.QUERY_WITHOUT_TEXT(where=query_id)
                rows += reader.rows(query_id, text)
            except TermError as error:
                rejected.append(
                    {
                        "kind": "query",
                        "id": query_id,
                        "part": 1,
                        "path": path,
                        "reason": error.reason,
                        "message": error.message,
                        "remedy": error.remedy,
                    }
                )
        query_ids = sorted({row["query_id"] for row in rows})
        table = pa.Table.from_pylist(rows, WRITTEN)
        result = Extracted(len(query_ids), query_ids, len(query_ids), 0.0)
        return TaskOutput((context.publish(task, "groups", [table], WRITTEN),), result, rejected=rejected)


def takes_text(method: str) -> bool:
    """Whether a method takes written queries."""
    return METHODS[method].queries == "text"
