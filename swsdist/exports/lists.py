"""Detections as lists: a CSV table, and a STDLIST and a KWSLIST of the NIST programs, where undecided detections become NO."""

from __future__ import annotations

from pathlib import Path

from swsdist.core.types import DETECTIONS
from swsdist.exports.interface import Material
from swsdist.io.nist.systemlist_writing import write_kwslist, write_stdlist
from swsdist.io.tables import write_csv


def table(material: Material, folder: Path) -> None:
    """Write `detections.csv`."""
    write_csv(material.batches(), DETECTIONS, folder / "detections.csv")


def stdlist(material: Material, folder: Path) -> None:
    """Write `stdlist.xml`.

    Raises:
        UserError: the NIST program could not read it (for example a file name that is a pattern).
    """
    write_stdlist(material.batches(), list(material.query_ids), folder / "stdlist.xml", system=material.system)


def kwslist(material: Material, folder: Path) -> None:
    """Write `kwslist.xml`.

    Raises:
        UserError: as `stdlist`.
    """
    write_kwslist(material.batches(), list(material.query_ids), folder / "kwslist.xml", system=material.system)
