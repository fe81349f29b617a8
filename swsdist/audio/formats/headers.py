"""Checks of a recording's bytes before decoding: unsupported formats, truncated files.

libsndfile silently repairs the length of a truncated PCM file, and takes the last page of a truncated Ogg file for the end, so
both are checked here. Sources: NIST SPHERE headers as written by its tools; RFC 3533 (Ogg), section 6.
"""

from __future__ import annotations

import re
from typing import Any

import soundfile

from swsdist.audio.formats.views import PER_BYTE, Extent, Readable
from swsdist.core.codes import audio as codes
from swsdist.core.errors import AudioError, recast

#: Rates in Hz, and numbers of channels, that a recording can have.
RATES = (500, 768_000)
CHANNELS = 256

# Magic bytes of formats that libsndfile cannot decode: offset, bytes, name.
_FOREIGN = (
    (0, b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "WMA"),
    (4, b"ftyp", "MP4 audio (m4a, AAC)"),
    (0, b"\x1a\x45\xdf\xa3", "Matroska or WebM"),
    (0, b"#!AMR", "AMR"),
    (0, b"wvpk", "WavPack"),
    (0, b"MAC ", "Monkey's Audio"),
    (0, b"ajkg", "shorten"),
    (0, b".RMF", "RealAudio"),
    (0, b"ADIF", "AAC"),
    (0, b"\xff\xf1", "AAC"),
    (0, b"\xff\xf9", "AAC"),
)

# Magic bytes of formats that it can.
_KNOWN = (b"RIFF", b"RF64", b"RIFX", b"fLaC", b"OggS", b"ID3", b"NIST_1A", b"FORM", b".snd", b"caff", b"riff")


class ForeignError(AudioError):
    """libsndfile does not decode the recording, but ffmpeg may."""


class CutOffError(AudioError):
    """The recording ends early: it is truncated, or damaged up to its end. All samples before that were read.

    Args:
        message, attributes: those of `SwsdistError`.
        expected_seconds: duration that the header states; None where it states none.
    """

    def __init__(self, message: str, *, expected_seconds: float | None = None, **attributes: Any) -> None:
        super().__init__(message, **attributes)
        self.expected_seconds = expected_seconds


def check_bytes(path: str, file: Readable) -> tuple[bytes, CutOffError | None]:
    """Check the first and the last bytes of a file, and rewind it.

    Returns:
        The first 4096 bytes, and the error if the file is truncated.

    Raises:
        AudioError: the file is empty, or its format is not supported.
    """
    head = file.read(4096)
    size = file.seek(0, 2)
    if size == 0:
        raise codes.EMPTY_RECORDING(where=path)
    _check_head(path, head)
    cut = None
    if head.startswith(b"NIST_1A"):
        cut = _check_sphere(path, head, size)
    elif head.startswith(b"OggS"):
        cut = _check_ogg_end(path, file, size)
        file.seek(0)
        _check_vorbis_start(path, file.read(1 << 17))
    file.seek(0)
    return head, cut


def _check_head(path: str, head: bytes) -> None:
    for offset, magic, name in _FOREIGN:
        if head[offset:].startswith(magic):
            raise needs_ffmpeg(path, name)
    if path.lower().endswith(".raw") and not head.startswith(_KNOWN):
        raise codes.HEADERLESS_SAMPLES(where=path)


def _check_sphere(path: str, head: bytes, size: int) -> CutOffError | None:
    """Check a NIST SPHERE file for compressions that libsndfile lacks, and for truncation."""
    coding = _sphere_fields(head).get("sample_coding", "pcm")
    if re.search("shorten|shortpack|wavpack", coding):
        raise codes.SPHERE_COMPRESSION(where=path, coding=coding)
    lengths = sphere_lengths(head)
    return _cut_off(path, lengths[1], size, lengths[2]) if lengths and size < lengths[1] else None


def _sphere_fields(head: bytes) -> dict[str, str]:
    """Of text: `NIST_1A`, its length in bytes, then lines `name -type value` to `end_head`."""
    text = head.decode("latin-1").partition("end_head")[0]
    return dict(re.findall(r"^(\w+) -\w+ (.*?)\s*$", text, re.MULTILINE))


def sphere_lengths(head: bytes) -> tuple[int, int, float] | None:
    """Bytes of the header, and of the file; and seconds. None where they are not stated, of which libsndfile tells."""
    fields = _sphere_fields(head)
    try:
        header = int(head.split(b"\n", 2)[1])
        samples = int(fields["sample_count"])
        end = header + samples * int(fields["channel_count"]) * int(fields["sample_n_bytes"])
        return header, end, samples / int(fields["sample_rate"])
    except (KeyError, ValueError, IndexError, ZeroDivisionError):
        return None


def _cut_off(path: str, stated: int, actual: int, seconds: float | None = None) -> CutOffError:
    """The error for a file of fewer bytes than its header states."""
    error = codes.TRUNCATED(where=path, stated=f"{stated} bytes", actual=f"{actual} bytes")
    return recast(error, CutOffError, expected_seconds=seconds)


def _check_ogg_end(path: str, file: Readable, size: int) -> CutOffError | None:
    """Check that the last page of an Ogg file is complete and has the end-of-stream flag (RFC 3533, section 6)."""
    start = max(0, size - (1 << 17))  # a page has at most 65307 bytes
    file.seek(start)
    tail = file.read(size - start)
    page = tail[max(0, tail.rfind(b"OggS")) :]
    # Byte 5: flags; byte 26: number of segments; then their lengths; then the segments.
    segments = page[27 : 27 + page[26]] if len(page) > 26 else b""
    if not segments or len(page) < 27 + page[26] + sum(segments) or not page[5] & 4:
        return recast(codes.TRUNCATED_OGG(where=path), CutOffError)
    return None


