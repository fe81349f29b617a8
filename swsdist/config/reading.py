"""Read the YAML of configs, with environment variables, and with the line of each value.

YAML 1.2; duplicate keys, tags, anchors and aliases are errors. A `Draft` collects all problems, for one error.
"""

from __future__ import annotations

import math
import numbers
import os
import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from swsdist.config.template import Place, dotted, shown
from swsdist.core.codes import Code, families, one_line
from swsdist.core.codes import config as codes
from swsdist.core.errors import ConfigError
from swsdist.registry.registry import Entry

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


_DOLLAR = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<other>:-[^}]*)?\})?")
_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True)
class Origin:
    """Where a value was given.

    Attributes:
        source: a file, a `--set`, or empty.
        base: folder that paths in the value are relative to.
        line: from 1; 0: none.
    """

    source: str
    base: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}" if self.line else self.source


@dataclass(frozen=True)
class Problem:
    """An error in a config.

    Attributes:
        origin: where the value was given.
        code: name of the error's code.
        message: as of the code.
        remedy: likewise.
        values: of message and remedy.
    """

    origin: Origin
    code: str
    message: str
    remedy: str
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass
class Draft:
    """Values before validation, the origin of each, and the problems found so far."""

    values: dict[str, object] = field(default_factory=dict)
    origins: dict[Place, Origin] = field(default_factory=dict)
    problems: dict[Place, list[Problem]] = field(default_factory=dict)

    def origin(self, place: Place) -> Origin:
        """The origin of the value at a place, or of the nearest value above it."""
        while place not in self.origins:
            place = place[:-1]
        return self.origins[place]

    def complain(self, place: Place, code: Code[ConfigError], origin: Origin | None = None, **values: object) -> None:
        """Note a problem at a place; `values` are those of the code's message and remedy."""
        message, remedy = code.text(**values)
        self.add(place, Problem(origin or self.origin(place), code.name, message, remedy, values))

    def add(self, place: Place, problem: Problem) -> None:
        """Note a problem at a place."""
        self.problems.setdefault(place, []).append(problem)

    def complain_of(self, place: Place, error: ErrorDetails) -> None:
        """Note an error of pydantic: of a code, with its values; another one with pydantic's message."""
        context = error.get("ctx", {})
        if "parts" in context:
            message, remedy = context["parts"]
            self.add(place, Problem(self.origin(place), error["type"], message, remedy, context["values"]))
        else:
            self.complain(place, codes.INVALID_SETTING, reason=error["msg"].removeprefix("Value error, "))

    def faulty(self, place: Place) -> bool:
        """Whether there is a problem at a place or above it."""
        return any(place[:depth] in self.problems for depth in range(len(place) + 1))

    def forget(self, place: Place) -> None:
        """Drop origins and problems at a place and below it, before it gets another value."""
        for records in (self.origins, self.problems):
            for below in [each for each in records if each[: len(place)] == place]:
                del records[below]

    def error(self, remedy: str) -> ConfigError:
        """One error of all problems: first those of files, in the order of their lines, then those of `--set`.

        Args:
            remedy: of several problems, and of one that has none.
        """
        problems = [(place, problem) for place, several in self.problems.items() for problem in several]
        files = list(dict.fromkeys(origin.source for origin in self.origins.values()))

        def order(item: tuple[Place, Problem]) -> tuple[bool, int, int]:
            origin = item[1].origin
            return origin.line == 0, files.index(origin.source) if origin.line else 0, origin.line

        problems.sort(key=order)
        if len(problems) == 1:
            ((place, problem),) = problems
            return codes.INVALID_CONFIG.error(
                _named(place, problem),
                where=str(problem.origin) or None,
                remedy=problem.remedy or remedy,
                code=problem.code,
                values={"key": dotted(place), **problem.values},
            )
        listing = "".join(f"\n  {_line(place, problem)}" for place, problem in problems)
        error = codes.INVALID_CONFIG(where=self.origins[()].source or "config", count=len(problems), listing=listing)
        error.remedy = remedy
        return error


def _named(place: Place, problem: Problem) -> str:
    """The message of a problem, with the name of its key where the origin does not have that."""
    name = dotted(place)
    evident = not name or place[0] == "--set" or str(problem.origin) in (f"--set {name}", f"--{name}")
    return problem.message if evident else f"{name}: {problem.message}"


