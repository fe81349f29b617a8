"""The YAML of configs: strict, with variables of the environment, and with the line of every value.

YAML 1.2; duplicate keys, tags, anchors and aliases are refused. What is wrong is noted in a
`Draft`, so that all of it can be told at once.
"""

from __future__ import annotations

import math
import numbers
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from swsdist.config.suggest import Place, shown

_DOLLAR = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<other>:-[^}]*)?\})?")
_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True)
class Origin:
    """Where a value was given: a file and line (from 1), a `--set`, or neither; and what its paths are relative to."""

    source: str
    base: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}" if self.line else self.source


@dataclass
class Draft:
    """Values before they are validated, where each was given, and what is known to be wrong with them."""

    values: dict[str, object] = field(default_factory=dict)
    origins: dict[Place, Origin] = field(default_factory=dict)
    problems: dict[Place, list[tuple[Origin, str]]] = field(default_factory=dict)

    def origin(self, place: Place) -> Origin:
        """Where the value at a place, or the nearest thing above it, was given."""
        while place not in self.origins:
            place = place[:-1]
        return self.origins[place]

    def complain(self, place: Place, text: str, origin: Origin | None = None) -> None:
        """Note that something is wrong at a place."""
        self.problems.setdefault(place, []).append((origin or self.origin(place), text))

    def faulty(self, place: Place) -> bool:
        """Whether something at or above a place is known to be wrong."""
        return any(place[:depth] in self.problems for depth in range(len(place) + 1))

    def forget(self, place: Place) -> None:
        """Drop what is known of a place and of all below it, because it gets another value."""
        for known in (self.origins, self.problems):
            for each in [each for each in known if each[: len(place)] == place]:
                del known[each]


def read(text: str, place: Place, draft: Draft, origin: Origin) -> object:
    """The value of a YAML text; what is wrong in it is noted in the draft. Empty text is None."""
    yaml = YAML(typ="safe", pure=True)
    try:
        node = yaml.compose(text)
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        draft.complain(place, f"not YAML: {error.reason}", _at(origin, line))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        context = f" {error.context}" if error.context else ""
        column = f" (column {mark.column + 1})" if mark else ""
        draft.complain(place, f"not YAML: {error.problem}{context}{column}", _at(origin, mark.line + 1 if mark else 1))
    except YAMLError as error:
        draft.complain(place, f"not YAML: {error}")
    except RecursionError:
        draft.complain(place, "it is nested too deeply", _at(origin, 1))
    else:
        return None if node is None else _value(node, place, draft, origin, yaml)
    return None


def _at(origin: Origin, line: int) -> Origin:
    """The same origin at another line, if it has lines."""
    return Origin(origin.source, origin.base, line) if origin.line else origin


def _value(node: Node, place: Place, draft: Draft, origin: Origin, yaml: YAML) -> object:
    """The plain Python value of a node, or None where something is wrong with it."""
    here = _at(origin, node.start_mark.line + 1)
    draft.origins.setdefault(place, here)
    if node.anchor:
        draft.complain(place, f"anchors and aliases (&{node.anchor}) are not allowed; write the value out", here)
        return None
    plain = not getattr(node, "style", None)
    implicit = (
        yaml.resolver.resolve(type(node), node.value, (plain, not plain)) if isinstance(node, ScalarNode) else None
    )
    if node.tag != (implicit or _TAG + ("map" if isinstance(node, MappingNode) else "seq")):
        draft.complain(place, f"tags ({node.tag.replace(_TAG, '!!')}) are not allowed", here)
        return None
    if isinstance(node, ScalarNode):
        return _scalar(node, place, draft, here, yaml)
    if isinstance(node, SequenceNode):
        return [_value(each, (*place, index), draft, origin, yaml) for index, each in enumerate(node.value)]
    values: dict[str, object] = {}
    for key, each in node.value:
        there = _at(origin, key.start_mark.line + 1)
        if not isinstance(key, ScalarNode) or key.tag != _TAG + "str" or key.anchor:
            text = key.value if isinstance(key, ScalarNode) else "a list or mapping"
            draft.complain((*place, str(text)), "a key must be plain text; quote it", there)
        elif key.value in values:
            first = draft.origins[(*place, key.value)]
            earlier = f"; the first is in line {first.line}" if first.line else ""
            draft.complain((*place, key.value), f"given twice{earlier}", there)
        else:
            draft.origins[(*place, key.value)] = there
            values[key.value] = _value(each, (*place, key.value), draft, origin, yaml)
    return values


def _scalar(node: ScalarNode, place: Place, draft: Draft, origin: Origin, yaml: YAML) -> object:
    """A scalar's value, with variables of the environment put in."""

    def replace(match: re.Match[str]) -> str:
        name, other = match["name"], match["other"]
        if match["dollar"]:
            return "$"
        if name is None:
            draft.complain(place, "a single $; write ${NAME} for a variable, $$ for a dollar sign", origin)
            return ""
        value = os.environ.get(name)
        if other is not None:
            return value or other[2:]
        if value is None:
            draft.complain(
                place, f"the environment variable {name} is not set; set it, or write ${{{name}:-default}}", origin
            )
        return value or ""

    text = _DOLLAR.sub(replace, node.value)
    if text != node.value and not node.style:
        node = ScalarNode(yaml.resolver.resolve(ScalarNode, text, (True, False)), text, node.start_mark, node.end_mark)
    if node.tag == _TAG + "null":
        return None
    if node.tag in (_TAG + "bool", _TAG + "int", _TAG + "float"):
        return _finite(yaml.constructor.construct_object(node), place, draft)
    # Dates and the like are YAML 1.1's; here they are text.
    return text


def plain(value: object, place: Place, draft: Draft) -> object:
    """A Python value made of nothing but what YAML has."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return _finite(float(value), place, draft)
    if isinstance(value, Mapping):
        return {str(key): plain(each, (*place, str(key)), draft) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each, (*place, index), draft) for index, each in enumerate(value)]
    draft.complain(place, f"a config holds no {type(value).__name__}")
    return None


def _finite(value: object, place: Place, draft: Draft) -> object:
    """A number as it is; infinity and NaN, which JSON lacks, are errors even where the model fixes no type."""
    if isinstance(value, float) and not math.isfinite(value):
        draft.complain(place, f"{shown(value)} is not allowed; numbers here are finite")
    return value
