"""cohort-queries turns the examples of a cohort into a store of queries of their own: they are searched, and never scored."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from swsdist.core.codes import stages as codes
from swsdist.pipeline.inputs import Inputs
from swsdist.stages.inputs.search_inputs import SearchInputs
from swsdist.stages.queries import Queries

#: Where their store lies in a run folder.
STORE = "cohort"


class CohortQueries(Queries):
    """As `queries`; nothing that scores, decides or exports reads what it makes."""

    name = "cohort-queries"
    version = 1

    def place(self, inputs: Inputs) -> str:
        """The store of the cohort."""
        return f"{inputs.ledger.run.root}/{STORE}"

    def digests(self, inputs: Inputs) -> dict[str, str]:
        """Of the examples, whatever the groups."""
        found = super().digests(inputs)
        return {"queries.cohort": found["queries"]} if found else {}

    def examples(self, own: SearchInputs) -> list[dict[str, Any]]:
        """Those of `corpus.cohort`."""
        if own.is_first("cohort"):
            _note_shared_queries(own)
        return own.with_identities(own.corpus.cohort)


def _note_shared_queries(own: SearchInputs) -> None:
    """Tell of examples that are queries of the run too."""
    known = set(_places(own.corpus.queries))
    shared = [
        query_id
        for query_id, place in zip(own.corpus.cohort["query_id"].to_pylist(), _places(own.corpus.cohort), strict=True)
        if place in known
    ]
    if shared:
        own.notices.add(codes.COHORT_EXAMPLE_IS_QUERY, where=f"corpus.cohort: {shared[0]}", count=len(shared))


def _places(queries: pa.Table) -> list[tuple[object, ...]]:
    columns = (queries[name].to_pylist() for name in ("path", "channel", "start", "end"))
    return list(zip(*columns, strict=True))
