"""The model as text: facts about its keys, the commented config of `swsdist init`, and docs/reference/config.md.

Both use the descriptions in the model. `python -m swsdist.config.template` prints the reference page.

**Keys**: place, allowed values, close names for misspelt ones. A place is the tuple of keys that leads to a value,
with an int for an element of a list: ("report", "exports", 1) is `report.exports[1]`. Error messages, the template
and the reference page use these functions.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from swsdist.config.model import Config
from swsdist.config.section import ONE_OR_MORE, ChainOptions, NameIn, Section
from swsdist.registry.entries import Configured
from swsdist.registry.registries import CHAINS

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


#: Values of the keys that the template sets.
PLACEHOLDERS: Mapping[str, object] = {
    "run": "runs/first",
    "corpus.documents": "docs.csv",
    "corpus.queries": "queries.csv",
}

_TEMPLATE_HEAD = """\
# Config of `swsdist run`. A line `#key: value` shows a default: remove the # to change it. Paths are relative to the
# folder of this file; s3:// is allowed. ${NAME} is an environment variable, ${NAME:-other} has a default.
# (execution-only) keys change how work is split or where it runs, never the results.
"""

_REFERENCE_HEAD = """\
# The config

<!-- Generated from swsdist/config/model.py: make docs -->

A YAML file sets up a run: `swsdist run my.yaml`. `swsdist init` writes a config with every key. Required are `run` and
`corpus.documents`.

