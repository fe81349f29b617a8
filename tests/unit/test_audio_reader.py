"""Recordings of all formats, whole and in places; every kind of bad file; and memory that does not grow."""

import io
import itertools
import signal
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr

from swsdist.audio import reader, streams
from swsdist.audio.formats import ffmpeg
from swsdist.audio.reader import AudioInfo, probe, read_blocks
from swsdist.core.codes import audio as codes
from swsdist.core.errors import AudioError, CutOffError
from tests.support.coded import raises

_PCM = {"wav16": "wav WAV", "wavex": "wav WAVEX", "rf64": "wav RF64", "aiff": "aiff AIFF", "au": "au AU"}
_PCM |= {"w64": "w64 W64", "flac": "flac FLAC", "sphere": "sph NIST"}
FORMATS = {name: (*words.split(), "PCM_16") for name, words in _PCM.items()}
FORMATS |= {"wav24": ("wav", "WAV", "PCM_24"), "float": ("wav", "WAV", "FLOAT"), "ulaw-sphere": ("sph", "NIST", "ULAW")}
FORMATS |= {"vorbis": ("ogg", "OGG", "VORBIS"), "opus": ("opus", "OGG", "OPUS")}
FORMATS |= {"mp3": ("mp3", "MP3", "MPEG_LAYER_III")}


LOSSY = {"vorbis", "opus", "mp3", "ulaw-sphere"}


def sweep(seconds: float, rate: int, channels: int = 1) -> np.ndarray:
    """A rising tone with some noise; each channel is different."""
    t = np.arange(round(seconds * rate)) / rate
    noise = np.random.default_rng(1).standard_normal((len(t), channels)) * 0.01
    tones = [0.3 * np.sin(2 * np.pi * (150 * (c + 1) + 30 * t) * t) for c in range(channels)]
    return (np.stack(tones, axis=1) + noise).astype(np.float32)


def write(folder: Path, kind: str, samples: np.ndarray, rate: int = 16000) -> str:
    suffix, container, coding = FORMATS[kind]
    path = folder / f"{kind}-{rate}.{suffix}"
    soundfile.write(str(path), samples, rate, format=container, subtype=coding)
    return str(path)


#: Codes of recordings that end early, or are damaged.
_CUT_SHORT = (codes.TRUNCATED, codes.TRUNCATED_HEADER, codes.TRUNCATED_OGG, codes.TRUNCATED_STREAM)
CUT_SHORT = {code.name for code in (*_CUT_SHORT, codes.DAMAGED_STREAM)}


def read(path: str, **options) -> np.ndarray:
    options.setdefault("rate", 16000)
    return np.concatenate(list(read_blocks(path, **options)))


def cut(path: str, size: int) -> str:
    file = Path(path)
    shorter = file.with_name("cut-" + file.name)
    shorter.write_bytes(file.read_bytes()[:size])
    return str(shorter)


def reason(path: str, **options) -> str:
    with pytest.raises(AudioError) as caught:
        read(path, **options)
    assert caught.value.where == path
    assert caught.value.code is not None
    return caught.value.code


@pytest.mark.parametrize("kind", FORMATS)
def test_formats(tmp_path, kind):
    samples = sweep(3, 16000, channels=2)
    path = write(tmp_path, kind, samples)
    assert probe(path) == AudioInfo(48000, 16000, 2)
    assert probe(path).duration == 3.0
    for channel in (1, 2):
        found = read(path, channel=channel)
        assert found.dtype == np.float32
        assert found.shape == (48000,)
        if kind in LOSSY:
            assert np.corrcoef(found, samples[:, channel - 1])[0, 1] > 0.99
        else:
            assert np.abs(found - samples[:, channel - 1]).max() < 2**-15


