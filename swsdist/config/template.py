"""The model as text: the commented config of `swsdist init`, and docs/reference/config.md.

Both use the descriptions in the model. `python -m swsdist.config.template` prints the reference page.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from swsdist.config.model import Config
from swsdist.config.section import ChainOptions, Section
from swsdist.config.suggest import Key, allowed, is_one_or_more, keys, shown, words
from swsdist.registry.entries import Configured
from swsdist.registry.registries import CHAINS

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
