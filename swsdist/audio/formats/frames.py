"""Extent of the sound of a file of frames, packets or boxes: MPEG audio, AAC, AC-3, streams of MPEG, MP4.

Decoders estimate the length of MPEG audio without a Xing tag; they are given one that counts the frames. A second tag begins
another part. ffmpeg drops a torn last frame, and reads MP4 up to a second file, without a word.

Sources: ISO 11172-3, section 2.4.1.3, and 13818-3 (MPEG headers); the Xing tag as LAME writes it; ISO 13818-7 (ADTS), 13818-1
(streams), 14496-12 (boxes); ETSI TS 102 366 (AC-3).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from swsdist.audio.formats.views import (
    BLOCK,
    PADDING,
    PLACEHOLDER,
    TAGS,
    Extent,
    Part,
    Readable,
    after_id3,
    all_of,
    bytes_at,
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
    for place, head, is_other, follows_gap in _frames(file, begin, size):
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


def _frames(file: Readable, begin: int, size: int) -> Iterator[tuple[int, bytes, bool, bool]]:
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
