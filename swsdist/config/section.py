"""What sections of the config are made of: their base, paths, and fields that change no result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from swsdist.core.errors import SwsdistError

#: A string that names a file or folder (or a url): the loader makes it absolute, relative to the config's place.
IsPath = Annotated[str, "path", Field(min_length=1)]

#: Marks a list of sections that may be given as one section: a list of one.
ONE_OR_MORE = "one or more"


class Section(BaseModel):
    """Base of all sections: frozen; unknown keys, infinity and NaN are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def matters(self) -> dict[str, object]:
        """The part of this section that results depend on (see `effort` above), as plain JSON values."""
        effort = {
            name
            for name, field in type(self).model_fields.items()
            if isinstance(field.json_schema_extra, dict) and field.json_schema_extra.get("effort")
        }
        return self.model_dump(mode="json", exclude=effort)


def effort(default: object, description: str) -> Any:
    """A field that changes how the work is cut or where it runs, never what comes out."""
    return Field(default, description=description, json_schema_extra={"effort": True})


def error_for_pydantic(error: SwsdistError, place: str = "") -> PydanticCustomError:
    """An error of a code for pydantic's validators; `place` begins the message."""
    message, remedy = f"{place}{error.message}", error.remedy or ""
    context = {
        "message": f"{message}; {remedy}" if remedy else message,
        "parts": (message, remedy),
        "values": dict(error.values),
    }
    return PydanticCustomError(error.code, "{message}", context)


def paths_in(section: Section) -> Iterator[str]:
    """Texts of a section and of those in it, some of which are paths: of files that it names, wherever it names them."""
    yield from _texts(section.model_dump())


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)
