"""Views of parts of a file as files, recordings inside of archives, and checks of what headers state.

A `View` is a file made of parts of another; `swsdist.audio.formats.extents` finds the extent of a file's sound.

Recordings inside of a Kaldi archive: `wav.ark:1234` is the WAV file that begins at byte 1234 of `wav.ark`. `wav-copy
ark,scp:...` writes such archives: a key, a blank, and the file; the list names the byte after the blank. The RIFF
header states the length of the file. `data.arrow:1234+5678` is the file, of any format, whose 5678 bytes begin at byte
1234 of an Arrow file, as `swsdist.corpora.huggingface` finds them.

Source: Kaldi, util/kaldi-io.h (extended filenames) and feat/wave-reader.h.
"""

from __future__ import annotations

import io
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple, Protocol, TypeAlias

from swsdist.core.codes import audio as codes
from swsdist.core.codes import families
from swsdist.core.errors import CutOffError

#: Bytes given to the decoder: these, or those of the file from the first place to the second.
Piece: TypeAlias = bytes | tuple[int, int]

#: Bytes behind a stated end that are no sound: less than a sector of a disk, or a tag.
PADDING = 512
TAGS = (b"TAG", b"ID3", b"APETAGEX", b"LYRICSBEGIN")

#: Most samples a byte can hold: a FLAC block of 65535 equal samples takes 14 bytes.
PER_BYTE = 10_000

BLOCK = 1 << 20

#: Least size that a program states when it does not know it: 2 GiB (sox, arecord) or 4 GiB, less some.
PLACEHOLDER = 0x7FFFF000

#: Rates in Hz, and numbers of channels, that a recording can have.
RATES = (500, 768_000)
CHANNELS = 256


class Readable(Protocol):
    """A binary file that can be read and sought."""

    def read(self, size: int, /) -> bytes: ...

    def seek(self, offset: int, whence: int = 0, /) -> int: ...


class View(io.RawIOBase):
    """A file for reading that is pieced together from another one's bytes."""

    def __init__(self, file: Readable, pieces: Sequence[Piece]) -> None:
        super().__init__()
        self._file, self._pieces, self._at = file, list(pieces), 0
        lengths = [len(piece) if isinstance(piece, bytes) else piece[1] - piece[0] for piece in pieces]
        self._starts = [sum(lengths[:k]) for k in range(len(lengths))]
        self._size = sum(lengths)

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

    def read(self, size: int | None = -1) -> bytes:
        """The bytes that follow, at most `size`."""
        left = max(0, self._size - self._at)
        left = left if size is None or size < 0 else min(size, left)
        parts = []
        while left:
            number = bisect_right(self._starts, self._at) - 1
            piece, inside = self._pieces[number], self._at - self._starts[number]
            if isinstance(piece, bytes):
                data = piece[inside : inside + left]
            else:
                self._file.seek(piece[0] + inside)
                data = self._file.read(min(left, piece[1] - piece[0] - inside))
            if not data:
                break
            parts.append(data)
            self._at += len(data)
            left -= len(data)
        return b"".join(parts)


class Part(NamedTuple):
    """A part of a file that is decoded by itself.

    Attributes:
        pieces: to be decoded.
        frames: samples of a channel at the end that are of the file; None: all.
    """

    pieces: list[Piece]
    frames: int | None = None


class Extent(NamedTuple):
    """The parts of a file to decode, in order.

    Attributes:
        parts: mostly one.
        rest: bytes at the end that no decoder is given.
        torn: bytes that the last frame states, and those that there are, if it is incomplete.
        next: byte at which another file begins.
        foreign: whether libsndfile would not read all.
        counted: samples by frames of MPEG's layers I and II, which have no tag that states them.
    """

    parts: list[Part]
    rest: int = 0
    torn: tuple[int, int] | None = None
    next: int | None = None
    counted: int | None = None
    foreign: bool = False


def check_extent(path: str, reach: Extent, unread: str = "") -> CutOffError | None:
    """The error if there are bytes that cannot be read, or the last frame is incomplete."""
    if unread or reach.rest or reach.foreign:
        more = f"{reach.rest} bytes more than its header counts"
        detail = unread or (more if reach.rest else "its end is numbered wrongly")
        return families.TRUNCATED(
            "the file goes on after what can be read ({detail})",
            (
                "if that is another recording, make it a file of its own, since converters lose it: tail "
                "-c {rest} INPUT > OUTPUT"
            ),
            where=path,
            detail=detail,
            rest=reach.rest or "BYTES",
        )
    if reach.torn is None:
        return None
    return codes.TRUNCATED(where=path, stated=f"{reach.torn[0]} bytes", actual=f"{reach.torn[1]} bytes")


def check_shape(path: str, rate: int, channels: int, frames: int = 0, size: int = 0) -> None:
    """Refuse a header with impossible numbers.

    Args:
        path: of the recording.
        rate: Hz.
        channels: number of channels.
        frames: samples a channel; 0: unknown.
        size: bytes of the file.

    Raises:
        AudioError: a number is impossible.
    """
    low, high = RATES
    if not low <= rate <= high:
        raise codes.IMPOSSIBLE_RATE(where=path, rate=rate, low=low, high=high)
    if not 1 <= channels <= CHANNELS:
        raise codes.IMPOSSIBLE_CHANNELS(where=path, channels=channels, highest=CHANNELS)
    if frames * channels > PER_BYTE * size:
        raise codes.IMPOSSIBLE_LENGTH(where=path, hours=frames / rate / 3600, size=size)


def all_of(size: int) -> Extent:
    """The file as it is."""
    return Extent([Part([(0, size)])])


def moved(part: Part, by: int) -> Part:
    """A part of a file that begins at a later byte of another one."""
    pieces = [piece if isinstance(piece, bytes) else (piece[0] + by, piece[1] + by) for piece in part.pieces]
    return part._replace(pieces=pieces)


def bytes_at(file: Readable, place: int, size: int) -> bytes:
    """Bytes at a place, fewer at the end."""
    file.seek(place)
    return file.read(size)


def after_id3(file: Readable, place: int) -> int:
    """The byte after an ID3 tag, whose length is in bytes 6 to 9, seven bits each; the place itself without one."""
    head = bytes_at(file, place, 10)
    if not head.startswith(b"ID3") or len(head) < 10:
        return place
    return place + 10 + sum((byte & 0x7F) << shift for byte, shift in zip(head[6:10], (21, 14, 7, 0), strict=True))


def places_of(file: Readable, pattern: re.Pattern[bytes], begin: int, size: int) -> Iterator[int]:
    """Places of a pattern of at most 64 bytes."""
    for place in range(begin, size, BLOCK):
        yield from (
            place + match.start()
            for match in pattern.finditer(bytes_at(file, place, BLOCK + 63))
            if match.start() < BLOCK
        )


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
