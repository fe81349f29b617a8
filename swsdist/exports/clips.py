"""The best hits as clips of sound."""

from __future__ import annotations

from pathlib import Path

from swsdist.audio.clips import write_clip
from swsdist.errors import AudioError, UserError
from swsdist.exports.interface import Material


def write(material: Material, folder: Path) -> None:
    """Write `clips/`, the best first by name.

    A hit in a document without a recording (its frames were given) has none.

    Raises:
        UserError: a recording has changed since it was indexed, or no hit has one.
    """
    (folder / "clips").mkdir()
    if material.best and not any(row["path"] for row in material.best):
        raise UserError(
            "the documents have no recordings: their frames were given",
            where="corpus.documents",
            remedy="add the column path to hear the hits, or leave clips out of report.exports",
        )
    for k, row in enumerate(material.best, 1):
        if not row["path"]:
            continue
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
