"""From a YAML file to a `Config`, with errors that say where and what was meant.

The YAML is 1.2 and strict: duplicate keys, tags, anchors and aliases are refused. All that is wrong with a config is
found before anything is raised, and told in one `ConfigError`, a line each:

    my.yaml:12: search.distnace: no such key; did you mean search.distance? Allowed here: distance, normalise, ...

- `${NAME}` in a value is the environment's NAME, `${NAME:-other}` is `other` where NAME is unset or empty, `$$` is a
  dollar sign. A plain value is read as if the result stood in the file (`workers: ${N}` is a number); a quoted one
  stays text.
- Paths are relative to the config's folder, those of `--set` to the working directory. Urls (s3://...) stay.
- A section, or a mapping such as `storage`, that is left empty is as good as absent.
"""

from __future__ import annotations

import json
import math
import numbers
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from swsdist.config.model import Config, Section
from swsdist.config.suggest import (
    Place,
    allowed,
    closest,
    dotted,
    find,
    is_mapping,
    is_path,
    keys,
    meant,
    section_of,
    shown,
    words,
)
from swsdist.errors import ConfigError

REMEDY = "`swsdist init` writes a config that shows every key; docs/reference/config.md lists them"

_DOLLAR = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<other>:-[^}]*)?\})?")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_TAG = "tag:yaml.org,2002:"


#: Names of options for S3 whose values are nobody else's business.
_SECRET = re.compile(r"(?i)(^|_)key($|_)|secret|token|password")


@dataclass(frozen=True)
class Origin:
    """Where a value was given: a file and line (from 1), a `--set`, or neither; and what its paths are relative to."""

    source: str
    base: Path
    line: int = 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}" if self.line else self.source


@dataclass
class Draft:
    """Values before they are validated, where each was given, and what is known to be wrong with them."""

    values: dict[str, Any] = field(default_factory=dict)
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