def check_extent(path: str, reach: Extent, unread: str = "") -> CutOffError | None:
    """The error if there are bytes that cannot be read, or the last frame is incomplete."""
    if unread or reach.rest or reach.foreign:
        more = f"{reach.rest} bytes more than its header counts"
        detail = unread or (more if reach.rest else "its end is numbered wrongly")
        return recast(codes.UNREAD_REST(where=path, detail=detail, rest=reach.rest or "BYTES"), CutOffError)
    return _cut_off(path, *reach.torn) if reach.torn else None


def _check_vorbis_start(path: str, data: bytes) -> None:
    """Leave Vorbis that starts before zero to ffmpeg: libsndfile does not drop that, but as much of the end.

    Programs that cut a file without decoding it write that: the first page with sound ends at a time before that of its
    samples. Sources: Vorbis I specification, 1.3 and 4.2.4; RFC 3533.
    """
    packets, packet, at, granule, last = list[bytes](), b"", 0, 0, False
    while at + 27 <= len(data) and len(packets) < 4:
        lengths = data[at + 27 : at + 27 + data[at + 26]]
        granule, last = int.from_bytes(data[at + 6 : at + 14], "little", signed=True), bool(data[at + 5] & 4)
        at += 27 + len(lengths)
        for length in lengths:
            packet += data[at : at + length]
            at += length
            if length < 255:
                packets.append(packet)
                packet = b""
    if len(packets) < 4 or not packets[0].startswith(b"\1vorbis") or len(packets[0]) < 29 or last:
        return
    # The setup ends with its modes, each 41 bits of which the first tells a long block, their number before them, and a 1.
    setup = int.from_bytes(packets[2], "little")
    end, ahead, long = setup.bit_length() - 1, list[int](), list[int]()
    while end >= 47 and not setup >> (end - 40) & 0xFFFFFFFF:
        end -= 41
        ahead.insert(0, setup >> end & 1)
        if setup >> (end - 6) & 63 == len(ahead) - 1:
            long = [*ahead]
    bits, blocks = (len(long) - 1).bit_length(), (packets[0][28] & 15, packets[0][28] >> 4)
    modes = [packet[0] >> 1 & (1 << bits) - 1 for packet in packets[3:] if packet]
    if not modes or max(modes) >= len(long):
        return
    sizes = [1 << blocks[long[mode]] for mode in modes]
    rate = int.from_bytes(packets[0][12:16], "little")
    if sum(sizes) / 2 - (sizes[0] + sizes[-1]) / 4 - granule > rate / 100:
        raise recast(codes.NEEDS_FFMPEG(where=path, format="Vorbis that starts before zero"), ForeignError)


def check_length(path: str, sound: soundfile.SoundFile) -> CutOffError | None:
    """The error if a PCM file is shorter than its header states, by libsndfile's log, which has both lengths."""
    chunk = {"AIFF": "SSND", "AU": "Data Size", "W64": "riff", "RF64": "Riff size"}.get(sound.format, "data")
    lengths = re.search(rf"^\s*{chunk}\s*: (\d+) \(should be (\d+)\)", sound.extra_info, re.MULTILINE)
    if not lengths:
        return None
    stated, actual = int(lengths[1]), int(lengths[2])
    # A program that writes into a pipe states the greatest length: 2 GiB (sox, arecord) or 4 GiB.
    endless = sound.format not in ("W64", "RF64") and (abs(stated - (1 << 31)) <= 4096 or stated >= (1 << 32) - 4096)
    if actual >= stated or endless:
        return None
    return _cut_off(path, stated, actual, sound.frames / sound.samplerate * stated / max(actual, 1))


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


def not_opened(path: str, head: bytes, error: soundfile.LibsndfileError) -> AudioError:
    """The error for a file that libsndfile does not open.

    Args:
        path: of the file.
        head: its first bytes.
        error: of libsndfile.
    """
    message = plain(error)
    if re.search(r"lost sync|No 'data' chunk|EOF|unexpected(ly)? end", message, re.IGNORECASE):
        return codes.TRUNCATED_HEADER(where=path, detail=message)
    # A WAV file of unknown coding has a malformed 'fmt ' chunk for libsndfile.
    if re.search("unimplemented|unsupported|Malformed 'fmt ' chunk", message, re.IGNORECASE):
        return needs_ffmpeg(path, f"the format ({message})")
    if head.startswith(b"OggS"):  # Speex, Theora, ...
        return needs_ffmpeg(path, f"the Ogg stream ({message})")
    if head.startswith(_KNOWN) and head[8:12] != b"AVI ":
        return codes.DAMAGED_HEADER(where=path, detail=message)
    return recast(codes.NOT_AUDIO(where=path), ForeignError)


def plain(error: soundfile.LibsndfileError) -> str:
    """The message of libsndfile."""
    return str(error.error_string).strip().rstrip(".")


def needs_ffmpeg(path: str, name: str) -> ForeignError:
    """The error for a file of a format that ffmpeg may decode."""
    return recast(codes.NEEDS_FFMPEG(where=path, format=name), ForeignError)
