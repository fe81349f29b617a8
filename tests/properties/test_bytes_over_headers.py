"""What was written is read, or it is told that something is missing: whatever a header says of its length."""

import re
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile

from swsdist.audio.formats import extents, ffmpeg
from swsdist.audio.reader import read_blocks
from swsdist.core.errors import AudioError

SECONDS, RATE = 6, 16000
#: Seconds that coders may add or lose at each end.
TOLERANCE = 0.25

#: Name, format and coding of libsndfile; name and arguments of ffmpeg.
_SNDFILE = """
pcm.wav WAV PCM_16, float.wav WAV FLOAT, extensible.wav WAVEX PCM_24, ulaw.wav WAV ULAW, adpcm.wav WAV IMA_ADPCM
rf64.wav RF64 PCM_16, w64.w64 W64 PCM_16, aiff.aiff AIFF PCM_16, aifc.aiff AIFF FLOAT, au.au AU PCM_16
caf.caf CAF PCM_16, alac.caf CAF ALAC_16, flac.flac FLAC PCM_16, vorbis.ogg OGG VORBIS, opus.ogg OGG OPUS
xing.mp3 MP3 MPEG_LAYER_III, sphere.sph NIST PCM_16
"""
_FFMPEG = """
flac.ogg -c:a flac | vbr.mp3 -ar 44100 -c:a libmp3lame -q:a 4 -write_xing 0
cbr.mp3 -ar 44100 -c:a libmp3lame -b:a 64k -write_xing 0 -id3v2_version 0 | mp3.wav -c:a libmp3lame
mp2.mp2 -ar 44100 -c:a mp2 | aac.m4a -c:a aac | fast.m4a -c:a aac -movflags +faststart
parts.mp4 -c:a aac -movflags +frag_keyframe+empty_moov+default_base_moof -frag_duration 1000000 | alac.mov -c:a alac
pcm.mov -c:a pcm_s16le | flac.mkv -c:a flac | opus.webm -c:a libopus | vorbis.mka -c:a libvorbis
live.webm -c:a libopus -live 1 | aac.aac -c:a aac | ac3.ac3 -ar 48000 -c:a ac3 | wma.wma -c:a wmav2
pcm.avi -c:a pcm_s16le | mp3.avi -c:a libmp3lame | aac.flv -ar 44100 -c:a aac | wavpack.wv -c:a wavpack
tta.tta -c:a tta | aac.ts -c:a aac | mp2.mpg -ar 44100 -c:a mp2
"""
WRITTEN: dict[str, tuple[str, str] | str] = {
    **{name: (form, coding) for name, form, coding in map(str.split, re.split(r",|\n", _SNDFILE.strip()))},
    **dict(row.strip().split(" ", 1) for row in re.split(r"\||\n", _FFMPEG.strip())),
}

