"""`swsdist explain`: what a code means."""

from __future__ import annotations

import click


@click.command()
@click.argument("code", required=False)
def explain(code: str | None) -> None:
    """Explain the CODE of an error, notice or rejection; without it, list all codes."""
    from swsdist.core.codes import cli as codes
    from swsdist.core.codes import every_code
    from swsdist.core.text import suggestion

    known = every_code()
    if code is None:
        for one in known.values():
            print(f"{one.name}: {one.message}")
        return
    if code not in known:
        raise codes.NO_SUCH_CODE(code=code, meant=suggestion(code, known))
    one = known[code]
    exits = f", exit code {one.error.exit_code}" if one.kind == "error" else ""
    print(f"{one.name} ({one.kind}, {one.error.__name__}{exits})\n\n{one.message}\n")
    if one.remedy:
        print(f"remedy: {one.remedy}")
