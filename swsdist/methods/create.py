"""Create the search method of a config."""

from __future__ import annotations

from swsdist.config.search import Search
from swsdist.core.codes import methods as codes
from swsdist.methods.method import Method
from swsdist.registry.registries import METHODS
from swsdist.store.reading import Store


def create(search: Search) -> Method:
    """The method that a config names.

    Raises:
        ConfigError: it cannot be loaded, or an option is not valid.
    """
    method: Method = METHODS[search.method].load()(search)
    return method


def demand_readable(search: Search, store: Store) -> None:
    """Refuse a store that the method of a config does not read.

    Raises:
        UserError: the method does not read the store.
    """
    reads, kind = METHODS[search.method].reads, store.manifest.kind
    if kind != reads:
        raise codes.NOT_METHOD_STORE(where=store.folder.path(), method=search.method, expected=reads, kind=kind)


def identity(search: Search) -> list[object]:
    """Name, version and all that its candidates depend on, for fingerprints."""
    return [*METHODS.identity(search.method), create(search).matters()]