@pytest.mark.parametrize("kind", ["wav16", "flac", "vorbis", "opus", "mp3", "sphere"])
def test_a_place_is_what_lies_there(tmp_path, kind):
    path = write(tmp_path, kind, sweep(8, 16000))
    whole = read(path)
    for start, end in ((0.0, 1.0), (0.31, 0.62), (1.0001, 1.5), (3.3, 7.77), (7.5, 8.0)):
        place = read(path, start=start, end=end)
        expected = whole[round(start * 16000) : round(end * 16000)]
        assert place.shape == expected.shape
        assert np.abs(place - expected).max() <= (1e-6 if kind == "mp3" else 0)
    assert len(read(path, start=7.0)) == 16000
    assert len(read(path, end=1.25)) == 20000


@pytest.mark.parametrize("rate", [8000, 11025, 16000, 44100, 48000])
@pytest.mark.parametrize("kind", ["flac", "mp3"])
def test_rates_and_cuts(tmp_path, kind, rate, monkeypatch):
    path = write(tmp_path, kind, sweep(4, rate), rate)
    found = read(path)
    decoded = read(path, rate=rate)
    assert np.array_equal(found, soxr.resample(decoded, rate, 16000, quality="HQ") if rate != 16000 else decoded)
    for block_seconds, piece in ((0.37, 1 << 16), (100.0, 777), (1.0, 4000)):
        monkeypatch.setattr(reader, "_PIECE", piece)
        blocks = list(read_blocks(path, rate=16000, block_seconds=block_seconds))
        assert np.array_equal(np.concatenate(blocks), found)
        assert {len(block) for block in blocks[:-1]} <= {round(block_seconds * 16000)}
        assert 0 < len(blocks[-1]) <= round(block_seconds * 16000)


@pytest.mark.parametrize("kind", FORMATS)
def test_what_is_before_a_cut_is_read(tmp_path, kind):
    """All of it, then the cut is told, with the length that there should be, if anything tells it."""
    path = write(tmp_path, kind, sweep(20, 16000))
    whole, blocks = read(path), []
    path = cut(path, Path(path).stat().st_size * 6 // 10)
    with pytest.raises(CutOffError) as caught:
        blocks += read_blocks(path, rate=16000)
    found = np.concatenate(blocks)
    assert 0.5 * len(whole) < len(found) < 0.65 * len(whole)
    settled = len(found) - 1600  # a lossy coder's last block has no next one to go over into
    assert np.abs(found[:settled] - whole[:settled]).max() < 1e-6
    assert caught.value.expected_seconds is None or abs(caught.value.expected_seconds - 20) < 0.2
    assert (caught.value.expected_seconds is None) == (kind in ("vorbis", "opus"))
    assert probe(path).channels == 1
    assert len(read(path, start=0.5, end=1.5)) == 16000  # a place before the cut is as good as any
    resampled = []
    with pytest.raises(CutOffError):
        resampled += read_blocks(path, rate=8000)
    assert abs(sum(map(len, resampled)) - len(found) / 2) <= 1


@pytest.mark.parametrize("kind", ["flac", "mp3", "vorbis"])
def test_damage_in_the_middle_is_no_cut(tmp_path, kind):
    """What comes after it would stand at a wrong time."""
    path = Path(write(tmp_path, kind, sweep(20, 16000)))
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 3000] = np.random.default_rng(0).bytes(3000)
    path.write_bytes(data)
    with pytest.raises(AudioError) as caught:
        read(str(path))
    assert caught.value.code in (codes.DAMAGED_STREAM.name, codes.TRUNCATED.name)
    assert not isinstance(caught.value, CutOffError)


def test_an_error_in_reading_is_no_cut(tmp_path, monkeypatch):
    for kind in ("flac", "mp3", "vorbis", "wav16"):
        data = Path(write(tmp_path, kind, sweep(20, 16000))).read_bytes()
        middle = len(data) // 2

        class Failing(io.BytesIO):
            reads = 0

            def read(self, size: int | None = -1, middle: int = middle) -> bytes:
                self.reads += 1
                if self.reads > 20 and self.tell() > middle:
                    raise OSError("connection lost")
                return super().read(size)

        with monkeypatch.context() as patch:
            patch.setattr(streams, "open_path", lambda *_, data=data: Failing(data))
            with pytest.raises(OSError, match="connection lost"):
                read("s3://bucket/a.wav")


