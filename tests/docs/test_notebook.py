"""The notebook runs from its first cell to its last."""

from __future__ import annotations

from pathlib import Path

import jupytext
import pytest
from markdown_pages import ROOT
from nbclient import NotebookClient


@pytest.mark.docs
def test_quickstart(tmp_path: Path) -> None:
    notebook = jupytext.read(ROOT / "notebooks/quickstart.py")
    for cell in notebook.cells:
        cell.metadata.pop("lines_to_next_cell", None)
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    pictures = [output for output in shown if "image/svg+xml" in output.get("data", {})]
    assert len(pictures) == 2
    assert not [output for output in shown if output.output_type == "error"]
    assert (tmp_path / "quickstart/run/report.html").is_file()
