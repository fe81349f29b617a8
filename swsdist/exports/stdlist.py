"""Detections as a STDLIST of the NIST programs. What was not decided is NO in it, which knows nothing else."""

from __future__ import annotations

from pathlib import Path

from swsdist.exports.interface import Material
from swsdist.io.nist.systemlist_writing import write_stdlist


def write(material: Material, folder: Path) -> None:
    """Write `stdlist.xml`.

    Raises:
        UserError: the NIST program could not read it (a file name that it takes for a pattern, say).
    """
    write_stdlist(material.batches(), list(material.query_ids), folder / "stdlist.xml", system=material.system)
