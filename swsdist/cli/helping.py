"""Commands that show the documentation that comes with the package: pages, codes, and how to cite it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

import click

from swsdist.core.codes import families
from swsdist.core.text import counted

if TYPE_CHECKING:
    from swsdist.core.codes import Code
    from swsdist.core.errors import SwsdistError

_PACKAGE = Path(__file__).parents[1]
#: A checkout has them beside the package, a wheel inside.
_DOCS = inside if (inside := _PACKAGE / "docs").is_dir() else _PACKAGE.parent / "docs"
_LINK = re.compile(r"\[([^\]]+)\]\((?:[\w./-]*/)?([\w-]+)\.md(?:#[\w-]*)?\)")
#: Pages that are listed at once.
_MOST = 12
#: Letters of a word that is meant as it is, not as the beginning of others.
_SHORT = 3


class _Task(NamedTuple):
    """A page: what it is for, and the heading that it is listed below."""

    name: str
    says: str
    kind: str


def _tasks() -> list[_Task]:
    """The pages in the order of docs/index.md, whose tables have rows `| you want to | pages |`; then all others."""
    tasks, kind, there = list[_Task](), "", pages()
    for line in (_DOCS / "index.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            kind = line.lstrip("# ")
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        linked = _LINK.findall(cells[-1]) if line.startswith("|") else []
        for label, name in linked:
            says = cells[0] if len(linked) == 1 else f"{cells[0]}: {label}"
            if name in there and not any(task.name == name for task in tasks):  # those of recipes are not
                tasks.append(_Task(name, says, kind))
    others = {name: path for name, path in there.items() if not any(task.name == name for task in tasks)}
    titles = {name: path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ") for name, path in others.items()}
    return [*tasks, *(_Task(name, title, "Reference") for name, title in titles.items())]


def pages() -> dict[str, Path]:
    """The pages by name."""
    return {
        path.stem: path
        for folder in ("how-to", "concepts", "reference")
        for path in sorted((_DOCS / folder).glob("*.md"))
    }


@click.command("help")
@click.argument("words", nargs=-1, metavar="[TASK|WORD]")
def help_(words: tuple[str, ...]) -> None:
    """List tasks by kind of reader; or show the page of a TASK, or the pages about a WORD.

    \b
    swsdist help
    swsdist help search-your-archive
    swsdist help speaker
    """
    tasks, there = _tasks(), pages()
    if not words:
        _list(tasks)
        print("swsdist help TASK shows a page, swsdist COMMAND -h options, swsdist explain CODE what an error means")
        return
    name, word = "-".join(words).lower().removesuffix(".md"), " ".join(words).lower()
    if name in there:
        _show(there[name].read_text(encoding="utf-8"), there)
        return
    begins = re.compile(r"(?<!\w)" + re.escape(word) + ("" if len(word) > _SHORT else r"(?!\w)"))
    about = [task for task in tasks if begins.search(f"{task.name} {task.name.replace('-', ' ')} {task.says}".lower())]
    if not about:
        texts = {page: path.read_text(encoding="utf-8").lower() for page, path in there.items()}
        counts = {page: len(begins.findall(text)) for page, text in texts.items()}
        found = sorted(filter(counts.get, counts), key=lambda page: -counts[page])
        about = [task for task in tasks if task.name in found[:_MOST]]
    if not about:
        import difflib

        parts = {part: page for page in there for part in (*page.split("-"), page)}
        alike = difflib.get_close_matches(name, parts, 3, 0.5) if len(name) > _SHORT else []
        close = dict.fromkeys(parts[part] for part in alike)
        near = [f"swsdist help {quote(page)}" for page in close]
        raise families.UNKNOWN_NAME(
            "no page is about this",
            "{near}swsdist help lists all",
            where=word,
            near=f"the nearest: {' or '.join(near)}; " if near else "",
        )
    if len(about) == 1:
        _show(there[about[0].name].read_text(encoding="utf-8"), there)
    else:
        print(f"{counted(len(about), 'page')} about {word}; swsdist help TASK shows one\n")
        _list(about)


def _list(tasks: list[_Task]) -> None:
    """Print pages with a line each, below their kinds."""
    width = max(len(task.name) for task in tasks)
    for kind in dict.fromkeys(task.kind for task in tasks):
        print(f"{kind}:")
        for task in tasks:
            if task.kind == kind:
                print(f"  {task.name:<{width}}  {task.says}")
        print()


def _show(text: str, there: dict[str, Path]) -> None:
    """Print a page: in a terminal with headings and tables, and by the pager; else its Markdown."""
    if not sys.stdout.isatty():
        print(text, end="")
        return
    import os

    from rich.console import Console
    from rich.markdown import Markdown

    os.environ.setdefault("LESS", "FRX")  # as git calls it: colours, and no pager for what fits
    linked = _LINK.sub(lambda link: f"{link[1]} (`{link[2]}`)" if link[2] in there else link[1], text)
    console = Console()
    with console.pager(styles=True):
        console.print(Markdown(linked, hyperlinks=False))
        console.print("[dim]swsdist help NAME shows a page named in (brackets)[/dim]")


def citation() -> str:
    """How to cite swsdist, from CITATION.cff: BibTeX, and a line of text; with the commit, if that is known."""
    from ruamel.yaml import YAML

    place = next(path for path in (_DOCS / "CITATION.cff", _DOCS.parent / "CITATION.cff") if path.is_file())
    cited = YAML(typ="safe").load(place.read_text(encoding="utf-8"))["preferred-citation"]
    authors = " and ".join(f"{{{author['name']}}}" for author in cited["authors"])
    commit = _commit()
    at = f"Version {cited['version']}" + (f", commit {commit}" if commit is not None else "")
    fields = {
        "title": f"{{{cited['title']}}}",
        "author": authors,
        "year": cited["year"],
        "note": f"{at}. Software, {cited['license']} licence",  # classic styles know no version and no @software
    }
    lines = ["@misc{swsdist,", *(f"  {name} = {{{value}}}," for name, value in fields.items()), "}"]
    names = ", ".join(author["name"] for author in cited["authors"])
    return "\n".join([*lines, "", f"{names} ({cited['year']}). {cited['title']}. {at}."])


def _commit() -> str | None:
    """Of a checkout, or of what pip installed from a repository; None: it is not known."""
    import subprocess
    from importlib.metadata import PackageNotFoundError, distribution

    root = _PACKAGE.parent
    if (root / ".git").exists():
        command = ["git", "-C", str(root), "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=, changed"]
        try:
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() or None
        except (OSError, subprocess.CalledProcessError):
            return None
    try:
        source = json.loads(distribution("swsdist").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return None
    commit = source.get("vcs_info", {}).get("commit_id")
    return commit if isinstance(commit, str) else None


@click.command()
@click.argument("code", required=False)
def explain(code: str | None) -> None:
    """Explain the CODE of an error, notice or rejection; without CODE, list all codes."""
    import difflib

    from swsdist.core.codes import codes_by_area, every_code

    if code is None:
        for area, members in codes_by_area().items():
            print(area)
            for member in members:
                print(f"  {member.name:<26} {shown_fields(member.message)}")
        print("swsdist explain CODE shows kind, exit code and remedy")
        return
    code = code.strip("[]").lower().replace("_", "-")
    by_name = every_code()
    if code not in by_name:
        parts = [name for name in by_name if code in name]
        close = difflib.get_close_matches(code, by_name, 3) or parts[:3]
        raise families.UNKNOWN_NAME(
            "there is no code {code}{meant}",
            "`swsdist explain` lists all codes",
            code=code,
            meant=f"; did you mean {' or '.join(close)}?" if close else "",
        )
    print(explanation(by_name[code]))


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
    from swsdist.core.codes import families

    if code.kind == "notice":
        return "none; with --strict 4; where implausible 5"
    if code.kind == "rejection":
        return f"none, as one input of many; with --strict 4; alone {code.error.exit_code}"
    if code in vars(families).values() and code.error.exit_code in (2, 3):
        return "2; 3 where data that were read are at fault"
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
