"""A value of a config that is the name of a registered thing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from swsdist.registry.registry import Registry

#: The type of pydantic's error about a name that no registry has; its context has the registry's `kind` and `group`.
UNKNOWN: Final = "unknown_name"


@dataclass(frozen=True)
class NameIn:
    """Mark of a string that names a thing: ``Annotated[str, NameIn(DISTANCES)]``.

    Attributes:
        registry: of the things.
        also: words that are allowed besides, for example `none`.
    """

    registry: Registry[Any]
    also: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[str]:
        yield from self.also
        yield from self.registry

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._known, handler(source))

    def _known(self, name: str) -> str:
        if name not in self.also and name not in self.registry:
            # The loader says what is allowed, and what was meant; who reads a run, what is to be installed.
            context = {"kind": self.registry.kind, "group": self.registry.group}
            raise PydanticCustomError(UNKNOWN, "there is no such name", context)
        return name
