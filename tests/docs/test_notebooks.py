"""Notebooks run from their first cell to their last, and show what they would show now."""

from pathlib import Path

import nbformat
import pytest

from tools.notebook_pages import NOTEBOOKS, alike, differences, executed, texts, tidy

#: kB
_PICTURE, _NOTEBOOK = 100, 250


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_shown_is_small_and_tidy(path: Path) -> None:
    """Outputs are there, so that the web shows them, and nothing of a certain run is."""
    notebook = nbformat.read(path, 4)
    nbformat.validate(notebook)
    assert path.stat().st_size < _NOTEBOOK * 1000
    shown = [one for cell in notebook.cells if cell.cell_type == "code" for one in texts(cell)]
    pictures = [text for kind, text in shown if kind.startswith("image/")]
    assert len(pictures) >= 2
    assert all(len(text) < _PICTURE * 1000 for text in pictures)
    assert not [cell for cell in notebook.cells if cell.cell_type == "code" and cell.execution_count is None]
    assert nbformat.writes(tidy(nbformat.read(path, 4))) == nbformat.writes(notebook)


@pytest.mark.docs
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_shown_is_what_comes_out(path: Path, tmp_path: Path) -> None:
    stale = list(differences(nbformat.read(path, 4), executed(path, tmp_path)))
    assert not stale, "\n".join([*stale, "make notebooks"])
    assert [place.name for place in tmp_path.iterdir()] == [path.stem]  # it writes nowhere else


def test_what_is_alike() -> None:
    for one, other, same in (
        ("MTWV 0.8667 of 30", "MTWV   0.8671 of 30", True),
        ("MTWV 0.87", "MTWV 0.92", False),
        ("MTWV 0.87", "ATWV 0.87", False),
        ("2 of 3", "2 of 3 and 4", False),
        ("| a | ---: |", "| a | -----: |", True),
        ("q001 d003", "q001 d004", False),
    ):
        assert alike(one, other) == same
