"""cohort-queries turns the examples of a cohort into a store of queries of their own: they are searched, and never scored."""

from __future__ import annotations

from typing import Any

from swsdist.chains.search.inputs import SearchInputs
from swsdist.chains.search.queries import Queries
from swsdist.pipeline.inputs import Inputs

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
        return own.with_identities(own.cohort)
