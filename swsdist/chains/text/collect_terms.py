"""collect-terms makes written terms into sequences of labels, a task per group of queries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from swsdist.chains.text.inputs import TextInputs
from swsdist.core.codes import searcher as codes
from swsdist.core.errors import TermError
from swsdist.lattices.packed import Recipe
from swsdist.lattices.terms import WRITTEN, TermReader, Terms, cheapest
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.registry.registries import METHODS
from swsdist.stages.inputs.recordings import Row
from swsdist.stages.task_results import Extracted

#: Terms that are searched together: one pass over the lattices for all of them.
_GROUP = 4096


class Collecting(NamedTuple):
    """The payload of a task: rows of QUERIES, one a text of a query, or one of a query without text."""

    queries: list[Row]
    terms: Terms
    recipe: Recipe


class CollectTerms(Stage[Collecting]):
    """Written queries as the method takes them: the texts of a query, which are alternatives, not its spoken examples."""

    name = "collect-terms"
    version = 2
    unit = "examples"
    phase = "search"
    with_hours = "same"
    with_queries = "more"
    tables = {"groups": Table(WRITTEN, order=("cost", "labels"), digested=False)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Collecting]]:
        """A task per group."""
        chain_inputs = inputs.chain_inputs(TextInputs)
        options = chain_inputs.lattices.options
        by_query: dict[str, dict[str | None, Row]] = {}
        for row in sorted(chain_inputs.corpus.queries.to_pylist(), key=lambda row: row["example"]):
            by_query.setdefault(row["query_id"], {}).setdefault(row["term"] or None, row)
        spelling = options.recipe.spelling, list(options.recipe.fillers)
        identities = options.terms.identities(inputs.config.storage)
        queries = [
            [row for text, row in by_query[key].items() if text or len(by_query[key]) == 1] for key in sorted(by_query)
        ]
        for first in range(0, len(queries), _GROUP):
            some = [row for rows in queries[first : first + _GROUP] for row in rows]
            payload = Collecting(some, options.terms, options.recipe)
            matters = [(row["query_id"], row["term"]) for row in some], identities, spelling
            yield inputs.task(*matters, label=f"{len(some)} terms", work=len(some), payload=payload)

    def run(self, task: Task[Collecting], context: Context) -> TaskOutput:
        """Look up each term's words."""
        payload = task.payload
        reader = TermReader(payload.terms, payload.recipe, context.storage)
        rows: list[dict[str, Any]] = []
        rejected: list[dict[str, Any]] = []
        for query in payload.queries:
            try:
                if not query["term"]:
                    raise codes.QUERY_WITHOUT_TEXT(where=query["query_id"])
                rows += reader.rows(query)
            except TermError as error:
                rejected.append(
                    {
                        "kind": "query",
                        "id": query["query_id"],
                        "part": query["example"],
                        "path": query["path"],
                        "reason": error.reason,
                        "message": error.message,
                        "remedy": error.remedy,
                    }
                )
        query_ids = sorted({row["query_id"] for row in rows})
        table = pa.Table.from_pylist(cheapest(rows), WRITTEN)
        usable = len(payload.queries) - len(rejected)
        result = Extracted(usable, query_ids, usable, 0.0)
        return TaskOutput((context.publish(task, "groups", [table], WRITTEN),), result, rejected=rejected)


def takes_text(method: str) -> bool:
    """Whether a method takes written queries."""
    return METHODS[method].queries == "text"
