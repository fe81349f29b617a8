"""docs/reference/codes.md, from `swsdist.core.codes`."""

from __future__ import annotations

from swsdist.cli.helping import shown_fields
from swsdist.core.codes import codes_by_area

_HEAD = """\
# Codes

<!-- Generated from swsdist/core/codes: make docs -->

Each error, warning and rejection ends with its code in brackets: `[unknown-name]`. Codes are stable, messages are not.
`swsdist explain CODE` shows one. In Python, errors have `code` and `values`; in tables, `reason` is a code. Codes of the
first list are families: many mistakes share one, each with a message of its own; the text here is what they have in common.

The number is the exit code of an error. A notice is a warning. With `--strict` it ends the command with code 4. A notice about
implausible input ends it with 5, unless `--force`. A rejection leaves one input out; with `--strict` it ends the command with
code 4. `<name>` stands for a value.
"""


def page() -> str:
    """The text of the page: a list for each area."""
    lines = [_HEAD.rstrip()]
    areas = codes_by_area(built_in=True)
    for area, codes in {"families": areas.pop("families"), **areas}.items():
        if codes:
            lines += ["", f"## {area}", ""]
        for code in codes:
            kind = str(code.error.exit_code) if code.kind == "error" else code.kind
            remedy = f". {_escaped(code.remedy[:1].upper() + code.remedy[1:])}" if code.remedy else ""
            lines.append(f"- `{code.name}` ({kind}): {_escaped(code.message)}{remedy}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """A text for Markdown, in which `<name>` is no tag."""
    return shown_fields(text).replace("<", "\\<").replace("*", "\\*").replace("_", "\\_")
