"""Detections as a KWSLIST of the NIST programs. What was not decided is NO in it, which knows nothing else."""

from __future__ import annotations

from pathlib import Path

from swsdist.exports.interface import Material
from swsdist.io.nist.systemlist_writing import write_kwslist


def write(material: Material, folder: Path) -> None:
    """Write `kwslist.xml`.

    Raises:
        UserError: the NIST program could not read it (a file name that it takes for a pattern, say).
    """
    write_kwslist(material.batches(), list(material.query_ids), folder / "kwslist.xml", system=material.system)
