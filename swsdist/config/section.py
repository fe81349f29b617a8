"""Base class and field types of config sections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from swsdist.core.codes import pydantic_error
from swsdist.core.errors import SwsdistError
from swsdist.registry.registry import Registry

#: Path of a file or folder, or a url; the loader makes it absolute, relative to the config's folder.
IsPath = Annotated[str, "path", Field(min_length=1)]

#: Marks a list of sections that may be given as one section: a list of one.
ONE_OR_MORE = "one or more"


class Section(BaseModel):
    """Base of all sections: frozen; unknown keys, infinity and NaN are errors.

    Attributes:
        registry: of a section with `name` and `options`: of these; None: it is another section.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    registry: ClassVar[Any] = None

    def matters(self) -> dict[str, object]:
        """The settings that results depend on, as JSON values: all but the `execution_only` ones."""
        execution_only = {
            name
            for name, field in type(self).model_fields.items()
            if isinstance(field.json_schema_extra, dict) and field.json_schema_extra.get("execution_only")
        }
        return self.model_dump(mode="json", exclude=execution_only)


class ChainOptions(Section):
    """Base of the options of a chain. What follows is of options as a config gives them, unchecked."""

    @classmethod
    def second_store(cls, options: Mapping[str, Any], run: str) -> str | None:
        """Folder of the store that the chain makes of the config's store, and searches; None: it searches the config's."""
        return None

    @classmethod
    def terms_in(cls, options: Mapping[str, Any]) -> Mapping[str, object]:
        """Keys of `swsdist.lattices.terms.Terms`: how written queries become labels of the store."""
        return {}


def execution_only(default: object, description: str) -> Any:
    """A field that changes how work is split or where it runs, never the results."""
    return Field(default, description=description, json_schema_extra={"execution_only": True})


def error_for_pydantic(error: SwsdistError, place: str = "") -> PydanticCustomError:
    """An error of a code for pydantic's validators; `place` begins the message."""
    return pydantic_error(error.code, f"{place}{error.message}", error.remedy or "", error.values, type(error))


def paths_in(section: Section) -> Iterator[str]:
    """All texts of a section and its subsections, among them all paths."""
    yield from _texts(section.model_dump())


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


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
