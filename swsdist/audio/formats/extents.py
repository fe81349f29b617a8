"""How far the sound of a file goes, by its bytes: what a header states of its length is a claim.

libsndfile stops where a length in the header says so. Here chunks are followed, pages walked, MPEG frames counted; where they
contradict the header, libsndfile is given the file with another header, and each part of a joined file as a file of its own
(`View`). A file whose header is right is given as it is.

- Chunks (WAV, RF64, AIFF, CAF, W64, AU): behind the data stand well-formed chunks, or the beginning of another file, or else
  samples. A size of 32 bits that was counted past 4 GiB is one of RF64.
- FLAC: the number in the last frame's header counts against STREAMINFO. Ogg: each stream that begins after data is a part.
- MPEG: without a Xing tag, decoders estimate the length; they are given one that counts the frames. A second tag begins a part.

Sources: Microsoft, RIFF (1991); EBU Tech 3306 (RF64); Apple, AIFF-C and CAF; Sony, W64; RFC 9639 (FLAC); RFC 3533 (Ogg);
ISO 11172-3, section 2.4.1.3, and 13818-3 (MPEG headers); the Xing tag as LAME writes it.
"""

from __future__ import annotations

import io
import re
import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

#: Bytes given to the decoder: these, or those of the file from the first place to the second.
Piece: TypeAlias = bytes | tuple[int, int]

#: Bytes behind a stated end that are no sound: less than a sector of a disk, or a tag.
_PADDING = 512
_TAGS = (b"TAG", b"ID3", b"APETAGEX", b"LYRICSBEGIN")

#: Most samples a byte can hold: a FLAC block of 65535 equal samples takes 14 bytes.
PER_BYTE = 10_000

_BLOCK = 1 << 20


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
    """What to decode of a file, in order.

    Attributes:
        parts: mostly one.
        rest: bytes at the end that no decoder is given.
        torn: bytes that the last frame states, and those that there are, if it is incomplete.
        next: byte at which another file begins.
        counted: samples by frames of MPEG's layers I and II, which have no tag that states them.
    """

    parts: list[Part]
    rest: int = 0
    torn: tuple[int, int] | None = None
    next: int | None = None
    counted: int | None = None


def extent(file: Readable, brief: bool = False, remote: bool = False) -> Extent:
    """How far the sound of a file goes.

    Args:
        file: of any format; others than these are one part.
        brief: believe what the beginning and the end agree on, so that the middle is not read.
        remote: the same, and of FLAC the beginning, so that what is decoded is not fetched twice.
    """
    size, at = file.seek(0, 2), 0
    parts: list[Part] = []
    while True:
        first = _first(View(file, [(at, size)]), size - at, brief, remote)
        parts += (_moved(part, at) for part in first.parts)
        if first.next is None:
            return first._replace(parts=parts)
        at += first.next


def _first(file: Readable, size: int, brief: bool, remote: bool) -> Extent:
    """The extent of the first of joined files."""
    begin = _after_id3(file, 0)
    head = _at(file, begin, 64)
    if head[:4] in _CHUNKED and head[8:12] not in _NO_SOUND:
        return _of_chunks(file, size, head)
    if head[:4] in _AU:
        return _of_au(file, size, head)
    if head.startswith(b"fLaC"):
        return _all_of(size) if remote else _of_flac(file, begin, size, brief)
    if head.startswith(b"OggS"):
        return _of_ogg(file, size, brief or remote)
    if begin or (head[:1] == b"\xff" and head[1:3] in _FRAMES):
        return _of_mpeg(file, begin, size, brief or remote)
    return _all_of(size)


def _all_of(size: int) -> Extent:
    return Extent([Part([(0, size)])])


def _moved(part: Part, by: int) -> Part:
    pieces = [piece if isinstance(piece, bytes) else (piece[0] + by, piece[1] + by) for piece in part.pieces]
    return part._replace(pieces=pieces)


def _at(file: Readable, place: int, size: int) -> bytes:
    file.seek(place)
    return file.read(size)


def _after_id3(file: Readable, place: int) -> int:
    """The byte after an ID3 tag, whose length is in bytes 6 to 9, seven bits each; the place itself without one."""
    head = _at(file, place, 10)
    if not head.startswith(b"ID3") or len(head) < 10:
        return place
    return place + 10 + sum((byte & 0x7F) << shift for byte, shift in zip(head[6:10], (21, 14, 7, 0), strict=True))


