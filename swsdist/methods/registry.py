"""A config's method."""

from __future__ import annotations

from swsdist.config.search import Search
from swsdist.methods.method import Method
from swsdist.registries import METHODS


def create(search: Search) -> Method:
    """The method that a config names.

    Raises:
        ConfigError: it cannot be loaded, or an option is not valid.
    """
    made: Method = METHODS[search.method].load()(search)
    return made


def identity(search: Search) -> list[object]:
    """Name, version and all that its candidates depend on, for fingerprints."""
    return [*METHODS.identity(search.method), create(search).matters()]
