"""Shared by methods on stores of lattices: units, and config keys that they refuse."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from swsdist.config.search import Search
from swsdist.core.codes import methods as codes
from swsdist.core.fingerprint import fingerprint
from swsdist.methods.method import Unit
from swsdist.store.reading import Store


def shard_units(store: Store) -> Iterator[Unit]:
    """One unit per shard."""
    for shard in store.manifest.shards:
        matters = fingerprint(shard.name, sorted(store.live(shard.name)))
        yield Unit((shard.name,), matters, shard.documents, shard.frames)


def demand_unset(settings: Search, besides: Collection[str] = ()) -> None:
    """Refuse keys of the section `search` that a method of lattices does not use.

    Args:
        settings: the section.
        besides: keys that it uses, with `method` and `method_options`.

    Raises:
        ConfigError: another key is set.
    """
    for key in settings.changed():
        if key not in ("method", "method_options", *besides):
            raise codes.UNUSED_SEARCH_KEY(where=f"search.{key}", method=settings.method, key=key)