def _line(place: Place, problem: Problem) -> str:
    """A problem in a list of several."""
    where = f"{problem.origin}: " if str(problem.origin) else ""
    return one_line(f"{where}{_named(place, problem)}", problem.remedy, problem.code)


def read(text: str, place: Place, draft: Draft, origin: Origin) -> object:
    """The value of a YAML text, with environment variables replaced; problems go to the draft. Empty text is None."""
    yaml = YAML(typ="safe", pure=True)
    try:
        node = yaml.compose(text)
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        draft.complain(place, codes.INVALID_YAML, _at(origin, line), reason=error.reason)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        context = f" {error.context}" if error.context else ""
        column = f" (column {mark.column + 1})" if mark else ""
        reason = f"{error.problem}{context}{column}"
        draft.complain(place, codes.INVALID_YAML, _at(origin, mark.line + 1 if mark else 1), reason=reason)
    except YAMLError as error:
        draft.complain(place, codes.INVALID_YAML, reason=str(error))
    except RecursionError:
        draft.complain(place, codes.INVALID_YAML, _at(origin, 1), reason="nested too deeply")
    else:
        return None if node is None else _value(node, place, draft, origin, yaml)
    return None


def _at(origin: Origin, line: int) -> Origin:
    """The origin at another line, if it has lines."""
    return Origin(origin.source, origin.base, line) if origin.line else origin


def _value(node: Node, place: Place, draft: Draft, origin: Origin, yaml: YAML) -> object:
    """The Python value of a node; None after a problem."""
    at_node = _at(origin, node.start_mark.line + 1)
    draft.origins.setdefault(place, at_node)
    if node.anchor:
        draft.complain(
            place,
            families.INVALID_YAML.saying("anchors and aliases (&{anchor}) are not allowed", "write the value out"),
            at_node,
            anchor=node.anchor,
        )
        return None
    plain = not getattr(node, "style", None)
    implicit = (
        yaml.resolver.resolve(type(node), node.value, (plain, not plain)) if isinstance(node, ScalarNode) else None
    )
    if node.tag != (implicit or _TAG + ("map" if isinstance(node, MappingNode) else "seq")):
        draft.complain(
            place,
            families.INVALID_YAML.saying("tags ({tag}) are not allowed", "remove the tag"),
            at_node,
            tag=str(node.tag).replace(_TAG, "!!"),
        )
        return None
    if isinstance(node, ScalarNode):
        return _scalar(node, place, draft, at_node, yaml)
    if isinstance(node, SequenceNode):
        return [_value(each, (*place, index), draft, origin, yaml) for index, each in enumerate(node.value)]
    values: dict[str, object] = {}
    for key, each in node.value:
        at_key = _at(origin, key.start_mark.line + 1)
        if not isinstance(key, ScalarNode) or key.tag != _TAG + "str" or key.anchor:
            text = key.value if isinstance(key, ScalarNode) else "a list or mapping"
            draft.complain(
                (*place, str(text)), families.INVALID_YAML.saying("a key must be plain text", "quote the key"), at_key
            )
        elif key.value in values:
            first = draft.origins[(*place, key.value)]
            earlier = f"; the first is in line {first.line}" if first.line else ""
            draft.complain(
                (*place, key.value),
                families.INVALID_YAML.saying("duplicate key{earlier}", "keep one of them"),
                at_key,
                earlier=earlier,
            )
        else:
            draft.origins[(*place, key.value)] = at_key
            values[key.value] = _value(each, (*place, key.value), draft, origin, yaml)
    return values


