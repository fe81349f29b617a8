"""The best hits as clips of sound."""

from __future__ import annotations

from pathlib import Path

from swsdist.audio.reader import write_clip
from swsdist.core.codes import discovery as codes
from swsdist.core.errors import AudioError
from swsdist.exports.interface import Material

#: Bytes of ids in a clip's name: file systems allow 255 in all.
_LONGEST = 160


def write(material: Material, folder: Path) -> None:
    """Write `clips/`, the best first by name.

    A hit in a document without a recording (precomputed features) has no clip.

    Raises:
        UserError: a recording has changed since it was indexed, or no hit has one.
    """
    (folder / "clips").mkdir()
    if material.best and not any(hit["path"] for hit in material.best):
        raise codes.CLIPS_WITHOUT_RECORDINGS(where="corpus.documents")
    for k, hit in enumerate(material.best, 1):
        if not hit["path"]:
            continue
        out = folder / "clips" / clip_name(k, hit["query_id"], hit["doc_id"], hit["start"])
        try:
            write_clip(hit["path"], hit["start"], hit["end"], out, channel=hit["channel"], storage=material.storage)
        except AudioError as error:
            raise codes.CHANGED_RECORDING(where=hit["path"], error=error.message) from None


def clip_name(number: int, query: str, doc_id: str, start: float) -> str:
    """Name of a hit's clip, for every file system: `001-q001-talk-12.30.wav`. The number makes it unique."""
    safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in f"{query}-{doc_id}")
    short = safe.encode()[:_LONGEST].decode(errors="ignore")
    return f"{number:03d}-{short}-{start:.2f}.wav"
