"""docs/reference/codes.md, from `swsdist.core.codes`."""

from __future__ import annotations

from swsdist.cli.explaining import shown_fields
from swsdist.core.codes import codes_by_area

_HEAD = """\
# Codes

<!-- Generated from swsdist/core/codes: make docs -->

Each error, warning and rejection ends with its code in brackets: `[no-such-track]`. Codes are stable, messages are not.
`swsdist explain CODE` shows one. In Python, errors have `code` and `values`; in tables, `reason` is a code.

- error: the command ends with the exit code in the list;
- notice: a warning; with `--strict` exit code 4, where implausible 5;
- rejection: one input is left out; with `--strict` exit code 4.

`<name>` stands for a value.
"""


def page() -> str:
    """The text of the page: a table for each area."""
    lines = [_HEAD.rstrip()]
    for area, codes in codes_by_area().items():
        if codes:
            lines += ["", f"## {area}", "", "| code | kind | message | remedy |", "|---|---|---|---|"]
        for code in codes:
            kind = f"error {code.error.exit_code}" if code.kind == "error" else code.kind
            cells = (f"`{code.name}`", kind, _cell(code.message), _cell(code.remedy))
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """A text in Markdown: no column ends in it, and `<name>` is no tag."""
    return shown_fields(text).replace("|", "\\|").replace("<", "\\<").replace("*", "\\*").replace("_", "\\_")