- YAML 1.2 (`yes` is text, `012` is twelve), strict: unknown and duplicate keys, tags, anchors, aliases and quoted numbers are
  errors. One error lists all of them, with line and [code](codes.md#config).
- Paths are relative to the folder of the config; `~` is the home folder; urls such as `s3://bucket/run` are kept.
- `corpus` is a section, or the path of a [corpus file](../how-to/keep-a-corpus-apart.md); so is `corpus.queries_from`.
- `${NAME}` is an environment variable, `${NAME:-other}` has a default, `$$` is a dollar sign.
- `--set search.distance=cosine-squared` wins over the file. The value is YAML (`--set report.exports='[csv]'`,
  `--set executor.workers=null`); its paths are relative to the working directory.
- A missing or empty section has its defaults. `null`: not set.

**Execution-only** keys change how work is split or where it runs, never the results: finished work stays valid.
"""


def template(values: Mapping[str, object] = PLACEHOLDERS) -> str:
    """A config with every section and key, commented.

    Args:
        values: by full name (`corpus.documents`), of uncommented keys; all other keys show their defaults.
    """
    lines = [_TEMPLATE_HEAD.rstrip()]
    for key in keys():
        indent = "  " * (len(key.place) - 1)
        mark = "(execution-only) " if key.execution_only else ""
        choices = f" [{allowed(key.field)}]" if words(key.field) else ""
        if len(key.place) == 1:
            lines.append("")
        lines += textwrap.wrap(
            f"{mark}{_meaning(key)}{choices}", 120, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}#   "
        )
        name = key.place[-1]
        if key.section:
            lines.append(f"{indent}{name}:")
        elif key.dotted in values:
            lines.append(f"{indent}{name}: {shown(values[key.dotted]).replace('$', '$$')}")
        else:
            lines.append(f"{indent}#{name}: {_default(key)}")
    return "\n".join(lines) + "\n"


def reference() -> str:
    """The text of docs/reference/config.md: a list for each section."""
    lines = [_REFERENCE_HEAD.rstrip()]
    for title, meaning, below in (*_sections(), *_chains()):
        lines += ["", f"## {title}", "", *([meaning, ""] if meaning else []), *map(_item, below)]
    return "\n".join(lines) + "\n"


def _sections() -> Iterator[tuple[str, str, list[Key]]]:
    """Title, meaning and keys: of the top level, then of every section."""
    everything = list(keys())
    yield "Top level", "", [key for key in everything if len(key.place) == 1 and not key.section]
    yield from _below(everything)


def _chains() -> Iterator[tuple[str, str, list[Key]]]:
    """The same of the options of each chain whose model is a section."""
    for name in CHAINS:
        model = _model(name)
        if model is not None and issubclass(model, Section):
            everything = list(keys(model, ("options",)))
            yield f"`options` of the chain `{name}`", "", [key for key in everything if len(key.place) == 2]
            yield from _below(everything)
            for key in everything:
                registry: Any = key.section.registry if key.section else None
                for entry in registry or ():  # whose options are sections, too
                    place = (*key.place, "options")
                    yield f"`{'.'.join(place)}` of `{entry}`", "", list(keys(registry[entry].model(), place))


def _model(chain: str) -> type | None:
    """The model of a chain's options."""
    entry = CHAINS[chain]
    return entry.model() if isinstance(entry, Configured) else None


def _below(everything: list[Key]) -> Iterator[tuple[str, str, list[Key]]]:
    for section in everything:
        if section.section and not issubclass(section.section, ChainOptions):
            below = [key for key in everything if key.place[:-1] == section.place]
            yield f"`{section.dotted}`", _meaning(section), below


def _meaning(key: Key) -> str:
    text = key.field.description or (key.section.__doc__ if key.section else None)
    if not text:
        raise TypeError(f"{key.dotted} has no description")
    return text.strip().splitlines()[0]


def _item(key: Key) -> str:
    mark = " **execution-only**" if key.execution_only else ""
    if key.section and issubclass(key.section, ChainOptions):
        (chain,) = (name for name in CHAINS if issubclass(key.section, _model(name) or str))
        anchor = f"options-of-the-chain-{chain}"
        return f"- `{key.place[-1]}`{mark}: {_meaning(key)}; [options of the chain `{chain}`](#{anchor})"
    if key.section:
        return f"- `{key.place[-1]}`{mark}: section [below](#{key.dotted.replace('.', '')})"
    default = "required" if key.field.is_required() else f"`{_default(key)}`"
    return f"- `{key.place[-1]}`{mark} (`{allowed(key.field)}`; {default}): {_meaning(key)}"


def _default(key: Key) -> str:
    return "" if key.field.is_required() else shown(key.field.get_default(call_default_factory=True))


if __name__ == "__main__":
    print(reference(), end="")


#: Options of s3fs and its clients that hold no secret; all others may.
_NOT_SECRET: dict[str, object] = {
    **dict.fromkeys(("anon", "endpoint_url", "use_ssl", "requester_pays", "version_aware", "cache_regions"), True),
    **dict.fromkeys(("default_block_size", "default_fill_cache", "max_concurrency", "fixed_upload_size"), True),
    "client_kwargs": dict.fromkeys(("endpoint_url", "region_name", "api_version", "use_ssl", "verify"), True),
    "config_kwargs": {
        **dict.fromkeys(("region_name", "signature_version", "connect_timeout", "read_timeout"), True),
        "max_pool_connections": True,
        "retries": {"max_attempts": True, "total_max_attempts": True, "mode": True},
        "s3": {"addressing_style": True, "payload_signing_enabled": True, "use_accelerate_endpoint": True},
    },
    "s3_additional_kwargs": dict.fromkeys(("ACL", "ServerSideEncryption", "StorageClass", "RequestPayer"), True),
}
#: A name and password in a URL.
_USER_INFO = re.compile(r"(\w+://)[^/@]*@")


def without_secrets(config: Config) -> Config:
    """The config without parts of `storage` that may hold a secret, for files that people pass on.

    Readers of such a file have keys and tokens in the environment, where S3 clients look for them.
    """

    def kept(values: Mapping[str, object], allowed: Mapping[str, object]) -> dict[str, object]:
        result: dict[str, object] = {}
        for name, value in values.items():
            inner = allowed.get(name)
            if isinstance(inner, Mapping) and isinstance(value, Mapping):
                result[name] = kept(value, inner)
            elif inner is True and isinstance(value, bool | int | float | str):
                result[name] = _USER_INFO.sub(r"\1", value) if isinstance(value, str) else value
        return result

    return config.model_copy(update={"storage": kept(config.storage, _NOT_SECRET)})


def dump_config(config: Config) -> str:
    """A config as YAML with every key; `load_config` reads the same config from it, in any folder."""
    # ruamel's emitter does not preserve text with U+0085.
    values = config.model_dump(mode="json")
    for name, field in Config.model_fields.items():
        if is_one_or_more(field) and len(values[name]) == 1:
            (values[name],) = values[name]
    return "".join(f"{line}\n" for line in _lines({name: _escape(value) for name, value in values.items()}))


def _escape(value: object) -> object:
    """The value with every dollar sign doubled, as the loader expects."""
    if isinstance(value, str):
        return value.replace("$", "$$")
    if isinstance(value, dict):
        return {key: _escape(each) for key, each in value.items()}
    return [_escape(each) for each in value] if isinstance(value, list) else value


def _lines(values: Mapping[str, object], indent: str = "") -> Iterator[str]:
    """A mapping in block style; lists and their contents in flow style."""
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield f"{indent}{shown(key)}:"
            yield from _lines(value, f"{indent}  ")
        else:
            yield f"{indent}{shown(key)}: {shown(value)}"