# Chunks


class _Chunks(NamedTuple):
    """A format of chunks.

    Attributes:
        first: byte of the first chunk.
        name: bytes of a name.
        size: of a chunk, as `struct` packs it.
        inclusive: whether it counts name and size, too.
        unit: to which chunks are padded.
        data: name of the samples.
    """

    first: int
    name: int
    size: str
    inclusive: bool
    unit: int
    data: bytes

    def read(self, file: Readable, place: int) -> tuple[bytes, int, int] | None:
        """Name of a chunk, its first byte, and its size; None at the end."""
        head = _at(file, place, self.name + struct.calcsize(self.size))
        if len(head) < self.name + struct.calcsize(self.size):
            return None
        (size,) = struct.unpack(self.size, head[self.name :])
        return head[: self.name], place + len(head), max(0, size - len(head)) if self.inclusive else size

    def after(self, body: int, size: int) -> int:
        """The byte of the next chunk."""
        return body + size + -size % self.unit


_CHUNKED = {
    b"RIFF": _Chunks(12, 4, "<I", False, 2, b"data"),
    b"RF64": _Chunks(12, 4, "<I", False, 2, b"data"),
    b"RIFX": _Chunks(12, 4, ">I", False, 2, b"data"),
    b"FORM": _Chunks(12, 4, ">I", False, 2, b"SSND"),
    b"caff": _Chunks(8, 4, ">Q", False, 1, b"data"),
    b"riff": _Chunks(40, 16, "<Q", True, 8, b"data"),
}
_NO_SOUND = (b"AVI ",)
_MP3 = 0x55
#: Least size that a program states when it does not know it: 2 GiB (sox, arecord) or 4 GiB, less some.
PLACEHOLDER = 0x7FFFF000


def _of_chunks(file: Readable, size: int, head: bytes) -> Extent:
    kind = _CHUNKED[head[:4]]
    place, ds64, long, coding = kind.first, (kind.first, kind.first), 0xFFFFFFFF, b""
    while (chunk := kind.read(file, place)) is not None and not chunk[0].startswith(kind.data):
        name, body, stated = chunk
        if name == b"ds64":
            ds64, long = (place, kind.after(body, stated)), int.from_bytes(_at(file, body + 8, 8), "little")
        elif name == b"fmt ":
            coding = _at(file, body, 2)
        place = kind.after(body, stated)
    if chunk is None:
        return _all_of(size)  # libsndfile tells what is lacking
    _, body, stated = chunk
    stated = long if head.startswith(b"RF64") and stated == 0xFFFFFFFF else stated
    endless = stated >= 1 << 63
    following = None if endless else _another(file, head, body + stated, size)
    right = following is not None or _ends(file, kind, kind.after(body, stated), size)
    end = (following or min(body + stated, size)) if right else size
    torn = (stated, size - body) if body + stated > size and not endless else None
    if coding == struct.pack(kind.size[0] + "H", _MP3):
        inner = extent(View(file, [(body, end)]))
        torn = inner.torn or (torn if stated < PLACEHOLDER else None)
        return Extent([_moved(part, body) for part in inner.parts], inner.rest, torn, following)
    if right and not endless and (torn is None or not head.startswith(b"caff")):
        return _all_of(following or size)._replace(next=following)
    if head[:4] in (b"RIFF", b"RF64") and (end - body >= 1 << 32 or ds64[1] > ds64[0]):
        before = [(kind.first, ds64[0]), (ds64[1], place + 4)]
        total = 40 + sum(last - first for first, last in before) + 4 + end - body
        start = struct.pack("<4sI4s4sIQQQI", b"RF64", 0xFFFFFFFF, b"WAVE", b"ds64", 28, total, end - body, 0, 0)
        return Extent([Part([start, *before, b"\xff\xff\xff\xff", (body, end)])])
    header = body - place
    end = min(end, body + (1 << 8 * (header - kind.name)) - 1)
    counted = struct.pack(kind.size, end - body + (header if kind.inclusive else 0))
    return Extent([Part([(0, place + kind.name), counted, (body, end)])], size - end, torn)


