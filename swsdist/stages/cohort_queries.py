"""cohort-queries turns the examples of a cohort into a separate store of queries: searched, and never scored."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from swsdist.core.codes import stages as codes
from swsdist.pipeline.inputs import Inputs
from swsdist.stages.inputs.search_inputs import SearchInputs
from swsdist.stages.queries import Queries

#: Path of their store in a run folder.
STORE = "cohort"


class CohortQueries(Queries):
    """Like `queries`; no stage that scores, decides or exports reads its output."""

    name = "cohort-queries"
    version = 1

    def place(self, inputs: Inputs) -> str:
        """The store of the cohort."""
        return f"{inputs.ledger.run.root}/{STORE}"

    def digests(self, inputs: Inputs) -> dict[str, str]:
        """Digests of the examples, independent of groups."""
        result = super().digests(inputs)
        return {"queries.cohort": result["queries"]} if result else {}

    def examples(self, chain_inputs: SearchInputs) -> list[dict[str, Any]]:
        """The examples of `corpus.cohort`."""
        if chain_inputs.is_first("cohort"):
            _note_shared_queries(chain_inputs)
        return chain_inputs.with_identities(chain_inputs.corpus.cohort)


def _note_shared_queries(chain_inputs: SearchInputs) -> None:
    """Note examples that are also queries of the run."""
    run_queries = set(_places(chain_inputs.corpus.queries))
    shared = [
        query_id
        for query_id, place in zip(
            chain_inputs.corpus.cohort["query_id"].to_pylist(), _places(chain_inputs.corpus.cohort), strict=True
        )
        if place in run_queries
    ]
    if shared:
        chain_inputs.notices.add(codes.COHORT_EXAMPLE_IS_QUERY, where=f"corpus.cohort: {shared[0]}", count=len(shared))


def _places(queries: pa.Table) -> list[tuple[object, ...]]:
    columns = (queries[name].to_pylist() for name in ("path", "channel", "start", "end"))
    return list(zip(*columns, strict=True))
