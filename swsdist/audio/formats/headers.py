"""Checks of a recording's bytes before decoding: unsupported formats, truncated files.

libsndfile silently repairs the length of a truncated PCM file, and takes the last page of a truncated Ogg file for the end, so
both are checked here. Sources: NIST SPHERE headers as written by its tools; RFC 3533 (Ogg), section 6.
"""

from __future__ import annotations

import re
from typing import Any, Protocol

import soundfile

from swsdist.audio.formats.mpeg import is_mpeg
from swsdist.core.codes import audio as codes
from swsdist.core.errors import AudioError, recast

#: Rates in Hz, and numbers of channels, that a recording can have.
RATES = (500, 768_000)
CHANNELS = 256

# Most samples a byte can hold: a FLAC block of 65535 equal samples takes 14 bytes.
_PER_BYTE = 10_000

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


class Seekable(Protocol):
    """A binary file that can be read and sought."""

    def read(self, size: int, /) -> bytes: ...

    def seek(self, offset: int, whence: int = 0, /) -> int: ...


def check_bytes(path: str, file: Seekable) -> tuple[bytes, CutOffError | None]:
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
    elif is_mpeg(head):
        cut = _check_xing(path, file, head, size)
    file.seek(0)
    return head, cut


def _check_head(path: str, head: bytes) -> None:
    for offset, magic, name in _FOREIGN:
        if head[offset:].startswith(magic):
            raise _needs_ffmpeg(path, name)
    if path.lower().endswith(".raw") and not head.startswith(_KNOWN):
        raise codes.HEADERLESS_SAMPLES(where=path)


def _check_sphere(path: str, head: bytes, size: int) -> CutOffError | None:
    """Check a NIST SPHERE file for compressions that libsndfile lacks, and for truncation.

    The header is text: `NIST_1A`, its length in bytes, then lines `name -type value` to `end_head`.
    """
    text = head.decode("latin-1")
    fields = dict(re.findall(r"^(\w+) -\w+ (.*?)\s*$", text.partition("end_head")[0], re.MULTILINE))
    coding = fields.get("sample_coding", "pcm")
    if re.search("shorten|shortpack|wavpack", coding):
        raise codes.SPHERE_COMPRESSION(where=path, coding=coding)
    try:
        header = int(text.split("\n", 2)[1])
        need = header + int(fields["sample_count"]) * int(fields["channel_count"]) * int(fields["sample_n_bytes"])
        seconds = int(fields["sample_count"]) / int(fields["sample_rate"])
    except (KeyError, ValueError, IndexError, ZeroDivisionError):
        return None  # libsndfile reports such a header
    return _cut_off(path, need, size, seconds) if size < need else None


def _check_xing(path: str, file: Seekable, head: bytes, size: int) -> CutOffError | None:
    """Check the number of bytes that the first frame of an MP3 may state (tag Xing or Info).

    An ID3 tag may precede the frame; bytes 6 to 9 hold its length, seven bits each.
    """
    first = 10 + sum(
        (byte & 0x7F) << shift for byte, shift in zip(head[6:10].ljust(4, b"\0"), (21, 14, 7, 0), strict=True)
    )
    first = first if head.startswith(b"ID3") else 0
    file.seek(first)
    tag = re.search(rb"(?:Xing|Info)(.{4})(.{4})(.{4})", file.read(256), re.DOTALL)
    if tag is None or int.from_bytes(tag[1], "big") & 3 != 3:
        return None
    need = first + int.from_bytes(tag[3], "big")
    return _cut_off(path, need, size) if size < need else None


def _cut_off(path: str, stated: int, actual: int, seconds: float | None = None) -> CutOffError:
    """The error for a file of fewer bytes than its header states."""
    error = codes.TRUNCATED(where=path, stated=f"{stated} bytes", actual=f"{actual} bytes")
    return recast(error, CutOffError, expected_seconds=seconds)


def _check_ogg_end(path: str, file: Seekable, size: int) -> CutOffError | None:
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
    if frames * channels > _PER_BYTE * size:
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
        return _needs_ffmpeg(path, f"the format ({message})")
    if head.startswith(b"OggS"):  # Speex, Theora, ...
        return _needs_ffmpeg(path, f"the Ogg stream ({message})")
    if head.startswith(_KNOWN) and head[8:12] != b"AVI ":
        return codes.DAMAGED_HEADER(where=path, detail=message)
    return recast(codes.NOT_AUDIO(where=path), ForeignError)


def plain(error: soundfile.LibsndfileError) -> str:
    """The message of libsndfile."""
    return str(error.error_string).strip().rstrip(".")


def _needs_ffmpeg(path: str, name: str) -> ForeignError:
    return recast(codes.NEEDS_FFMPEG(where=path, format=name), ForeignError)