@pytest.mark.parametrize("kind", ["flac", "mp3", "vorbis", "wav16"])
def test_an_interrupt_is_neither_lost_nor_damage(tmp_path, monkeypatch, kind):
    """At any call that libsndfile makes back into Python."""
    data = Path(write(tmp_path, kind, sweep(5, 16000))).read_bytes()

    class Interrupted(io.BytesIO):
        calls = itertools.count()
        at = -1

        def meet(self) -> None:
            if next(self.calls) == self.at:
                signal.raise_signal(signal.SIGINT)

        def read(self, size: int | None = -1) -> bytes:
            self.meet()
            return super().read(size)

        def seek(self, offset: int, whence: int = 0) -> int:
            self.meet()
            return super().seek(offset, whence)

        def tell(self) -> int:
            self.meet()
            return super().tell()

    monkeypatch.setattr(streams, "open_path", lambda *_: Interrupted(data))
    assert len(read("s3://bucket/a.wav")) > 70_000
    count = next(Interrupted.calls)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job in the background ignores it
    try:
        for at in range(count):
            Interrupted.calls, Interrupted.at = itertools.count(), at
            with pytest.raises(KeyboardInterrupt):
                read("s3://bucket/a.wav")
    finally:
        signal.signal(signal.SIGINT, before)
    assert sys.unraisablehook.__module__ != "swsdist.audio.formats.libsndfile"


def test_values_that_are_not_finite(tmp_path):
    for value in (np.nan, np.inf):
        samples = sweep(40, 8000, channels=2)
        samples[250_000, 1] = value
        path = write(tmp_path, "float", samples, 8000)
        with raises(codes.NOT_FINITE, where=path, time=31.25):
            read(path, channel=2, rate=8000)
        assert len(read(path, channel=1, rate=8000)) == len(samples)
        assert len(read(path, channel=2, end=31.0, rate=8000)) == 31 * 8000