_WAV = ((b"RIFF", 4, "<I"), (b"data", 4, "<I"), (b"fact", 8, "<I"))
_MP4 = (
    *((box, 20, ">I") for box in (b"mvhd", b"mdhd")),
    (b"tkhd", 24, ">I"),
    *((box, -4, ">I") for box in (b"mdat", b"moov", b"moof")),
    *((box, 12, ">I") for box in (b"stsz", b"stts", b"tfdt", b"trun")),
    (b"stsc", 16, ">I"),
)
_MKV = ((b"\x44\x89\x88", 3, ">d"), (b"\x18\x53\x80\x67", 4, ">Q"), (b"\x1f\x43\xb6\x75", 4, ">Q"))
_ASF, _ASF_DATA = bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365"), bytes.fromhex("3626b2758e66cf11a6d900aa0062ce6c")
#: Fields that state a length, by the ending: what stands before, bytes from there, and type.
FIELDS = {
    "wav": _WAV,
    "rf64.wav": ((b"RF64", 4, "<I"), (b"ds64", 8, "<Q"), (b"ds64", 16, "<Q"), (b"ds64", 24, "<Q"), (b"data", 4, "<I")),
    "w64": ((b"riff", 16, "<Q"), (b"data", 16, "<Q")),
    "aiff": ((b"FORM", 4, ">I"), (b"COMM", 10, ">I"), (b"SSND", 4, ">I")),
    "au": ((b".snd", 8, ">I"),),
    "caf": ((b"data", 4, ">Q"), (b"pakt", 4, ">Q"), (b"pakt", 12, ">Q"), (b"pakt", 20, ">Q")),
    "flac": ((b"fLaC", 22, ">I"),),
    "ogg": ((b"OggS", 6, "<Q"),),
    "mp3": ((b"ID3", 6, ">I"), *((tag + b"\0\0\0", at, ">I") for tag in (b"Info", b"Xing") for at in (8, 12))),
    "m4a": _MP4, "mp4": _MP4, "mov": _MP4,
    "mkv": _MKV, "webm": _MKV, "mka": _MKV,
    "wma": (*((_ASF, at, "<Q") for at in (40, 56, 64, 72)), (_ASF_DATA, 16, "<Q"), (_ASF_DATA, 40, "<Q")),
    "avi": ((b"RIFF", 4, "<I"), (b"strh", 40, "<I"), (b"movi", -4, "<I"), (b"idx1", 4, "<I")),
    "flv": ((b"duration", 9, ">d"),),
    "wv": ((b"wvpk", 12, "<I"),),
    "tta": ((b"TTA1", 14, "<I"),),
}  # fmt: skip


def sound(seconds: float, seed: int = 0) -> np.ndarray:
    t = np.arange(round(seconds * RATE)) / RATE
    noise = np.random.default_rng(seed).normal(scale=0.02, size=len(t))
    return 0.3 * np.sin(2 * np.pi * (200 + 40 * t) * t) * (0.6 + 0.4 * np.sin(3 * t)) + noise


def write(path: Path, seconds: float, seed: int = 0) -> bytes:
    """A recording of these seconds."""
    kind = WRITTEN[path.name]
    if not isinstance(kind, str):
        soundfile.write(path, sound(seconds, seed), RATE, format=kind[0], subtype=kind[1])
        return path.read_bytes()
    program = ffmpeg.program()
    if program is None:
        pytest.skip("there is no ffmpeg")
    soundfile.write(path.with_name("source.wav"), sound(seconds, seed), RATE)
    command = [program, "-v", "error", "-y", "-i", path.with_name("source.wav"), *kind.split(), path]
    subprocess.run(command, check=True)
    return path.read_bytes()


def crc(page: bytes) -> int:
    """Of an Ogg page."""
    result = 0
    for byte in page:
        result ^= byte << 24
        for _ in range(8):
            result = (result << 1 ^ (0x104C11DB7 if result >> 31 else 0)) & 0xFFFFFFFF
    return result


