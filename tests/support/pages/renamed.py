"""docs/reference/renamed.md, from `swsdist.config.renamed`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from swsdist.config.renamed import COMMANDS, KEYS, STAGES, Renamed


def page() -> str:
    """The text of the page."""
    lines = ["# Old names", "", "<!-- Generated from swsdist/config/renamed.py: make docs -->", ""]
    lines += [
        "An old key in a config, a corpus file or `--set` is the error [`renamed-key`](codes.md#config). An entry also holds "
        "for the keys below it.",
    ]
    for title, entries in (("Config keys", KEYS), ("Commands and options", COMMANDS), ("Stages", STAGES)):
        lines += ["", f"## {title}", "", *_table(entries)]
    return "\n".join(lines) + "\n"


def _table(entries: Iterable[Renamed]) -> Iterator[str]:
    yield "| old | new | |"
    yield "|---|---|---|"
    for entry in entries:
        yield f"| `{entry.old}` | `{entry.new}` | {entry.note} |"
