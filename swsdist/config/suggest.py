"""Facts about keys of the model: place, allowed values, close names for misspelt ones.

A place is the tuple of keys that leads to a value, with an int for an element of a list: ("report", "exports", 1) is
`report.exports[1]`. Error messages, the template and the reference page use these functions.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from swsdist.config.model import Config
from swsdist.config.section import ONE_OR_MORE, ChainOptions, NameIn, Section

Place = tuple[str | int, ...]

#: Text that YAML reads as itself, without quotes.
_PLAIN = re.compile(r"(?!(?:null|true|false)$)[a-z/][\w./:-]*(?<!:)", re.IGNORECASE)


@dataclass(frozen=True)
class Key:
    """A key of the model; `section` is the model of the keys below, None for a plain value."""

    place: tuple[str, ...]
    field: FieldInfo
    section: type[Section] | None

    @property
    def dotted(self) -> str:
        """The full name, for example `search.distance`."""
        return ".".join(self.place)

    @property
    def execution_only(self) -> bool:
        """Whether the key changes only how work is split or where it runs, never the results."""
        extra = self.field.json_schema_extra
        return isinstance(extra, dict) and bool(extra.get("execution_only"))


def keys(model: type[Section] = Config, place: tuple[str, ...] = ()) -> Iterator[Key]:
    """All keys of a model and its sections, in order."""
    for name, field in model.model_fields.items():
        section = section_of(field)
        yield Key((*place, name), field, section)
        if section and not issubclass(section, ChainOptions):  # that of another chain, which has its own place
            yield from keys(section, (*place, name))


def section_of(field: FieldInfo) -> type[Section] | None:
    """The model of a field that is a section, or a list that may be given as one; else None."""
    return item_of(field) if is_one_or_more(field) else _section(field.annotation)


def is_one_or_more(field: FieldInfo) -> bool:
    """Whether a field is a list of sections that may be given as one section."""
    return ONE_OR_MORE in field.metadata


def item_of(field: FieldInfo) -> type[Section] | None:
    """The model of the elements of a field that is a list of sections, else None."""
    return next((section for kind, _ in _kinds(field, element=True) if (section := _section(kind))), None)


def _section(kind: object) -> type[Section] | None:
    return kind if isinstance(kind, type) and issubclass(kind, Section) else None


def find(place: Place) -> tuple[type[Section] | None, FieldInfo | None, Place]:
    """The section of a place's last key, the key's field, and the place without parts below a plain value.

    The field is None if the section lacks the key; both are None for the empty place. An element of a list of sections belongs
    to the list's key, a key in it to the element's section. Below a plain value only indices of list elements are kept
    (pydantic also names the member of a union there).
    """
    section: type[Section] | None = None
    field: FieldInfo | None = None
    below: type[Section] | None = Config
    for depth, name in enumerate(place):
        item = item_of(field) if field and isinstance(name, int) else None
        if item:
            below = item
            continue
        if below is None:
            indices = tuple(part for part in place[depth:] if isinstance(part, int))
            return section, field, (*place[:depth], *indices)
        section, field = below, below.model_fields.get(str(name))
        below = section_of(field) if field else None
    return section, field, place


def dotted(place: Place) -> str:
    """A place in messages: `report.exports[1]`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return text.removeprefix(".")


def shown(value: object, limit: int | None = None) -> str:
    """A value as a config has it, cut to `limit` characters."""
    if isinstance(value, str):
        text = value if _PLAIN.fullmatch(value) else _quoted(value)
    elif isinstance(value, list | tuple):
        text = f"[{', '.join(shown(each) for each in value)}]"
    elif isinstance(value, dict):
        text = "{" + ", ".join(f"{shown(key)}: {shown(each)}" for key, each in value.items()) + "}"
    elif isinstance(value, float) and not math.isfinite(value):
        text = {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}[str(value)]
    else:
        text = json.dumps(value)
    return text if limit is None or len(text) <= limit else text[: limit - 3] + "..."


