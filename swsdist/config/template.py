"""The model written out for people: the commented config of `swsdist init`, and docs/reference/config.md.

Both are made from the descriptions in model.py. `python -m swsdist.config.template` prints the reference page.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

from swsdist.config.suggest import Key, allowed, keys, shown, words

#: What stands for values that only the user knows.
PLACEHOLDERS: Mapping[str, object] = {
    "run": "runs/first",
    "corpus.documents": "docs.csv",
    "corpus.queries": "queries.csv",
}

_TEMPLATE_HEAD = """\
# What `swsdist run` does. A line `#key: value` shows a default: take the # away to change it. Paths are relative to
# this file's folder; s3:// is allowed. ${NAME} is taken from the environment, ${NAME:-other} where it may be unset.
# Keys marked (execution-only) change how the work is cut or where it runs, never what comes out.
"""

_REFERENCE_HEAD = """\
# The config

<!-- Made by `python -m swsdist.config.template` from swsdist/config/model.py. -->

A run is told what to do by one YAML file: `swsdist run my.yaml`. `swsdist init` writes one that shows every key. Only
`run` and `corpus.documents` must be given.

- The YAML is 1.2 (`yes` is text, `012` is twelve) and strict: unknown and duplicate keys, tags, anchors and aliases are
  errors, and so is a number in quotes. All errors are told at once, each with its line.
- Paths are relative to the folder of the config. `~` is the home folder; urls such as `s3://bucket/run` stay.
- `corpus:` is a section, or the path of a [corpus file](../how-to/keep-a-corpus-apart.md); and so is `corpus.queries_from`.
- `${NAME}` in a value is the environment's `NAME`; `${NAME:-other}` is `other` where it is unset or empty; `$$` is a
  dollar sign.
- `--set search.distance=cosine-squared` wins over the file. Its value is YAML (`--set report.exports='[csv]'`,
  `--set executor.workers=null`, `--set storage.endpoint_url=http://localhost:9000`); its paths are relative to the
  working directory.
- A section that is left out, or left empty, has its defaults. `null` stands for "not given".

A key marked **execution-only** changes how the work is cut or where it runs, never what comes out: change it, and what is
already computed is still good.
"""


def template(values: Mapping[str, object] = PLACEHOLDERS) -> str:
    """A config with every section and key, commented.

    Args:
        values: by full name (`corpus.documents`), what stands uncommented; all other keys show their defaults.
    """
    lines = [_TEMPLATE_HEAD.rstrip()]
    for key in keys():
        indent = "  " * (len(key.place) - 1)
        mark = "(execution-only) " if key.effort else ""
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
    """The text of docs/reference/config.md: a table a section."""
    lines = [_REFERENCE_HEAD.rstrip()]
    for title, meaning, below in _sections():
        lines += ["", f"## {title}", "", meaning, "", "| key | may be | default | meaning |", "|---|---|---|---|"]
        lines += [_row(key) for key in below]
    return "\n".join(lines) + "\n"


def _sections() -> Iterator[tuple[str, str, list[Key]]]:
    """Title, meaning and keys of the plain keys at the top, then of every section."""
    everything = list(keys())
    yield "Top level", "Beside the sections below:", [k for k in everything if len(k.place) == 1 and not k.section]
    for key in everything:
        if key.section:
            below = [k for k in everything if k.place[:-1] == key.place]
            yield f"`{key.dotted}`", _meaning(key), below


def _meaning(key: Key) -> str:
    text = key.field.description or (key.section.__doc__ if key.section else None)
    if not text:
        raise TypeError(f"the model says nothing of {key.dotted}")
    return text.strip().splitlines()[0]


def _row(key: Key) -> str:
    name = f"`{key.place[-1]}`{' **execution-only**' if key.effort else ''}"
    kind, default = ("section", "below") if key.section else (f"`{allowed(key.field)}`", f"`{_default(key)}`")
    cells = [name, kind, "must be given" if key.field.is_required() else default, _meaning(key)]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _default(key: Key) -> str:
    return "" if key.field.is_required() else shown(key.field.get_default(call_default_factory=True))


if __name__ == "__main__":
    print(reference(), end="")
