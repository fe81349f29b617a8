"""Things that are chosen by their name: those of this package, and those that another package adds by an entry point.

An entry says where a thing is and what must be known of it without loading it, so that a config is checked and a run is planned
without the libraries that do the work. All built-in entries stand in `swsdist.registry.registries`, a line each; a stranger's
package names its own in its `pyproject.toml`::

    [project.entry-points."swsdist.distances"]
    mine = "my_package.distance:ENTRY"        # an entry, or an object that has a `version`

A version enters the fingerprint of exactly what is made with that thing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from swsdist.core.codes import registry as codes
from swsdist.core.errors import ConfigError
from swsdist.core.text import suggestion


@dataclass(frozen=True)
class Entry:
    """Where a thing is.

    Attributes:
        target: `module:attribute`.
        version: raised whenever the same input gives other bytes.
    """

    target: str
    version: int

    @property
    def built_in(self) -> bool:
        """Whether it is of this package."""
        return self.target.startswith("swsdist.")

    def load(self) -> Any:
        """The thing itself.

        Raises:
            ConfigError: it cannot be imported: an optional library is missing, or its module fails.
        """
        module, _, attribute = self.target.partition(":")
        try:
            return getattr(import_module(module), attribute)
        except Exception as error:
            if self.built_in and not isinstance(error, ImportError):
                raise
            raise codes.ENTRY_NOT_LOADED(target=self.target, error=f"{type(error).__name__}: {error}") from error


E = TypeVar("E", bound=Entry)


class Registry(Generic[E]):
    """Entries by name.

    Args:
        kind: what its things are called in messages, for example `distance`.
        group: of entry points, for example `swsdist.distances`.
        where: the key of a config that names one.
        entries: those of this package.
        entry_type: what an entry point must give, or be made into (a class with a `version`).
    """

    def __init__(
        self,
        kind: str,
        group: str,
        where: str,
        entries: Mapping[str, E],
        entry_type: type[E] = Entry,  # type: ignore[assignment]
    ) -> None:
        self.kind, self.group, self.where = kind, group, where
        self._own = dict(entries)
        self._type = entry_type

    @cached_property
    def _added(self) -> dict[str, EntryPoint]:
        return {point.name: point for point in entry_points(group=self.group) if point.name not in self._own}

    @property
    def own(self) -> Mapping[str, E]:
        """Entries of this package, and those that were added in this process."""
        return self._own

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from sorted(self._added)

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._added

    def __getitem__(self, name: str) -> E:
        """The entry of a name.

        Raises:
            ConfigError: there is none, or an added one cannot be loaded, or is not an entry.
        """
        if name in self._own:
            return self._own[name]
        if name not in self._added:
            raise codes.UNKNOWN_NAME(
                where=self.where, kind=self.kind, name=name, meant=suggestion(name, self), known=", ".join(self)
            )
        point = self._added[name]
        try:
            loaded = point.load()
        except Exception as error:  # whatever a stranger's module does when it is imported
            raise codes.BROKEN_ENTRY_POINT(
                where=f"entry point {self.group}: {name}",
                kind=self.kind,
                name=name,
                target=point.value,
                error=f"{type(error).__name__}: {error}",
            ) from error
        if isinstance(loaded, self._type):
            return loaded
        version = getattr(loaded, "version", None)
        if self._type is not Entry or not isinstance(version, int):
            raise codes.NOT_AN_ENTRY(
                where=f"entry point {self.group}: {name}",
                target=point.value,
                kind=self.kind,
                type=self._type.__name__,
            )
        return self._type(point.value, version)

    def broken(self) -> Iterator[ConfigError]:
        """What is wrong with those that other packages add, an error each."""
        for name in sorted(self._added):
            try:
                self[name].load()
            except ConfigError as error:
                yield error

    def identity(self, name: str) -> list[str | int]:
        """Name and version, for fingerprints."""
        return [name, self[name].version]

    def add(self, name: str, entry: E) -> None:
        """Add an entry for the life of this process, as an entry point would (for notebooks and tests)."""
        self._own[name] = entry

    def remove(self, name: str) -> None:
        """Take an added entry away again."""
        del self._own[name]