def _ends(file: Readable, kind: _Chunks, place: int, size: int) -> bool:
    """Whether nothing follows but chunks, a tag or padding."""
    while size - place >= _PADDING:
        if _at(file, place, 12).startswith(_TAGS):
            return True
        chunk = kind.read(file, place)
        if chunk is None or not re.match(rb"[ -~]{4}", chunk[0]) or chunk[1] + chunk[2] > size:
            return False
        place = kind.after(*chunk[1:])
    return True


def _another(file: Readable, head: bytes, end: int, size: int) -> int | None:
    """Where another file of the kind begins at the stated end, if one does."""
    if size - end < _PADDING:
        return None
    match = re.search(re.escape(head[:4]) + b"(?s:....)" + re.escape(head[8:12]), _at(file, end, 32))
    return end + match.start() if match else None


_AU = {b".snd": ">II", b"dns.": "<II"}


def _of_au(file: Readable, size: int, head: bytes) -> Extent:
    begin, stated = struct.unpack(_AU[head[:4]], head[4:12].ljust(8, b"\xff"))
    end = begin + stated
    if size - end < _PADDING:
        return _all_of(size)
    if head[:8] in (after := _at(file, end, 32)):
        following = end + after.index(head[:8])
        return _all_of(following)._replace(next=following)
    return Extent([Part([(0, 8), b"\xff\xff\xff\xff", (12, size)])])


# FLAC

_STREAMINFO = re.compile(rb"fLaC[\x00\x80]\x00\x00\x22")
_BLOCKS = (0, 192, 576, 1152, 2304, 4608, 0, 0, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768)


def _of_flac(file: Readable, begin: int, size: int, brief: bool) -> Extent:
    starts = [begin] if brief else [begin, *(place for place in _places_of(file, _STREAMINFO, begin + 42, size))]
    parts: list[Part] = []
    for first, end in zip(starts, [*starts[1:], size], strict=True):
        info = _at(file, first + 8, 34)
        place = first if first > begin else 0
        frames = _last_sample(file, first, end, info) if len(info) == 34 else None
        high, stated = info[13] if frames else 0, int.from_bytes(info[14:18], "big") if frames else 0
        stated += (high & 15) << 32
        if frames is not None and (frames > stated or stated > (end - first) * PER_BYTE):
            number = bytes([high & 0xF0 | frames >> 32]) + struct.pack(">I", frames & 0xFFFFFFFF)
            parts.append(Part([(place, first + 21), number, (first + 26, end)]))
        else:
            parts.append(Part([(place, end)]))
    return Extent(parts)


def _last_sample(file: Readable, first: int, end: int, info: bytes) -> int | None:
    """Samples up to the end of the last frame, by its number; it must follow the number of the frame before."""
    longest = int.from_bytes(info[7:10], "big") or 1 << 16
    tail = _at(file, max(first, end - 3 * longest), 3 * longest)
    following: dict[int, int] = {}  # number of the next frame: samples up to there
    last = None
    for match in re.finditer(rb"\xff[\xf8\xf9]", tail):
        header = tail[match.start() : match.start() + 16]
        frame = _flac_frame(header, int.from_bytes(info[2:4], "big"))
        if frame is not None:
            number, after, samples = frame
            if number in following:
                last = samples
            following[after] = samples
    return last


def _flac_frame(header: bytes, usual: int) -> tuple[int, int, int] | None:
    """Number of a frame and of the next one, and samples up to there; None where there is none (RFC 9639, section 9.1)."""
    if len(header) < 16 or header[3] & 1:
        return None
    more = 0 if header[4] < 0x80 else 8 - (header[4] ^ 0xFF).bit_length() - 1
    number = header[4] & (0x7F if not more else (1 << 6 - more) - 1)
    for byte in header[5 : 5 + more]:
        if byte & 0xC0 != 0x80:
            return None
        number = number << 6 | byte & 0x3F
    at, code = 5 + more, header[2] >> 4
    block = _BLOCKS[code]
    if code in (6, 7):
        block = int.from_bytes(header[at : at + code - 5], "big") + 1
        at += code - 5
    at += {12: 1, 13: 2, 14: 2}.get(header[2] & 15, 0)
    check = 0
    for byte in header[:at]:
        check ^= byte
        for _ in range(8):
            check = (check << 1 ^ (0x107 if check & 0x80 else 0)) & 0x1FF
    if not block or more > 6 or check != header[at]:
        return None
    if header[1] & 1:
        return number, number + block, number + block
    return number, number + 1, number * usual + block


