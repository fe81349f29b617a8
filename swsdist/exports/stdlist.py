"""Detections as a STDLIST of the NIST programs. Undecided detections become NO."""

from __future__ import annotations

from pathlib import Path

from swsdist.exports.interface import Material
from swsdist.io.nist.systemlist_writing import write_stdlist


def write(material: Material, folder: Path) -> None:
    """Write `stdlist.xml`.

    Raises:
        UserError: the NIST program could not read it (for example a file name that is a pattern).
    """
    write_stdlist(material.batches(), list(material.query_ids), folder / "stdlist.xml", system=material.system)
