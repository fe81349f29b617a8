"""Detections as a CSV table."""

from __future__ import annotations

from pathlib import Path

from swsdist.core.types import DETECTIONS
from swsdist.exports.interface import Material
from swsdist.io.tables import write_csv


def write(material: Material, folder: Path) -> None:
    """Write `detections.csv`."""
    write_csv(material.batches(), DETECTIONS, folder / "detections.csv")
