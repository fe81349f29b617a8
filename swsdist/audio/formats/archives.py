"""Recordings inside of a Kaldi archive: `wav.ark:1234` is the WAV file that begins at byte 1234 of `wav.ark`.

`wav-copy ark,scp:...` writes such archives: a key, a blank, and the file; the list names the byte after the blank. The RIFF
header states the length of the file. Source: Kaldi, util/kaldi-io.h (extended filenames) and feat/wave-reader.h.

`data.arrow:1234+5678` is the file, of any format, whose 5678 bytes begin at byte 1234 of an Arrow file, as
`swsdist.corpora.huggingface` finds them.
"""

from __future__ import annotations

import io
import re
from typing import BinaryIO

from swsdist.audio.formats.views import PLACEHOLDER, View
from swsdist.core.codes import audio as codes

_PLACE = re.compile(r"(.*\.ark):([0-9]{1,18})()|(.*\.arrow):([0-9]{1,18})\+([0-9]{1,18})")


def split(path: str) -> tuple[str, int | None]:
    """Path of the archive, and the byte; None for a path without one."""
    match = _PLACE.fullmatch(path)
    return (match[1] or match[4], int(match[2] or match[5])) if match else (path, None)


def inside(archive: BinaryIO, begin: int, path: str) -> View:
    """A file inside an archive.

    Args:
        archive: open for reading.
        begin: byte of its beginning.
        path: its name in messages.

    Raises:
        AudioError: there is no WAV file at that byte.
    """
    length = archive.seek(0, io.SEEK_END)
    match = _PLACE.fullmatch(path)
    if match and match[6]:
        return View(archive, [(begin, max(begin, min(length, begin + int(match[6]))))])
    archive.seek(min(begin, length))
    head = archive.read(8)
    size = int.from_bytes(head[4:8], "little")
    if len(head) < 8 or not head.startswith(b"RIFF"):
        raise codes.NO_WAV_IN_ARCHIVE(where=path, byte=begin)
    return View(archive, [(begin, min(length, begin + 8 + size) if 0 < size < PLACEHOLDER else length)])