def test_other_bad_files_and_places_outside(tmp_path):
    (tmp_path / "empty.wav").touch()
    (tmp_path / "text.wav").write_text("not a sound at all\n" * 500)
    soundfile.write(str(tmp_path / "silent.wav"), np.zeros(0), 16000)
    for name, expected in {
        "nothing.wav": codes.MISSING_RECORDING,
        "empty.wav": codes.EMPTY_RECORDING,
        "text.wav": codes.NOT_AUDIO,
        "silent.wav": codes.NO_SAMPLES,
        ".": codes.RECORDING_IS_FOLDER,
    }.items():
        assert reason(str(tmp_path / name)) == expected.name
    path = write(tmp_path, "wav16", sweep(1, 16000))
    for channel in (0, 2):
        with raises(codes.NO_SUCH_CHANNEL, where=path, channel=channel, channels=1):
            read(path, channel=channel)
    for start, end in (*((-0.1, 0.5), (0.5, 0.5), (1.0, 1.5), (0.5, 1.02), (2.0, None), (float("nan"), 0.5)),):
        assert reason(path, start=start, end=end) == codes.PLACE_OUTSIDE.name
    path = write(tmp_path, "wav16", sweep(0.9996, 16000))  # a rounded end is the end
    assert len(read(path, start=0.5, end=1.0)) == round(0.9996 * 16000) - 8000
    path = write(tmp_path, "flac", sweep(20, 16000))
    Path(path).write_bytes(Path(path).read_bytes()[: Path(path).stat().st_size // 4])
    # libsndfile cannot seek there: that is the recording's fault, and no bug.
    assert reason(path, start=15.0, end=16.0) in CUT_SHORT | {codes.UNREADABLE_PLACE.name}


def test_absurd_headers(tmp_path):
    """A rate, a number of channels, a length: told at once, and with what would be read."""
    wave = Path(write(tmp_path, "wav16", sweep(1, 16000))).read_bytes()

    def changed(name: str, at: int, kind: str, value: int, data: bytes = wave) -> str:
        path = tmp_path / name
        path.write_bytes(data[:at] + struct.pack(kind, value) + data[at + struct.calcsize(kind) :])
        return str(path)

    flac = Path(write(tmp_path, "flac", sweep(1, 16000))).read_bytes()
    endless = flac[:21] + bytes([flac[21] | 0x0F]) + b"\xff\xff\xff\xf0" + flac[26:]
    (tmp_path / "endless.flac").write_bytes(endless)
    for path, code, values in (
        (changed("slow.wav", 24, "<I", 499), codes.IMPOSSIBLE_RATE, {"rate": 499}),
        (changed("fast.wav", 24, "<I", 2_000_000_000), codes.IMPOSSIBLE_RATE, {"rate": 2_000_000_000}),
        (changed("many.wav", 22, "<H", 1000), codes.IMPOSSIBLE_CHANNELS, {"channels": 1000, "highest": 256}),
    ):
        for call in (probe, read):
            with raises(code, where=path, **values):
                call(path)
    assert probe(str(tmp_path / "endless.flac")).frames == len(read(str(tmp_path / "endless.flac"))) == 16000
    bad = {codes.DAMAGED_HEADER.name, codes.IMPOSSIBLE_CHANNELS.name}
    assert reason(changed("none.wav", 22, "<H", 0)) in bad
    assert reason(changed("too-many.wav", 22, "<H", 65535)) in bad
    soundfile.write(str(tmp_path / "least.wav"), np.zeros(1000), 500)
    assert probe(str(tmp_path / "least.wav")).duration == 2.0
    silence = str(tmp_path / "silence.flac")
    soundfile.write(silence, np.zeros(16000 * 600), 16000)
    assert probe(silence).duration == 600.0


def test_what_libsndfile_lacks(tmp_path, monkeypatch):
    """Without ffmpeg, which reads some of it (test_ffmpeg)."""
    monkeypatch.setattr(ffmpeg, "program", lambda: None)
    sphere = Path(write(tmp_path, "sphere", sweep(1, 16000))).read_bytes()
    shorten = sphere.replace(b"sample_coding -s3 pcm", b"sample_coding -s26 pcm,embedded-shorten-v2.00")
    for name, data, code in (
        ("a.sph", shorten, codes.SPHERE_COMPRESSION),
        ("a.m4a", b"\0\0\0 ftypM4A \0" + bytes(2000), codes.NEEDS_FFMPEG),
        ("a.wma", bytes.fromhex("3026b2758e66cf11") + bytes(2000), codes.NEEDS_FFMPEG),
        ("a.amr", b"#!AMR\n" + bytes(2000), codes.NEEDS_FFMPEG),
        ("a.raw", bytes(2000), codes.HEADERLESS_SAMPLES),
        ("wma.wav", b"RIFF\x24\x10\0\0WAVEfmt " + struct.pack("<IHHIIHH", 16, 0x161, 1, 16000, 4000, 1, 16)
         + b"data" + struct.pack("<I", 4000) + bytes(4000), codes.NEEDS_FFMPEG),
    ):  # fmt: skip
        (tmp_path / name).write_bytes(data)
        path = str(tmp_path / name)
        for call in (probe, read):
            with raises(code, where=path):
                call(path)


@pytest.mark.slow
def test_half_an_hour_in_bounded_memory(tmp_path):
    """The peak of a process that reads half an hour of stereo is little more than for 2 min."""
    program = """
import sys
from swsdist.audio.reader import read_blocks
count = sum(len(block) for block in read_blocks(sys.argv[1], channel=2, rate=16000))
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(count, peak.split()[1])
"""
    peaks = {}
    for minutes in (2, 30):
        path = tmp_path / f"{minutes}.flac"
        minute = np.repeat((sweep(60, 11025) * 8000).astype(np.int16), 2, axis=1)
        with soundfile.SoundFile(str(path), "w", 11025, 2, "PCM_16", compression_level=0.0) as file:
            for _ in range(minutes):
                file.write(minute)
        done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
        count, peak = map(int, done.stdout.split())
        assert count == minutes * 60 * 16000
        peaks[minutes] = peak
        path.unlink()
    assert peaks[30] - peaks[2] < 8 * 1024  # kB