def _quoted(text: str) -> str:
    """Text in double quotes for JSON and YAML; invisible characters are escaped (U+0085 would be a line break)."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in quoted)


def is_path(field: FieldInfo) -> bool:
    """Whether a field holds a path (`IsPath`)."""
    return any("path" in marks for _, marks in _kinds(field, element=False))


def is_mapping(field: FieldInfo) -> bool:
    """Whether a field is a mapping with free keys."""
    return any(get_origin(kind) is dict for kind, _ in _kinds(field, element=False))


def words(field: FieldInfo, element: bool = False, index: int = 0) -> tuple[str, ...]:
    """The names that a field (with `element`: the element of its list at `index`) allows."""
    return tuple(
        word for kind, marks in _kinds(field, element, index) for word in (*_literals(kind), *_registered(marks))
    )


def allowed(field: FieldInfo, element: bool = False, index: int = 0) -> str:
    """The values that a field (with `element`: the element of its list at `index`) allows: `integer > 0 | null`."""
    return _either(_kinds(field, element, index))


def meant(key: str, section: type[Section], place: Place) -> list[str]:
    """Full names of keys that are close to an unknown `key` of the section at `place`, best first.

    First keys of the same name in other sections; else close names in this section; else close names anywhere.
    """
    by_name: dict[str, list[str]] = {}
    for other in keys():
        by_name.setdefault(other.place[-1], []).append(other.dotted)
    if key in by_name:
        return by_name[key]
    siblings = get_close_matches(key, section.model_fields, n=1)
    if siblings:
        return [dotted((*place, siblings[0]))]
    return [name for close in get_close_matches(key, by_name, n=1, cutoff=0.7) for name in by_name[close]]


def _kinds(field: FieldInfo, element: bool, index: int = 0) -> list[tuple[object, tuple[object, ...]]]:
    members = _members(field.annotation, tuple(field.metadata))
    if not element:
        return members
    lists = [kind for kind, _ in members if get_origin(kind) in (list, tuple)]
    return [each for kind in lists for each in _members(get_args(kind)[index if _is_fixed(kind) else 0])]


def _is_fixed(kind: object) -> bool:
    """Whether a list has a type for each of its elements, and so a length."""
    return get_origin(kind) is tuple and Ellipsis not in get_args(kind)


def _members(annotation: object, marks: tuple[object, ...] = ()) -> list[tuple[object, tuple[object, ...]]]:
    """The members of a union (or the one type), each with the marks that `Annotated` and `Field` put on it."""
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *extra = get_args(annotation)
        flat = [mark for each in extra for mark in (each.metadata if isinstance(each, FieldInfo) else [each])]
        return _members(inner, (*marks, *flat))
    if origin in (Union, UnionType):
        return [member for each in get_args(annotation) for member in _members(each, marks)]
    return [(annotation, marks)]


def _literals(kind: object) -> tuple[str, ...]:
    return get_args(kind) if get_origin(kind) is Literal else ()


def _registered(marks: tuple[object, ...]) -> tuple[str, ...]:
    return tuple(name for mark in marks if isinstance(mark, NameIn) for name in mark)


def _either(members: list[tuple[object, tuple[object, ...]]]) -> str:
    return " | ".join(_describe(*member) for member in members)


def _describe(kind: object, marks: tuple[object, ...]) -> str:
    origin = get_origin(kind)
    if origin is Literal:
        return " | ".join(get_args(kind))
    if _is_fixed(kind):
        return f"[{', '.join(_either(_members(each)) for each in get_args(kind))}]"
    if origin in (list, tuple):
        return f"list of {_either(_members(get_args(kind)[0]))}"
    if origin is dict:
        return "mapping"
    if section := _section(kind):
        return f"section with the keys {', '.join(section.model_fields)}"
    if names := _registered(marks):
        return " | ".join(names)
    if kind is str:
        return "path" if "path" in marks else "text"
    names_of: dict[object, str] = {NoneType: "null", bool: "true | false", int: "integer", float: "number"}
    name = names_of[kind]
    bounds = [
        f"{sign} {shown(bound)}"
        for mark in marks
        for attribute, sign in (("gt", ">"), ("ge", ">="), ("lt", "<"), ("le", "<="))
        if (bound := getattr(mark, attribute, None)) is not None
    ]
    return f"{name} {' and '.join(bounds)}" if bounds else name
