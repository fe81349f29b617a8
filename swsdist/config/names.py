"""Names of registry entries as values of a config."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from swsdist.registry.registry import Registry

#: The type of pydantic's error about an unknown name; its context has the registry's `kind` and `group`.
UNKNOWN: Final = "unknown_name"


@dataclass(frozen=True)
class NameIn:
    """Mark of a string that names an entry of a registry: ``Annotated[str, NameIn(DISTANCES)]``.

    Attributes:
        registry: of the entries.
        also: other allowed words, for example `none`.
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
            # The loader adds allowed and close names; readers of a run add the package to install.
            context = {"kind": self.registry.kind, "group": self.registry.group}
            raise PydanticCustomError(UNKNOWN, "unknown name", context)
        return name
