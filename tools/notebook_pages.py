"""The notebooks of this project: run, kept small, and held against what they show.

`python -m tools.notebook_pages` (`make notebooks`) runs all of them, or those that are named, and writes their
outputs anew.
"""

from __future__ import annotations

import math
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from tools.markdown_pages import ROOT

FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w])")
#: Of numbers: other processors compute features whose last bits differ.
_RELATIVE, _ABSOLUTE = 0.02, 0.02


def executed(path: Path, folder: Path) -> Any:
    """A notebook with new outputs, run in a folder from its first cell to its last."""
    notebook = nbformat.read(path, 4)  # type: ignore[no-untyped-call]
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    return tidy(notebook)


def tidy(notebook: Any) -> Any:
    """Without what differs from run to run: times, ids, warnings of libraries."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    number = 0
    for place, cell in enumerate(notebook.cells):
        cell.id = f"cell-{place}"
        cell.metadata = {}
        if cell.cell_type != "code":
            continue
        number += 1
        cell.execution_count = number
        cell.outputs = [one for one in cell.outputs if one.get("name") != "stderr"]
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = number
            output.get("metadata", {}).clear()
    return notebook


def differences(shown: Any, found: Any) -> Iterator[str]:
    """Where the texts of outputs differ by more than the last digits of numbers."""
    for place, (old, new) in enumerate(zip(shown.cells, found.cells, strict=True)):
        if old.cell_type != "code":
            continue
        before, after = list(texts(old)), list(texts(new))
        if [kind for kind, _ in before] != [kind for kind, _ in after]:
            yield f"cell {place} shows {[kind for kind, _ in after]}, and there are {[kind for kind, _ in before]}"
            continue
        for (kind, was), (_, is_now) in zip(before, after, strict=True):
            if not kind.startswith("image/") and not alike(was, is_now):
                yield f"cell {place}, {kind}:\n{was}\nis now\n{is_now}"


def texts(cell: Any) -> Iterator[tuple[str, str]]:
    """Kind and text of each output."""
    for output in cell.outputs:
        if output.output_type == "stream":
            yield output.name, output.text
        for kind, text in sorted(output.get("data", {}).items()):
            if kind != "text/html":  # the same as text/plain
                yield kind, "".join(text)


def alike(one: str, other: str) -> bool:
    """Whether two texts have the same words, and numbers that are about the same."""
    words = [" ".join(re.sub(r"-{3,}", "---", _NUMBER.sub("#", text)).split()) for text in (one, other)]
    numbers = [[float(number) for number in _NUMBER.findall(text)] for text in (one, other)]
    return words[0] == words[1] and all(
        math.isclose(a, b, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE) for a, b in zip(*numbers, strict=True)
    )


def main(names: list[str]) -> None:
    """Write the outputs of notebooks anew."""
    for path in [FOLDER / name for name in names] or NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder:
            notebook = executed(path, Path(folder))
        nbformat.write(notebook, path)  # type: ignore[no-untyped-call]
        print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
