"""docs/reference/commands.md, from click's help."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterator

import click

from swsdist.cli.main import cli
from swsdist.registry.registries import COMMANDS

_HEAD = """\
# Commands

<!-- Generated from swsdist/cli: make docs -->

CONFIG is a YAML file ([keys](config.md)), RUN a run folder, STORE a feature store. RUN and STORE may be `s3://` urls. `swsdist
COMMAND --help` says the same as this page.

- Results go to standard output, progress and warnings to standard error. Data for programs (`--csv`, `--json`) is UTF-8.
- The ending of an output file chooses its format: pictures `.svg`, `.pdf`, `.png` (the last two need the extra `figures`),
  tables `.csv`, `.tex`, `.md`, `.json`. An unknown ending is an error before any work.
- No command overwrites a file that it reads, or a file of the run or store that it reads.
- Errors, warnings and rejections end with their [code](codes.md) in brackets.

Tab completion for bash, in `~/.bashrc` (or `zsh_source`, `fish_source`):

```text
eval "$(_SWSDIST_COMPLETE=bash_source swsdist)"
```

## Common options
"""

_EXIT_CODES = """\
## Exit codes

| code | meaning |
|---|---|
| 0 | done |
| 1 | a bug in swsdist, with a traceback |
| 2 | an error in the command, config or environment; a disk or server fails |
| 3 | broken data |
| 4 | finished, but tasks failed or queries were skipped; with `--strict`: warnings or rejected inputs |
| 5 | implausible inputs; finished work is kept, `--force` continues |
| 130, 143 | interrupted; terminated or cancelled |

Inputs are implausible (exit code 5) beyond these limits; below them there is a warning:

- more than two rejected documents, or query examples, and more than a tenth of them;
- half of the durations in the document table contradict the audio;
- half of the references end after their recording;
- half of the references or detections name unknown documents or queries;
- ten or more documents of a store are gone from the corpus, and more than half of them (`most-are-gone`);
- median lengths of detections and references differ a hundredfold;
- fused systems share less than nine tenths of their documents or queries.
"""

#: Examples, by command; tests run them.
_EXAMPLES = {
    "run": "swsdist run demo/config.yaml --dry-run",
    "search": """\
swsdist search demo/run/store --query demo/corpus/queries/q002_1.wav --top 3 --set search.distance=cosine-squared
swsdist search demo/run --word q001 --query demo/corpus/queries/q001_1.wav --query d003:1.11-1.70 --top 3
swsdist search demo/run --query demo/corpus/queries/q002_1.wav --top 3 --html q002.html --clips q002""",
    "report": "swsdist report demo/run --det det.svg --table results.tex",
    "status": "swsdist status demo/run --json",
    "paper figure": "swsdist paper figure det.svg det.pdf",
    "paper table": "swsdist paper table demo/run/exports/detections.csv best.md --columns query_id=query,score --first 5",
    "store rejected": "swsdist store rejected demo/run --csv",
    "store import": """\
