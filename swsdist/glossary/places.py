"""What a project takes from outside: where its folder may lie, and which sounds it keeps."""

from __future__ import annotations

import io
from pathlib import Path

import soundfile

from swsdist.core.codes import glossary as codes
from swsdist.store.manifest import NAME

#: Bytes of a manifest to look at.
_HEAD = 4096


def demand_outside(folder: Path) -> None:
    """Refuse a folder in a store.

    Raises:
        UserError: it is one.
    """
    for above in (folder, *folder.parents):
        try:
            with (above / NAME).open("rb") as opened:
                head = opened.read(_HEAD)
        except OSError:
            continue
        if b"swsdist-store/" in head:
            raise codes.PROJECT_IN_STORE(where=str(folder), store=above)


def sound_of(data: bytes) -> tuple[float, int]:
    """Duration (s) and rate (Hz) of a WAV file.

    Raises:
        DataError: it is none, or has other samples than PCM, or none.
    """
    try:
        info = soundfile.info(io.BytesIO(data))
    except soundfile.LibsndfileError as error:
        raise codes.INVALID_SOUND(error=error) from None
    if info.format not in ("WAV", "WAVEX") or not info.subtype.startswith("PCM_") or not info.frames:
        raise codes.INVALID_SOUND(error=f"{info.format}, {info.subtype}, {info.frames} samples")
    return info.frames / info.samplerate, info.samplerate
