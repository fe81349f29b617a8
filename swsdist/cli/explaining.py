"""`swsdist explain`: what a code means, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from swsdist.core.codes import Code
    from swsdist.core.errors import SwsdistError


@click.command()
@click.argument("code", required=False)
def explain(code: str | None) -> None:
    """Explain the CODE of an error, notice or rejection; without CODE, list all codes."""
    import difflib

    from swsdist.core.codes import cli as codes
    from swsdist.core.codes import codes_by_area, every_code

    if code is None:
        for area, members in codes_by_area().items():
            print(area)
            for member in members:
                print(f"  {member.name:<{_WIDTH}} {shown_fields(member.message)}")
        print("swsdist explain CODE shows kind, exit code and remedy")
        return
    code = code.strip("[]").lower().replace("_", "-")
    by_name = every_code()
    if code not in by_name:
        parts = [name for name in by_name if code in name]
        close = difflib.get_close_matches(code, by_name, 3) or parts[:3]
        raise codes.NO_SUCH_CODE(code=code, meant=f"; did you mean {' or '.join(close)}?" if close else "")
    print(explanation(by_name[code]))


#: Width of the names in the list.
_WIDTH = 26


def explanation(code: Code[SwsdistError]) -> str:
    """A code in some lines; values in its texts are shown as <name>."""
    lines = [
        f"{code.name}: {shown_fields(code.message)}",
        f"kind:      {code.kind} ({code.error.__name__})",
        f"exit code: {exit_codes(code)}",
    ]
    return "\n".join([*lines, f"remedy:    {shown_fields(code.remedy)}"] if code.remedy else lines)


def exit_codes(code: Code[SwsdistError]) -> str:
    """The exit codes that a code can end a command with."""
    if code.kind == "notice":
        return "none; with --strict 4; where implausible 5"
    if code.kind == "rejection":
        return f"none, as one input of many; with --strict 4; alone {code.error.exit_code}"
    return str(code.error.exit_code)


def shown_fields(text: str) -> str:
    """A format string with `<name>` for each field; `{s}` becomes `(s)`."""
    from string import Formatter

    shown = []
    for literal, field, _, _ in Formatter().parse(text):
        shown.append(literal)
        if field == "s":
            shown.append("(s)")
        elif field:
            shown.append(f"<{field}>")
    return "".join(shown)
