"""Extent of a file's sound, found in its bytes, because the length that a header states may be wrong.

libsndfile stops where a length in the header says so. Here chunks are followed, pages walked and MPEG frames counted;
where they contradict the header, libsndfile is given the file with another header, and each part of a joined file as a
file of its own (`View`). A file whose header is right is given as it is.

- Chunks (WAV, RF64, AIFF, CAF, W64, AU): the data are followed by well-formed chunks, or the beginning of another file,
  or else samples. A size of 32 bits that was counted past 4 GiB is one of RF64.
- FLAC: the number in the last frame's header counts against STREAMINFO. Ogg: each stream that begins after data is a
  part.
- Frames, packets and boxes (MPEG audio, AAC, AC-3, MPEG streams, MP4): decoders estimate the length of MPEG audio
  without a Xing tag; they are given one that counts the frames. A second tag begins another part. ffmpeg silently drops
  a torn last frame, and reads MP4 only up to a second file.

Sources: Microsoft, RIFF (1991); EBU Tech 3306 (RF64); Apple, AIFF-C and CAF; Sony, W64; RFC 9639 (FLAC); RFC 3533
(Ogg); ISO 11172-3, section 2.4.1.3, and 13818-3 (MPEG headers); the Xing tag as LAME writes it; ISO 13818-7 (ADTS),
13818-1 (streams), 14496-12 (boxes); ETSI TS 102 366 (AC-3).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from swsdist.audio.formats.views import (
    BLOCK,
    PADDING,
    PER_BYTE,
    PLACEHOLDER,
    TAGS,
    Extent,
    Part,
    Piece,
    Readable,
    View,
    after_id3,
    all_of,
    bytes_at,
    moved,
    places_of,
)

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


FRAMES = _frame_lengths()


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


def of_mpeg(file: Readable, begin: int, size: int, brief: bool) -> Extent:
    """MPEG audio, of which decoders believe a tag, or estimate the length.

    Args:
        file: with an ID3 tag before its frames, or none.
        begin: its first byte after that.
        size: bytes of the file.
        brief: believe a tag that fits the file's size.
    """
    if brief and _tag_fits(file, begin, size):
        return all_of(size)
    runs, torn = _walked(file, begin, size)
    if not runs:
        return all_of(size)
    if (samples := _samples(bytes_at(file, runs[0].begin, 4)))[0] != 3:
        return all_of(size)._replace(torn=torn, counted=sum(run.frames for run in runs) * samples[1])
    parts: list[Part] = []
    for k, run in enumerate(runs):
        end = runs[k + 1].begin if k + 1 < len(runs) else size
        if run.tag is None:
            header = bytes_at(file, run.begin, 4)
            start = _tagged(header, run.frames, end - run.begin)
            parts.append(Part([start, (run.begin, end)], run.frames * _samples(header)[1]))
            continue
        flags, stated, counted = struct.unpack(">III", bytes_at(file, run.tag + 4, 12))
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
    tag = re.search(rb"(?s:(?:Xing|Info)\0\0\0[\3\7\x0b\x0f](.{4})(.{4}))", bytes_at(file, begin, 256))
    frames, counted = (int.from_bytes(part, "big") for part in tag.groups()) if tag else (0, 0)
    return 16 * frames <= counted <= 1500 * frames and 0 <= size - begin - counted <= BLOCK >> 8


def _samples(header: bytes) -> tuple[int, int]:
    """Layer, and samples of a frame."""
    layer = 4 - (header[1] >> 1 & 3)
    return layer, 384 if layer == 1 else 576 if layer == 3 and header[1] & 0x18 != 0x18 else 1152


def _tagged(header: bytes, frames: int, size: int) -> bytes:
    """Frames before those of layer III: one with a Xing tag, and silent ones, from which decoders take off their delay; so many
    that the decoder's state is the same afterwards, and so are the samples."""
    tag, silent = (bytes([0xFF, header[1] | 1, header[2] & 0x0C | rate << 4, header[3]]) for rate in (8, 1))
    lengths = FRAMES[tag[1:3]], FRAMES[silent[1:3]]
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
    last, torn = begin, None  # place of the frame before
    for place, head, is_other, follows_gap in _mpeg_frames(file, begin, size):
        length = _header(head)[1]
        if place + length > size:
            return runs, torn or (length, size - place)
        if runs and place < runs[-1].end:
            torn = torn or (runs[-1].end - last, place - last)
            runs[-1].frames, runs[-1].end = runs[-1].frames - 1, last
        counts, other = _tags(head)
        if counts or other or is_other:
            runs.append(_Run(place + length if other else place, place + _tag_offset(head) if counts else None))
        elif follows_gap:
            runs[-1].unbroken = False
        runs[-1].frames += not (counts or other)
        last, runs[-1].end = place, place + length
    return runs, torn