mkdir frames
swsdist store cat demo/run/store d001 --npy frames/d001.npy
swsdist store import imported frames --shift 0.01 --dimension 39""",
}

#: Common options that most of these commands take.
_GROUPS = {
    "Run options": ("--corpus", "--run", "--set", "--strict", "--force", "--all", "--dry-run", "--allow-commands"),
    "Scoring options": ("--ecf", "--rttm", "--ctm", "--terms", "--references", "--seconds", "--protocol", "--beta"),
}

#: Endings of files that the page lists once.
_KINDS = {
    ": .csv, .tex, .md or .json": " (table)",
    ": .svg, .pdf, .png; points:": " (picture, or points:",
    ": .svg, .pdf, .png": " (picture)",
}

#: An option with the same help in at least this many commands is described once.
_COMMON = 3


def all_commands() -> dict[str, click.Command]:
    """The commands by name, those of groups as `store info`."""
    context = click.Context(cli)
    commands: dict[str, click.Command] = {}
    for name in COMMANDS.available:
        command = cli.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            commands |= {f"{name} {part}": below for part, below in command.commands.items()}
        else:
            commands[name] = command
    return commands


def page() -> str:
    """The text of the page."""
    commands = all_commands()
    uses = Counter(_key(option) for command in commands.values() for option in _options(command))
    common = {
        _key(option): _item(option)
        for command in commands.values()
        for option in _options(command)
        if uses[_key(option)] >= _COMMON
    }
    lines = [_HEAD]
    for title, names in _GROUPS.items():
        items = [next(item for (name, _), item in common.items() if name == member) for member in names]
        lines += ["", f"### {title}", "", _block(items)]
    grouped = {name for names in _GROUPS.values() for name in names}
    lines += ["", "### Others", "", _block([item for (name, _), item in common.items() if name not in grouped])]
    shown = set(common)
    for name, command in commands.items():
        lines += ["", f"## {name}", "", *_section(name, command, shown)]
    return "\n".join([*lines, "", _EXIT_CODES])


def _section(name: str, command: click.Command, common: set[tuple[str, str]]) -> Iterator[str]:
    arguments = " ".join(_metavar(param) for param in command.params if isinstance(param, click.Argument))
    text = re.sub(
        r"\n\n\x08\nswsdist .*", "", inspect.cleandoc(command.help or ""), flags=re.S
    )  # --help has these examples
    first, _, rest = text.partition("\n")
    yield f"`swsdist {f'{name} {arguments}'.strip()}`: {first[0].lower() + first[1:] if first[1:2].islower() else first}"
    for paragraph in filter(None, (part.strip("\n") for part in rest.split("\n\n"))):
        yield ""
        if paragraph.startswith("\b"):
            yield f"```text\n{paragraph[1:].strip()}\n```"
        else:
            yield paragraph
    if own := [_item(option) for option in _options(command) if _key(option) not in common]:
        yield f"\n{_block(own)}"
    names = [_long(option) for option in _options(command) if _key(option) in common]
    groups = [(title, members) for title, members in _GROUPS.items() if set(members) <= set(names)]
    grouped = {name for _, members in groups for name in members}
    also = [f"[{title.lower()}](#{title.lower().replace(' ', '-')})" for title, _ in groups]
    also += [f"`{name}`" for name in names if name not in grouped]
    if also:
        yield f"\nAlso: {', '.join(also)}."
    if name in _EXAMPLES:
        yield f"\n```bash\n{_EXAMPLES[name]}\n```"


def _options(command: click.Command) -> list[click.Option]:
    return [param for param in command.params if isinstance(param, click.Option)]


def _key(option: click.Option) -> tuple[str, str]:
    return _long(option), option.help or ""


def _long(option: click.Option) -> str:
    """The name of an option: the long one, if there is one."""
    return next((name for name in option.opts if name.startswith("--")), option.opts[0])


def _block(items: list[tuple[str, str]]) -> str:
    """Options and their meanings, in two columns."""
    width = min(34, max(len(names) for names, _ in items))
    return "\n".join(["```text", *(f"{names:<{width}}  {text}".rstrip() for names, text in items), "```"])


def _item(option: click.Option) -> tuple[str, str]:
    """An option: its names with the value; its meaning with the default."""
    short = [name for name in option.opts if name != _long(option)]
    names = ", ".join([*short, _long(option), *option.secondary_opts])
    context = click.Context(click.Command("x"))
    if option.is_flag or option.count:
        value = ""
    elif isinstance(option.type, click.Choice):
        value = f" {'|'.join(option.type.choices)}"
    else:
        value = f" {option.metavar}" if option.metavar else ""
    default = option.get_default(context)
    end = f" [{default}]" if option.show_default and default is not None else ""
    text = (option.help or "").rstrip(".")
    for endings, kind in _KINDS.items():
        text = f"{text.replace(endings, kind)}{')' if kind.endswith(':') and endings in text else ''}"
    plain = text[0].lower() + text[1:] if text[1:2].islower() and not text.startswith("Kaldi") else text
    return f"{names}{value}", f"{plain.replace('. [default: ', ' [').replace('[default: ', '[')}{end}"


def _metavar(argument: click.Argument) -> str:
    return argument.make_metavar(click.Context(click.Command("x")))


if __name__ == "__main__":
    print(page(), end="")