def _places_of(file: Readable, pattern: re.Pattern[bytes], begin: int, size: int) -> Iterator[int]:
    """Places of a pattern of at most 64 bytes."""
    for place in range(begin, size, _BLOCK):
        yield from (
            place + match.start() for match in pattern.finditer(_at(file, place, _BLOCK + 63)) if match.start() < _BLOCK
        )


# Ogg


def _of_ogg(file: Readable, size: int, brief: bool) -> Extent:
    """A part for each stream that begins after data: bytes 5 and 14 to 17 of a page are flags and the stream's number."""
    if brief:
        tail = _at(file, max(0, size - (1 << 17)), 1 << 17)
        last = tail.rfind(b"OggS")
        if tail[last + 14 : last + 18] == _at(file, 14, 4):
            return _all_of(size)
    starts, place, data = [0], 0, False
    while (page := _at(file, place, 282)).startswith(b"OggS") and len(page) > 27:
        if page[5] & 2 and data:
            starts.append(place)
        data = not page[5] & 2
        place += 27 + page[26] + sum(page[27 : 27 + page[26]])
    return Extent([Part([span]) for span in zip(starts, [*starts[1:], size], strict=True)])


# MPEG

_RATES = (44100, 48000, 32000)
_KILOBITS = {  # by whether it is MPEG-1, and the layer
    (True, 1): (32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (True, 2): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (True, 3): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (False, 1): (32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (False, 2): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (False, 3): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}


def _frame_lengths() -> dict[bytes, int]:
    """Bytes of a frame by bytes 1 and 2 of its header."""
    result = {}
    for first in range(0xE0, 0x100):
        version, layer = first >> 3 & 3, 4 - (first >> 1 & 3)
        if version == 1 or layer == 4:
            continue
        samples = 384 if layer == 1 else 576 if layer == 3 and version != 3 else 1152
        for number, kilobits in enumerate(_KILOBITS[version == 3, layer], 1):
            for code, rate in enumerate(_RATES):
                slots = samples // (32 if layer == 1 else 8) * 1000 * kilobits // (rate >> {3: 0, 2: 1, 0: 2}[version])
                for padding in (0, 1):
                    second = number << 4 | code << 2 | padding << 1
                    for private in (0, 1):
                        result[bytes([first, second | private])] = (slots + padding) * (4 if layer == 1 else 1)
    return result


_FRAMES = _frame_lengths()


_SILENT = 8


@dataclass
class _Run:
    """Frames of MPEG, one after the other.

    Attributes:
        begin: first byte.
        tag: place of the word Xing or Info, if the first frame only holds such a tag, with a number of frames.
        end: the byte after the last frame.
        frames: number without the tag's.
        unbroken: whether there is nothing between the frames.
    """

    begin: int
    tag: int | None
    end: int = 0
    frames: int = 0
    unbroken: bool = True


def _of_mpeg(file: Readable, begin: int, size: int, brief: bool) -> Extent:
    if brief and _tag_fits(file, begin, size):
        return _all_of(size)
    runs, torn = _walked(file, begin, size)
    if not runs:
        return _all_of(size)
    if (samples := _samples(_at(file, runs[0].begin, 4)))[0] != 3:
        return _all_of(size)._replace(torn=torn, counted=sum(run.frames for run in runs) * samples[1])
    parts: list[Part] = []
    for k, run in enumerate(runs):
        end = runs[k + 1].begin if k + 1 < len(runs) else size
        if run.tag is None:
            header = _at(file, run.begin, 4)
            start = _tagged(header, run.frames, end - run.begin)
            parts.append(Part([start, (run.begin, end)], run.frames * _samples(header)[1]))
            continue
        flags, stated, counted = struct.unpack(">III", _at(file, run.tag + 4, 12))
        short = stated > run.frames + 1 and (not flags & 2 or run.begin + counted > run.end)
        if short:
            torn = torn or (counted, run.end - run.begin)
        if stated - run.frames in (0, 1) or short or (stated > run.frames and not run.unbroken):
            parts.append(Part([(run.begin if k else 0, end)]))
        else:
            parts.append(Part([(run.begin, run.tag + 8), struct.pack(">I", run.frames), (run.tag + 12, end)]))
    return Extent(parts, torn=torn)


def _tag_fits(file: Readable, begin: int, size: int) -> bool:
    """Whether the file is as long as its first frame states, but for tags at the end."""
    tag = re.search(rb"(?s:(?:Xing|Info)\0\0\0[\3\7\x0b\x0f](.{4})(.{4}))", _at(file, begin, 256))
    frames, counted = (int.from_bytes(part, "big") for part in tag.groups()) if tag else (0, 0)
    return 16 * frames <= counted <= 1500 * frames and 0 <= size - begin - counted <= _BLOCK >> 8


def _samples(header: bytes) -> tuple[int, int]:
    """Layer, and samples of a frame."""
    layer = 4 - (header[1] >> 1 & 3)
    return layer, 384 if layer == 1 else 576 if layer == 3 and header[1] & 0x18 != 0x18 else 1152


def _tagged(header: bytes, frames: int, size: int) -> bytes:
    """Frames before those of layer III: one with a Xing tag, and silent ones, from which decoders take off their delay; so many
    that the decoder's state is the same afterwards, and so are the samples."""
    tag, silent = (bytes([0xFF, header[1] | 1, header[2] & 0x0C | rate << 4, header[3]]) for rate in (8, 1))
    lengths = _FRAMES[tag[1:3]], _FRAMES[silent[1:3]]
    total = size + lengths[0] + _SILENT * lengths[1]
    body = tag + bytes(_tag_offset(tag) - 4) + struct.pack(">4sIII", b"Xing", 3, frames + _SILENT, total)
    return body.ljust(lengths[0], b"\0") + _SILENT * silent.ljust(lengths[1], b"\0")


def _tag_offset(header: bytes) -> int:
    """Byte of a frame at which a tag begins: behind the side information."""
    mpeg1, mono = header[1] & 0x18 == 0x18, header[3] & 0xC0 == 0xC0
    return 4 + (0 if header[1] & 1 else 2) + ((17 if mono else 32) if mpeg1 else (9 if mono else 17))


def _walked(file: Readable, begin: int, size: int) -> tuple[list[_Run], tuple[int, int] | None]:
    """Runs of frames of one kind; and the bytes that the last frame states and has, if it is torn."""
    runs: list[_Run] = []
    buffer, base, place = b"", 0, begin
    like, gap = b"", False  # kind of the frames before; whether there is something else between them and the place

    def read(at: int) -> bytes:
        nonlocal buffer, base
        if not base <= at <= base + len(buffer) - 48:
            buffer, base = _at(file, at, _BLOCK), at
        return buffer[at - base : at - base + 48]

    while place < size:
        head = read(place)
        length = _FRAMES.get(head[1:3], 0) if head[:1] == b"\xff" else 0
        kind = bytes([head[1] & 0xFE, head[2] & 0x0C, head[3] & 0xC0 == 0xC0]) if length and len(head) > 3 else b""
        if kind and (gap or kind != like) and place + length < size:
            following = read(place + length)
            if following[:1] != b"\xff" or following[1:3] not in _FRAMES:
                kind = b""  # a chance
        if not kind:
            after = _after_tag(file, head, place)
            if after == place:
                gap = True
                sync = buffer.find(b"\xff", place + 1 - base)
                place = base + (sync if sync > 0 else len(buffer))
            else:
                place = after
                if head.startswith(b"ID3"):
                    like = b""
            continue
        if place + length > size:
            return runs, (length, size - place)
        offset = _tag_offset(head)
        tag = other = False
        if head[offset : offset + 4] in (b"Xing", b"Info"):
            tag = bool(head[offset + 7] & 1)
            other = not tag
        other = other or head[36:40] == b"VBRI"
        if tag or other or kind != like:
            runs.append(_Run(place + length if other else place, place + offset if tag else None))
        elif gap:
            runs[-1].unbroken = False
        like, gap = kind, False
        runs[-1].frames += not (tag or other)
        place += length
        runs[-1].end = place
    return runs, None


def _after_tag(file: Readable, head: bytes, place: int) -> int:
    """The byte after a tag of another kind; the place itself if there is none."""
    if head.startswith(b"TAG"):
        return place + 128
    if head.startswith(b"APETAGEX"):
        return place + 32 + int.from_bytes(head[12:16], "little")
    return _after_id3(file, place)