def _mpeg_frames(file: Readable, begin: int, size: int) -> Iterator[tuple[int, bytes, bool, bool]]:
    """The first byte and the beginning of each frame; whether its kind is another than that of the frame before; and whether
    there is something else between them.
    """
    buffer, base, place = b"", 0, begin
    like, gap, last = b"", False, -1  # kind of the frame before; whether something else came after it; its place

    def read(at: int) -> bytes:
        nonlocal buffer, base
        if not base <= at <= base + len(buffer) - 48:
            buffer, base = bytes_at(file, at, BLOCK), at
        return buffer[at - base : at - base + 48]

    while place < size:
        head = read(place)
        kind, length = _header(head)
        if kind and (gap or kind != like) and place + length < size and not _header(read(place + length))[1]:
            kind = b""  # a chance
        if kind:
            yield place, head, kind != like, gap
            like, gap, last = kind, False, place
            place += length
        elif (after := _after_tag(file, head, place)) > place:
            place, last, like = after, -1, b"" if head.startswith(b"ID3") else like
        else:
            if not gap and last >= 0:
                place = last + 1  # another frame may cut it short
                read(place)
            gap = True
            sync = buffer.find(b"\xff", place + 1 - base)
            place = base + (sync if sync > 0 else len(buffer))


def _header(head: bytes) -> tuple[bytes, int]:
    """Kind of a frame, by version, layer, rate and whether it is mono; and its bytes. Empty, and 0, where none begins."""
    length = FRAMES.get(head[1:3], 0) if head[:1] == b"\xff" else 0
    if not length or len(head) < 4:
        return b"", length
    return bytes([head[1] & 0xFE, head[2] & 0x0C, head[3] & 0xC0 == 0xC0]), length


def _tags(head: bytes) -> tuple[bool, bool]:
    """Whether a frame only holds a tag: one with a number of frames; one without."""
    offset = _tag_offset(head)
    xing = head[offset : offset + 4] in (b"Xing", b"Info")
    counts = xing and bool(head[offset + 7] & 1)
    return counts, xing != counts or head[36:40] == b"VBRI"


def _after_tag(file: Readable, head: bytes, place: int) -> int:
    """The byte after a tag of another kind; the place itself if there is none."""
    if head.startswith(b"TAG"):
        return place + 128
    if head.startswith(b"APETAGEX"):
        return place + 32 + int.from_bytes(head[12:16], "little")
    return after_id3(file, place)


# What ffmpeg decodes


def of_others(file: Readable, size: int, head: bytes) -> Extent:
    """The file with what ffmpeg leaves unread, or what is torn; it ends at a second header of some formats, without a word."""
    if head[4:8] in _BOXES:
        return _of_boxes(file, size)
    again = next((start for start in _ONCE if head.startswith(start)), None)
    if again is not None:
        mark = re.compile(re.escape(head[:14] if len(again) < 14 else again))
        rest = size - next(places_of(file, mark, 14, size), size)
        stated = (
            re.search(rb"filesize\0(.{8})", bytes_at(file, 0, BLOCK >> 8), re.DOTALL) if head[:3] == b"FLV" else None
        )
        stated_size = struct.unpack(">d", stated[1])[0] if stated else 0.0
        if rest or stated_size > size or head[:3] != b"FLV":
            return all_of(size)._replace(
                rest=rest, torn=(int(stated_size), size) if size < stated_size < 1e15 else None
            )
    if head[8:12] == b"AVI ":
        end = int.from_bytes(head[4:8], "little") + 8
        last = next(places_of(file, _AVI, 12, size), size) if size > end else size
        return all_of(size)._replace(torn=(end, last) if last < end < PLACEHOLDER else None)
    begin = after_id3(file, 0)
    length = next(
        (
            length
            for length in (adts_frame, _ac3_frame, _flv_tag, _ts_packet, _pack)
            if length(bytes_at(file, begin, 16))
        ),
        None,
    )
    if length is None:
        return all_of(size)
    place, buffer, base = begin, b"", 0
    while place < size:
        if not base <= place <= base + len(buffer) - 16:
            buffer, base = bytes_at(file, place, BLOCK), place
        step = length(buffer[place - base : place - base + 16])
        if not step or place + step > size:
            return all_of(size)._replace(torn=(step, size - place) if step else None)
        place += step
    return all_of(size)


