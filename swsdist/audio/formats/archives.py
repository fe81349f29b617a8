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

from swsdist.core.codes import audio as codes

_PLACE = re.compile(r"(.*\.ark):([0-9]{1,18})()|(.*\.arrow):([0-9]{1,18})\+([0-9]{1,18})")

#: Smallest placeholder for an unknown length in a header.
_UNKNOWN = 0x7FFFF000


def split(path: str) -> tuple[str, int | None]:
    """Path of the archive, and the byte; None for a path without one."""
    match = _PLACE.fullmatch(path)
    return (match[1] or match[4], int(match[2] or match[5])) if match else (path, None)


class Inside(io.RawIOBase):
    """A file inside an archive, for reading.

    Args:
        archive: open for reading.
        begin: byte of its beginning.
        path: its name in messages.

    Raises:
        AudioError: there is no WAV file at that byte.
    """

    def __init__(self, archive: BinaryIO, begin: int, path: str) -> None:
        super().__init__()
        whole = archive.seek(0, io.SEEK_END)
        self._archive, self._begin, self._at = archive, begin, 0
        match = _PLACE.fullmatch(path)
        if match and match[6]:
            self._size = max(0, min(whole - begin, int(match[6])))
            return
        archive.seek(min(begin, whole))
        head = archive.read(8)
        size = int.from_bytes(head[4:8], "little")
        if len(head) < 8 or not head.startswith(b"RIFF"):
            raise codes.NO_WAV_IN_ARCHIVE(where=path, byte=begin)
        self._size = min(whole - begin, 8 + size if 0 < size < _UNKNOWN else whole - begin)

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a place."""
        self._at = max(0, offset + {0: 0, 1: self._at, 2: self._size}[whence])
        return self._at

    def tell(self) -> int:
        """The place."""
        return self._at

    def read(self, size: int = -1) -> bytes:
        """The bytes that follow, at most `size`."""
        left = max(0, self._size - self._at)
        self._archive.seek(self._begin + self._at)
        data = self._archive.read(left if size is None or size < 0 else min(size, left))
        self._at += len(data)
        return data