def _scalar(node: ScalarNode, place: Place, draft: Draft, origin: Origin, yaml: YAML) -> object:
    """A scalar's value, with environment variables replaced."""

    def replace(match: re.Match[str]) -> str:
        name, other = match["name"], match["other"]
        if match["dollar"]:
            return "$"
        if name is None:
            draft.complain(
                place,
                families.UNSET_VARIABLE.saying(
                    "single dollar sign", "write ${{NAME}} for a variable, $$ for a dollar sign"
                ),
                origin,
            )
            return ""
        value = os.environ.get(name)
        if other is not None:
            return value or other[2:]
        if value is None:
            draft.complain(
                place,
                families.UNSET_VARIABLE.saying(
                    "the environment variable {name} is not set", "set it, or write ${{{name}:-default}}"
                ),
                origin,
                name=name,
            )
        return value or ""

    text = _DOLLAR.sub(replace, node.value)
    if text != node.value and not node.style:
        node = ScalarNode(yaml.resolver.resolve(ScalarNode, text, (True, False)), text, node.start_mark, node.end_mark)
    if node.tag == _TAG + "null":
        return None
    if node.tag in (_TAG + "bool", _TAG + "int", _TAG + "float"):
        try:
            return _finite(yaml.constructor.construct_object(node), place, draft)
        except ValueError:  # thousands of digits
            return _finite(math.inf, place, draft)
    # Dates are YAML 1.1's: text in 1.2.
    return text


def plain(value: object, place: Place, draft: Draft) -> object:
    """A Python value in YAML's types; other types are problems."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, numbers.Integral):
        return _finite(int(value), place, draft)
    if isinstance(value, numbers.Real):
        return _finite(float(value), place, draft)
    if isinstance(value, Mapping):
        return {str(key): plain(each, (*place, str(key)), draft) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each, (*place, index), draft) for index, each in enumerate(value)]
    draft.complain(
        place,
        families.INVALID_VALUE.saying(
            "a config cannot hold a value of type {type}", "give text, a number, a list or a mapping"
        ),
        type=type(value).__name__,
    )
    return None


def _finite(value: object, place: Place, draft: Draft) -> object:
    """The value itself; infinity and NaN, which JSON lacks, and integers of more than 63 bits are problems even where the
    model fixes no type.
    """
    if isinstance(value, int | float) and not (
        math.isfinite(value) if isinstance(value, float) else abs(value) < 1 << 63
    ):
        draft.complain(
            place,
            families.INVALID_VALUE.saying("{value} is not allowed", "write a finite number of at most 63 bits"),
            value=shown(value),
        )
    return value


_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")

#: Reads a url. It is loaded on first use: a local config needs nothing of S3.
_FETCH = Entry("swsdist.io.compressed:read_all", 1)


def is_url(path: str) -> bool:
    """Whether a path is a url of any scheme."""
    return _URL.match(path) is not None


def text_of(path: str, what: str, hint: str = "") -> str:
    """The text of a file. S3's server and keys come from the environment, since no config is read yet.

    Args:
        path: local, or an `s3://` url.
        what: kind of file, for messages.
        hint: added to the remedy where the file cannot be read.

    Raises:
        ConfigError: the file cannot be read, or is not text in UTF-8.
        UserError, StorageError: the file is on S3 and cannot be read there.
    """
    try:
        if is_url(path):
            return cast(Callable[[str, str], bytes], _FETCH.load())(path, what).decode("utf-8-sig")
        return Path(path).read_text("utf-8-sig")
    except OSError as error:
        raise families.UNREADABLE_FILE(
            "cannot read the {what}: {reason}",
            "name a YAML file{hint}",
            where=path,
            what=what,
            reason=error.strerror,
            hint=hint,
        ) from error
    except UnicodeDecodeError as error:
        no_text = b"\0" in error.object
        raise (
            families.MALFORMED_FILE.of(ConfigError).saying(
                "this is no {what}, and no text: a recording, or another file of bytes",
                "name a {what}, or the folder of the recordings",
            )
            if no_text
            else families.MALFORMED_FILE.of(ConfigError).saying("the {what} is not UTF-8 text", "save it as UTF-8")
        )(where=path, what=what) from error


def folder_of(path: str) -> str:
    """The folder of a file: absolute, or a url."""
    return path.rpartition("/")[0] if is_url(path) else str(Path(path).absolute().parent)


def absolute(path: str, base: str) -> str:
    """A path as named by a file in the folder `base`, made absolute; `~` is the home folder on this machine."""
    if is_url(path):
        return path
    path = os.path.expanduser(path)  # noqa: PTH111 (pathlib raises for a user that it does not know)
    if is_url(base) and not path.startswith("/"):
        scheme, separator, root = base.partition("://")
        return scheme + separator + posixpath.normpath(f"{root}/{path}")
    return os.path.abspath(Path("/" if is_url(base) else base) / path)  # noqa: PTH100 (pathlib's would follow links)
