"""Runs: stages wired to executors, nodes and accounts. Called, `swsdist.run(config)` is `swsdist.api.run`."""

from swsdist.callable_module import make_callable

make_callable(__name__)
