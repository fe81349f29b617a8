"""What the bytes of a recording tell before it is decoded: formats that are not read, and files cut short.

libsndfile repairs the length of a truncated PCM file in silence and takes the last page of a truncated Ogg file for the
end, so both are looked at here. Sources: NIST SPHERE headers as written by its tools; RFC 3533 (Ogg), section 6.
"""

from __future__ import annotations

import re
from typing import Protocol

import soundfile

from swsdist.audio.formats.mpeg import is_mpeg
from swsdist.core.errors import AudioError

#: Why a recording cannot be used.
REASONS = {
    "missing": "there is no such file",
    "unreadable": "the file could not be read, or its header is damaged",
    "empty": "the file has 0 bytes",
    "not-audio": "no audio format was recognised",
    "unsupported": "audio of a kind that libsndfile does not decode, nor ffmpeg, where it is installed",
    "absurd": "its header tells what no recording has: a rate, a number of channels, or a length that the file cannot hold",
    "truncated": "nothing of it can be read up to where it is cut off, or its stream is damaged",
    "no-samples": "the recording lasts 0 s",
    "not-finite": "a sample is NaN or infinite",
    "no-such-channel": "the recording has fewer channels",
    "place-outside": "start and end are not a place in the recording",
    "command": "it is a command, and commands are not allowed (--allow-commands)",
    "command-failed": "the command that gives the recording has failed, or has written nothing",
}

_FFMPEG = "convert it: ffmpeg -i INPUT OUTPUT.flac"
_INSTALL = f"install ffmpeg (a package of the system, or swsdist[ffmpeg]), or {_FFMPEG}"
_SPH2PIPE = "convert it: sph2pipe -f wav INPUT OUTPUT.wav (sox does not read this compression)"

#: Rates in Hz, and numbers of channels, that a recording can have.
RATES = (500, 768_000)
CHANNELS = 256

# Samples of all channels that a byte can hold at most: blocks of 65535 equal ones in FLAC take 14 bytes.
_PER_BYTE = 10_000

# First bytes of what libsndfile cannot decode; an offset, bytes, the format's name.
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

# First bytes of what it can.
_OURS = (b"RIFF", b"RF64", b"RIFX", b"fLaC", b"OggS", b"ID3", b"NIST_1A", b"FORM", b".snd", b"caff", b"riff")


class Foreign(AudioError):
    """A kind of recording that libsndfile does not decode, but ffmpeg may."""


class CutOff(AudioError):
    """A recording ends before it should: it was cut, or is damaged there. All that is before was read.

    Args:
        message, where: as of all.
        told: seconds that its header tells; None where it tells none.
    """

    def __init__(self, message: str, *, where: str, told: float | None = None) -> None:
        super().__init__(message, where=where, reason="truncated", remedy="copy it again from where it came")
        self.told = told


class Seekable(Protocol):
    """The part of a binary file that is needed here."""

    def read(self, size: int, /) -> bytes: ...

    def seek(self, offset: int, whence: int = 0, /) -> int: ...


def check_bytes(path: str, file: Seekable) -> tuple[bytes, CutOff | None]:
    """Refuse a file for its first bytes; give back the first 4096, and whether it is cut off, and leave it at its begin.

    Raises:
        AudioError: `empty` or `unsupported`.
    """
    head = file.read(4096)
    size = file.seek(0, 2)
    if size == 0:
        raise AudioError("the file is empty", where=path, reason="empty", remedy="copy it again, or drop it")
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
            raise _foreign(path, f"{name} is not read without ffmpeg")
    if path.lower().endswith(".raw") and not head.startswith(_OURS):
        raise _unsupported(
            path,
            "samples without a header cannot be read",
            "convert it: sox -t raw -r RATE -e signed -b 16 -c 1 INPUT OUTPUT.wav",
        )


def _check_sphere(path: str, head: bytes, size: int) -> CutOff | None:
    """NIST SPHERE: compressions that libsndfile lacks, and more samples told than the file holds.

    The header is text: `NIST_1A`, its length in bytes, then lines `name -type value` to `end_head`.
    """
    text = head.decode("latin-1")
    told = dict(re.findall(r"^(\w+) -\w+ (.*?)\s*$", text.partition("end_head")[0], re.MULTILINE))
    coding = told.get("sample_coding", "pcm")
    if re.search("shorten|shortpack|wavpack", coding):
        raise _unsupported(path, f"SPHERE with sample_coding {coding!r} is not read", _SPH2PIPE)
    try:
        header = int(text.split("\n", 2)[1])
        need = header + int(told["sample_count"]) * int(told["channel_count"]) * int(told["sample_n_bytes"])
        seconds = int(told["sample_count"]) / int(told["sample_rate"])
    except (KeyError, ValueError, IndexError, ZeroDivisionError):
        return None  # libsndfile says what it thinks of such a header
    return CutOff(f"its header tells {need} bytes, it has {size}", where=path, told=seconds) if size < need else None


