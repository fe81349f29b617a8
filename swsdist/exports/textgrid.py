"""Praat's TextGrids, one per document, in UTF-8; of detections an interval tier per query.

A TextGrid lasts as long as its recording; where that is not known, until its last annotation ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pympi import TextGrid

from swsdist.exports.interface import Material
from swsdist.exports.tiers import Annotated, annotated


def write(material: Material, folder: Path) -> None:
    """Write `textgrid/`.

    Raises:
        UserError: a query's id cannot name a tier, or a document's a file.
    """
    write_annotated(annotated(material, folder, "textgrid", "TextGrid"))


def write_annotated(documents: Iterable[Annotated]) -> None:
    """Write the files of documents."""
    for document in documents:
        grid = TextGrid(xmin=0.0, xmax=document.end / 1000)
        for name, rows in document.tiers.items():
            tier = grid.add_tier(name.replace('"', '""'))  # pympi doubles quotation marks in texts alone
            for start, end, text in rows:
                tier.add_interval(start / 1000, end / 1000, text, check=False)
        grid.to_file(str(document.file))
