"""Numbers that pages show: where each is from, and those that are runs of ours made anew.

A table of measured numbers, and output that follows a command, stand below an HTML comment of statements, `;` between them:

    checked: ROW by RUN       the row of a table, or `headline` or `digest` of a block, is what a run of `RUNS` gives
    measured: COMMIT, MACHINE    the rest is from there
    cited: SOURCE, defined: FILE    the numbers are not ours, or no results

`python -m tools.quoted_results` (`make quoted`) writes what is checked anew; it needs ../shared.
"""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

import swsdist
from swsdist import RunResult
from swsdist.report.summary import print_headline, print_location
from tools.markdown_pages import ROOT, pages

#: Settings of runs of configs/mboshi-dev.yaml.
RUNS = {
    "mboshi-dev": (),
    **{f"mboshi-dev-{how}": ("corpus.examples=all", f"search.examples={how}") for how in ("mean", "best", "template")},
}

_NUMBER = r"[-+]?\d+\.\d+"
_QUOTED = re.compile(
    r"(?P<before>^(?:<!-- (?P<note>[^>]*) -->\n\n)?)(?P<text>(?:^\|[^\n]*\n)+|^```text\n.*?^```\n)", re.M | re.S
)
#: Headings of columns, and keys of measures.
_COLUMNS = {
    "MTWV": "mtwv",
    "MTWV, one example": "mtwv",
    "ATWV": "atwv",
    "p(Miss)": "atwv_pmiss",
    "p(FA)": "atwv_pfa",
    "AUC": "auc",
    "pair AUC": "pair_auc",
    "pooled pair AUC": "pooled_pair_auc",
    "Cnxe": "cnxe",
    "min Cnxe": "cnxe_min",
}


_WITHOUT = ("CHANGELOG", "sources")


class Quoted(NamedTuple):
    """A table or a block with numbers; `where` of the page it begins, and its statements (kind, text)."""

    page: Path
    line: int
    text: str
    statements: tuple[tuple[str, str], ...]

    @property
    def checks(self) -> list[list[str]]:
        """What, and the run it is checked by."""
        return [text.rsplit(" by ", 1) for kind, text in self.statements if kind == "checked"]


def all_quoted() -> list[Quoted]:
    """Those of all pages but the reference, sources and the changelog, which hold no results."""
    return [
        one for page in pages() if page.parent.name != "reference" and page.stem not in _WITHOUT for one in quoted(page)
    ]


def quoted(page: Path) -> Iterator[Quoted]:
    """All tables with two decimals or more, and output of commands, of a page."""
    whole = page.read_text(encoding="utf-8")
    for match in _QUOTED.finditer(whole):
        text = match["text"]
        cells = [
            cell
            for row in text.splitlines()[2:]
            for cell in row.split("|")
            if re.search(rf"(?<![\w.]){_NUMBER}", re.sub("`[^`]*`", "", cell))
        ]
        output = whole[: match.start()].endswith("```\n\n") or re.search(r"\b[0-9a-f]{64}\b", text)
        if output if text.startswith("```") else len(cells) > 1:
            note = match["note"] or ""
            statements = tuple(
                (kind.strip(), rest.strip()) for kind, _, rest in (one.partition(":") for one in note.split(";"))
            )
            yield Quoted(page, whole.count("\n", 0, match.start("text")) + 1, text, statements if note else ())


def renewed(one: Quoted, name: str, result: RunResult) -> str:
    """The text, with what is checked by this run as it is now."""
    text = one.text
    for what, run in one.checks:
        if run == name:
            text = _BLOCKS[what](text, result) if what in _BLOCKS else _row(text, what, result)
    return text


def _row(text: str, what: str, result: RunResult) -> str:
    head, *lines = text.splitlines(keepends=True)
    keys = [_COLUMNS.get(cell.strip()) for cell in head.split("|")]
    names = [re.sub(r"\[([^]]*)\]\([^)]*\)|[`*]", r"\1", line).split("|")[1].strip() for line in lines]
    place = names.index(what)
    values: dict[str, Any] = result.measures()
    cells = lines[place].split("|")
    for k, key in enumerate(keys):
        if key is not None and (shown := re.search(_NUMBER, cells[k])):
            decimals = len(shown[0].partition(".")[2])
            cells[k] = cells[k].replace(shown[0], f"{values[key]:.{decimals}f}", 1)
    lines[place] = "|".join(cells)
    return head + "".join(lines)


def _headline(text: str, result: RunResult) -> str:
    """All but the costs, by which columns are as wide as they are, and where the run lies."""
    assert result.report is not None
    out = io.StringIO()
    print_headline(result.report, Console(file=out))
    print_location(result.report, Console(file=out))
    shown, found = text.splitlines()[1:-1], out.getvalue().splitlines()
    place = shown[-1].partition(", report ")[2]
    equal = (new.startswith("SSF") or old.split() == new.split() for old, new in zip(shown, found, strict=True))
    lines = [old if same else new for old, new, same in zip(shown, found, equal, strict=True)]
    lines[-1] = f"{lines[-1].partition(', report ')[0]}, report {place}"
    return "\n".join(["```text", *map(str.rstrip, lines), "```", ""])


def _digest(text: str, result: RunResult) -> str:
    return re.sub(r"\b[0-9a-f]{64}\b", swsdist.digest(str(result.folder))["all"], text)


_BLOCKS: dict[str, Callable[[str, RunResult], str]] = {"headline": _headline, "digest": _digest}


def run_of(name: str, folder: Path, store: str | None = None) -> RunResult:
    """A run of `RUNS`, serial, with a store that is there."""
    sets = [f"run={folder}", "executor.kind=serial", *RUNS[name], *([f"index.store={store}"] if store else [])]
    return swsdist.run(ROOT / "configs/mboshi-dev.yaml", sets=sets)


def main() -> None:
    """Write what is checked anew."""
    with tempfile.TemporaryDirectory() as folder:
        results = {name: run_of(name, Path(folder) / name, f"{folder}/store") for name in RUNS}
        for one in all_quoted():
            text = one.text
            for name, result in results.items():
                text = renewed(one._replace(text=text), name, result)
            if text != one.text:
                one.page.write_text(one.page.read_text(encoding="utf-8").replace(one.text, text, 1), encoding="utf-8")
                print(f"{one.page}, line {one.line}: written")


if __name__ == "__main__":
    main()
