"""Detections as Audacity's labels, a file a document: what was decided YES, or everything where nothing was decided."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.errors import DataError, UserError
from swsdist.exports.interface import Material
from swsdist.io.labels import write_labels


def write(material: Material, folder: Path) -> None:
    """Write `labels/`.

    Raises:
        UserError: a name cannot stand in a label.
    """
    (folder / "labels").mkdir()
    try:
        write_labels(_shown(material), folder / "labels")
    except DataError as error:
        raise UserError(error.message, where=error.where, remedy=error.remedy) from None


def _shown(material: Material) -> Iterator[pa.RecordBatch]:
    for batch in material.batches():
        decision = batch.column("decision")
        yield batch if decision.null_count else batch.filter(pc.fill_null(decision, False))