def load_config(path: str | Path, sets: Sequence[str] = ()) -> Config:
    """Read, check and complete a config file.

    Args:
        path: the YAML file.
        sets: `a.b=value` each, with a value in YAML; they win over the file, the later over the earlier.

    Raises:
        ConfigError: the file cannot be read, or something in it or in `sets` is wrong; all of it is listed.
    """
    draft = Draft(origins={(): Origin(str(path), Path(path).absolute().parent, line=1)})
    try:
        text = Path(path).read_text("utf-8-sig")
    except OSError as error:
        raise ConfigError(
            f"cannot read the config: {error.strerror}",
            where=str(path),
            remedy="`swsdist init` writes one to begin with",
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError("the config is not UTF-8 text", where=str(path), remedy="save it as UTF-8") from error
    values = _read(text, (), draft, draft.origins[()])
    if isinstance(values, dict):
        draft.values = values
    elif values is not None:
        draft.complain((), "a config is a mapping of keys to values")
    return _finish(draft, sets)


def config_from_dict(values: Mapping[str, Any], base: str | Path = ".", sets: Sequence[str] = ()) -> Config:
    """The same from Python values. `${NAME}` is not special in them, and path objects may stand for paths.

    Args:
        values: as the YAML file would hold them.
        base: folder that paths in `values` are relative to.
        sets: as for `load_config`.

    Raises:
        ConfigError: something in `values` or `sets` is wrong; all of it is listed.
    """
    draft = Draft(origins={(): Origin("", Path(base).absolute())})
    draft.values = _plain(dict(values), (), draft)
    return _finish(draft, sets)


def section_values(sets: Sequence[str], section: str) -> dict[str, Any]:
    """What `sets` say of one section, nested, values read as YAML; not yet checked against the model.

    Args:
        sets: `section.a.b=value` each; the section may be left out.
        section: its name.

    Raises:
        ConfigError: one is no KEY=VALUE, or its value is not YAML; all that is wrong is listed.
    """
    draft = Draft(origins={(): Origin("", Path.cwd())})
    for one in sets:
        _set(one if one.startswith(f"{section}.") else f"{section}.{one}", draft)
    if draft.problems:
        raise _error(draft)
    found: dict[str, Any] = draft.values.get(section, {})
    return found


def without_secrets(config: Config) -> Config:
    """The same config without the keys, tokens and passwords in `storage`, for files that people pass on.

    Whoever reads such a file back has them in the environment, where S3 clients look for them.
    """

    def kept(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {name: kept(one) for name, one in value.items() if not _SECRET.search(str(name))}

    return config.model_copy(update={"storage": kept(config.storage)})


def dump_config(config: Config) -> str:
    """A config as YAML, every key written out; `load_config` reads the same config from it, wherever it lies."""
    # Not ruamel's emitter: what it writes for text with U+0085 is read back as other text.
    return "".join(f"{line}\n" for line in _lines(_escape(config.model_dump(mode="json"))))


def _read(text: str, place: Place, draft: Draft, origin: Origin) -> Any:
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
    else:
        return None if node is None else _value(node, place, draft, origin, yaml)
    return None


def _at(origin: Origin, line: int) -> Origin:
    """The same origin at another line, if it has lines."""
    return Origin(origin.source, origin.base, line) if origin.line else origin


def _value(node: Node, place: Place, draft: Draft, origin: Origin, yaml: YAML) -> Any:
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
    values: dict[str, Any] = {}
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


def _scalar(node: ScalarNode, place: Place, draft: Draft, origin: Origin, yaml: YAML) -> Any:
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


def _plain(value: Any, place: Place, draft: Draft) -> Any:
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
        return {str(key): _plain(each, (*place, str(key)), draft) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, (*place, index), draft) for index, each in enumerate(value)]
    draft.complain(place, f"a config holds no {type(value).__name__}")
    return None


def _finite(value: Any, place: Place, draft: Draft) -> Any:
    """A number as it is; infinity and NaN, which JSON lacks, are errors even where the model fixes no type."""
    if isinstance(value, float) and not math.isfinite(value):
        draft.complain(place, f"{shown(value)} is not allowed; numbers here are finite")
    return value


def _escape(value: Any) -> Any:
    """The same value with every dollar sign doubled, so that it is read back as itself."""
    if isinstance(value, str):
        return value.replace("$", "$$")
    if isinstance(value, dict):
        return {key: _escape(each) for key, each in value.items()}
    return [_escape(each) for each in value] if isinstance(value, list) else value


def _lines(values: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """A mapping in block style; lists, and what lies in them, in flow style."""
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield f"{indent}{shown(key)}:"
            yield from _lines(value, f"{indent}  ")
        else:
            yield f"{indent}{shown(key)}: {shown(value)}"


def _set(assignment: str, draft: Draft) -> None:
    """Put one `a.b=value` into the draft."""
    name, equals, text = assignment.partition("=")
    name = name.strip()
    origin = Origin(f"--set {name}", Path.cwd())
    place: Place = tuple(name.split("."))
    if not equals or not all(place):
        draft.complain(("--set", assignment), "must be KEY=VALUE, for example search.distance=cosine", origin)
        return
    section = draft.values
    for depth, part in enumerate(place[:-1], start=1):
        below = section.get(str(part))
        if below is None:
            below = section[str(part)] = {}
            draft.origins.setdefault(place[:depth], origin)
        elif not isinstance(below, dict):
            draft.complain(place, f"{dotted(place[:depth])} is {shown(below, 40)} and has no keys", origin)
            return
        section = below
    draft.forget(place)
    draft.origins[place] = origin
    section[str(place[-1])] = _read(text, place, draft, origin)


def _finish(draft: Draft, sets: Sequence[str]) -> Config:
    """Put the `sets` in, make paths absolute, validate; raise with all that is wrong."""
    for assignment in sets:
        _set(assignment, draft)
    try:
        # Strict, or "yes" and 1 would be true; by way of JSON, for a strict tuple takes no list.
        config = Config.model_validate_json(json.dumps(_settle(draft.values, Config, (), draft)), strict=True)
    except ValidationError as error:
        for each in error.errors(include_url=False):
            _, _, place = find(each["loc"])
            if not draft.faulty(place):
                draft.complain(place, _explain(each["type"], each["msg"], each["input"], place))
        raise _error(draft) from None
    if draft.problems:
        raise _error(draft)
    return config


def _settle(values: dict[str, Any], model: type[Section], place: Place, draft: Draft) -> dict[str, Any]:
    """Values with paths made absolute and empty sections and mappings made real ones."""
    settled = dict(values)
    for name, known in model.model_fields.items():
        if name not in values:
            continue
        value, here = values[name], (*place, name)
        section = section_of(known)
        if value is None and (section or is_mapping(known)):
            settled[name] = {}
        elif section and isinstance(value, dict):
            settled[name] = _settle(value, section, here, draft)
        elif is_path(known) and isinstance(value, str) and value and value not in words(known):
            word = closest(value, words(known))
            if word and re.fullmatch(r"[\w-]+", value):
                draft.complain(here, f"did you mean {word}? If it is a file, write ./{value}")
            settled[name] = _absolute(value, draft.origin(here).base)
    return settled


def _absolute(path: str, base: Path) -> str:
    # pathlib would follow links, and raise for a user that it does not know.
    return path if _URL.match(path) else os.path.abspath(base / os.path.expanduser(path))  # noqa: PTH100, PTH111


def _explain(kind: str, message: str, value: Any, place: Place) -> str:
    """What is wrong at a place, in the model's own words. `kind` and `message` are pydantic's."""
    section, known, _ = find(place)
    last = place[-1] if place else ""
    element, index = (True, last) if isinstance(last, int) else (False, 0)
    if kind == "extra_forbidden" and section:
        name = str(last)
        here = f"Allowed here: {', '.join(section.model_fields)}"
        if name in {key.dotted for key in keys()}:
            return f"no such key; a dotted name is for --set, in a file keys are nested. {here}"
        guesses = " or ".join(meant(name, section, place[:-1]))
        return f"no such key; did you mean {guesses}? {here}" if guesses else f"no such key. {here}"
    if known is None or kind in ("value_error", "assertion_error"):
        return message.removeprefix("Value error, ")
    may_be = allowed(known, element, index)
    if kind == "missing":
        return f"missing; it must be given: {may_be}{f' ({known.description})' if known.description else ''}"
    word = closest(value, words(known, element, index)) if isinstance(value, str) else None
    guess = f"did you mean {word}? Allowed" if word else "allowed"
    quote = isinstance(value, bool | int | float) and may_be.startswith(("text", "path"))
    return f"{shown(value, 60)} is not allowed; {guess}: {may_be}{' (quote it)' if quote else ''}"


def _error(draft: Draft) -> ConfigError:
    """One error of all problems, in the order of the file's lines, then of the `--set`s."""
    problems = [(origin, place, text) for place, found in draft.problems.items() for origin, text in found]
    problems.sort(key=lambda each: (each[0].line == 0, each[0].line))
    lines = []
    for origin, place, text in problems:
        name = dotted(place)
        named = not name or place[0] == "--set" or str(origin) == f"--set {name}"
        lines.append((str(origin), text if named else f"{name}: {text}"))
    if len(lines) == 1:
        where, text = lines[0]
        return ConfigError(text, where=where or None, remedy=REMEDY)
    listing = "".join(f"\n  {f'{where}: ' if where else ''}{text}" for where, text in lines)
    return ConfigError(f"{len(lines)} errors{listing}", where=draft.origins[()].source or "config", remedy=REMEDY)