def falsified(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """The recording with each field that states a length as 0, half, double and all ones."""
    for mark, offset, kind in FIELDS.get(name, FIELDS.get(name.rpartition(".")[2], ())):
        if mark not in data:
            continue
        at, size = (data.rindex(mark) if mark == b"OggS" else data.index(mark)) + offset, struct.calcsize(kind)
        (value,) = struct.unpack(kind, data[at : at + size])
        for shown, other in (("0", 0), ("half", value / 2), ("double", value * 2), ("ones", None)):
            packed = b"\xff" * size
            if other is not None:
                packed = struct.pack(kind, other if kind == ">d" else min(int(other), 256**size - 1))
            changed = data[:at] + packed + data[at + size :]
            if mark == b"OggS":  # bytes 22 to 25 of a page are its CRC
                page = changed[at - 6 :]
                changed = changed[: at + 16] + struct.pack("<I", crc(page[:22] + bytes(4) + page[26:])) + page[26:]
            yield f"{mark!r}+{offset} {shown}", changed


def heard(path: Path) -> tuple[float, AudioError | None]:
    """Seconds that are read, and what is told."""
    count = 0
    try:
        for block in read_blocks(str(path), rate=RATE):
            count += len(block)
    except AudioError as error:
        return count / RATE, error
    return count / RATE, None


def cases(name: str, path: Path) -> Iterator[tuple[str, bytes, float]]:
    """Recordings that were written, and what happened to them, with the seconds that were written."""
    other, data = write(path, SECONDS - 2, 1), write(path, SECONDS)
    yield "whole", data, SECONDS
    for shown, changed in falsified(name, data):
        yield shown, changed, SECONDS
    yield "joined", data + other, 2 * SECONDS - 2
    yield "joined with itself", data + data, 2 * SECONDS
    yield "cut and joined", data[: len(data) // 2 + 29] + other, 2 * SECONDS - 2
    for quarter in (1, 2, 3):
        yield f"cut at {quarter}/4", data[: len(data) * quarter // 4 + 29], SECONDS  # within a frame


_SLOW = pytest.mark.slow  # ffmpeg starts for each case
#: Formats whose beginning is read without the rest.
_STREAMED = [
    "aac.aac",
    "ac3.ac3",
    "parts.mp4",
    "wma.wma",
    "tta.tta",
    "wavpack.wv",
    "aac.ts",
    "mp2.mp2",
    "pcm.wav",
    "aac.flv",
]
_NAMES = [pytest.param(name, marks=_SLOW if isinstance(kind, str) else ()) for name, kind in WRITTEN.items()]


@pytest.mark.parametrize("name", _NAMES)
def test_all_is_read_or_told(name: str, tmp_path: Path) -> None:
    path, lost = tmp_path / name, []
    for shown, data, seconds in cases(name, path):
        path.write_bytes(data)
        found, error = heard(path)
        if shown.startswith("cut at") and name in _STREAMED:
            assert found > SECONDS * int(shown[7]) / 4 - 1.2, (shown, error)
        if error is None and abs(found - seconds) > TOLERANCE:
            lost.append(f"{shown}: {found:.2f} of {seconds} s")
        elif error is not None:
            assert shown != "whole", error
    assert lost == []


#: What stands behind the samples of a closed recording, and whether that is told.
TAILS = {
    "zeros": (bytes(1 << 16), False),
    "torn chunk": (b"id3 \xff\xff\x0f\0" + np.random.default_rng(3).bytes(60_001), False),
    "chunk without its padding": (b"LIST\x81\x03\0\0" + b"INFO" + bytes(range(1, 250)) * 4, False),
    "random": (np.random.default_rng(3).bytes(60_001), True),
    "text": (b"-----BEGIN SIGNATURE-----\n" * 100, True),
}
_CHUNKED = [name for name in WRITTEN if name.endswith(("wav", "w64", "aiff", "au", "caf", "sph")) and name != "mp3.wav"]


@pytest.mark.parametrize("name", _CHUNKED)
def test_what_follows_a_closed_recording_is_no_sound(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    data = write(path, SECONDS)
    whole = heard(path)[0]
    for shown, (tail, told) in TAILS.items():
        if "chunk" in shown and not name.endswith("wav"):
            continue
        path.write_bytes(data + tail)
        found, error = heard(path)
        assert (found, error is not None) == (pytest.approx(whole, abs=0.01), told), shown


def test_a_recording_that_grew_after_its_header(tmp_path: Path) -> None:
    path = tmp_path / "pcm.wav"
    data = bytearray(write(path, SECONDS))
    data[4:8], data[40:44] = struct.pack("<I", 32036), struct.pack("<I", 32000)
    path.write_bytes(data)
    assert heard(path) == (SECONDS, None)
    path.write_bytes(data + b"LIST\4\0\0\0INFO")
    assert heard(path) == (SECONDS, None)


def test_bytes_that_look_like_a_frame_of_flac() -> None:
    """Audio may hold what begins a frame, with any number behind it."""
    rng = np.random.default_rng(0)
    for first in range(256):
        for _ in range(50):
            extents._flac_frame(b"\xff\xf8" + rng.bytes(2) + bytes([first]) + rng.bytes(11), 4096)