def _check_xing(path: str, file: Seekable, head: bytes, size: int) -> CutOff | None:
    """The first frame of an MP3 may tell how many bytes there are, from it on (Xing's tag, or Info); before it an ID3 tag may
    stand, whose length is in its bytes 6 to 9, seven bits in each."""
    first = 10 + sum((byte & 0x7F) << shift for byte, shift in zip(head[6:10], (21, 14, 7, 0), strict=True))
    first = first if head.startswith(b"ID3") else 0
    file.seek(first)
    found = re.search(rb"(?:Xing|Info)(.{4})(.{4})(.{4})", file.read(256), re.DOTALL)
    if found is None or int.from_bytes(found[1], "big") & 3 != 3:
        return None
    need = first + int.from_bytes(found[3], "big")
    return CutOff(f"its header tells {need} bytes, it has {size}", where=path) if size < need else None


def _check_ogg_end(path: str, file: Seekable, size: int) -> CutOff | None:
    """The last page of an Ogg file must be whole and carry the end-of-stream flag (RFC 3533, section 6)."""
    start = max(0, size - (1 << 17))  # a page has at most 65307 bytes
    file.seek(start)
    tail = file.read(size - start)
    page = tail[max(0, tail.rfind(b"OggS")) :]
    # Byte 5 is the flags, byte 26 the number of segments, whose lengths follow, and then the segments.
    segments = page[27 : 27 + page[26]] if len(page) > 26 else b""
    if not segments or len(page) < 27 + page[26] + sum(segments) or not page[5] & 4:
        return CutOff("its last page is not the end of the stream", where=path)
    return None


def check_length(path: str, sound: soundfile.SoundFile) -> CutOff | None:
    """Whether a PCM file is shorter than it says: libsndfile's log has both lengths."""
    chunk = {"AIFF": "SSND", "AU": "Data Size", "W64": "riff", "RF64": "Riff size"}.get(sound.format, "data")
    found = re.search(rf"^\s*{chunk}\s*: (\d+) \(should be (\d+)\)", sound.extra_info, re.MULTILINE)
    if not found:
        return None
    told, there = int(found[1]), int(found[2])
    # A program that writes into a pipe cannot know the length, and tells the greatest: 2 GiB (sox, arecord) or 4 GiB.
    endless = sound.format not in ("W64", "RF64") and (abs(told - (1 << 31)) <= 4096 or told >= (1 << 32) - 4096)
    if there >= told or endless:
        return None
    seconds = sound.frames / sound.samplerate * told / max(there, 1)
    return CutOff(f"its header tells {told} bytes, it has {there}", where=path, told=seconds)


def check_shape(path: str, rate: int, channels: int, frames: int = 0, size: int = 0) -> None:
    """Refuse a header that tells what no recording has.

    Args:
        path: of the recording.
        rate: Hz.
        channels: how many.
        frames: samples of each; 0 where it does not tell.
        size: of the file, bytes.

    Raises:
        AudioError: `absurd`.
    """
    low, high = RATES
    wrong = None
    if not low <= rate <= high:
        wrong = f"a rate of {rate} Hz; {low} to {high} Hz are read"
    elif not 1 <= channels <= CHANNELS:
        wrong = f"{channels} channels; up to {CHANNELS} are read"
    elif frames * channels > _PER_BYTE * size:
        wrong = f"{frames / rate / 3600:.1f} hours, which its {size} bytes cannot hold"
    if wrong is not None:
        raise AudioError(
            f"its header tells {wrong}",
            where=path,
            reason="absurd",
            remedy="copy it again from where it came; if it plays elsewhere, " + _FFMPEG,
        )


def not_opened(path: str, head: bytes, error: soundfile.LibsndfileError) -> AudioError:
    """What it means that libsndfile does not open a file with these first bytes."""
    message = plain(error)
    if re.search(r"lost sync|No 'data' chunk|EOF|unexpected(ly)? end", message, re.IGNORECASE):
        return truncated(path, f"its header is cut off ({message})")
    # The last of these is what a WAV file with an unknown coding gets.
    if re.search("unimplemented|unsupported|Malformed 'fmt ' chunk", message, re.IGNORECASE):
        return _foreign(path, f"it is not read without ffmpeg ({message})")
    if head.startswith(b"OggS"):  # Speex, Theora, ...
        return _foreign(path, f"what is in this Ogg file is not read without ffmpeg ({message})")
    if head.startswith(_OURS) and head[8:12] != b"AVI ":
        return AudioError(
            f"its header is damaged ({message})",
            where=path,
            reason="unreadable",
            remedy="copy it again; if it plays elsewhere, " + _FFMPEG,
        )
    return Foreign(
        "no audio format was recognised",
        where=path,
        reason="not-audio",
        remedy="drop it from the corpus; if it plays elsewhere, " + _FFMPEG,
    )


def plain(error: soundfile.LibsndfileError) -> str:
    """libsndfile's own words."""
    return str(error.error_string).strip().rstrip(".")


def truncated(path: str, message: str) -> AudioError:
    """The error for a recording that is cut short."""
    return AudioError(message, where=path, reason="truncated", remedy="copy it again from where it came")


def _foreign(path: str, message: str) -> Foreign:
    return Foreign(message, where=path, reason="unsupported", remedy=_INSTALL)


def _unsupported(path: str, message: str, remedy: str) -> AudioError:
    return AudioError(message, where=path, reason="unsupported", remedy=remedy)
