"""Search of spoken queries: lanes, engine, shards. Called, `swsdist.search(store, queries)` is `swsdist.api.search`."""

from swsdist.callable_module import make_callable

make_callable(__name__)
