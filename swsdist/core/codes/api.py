"""Codes of the Python API: arguments of `swsdist.run`, `swsdist.sweep` and `swsdist.metrics`."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import UserError

NOT_A_PATH = Code("not-a-path", UserError, "{value} is not a path", "{expected}")
NOT_A_LIST_OF_SETTINGS = Code(
    "not-a-list-of-settings", UserError, "{value} is not a list of texts KEY=VALUE", "give a list: sets=[{example!r}]"
)
_IDS = 'give their ids, each once: queries=["q001", "q002"]'
NOT_A_LIST_OF_QUERIES = Code("not-a-list-of-queries", UserError, "{value} is not a list of queries", _IDS)
DUPLICATE_QUERY = Code("duplicate-query", UserError, "duplicate query {query_id!r}", _IDS)
NO_CURVE = Code(
    "no-curve", UserError, "no query has a reference, so there is no curve", "compare query ids of both tables"
)
UNKNOWN_QUERIES = Code(
    "unknown-queries",
    UserError,
    "the queries are not known: there are no references",
    "give references, or queries= with the ids of all queries",
)
