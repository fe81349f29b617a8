"""The best hits as clips of sound."""

from __future__ import annotations

from pathlib import Path

from swsdist.audio.clips import write_clip
from swsdist.errors import AudioError, UserError
from swsdist.exports.interface import Material


def write(material: Material, folder: Path) -> None:
    """Write `clips/`, the best first by name.

    Raises:
        UserError: a recording has changed since it was indexed.
    """
    (folder / "clips").mkdir()
    for k, row in enumerate(material.best, 1):
        safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in f"{row['query_id']}-{row['doc_id']}")[:80]
        out = folder / "clips" / f"{k:03d}-{safe}-{row['start']:.2f}.wav"
        try:
            write_clip(row["path"], row["start"], row["end"], out, channel=row["channel"], storage=material.storage)
        except AudioError as error:
            raise UserError(
                f"a recording has changed since it was indexed: {error.message}",
                where=row["path"],
                remedy="index again, or leave clips out of report.exports",
            ) from None