_ONCE = (bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c"), b"FLV\x01", b"TTA1")
_AVI = re.compile(b"(?s:RIFF....AVI LIST)")
_BOXES = (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip")
_AC3 = (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640)


def _of_boxes(file: Readable, size: int) -> Extent:
    """Boxes of MP4: ffmpeg reads up to the first that is none, or up to a second file."""
    place, names = 0, set[bytes]()
    while size - place >= PADDING:
        head = bytes_at(file, place, 16)
        length, name = int.from_bytes(head[:4], "big"), head[4:8]
        length = int.from_bytes(head[8:], "big") if length == 1 else length or size - place
        if head.startswith(TAGS) or not any(head):
            break
        another = name in names and name in (b"ftyp", b"moov")
        if another or length < 8 or not re.fullmatch(rb"[ -~\xa9]{4}", name):
            again = another or any(places_of(file, _FILE, place, size))
            return all_of(size)._replace(rest=size - place if again else 0)
        if place + length > size:
            return all_of(size)._replace(torn=(length, size - place))
        if place + length == size and any(places_of(file, _FRAGMENT, place + 8, size)):
            return all_of(size)._replace(rest=size - place)
        names.add(name)
        place += length
    return all_of(size)


_FILE = re.compile(rb"\0\0\0[\x08-\x40]ftyp|moof\0\0\0\x10mfhd")
_FRAGMENT = re.compile(rb"moof\0\0\0\x10mfhd")


def adts_frame(head: bytes) -> int:
    """Bytes of a frame of AAC; 0 if there is none."""
    fits = len(head) > 5 and head[0] == 0xFF and head[1] & 0xF6 == 0xF0
    return (head[3] & 3) << 11 | head[4] << 3 | head[5] >> 5 if fits else 0


def _ac3_frame(head: bytes) -> int:
    """Bytes of a frame of AC-3 or E-AC-3; 0 if there is none (ETSI TS 102 366)."""
    if len(head) < 6 or not head.startswith(b"\x0b\x77"):
        return 0
    if head[5] >> 3 > 10:
        return 2 * ((head[2] & 7) << 8 | head[3]) + 2
    rate, code = head[4] >> 6, head[4] & 63
    if rate == 3 or code >> 1 >= len(_AC3):
        return 0
    return 2 * (_AC3[code >> 1] * 2, _AC3[code >> 1] * 320 // 147 + code % 2, _AC3[code >> 1] * 3)[rate]


def _flv_tag(head: bytes) -> int:
    """Bytes of a tag of FLV with its length behind it, or of the header; 0 if there is none."""
    if head.startswith(b"FLV\1"):
        return 13
    return 15 + int.from_bytes(head[1:4], "big") if head[:1] in (b"\x08", b"\x09", b"\x12") else 0


def _ts_packet(head: bytes) -> int:
    """Bytes of a packet of an MPEG transport stream; 0 if there is none."""
    return 188 if head.startswith(b"G") else 192 if head[4:5] == b"G" else 0


def _pack(head: bytes) -> int:
    """Bytes of a header or packet of an MPEG program stream; 0 if there is none."""
    if len(head) < 14 or not head.startswith(b"\0\0\1") or head[3] < 0xB9:
        return 4 if head[:4] == b"\0\0\1\xb9" else 0
    if head[3] == 0xBA:
        return 14 + (head[13] & 7) if head[4] & 0xC0 == 0x40 else 12
    return 6 + int.from_bytes(head[4:6], "big")


def extent(file: Readable, brief: bool = False, remote: bool = False) -> Extent:
    """The extent of a file's sound.

    Args:
        file: of any format; others than these are one part.
        brief: believe what the beginning and the end agree on, so that the middle is not read.
        remote: the same, and of FLAC the beginning, so that what is decoded is not fetched twice.
    """
    size, at = file.seek(0, 2), 0
    parts: list[Part] = []
    rest, torn = 0, None
    while True:
        first = _first(View(file, [(at, size)]), size - at, brief, remote)
        parts += (moved(part, at) for part in first.parts)
        rest, torn = rest + first.rest, torn or first.torn
        if first.next is None:
            return first._replace(parts=parts, rest=rest, torn=torn)
        at += first.next


def _first(file: Readable, size: int, brief: bool, remote: bool) -> Extent:
    """The extent of the first of joined files."""
    begin = after_id3(file, 0)
    if begin:
        padding = bytes_at(file, begin, 4096)
        begin += len(padding) - len(padding.lstrip(b"\0"))
    head = bytes_at(file, begin, 64)
    if head[:4] in _CHUNKED and head[8:12] not in _NO_SOUND:
        return _of_chunks(file, size, head)
    if head[:4] in _AU:
        return _of_au(file, size, head)
    if head.startswith(b"NIST_1A") and (lengths := sphere_lengths(bytes_at(file, begin, 4096))):
        return _of_block(file, lengths[0], lengths[1], size, head[:16], [(0, size)])
    if head.startswith(_REPEATED) and not brief and not remote:
        following = next(places_of(file, re.compile(re.escape(head[:16])), 16, size), size)
        return all_of(following)._replace(next=following if following < size else None)
    if head.startswith(b"fLaC"):
        return all_of(size) if remote else _of_flac(file, begin, size, brief)
    if head.startswith(b"OggS"):
        return _of_ogg(file, size, brief or remote)
    framed = begin > 0 or (head[:1] == b"\xff" and head[1:3] in FRAMES)
    if framed and not adts_frame(head):
        return of_mpeg(file, begin, size, brief or remote)
    return all_of(size) if brief or remote else of_others(file, size, head)


# Chunks


class _Chunk(NamedTuple):
    """A chunk: its name, the bytes at which it and its body begin, and the size that it states of the body."""

    name: bytes
    place: int
    body: int
    size: int

    @property
    def end(self) -> int:
        """The byte after the body, without padding."""
        return self.body + self.size


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

    def read(self, file: Readable, place: int) -> _Chunk | None:
        """The chunk at a place; None at the end."""
        head = bytes_at(file, place, self.name + struct.calcsize(self.size))
        if len(head) < self.name + struct.calcsize(self.size):
            return None
        (size,) = struct.unpack(self.size, head[self.name :])
        size = max(0, size - len(head)) if self.inclusive else size
        return _Chunk(head[: self.name], place, place + len(head), size)

    def up_to_data(self, file: Readable) -> Iterator[_Chunk]:
        """The chunks up to the samples, or else all."""
        chunk = self.read(file, self.first)
        while chunk is not None:
            yield chunk
            chunk = None if chunk.name.startswith(self.data) else self.read(file, self.after(chunk))

    def stated_end(self, head: bytes, long: int) -> int:
        """The end of the file that its header states; 0 if it states none."""
        if self.inclusive:
            return int.from_bytes(head[16:24], "little")
        if self.first == 12:
            (size,) = struct.unpack(self.size, head[4:8])
            return 8 + (long if head.startswith(b"RF64") else size)
        return 0

    def after(self, chunk: _Chunk) -> int:
        """The byte of the next chunk."""
        return chunk.body + chunk.size + -chunk.size % self.unit


_CHUNKED = {
    b"RIFF": _Chunks(12, 4, "<I", False, 2, b"data"),
    b"RF64": _Chunks(12, 4, "<I", False, 2, b"data"),
    b"RIFX": _Chunks(12, 4, ">I", False, 2, b"data"),
    b"FORM": _Chunks(12, 4, ">I", False, 2, b"SSND"),
    b"caff": _Chunks(8, 4, ">Q", False, 1, b"data"),
    b"riff": _Chunks(40, 16, "<Q", True, 8, b"data"),
}
#: Names of chunks, in capitals.
_NAMES = frozenset(
    b"LIST BEXT IXML AXML ID3  CUE  PLST SMPL INST FACT PEAK JUNK PAD  FLLR FREE CART ACID STRC DISP AFSP UMID LEVL _PMX REGN "
    b"CHNA LINK MINF ELM1 NAME AUTH (C)  ANNO MARK MIDI APPL COMT AESD COMM FVER BASC TRNS CATE INFO PAKT STRG EDCT UUID OVVW "
    b"KUKI CHAN SUMM DGDA"[k : k + 4]
    for k in range(0, 5 * 52, 5)
)
_OTHER = re.compile(rb"[ -~\xa9]{4}|\0{4}")
_PERIOD = 24  # bytes: whole samples of 1, 2, 3, 4 and 8 bytes
_NO_SOUND = (b"AVI ",)
_PCM, _MP3, _EXTENSIBLE = 1, 0x55, 0xFFFE


def _of_chunks(file: Readable, size: int, head: bytes) -> Extent:
    kind = _CHUNKED[head[:4]]
    chunks: dict[bytes, _Chunk] = {}
    for chunk in kind.up_to_data(file):
        chunks.setdefault(chunk.name, chunk)
    fmt, ds64 = chunks.get(b"fmt "), chunks.get(b"ds64")
    if fmt is not None and (pcm := _as_pcm(file, size, kind, fmt)) is not None:
        return pcm
    data = next((chunk for name, chunk in chunks.items() if name.startswith(kind.data)), None)
    if data is None:
        return all_of(size)  # libsndfile tells what is lacking
    riff, long = struct.unpack("<QQ", bytes_at(file, ds64.body, 16).ljust(16, b"\0")) if ds64 else (0, 0xFFFFFFFF)
    if head.startswith(b"RF64") and data.size == 0xFFFFFFFF:
        data = data._replace(size=long)
    torn = (data.size, size - data.body) if data.end > size and data.size < PLACEHOLDER else None
    known = _as_stated(file, kind, head, data, size, kind.stated_end(head, riff))
    end = min(data.end, size) if known or torn else _before_chunks(file, kind, size)
    is_mp3 = fmt is not None and bytes_at(file, fmt.body, 2) == struct.pack(kind.size[0] + "H", _MP3)
    if known is not None and (known.torn or not is_mp3):
        return known
    if is_mp3:
        inner, behind = extent(View(file, [(data.body, end)])), known or all_of(size)
        parts = [moved(part, data.body) for part in inner.parts]
        return Extent(parts, inner.rest or behind.rest, inner.torn or torn, behind.next)
    if head[:4] in (b"RIFF", b"RF64") and (ds64 is not None or end - data.body >= 1 << 32):
        return Extent([_as_rf64(kind, ds64, data, end)])
    most = data.body + (1 << 8 * struct.calcsize(kind.size)) - 1
    return Extent([_counted(file, kind, data, min(end, most))], max(0, end - most), torn)


def _as_pcm(file: Readable, size: int, kind: _Chunks, fmt: _Chunk) -> Extent | None:
    """A file of extensible coding without its extension as one of PCM: of 32 bits it could be float."""
    coding, bits = bytes_at(file, fmt.body, 2), bytes_at(file, fmt.body + 14, 2)
    if coding != struct.pack(kind.size[0] + "H", _EXTENSIBLE) or fmt.size >= 40 or max(bits, default=25) > 24:
        return None
    plain = struct.pack(kind.size[0] + "H", _PCM)
    plain_extent = extent(View(file, [(0, fmt.body), plain, (fmt.body + 2, size)]))
    return plain_extent._replace(parts=[_patched(part, fmt.body, plain) for part in plain_extent.parts])


def _as_stated(file: Readable, kind: _Chunks, head: bytes, data: _Chunk, size: int, stated_end: int) -> Extent | None:
    """The file as it is, if its samples end where their chunk states it; None: they do not."""
    if data.end > size and data.size >= PLACEHOLDER:
        return all_of(size) if data.size < 1 << 63 and _before_chunks(file, kind, size) == size else None
    if data.end >= size:
        return None if data.end > size and head.startswith(b"caff") else all_of(size)
    stop = kind.after(data)
    reached, named, following = _followed(file, kind, head, stop, size)
    if following is not None or size - reached < PADDING or _only_zeros(file, reached, size):
        return all_of(following or reached)._replace(next=following)
    following = next(places_of(file, _header_of(head), data.body, size), None)
    if following is not None:  # the first was cut off before
        torn = data.size, following - data.body
        return Extent([_counted(file, kind, data, following)], torn=torn, next=following)
    agrees = stop <= stated_end < stop + PADDING if stated_end else bool(data.size)
    wraps = (size - stop) % (1 << 32) < PADDING
    if named or (agrees and not wraps and not _goes_on(file, data.body, data.end, size)):
        return all_of(reached)._replace(rest=size - (reached if named else data.end))
    return None


def _as_rf64(kind: _Chunks, ds64: _Chunk | None, data: _Chunk, end: int) -> Part:
    """Samples behind a header of 64 bits, in place of one of 32 or of another one of 64."""
    first, after = (ds64.place, kind.after(ds64)) if ds64 else (kind.first, kind.first)
    before = [(kind.first, first), (after, data.place + 4)]
    total = 40 + sum(last - first for first, last in before) + 4 + end - data.body
    start = struct.pack("<4sI4s4sIQQQI", b"RF64", 0xFFFFFFFF, b"WAVE", b"ds64", 28, total, end - data.body, 0, 0)
    return Part([start, *before, b"\xff\xff\xff\xff", (data.body, end)])


def _counted(file: Readable, kind: _Chunks, data: _Chunk, end: int) -> Part:
    """Samples up to an end behind a chunk's head that counts them."""
    size = end - data.body + (kind.name + struct.calcsize(kind.size) if kind.inclusive else 0)
    name = bytes_at(file, data.place, kind.name)
    return Part([(0, data.place), name + struct.pack(kind.size, size), (data.body, end)])


def _patched(part: Part, at: int, data: bytes) -> Part:
    """A part with other bytes at a place of the file."""
    pieces: list[Piece] = []
    for piece in part.pieces:
        if isinstance(piece, tuple) and piece[0] <= at < piece[1]:
            pieces += [(piece[0], at), data, (at + len(data), piece[1])]
        else:
            pieces.append(piece)
    return part._replace(pieces=pieces)


def _followed(file: Readable, kind: _Chunks, head: bytes, place: int, size: int) -> tuple[int, bool, int | None]:
    """Where chunks, tags and padding behind the data end; whether a chunk by its name is the first; and another file's place.

    Programs forget the byte that pads an odd chunk, or count it.
    """
    named, begin = False, place
    another = _header_of(head)
    while size - place >= PADDING:
        around = bytes_at(file, place - kind.unit, 2 * kind.unit + 12 + kind.name)
        if match := another.search(around):
            return size, named, place - kind.unit + match.start()
        if around[kind.unit :].startswith(TAGS):
            return size, named, None
        for at in (place, *range(place - 1, place - kind.unit - 1, -1), place + 1):
            chunk = kind.read(file, at) or _Chunk(b"", at, 0, 0)
            known = chunk.name[:4].upper() in _NAMES
            if known or (at == place and chunk.size and _OTHER.match(chunk.name) and chunk.end <= size):
                named, place = named or (known and place == begin), min(size, kind.after(chunk))
                break
        else:
            return place, named, None
    return size, named, None


def _header_of(head: bytes) -> re.Pattern[bytes]:
    """The first bytes of files of a kind."""
    return re.compile(re.escape(head[:4]) + b"(?s:....)" + re.escape(head[8:12]))


def _before_chunks(file: Readable, kind: _Chunks, size: int) -> int:
    """Where samples end: before chunks that lead to the end of the file exactly."""
    first = max(0, size - BLOCK)
    tail = bytes_at(file, first, BLOCK)
    for begin in sorted(at for name in _NAMES for each in {name, name.lower()} for at in _places_in(tail, each)):
        place = first + begin
        while place < size - 1 and (chunk := kind.read(file, place)) and chunk.name[:4].upper() in _NAMES:
            place = kind.after(chunk)
        if place in (size, size + 1):
            return first + begin
    return size


def _places_in(data: bytes, part: bytes) -> Iterator[int]:
    at = data.find(part)
    while at >= 0:
        yield at
        at = data.find(part, at + 1)


def _only_zeros(file: Readable, begin: int, size: int) -> bool:
    return not any(bytes_at(file, place, BLOCK).strip(b"\0") for place in range(begin, size, BLOCK))


def _goes_on(file: Readable, body: int, stop: int, size: int) -> bool:
    """Whether bytes behind the samples are more of them: the high bits of one of their bytes, by its place in the sample, are
    distributed as before, and not evenly.
    """
    begin = max(body, stop - BLOCK // 4)
    before, after = (
        np.frombuffer(bytes_at(file, first, min(BLOCK // 4, last - first) // _PERIOD * _PERIOD), np.uint8) >> 4
        for first, last in ((begin + (body - begin) % _PERIOD, stop), (stop + (body - stop) % _PERIOD, size))
    )
    if not len(before) or not len(after):
        return False
    for column in range(_PERIOD):
        old, new = (np.bincount(each[column::_PERIOD], minlength=16) * _PERIOD / len(each) for each in (before, after))
        flat = np.minimum(old, 1 / 16).sum()
        if flat < 0.75 and np.minimum(old, new).sum() > max(0.6, flat + 0.25):
            return True
    return False


# One block of samples behind a header

_AU = {b".snd": ">II", b"dns.": "<II"}
_REPEATED = (b"Creative Voice File", b"PVF1\n", b"2BIT", b"MATLAB 5.0", b"\x64\xa3")


def _of_au(file: Readable, size: int, head: bytes) -> Extent:
    begin, stated = struct.unpack(_AU[head[:4]], head[4:12].ljust(8, b"\xff"))
    return _of_block(file, begin, begin + stated, size, head[:8], [(0, 8), b"\xff\xff\xff\xff", (12, size)])


def sphere_fields(head: bytes) -> dict[str, str]:
    """Fields of a header: `NIST_1A`, its length in bytes, then lines `name -type value` to `end_head`."""
    text = head.decode("latin-1").partition("end_head")[0]
    return dict(re.findall(r"^(\w+) -\w+ (.*?)\s*$", text, re.MULTILINE))


def sphere_lengths(head: bytes) -> tuple[int, int, float] | None:
    """Bytes of the header, and of the file; and seconds. None where they are not stated, of which libsndfile tells."""
    fields = sphere_fields(head)
    try:
        header = int(head.split(b"\n", 2)[1])
        samples = int(fields["sample_count"])
        end = header + samples * int(fields["channel_count"]) * int(fields["sample_n_bytes"])
        return header, end, samples / int(fields["sample_rate"])
    except (KeyError, ValueError, IndexError, ZeroDivisionError):
        return None


def _of_block(file: Readable, begin: int, end: int, size: int, mark: bytes, everything: list[Piece]) -> Extent:
    """Samples up to a stated end, behind which another file may begin with the same bytes.

    Args:
        file: with the samples.
        begin: first byte of the samples.
        end: of the samples, by the header.
        size: bytes of the file.
        mark: first bytes of the file.
        everything: the file, if all of it is samples.
    """
    if size - end < PADDING:
        return all_of(size)
    first = end if mark in bytes_at(file, end, 32) else begin
    following = next(places_of(file, re.compile(re.escape(mark)), first, size), None)
    if following is not None:
        return all_of(following)._replace(next=following, torn=(end, following) if following < end else None)
    zeros = end > begin and _only_zeros(file, end, size)
    if zeros or (end > begin and not _goes_on(file, begin, end, size)):
        return all_of(end)._replace(rest=0 if zeros else size - end)
    return Extent([Part(everything)])


# FLAC

_STREAMINFO = re.compile(rb"fLaC[\x00\x80]\x00\x00\x22")
_BLOCKS = (0, 192, 576, 1152, 2304, 4608, 0, 0, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768)


def _of_flac(file: Readable, begin: int, size: int, brief: bool) -> Extent:
    starts = [begin]
    while (
        not brief and (place := next(places_of(file, _STREAMINFO, _frames(file, starts[-1]), size), None)) is not None
    ):
        starts.append(place)
    parts: list[Part] = []
    for first, end in zip(starts, [*starts[1:], size], strict=True):
        info = bytes_at(file, first + 8, 34)
        frames = _last_sample(file, first, end, info) if len(info) == 34 else None
        high, stated = info[13] if frames else 0, int.from_bytes(info[14:18], "big") if frames else 0
        stated += (high & 15) << 32
        if frames is not None and (frames > stated or stated > (end - first) * PER_BYTE):
            number = bytes([high & 0xF0 | frames >> 32]) + struct.pack(">I", frames & 0xFFFFFFFF)
            parts.append(Part([(first, first + 21), number, (first + 26, end)]))
        else:
            parts.append(Part([(first, end)]))
    return Extent(parts)


def _frames(file: Readable, first: int) -> int:
    """Where the blocks of metadata end."""
    place, head = first + 4, b"\0\0\0\0"
    while len(head) == 4 and not head[0] & 0x80:
        head = bytes_at(file, place, 4)
        place += 4 + int.from_bytes(head[1:], "big")
    return place


def _last_sample(file: Readable, first: int, end: int, info: bytes) -> int | None:
    """Samples up to the end of the last frame, by its number; it must follow the number of the frame before."""
    longest = int.from_bytes(info[7:10], "big") or 1 << 16
    tail = bytes_at(file, max(first, end - 3 * longest), 3 * longest)
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
    if len(header) < 16 or header[3] & 1 or 0x80 <= header[4] < 0xC0 or header[4] == 0xFF:
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
    if not block or check != header[at]:
        return None
    if header[1] & 1:
        return number, number + block, number + block
    return number, number + 1, number * usual + block


# Ogg


def _of_ogg(file: Readable, size: int, brief: bool) -> Extent:
    """A part for each stream that begins after data. libsndfile stops at the last page's position, even if it lies before the
    position of another page.
    """
    begin, first = 0, bytes_at(file, 14, 4)
    if brief:
        tail = bytes_at(file, max(0, size - (1 << 17)), 1 << 17)
        if tail[tail.rfind(b"OggS") + 14 :].startswith(first):
            begin = max(0, size - len(tail)) + max(0, tail.find(b"OggS"))
    starts, data, wrong = [0], False, False
    positions: dict[bytes, list[int]] = {}  # by stream
    torn = None
    for place, stream, starting, position, ending, broken in _pages(file, begin, size):
        torn = torn or broken
        if starting and data:
            starts.append(place)
            wrong, positions = wrong or not _ordered(positions), {}
        data = not starting
        if ending and broken is None:
            greatest_and_last = positions.setdefault(stream, [0])
            greatest_and_last[:] = [max(greatest_and_last), position]
    parts = [Part([span]) for span in zip(starts, [*starts[1:], size], strict=True)]
    return Extent(parts, torn=torn, foreign=wrong or not _ordered(positions))


def _ordered(positions: dict[bytes, list[int]]) -> bool:
    """Whether the last position of each stream is its greatest."""
    return all(known[-1] >= max(known) for known in positions.values())


def _pages(
    file: Readable, place: int, size: int
) -> Iterator[tuple[int, bytes, bool, int, bool, tuple[int, int] | None]]:
    """Place of each page, its stream, whether that begins there, its position, whether a packet ends, and the bytes that it
    states and has where another page cuts it short (RFC 3533, 6).
    """
    while (page := bytes_at(file, place, 282)).startswith(b"OggS") and len(page) > 27:
        lengths = page[27 : 27 + page[26]]
        position = int.from_bytes(page[6:14], "little", signed=True)
        after, torn = place + 27 + len(lengths) + sum(lengths), None
        if after < size and bytes_at(file, after, 4) != b"OggS":
            again = next(places_of(file, _PAGE, place + 27, size), after)
            torn, after = (after - place, again - place) if again < after else None, again
        yield place, page[14:18], bool(page[5] & 2), position, any(length < 255 for length in lengths), torn
        place = after


_PAGE = re.compile(rb"OggS\0[\0-\7]")
