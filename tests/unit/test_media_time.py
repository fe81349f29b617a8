"""Times are those of a player: clicks at known times of a file, in every container that ffmpeg reads."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from swsdist.audio.formats import ffmpeg
from swsdist.audio.formats.ffmpeg import caching
from swsdist.audio.reader import probe, read_blocks, read_clip

FORMS = {"flac.mkv": ("flac", 16000, 0), "aac.mp4": ("aac", 44100, 0), "aac.ts": ("aac", 44100, 1024)}
FORMS |= {"opus.webm": ("libopus", 48000, 0)}
SLOW = {"vorbis.ogv": ("libvorbis", 44100, 0), "alac.mov": ("alac", 44100, 0), "pcm.mkv": ("pcm_s16le", 8000, 0)}
SLOW |= {"opus.mp4": ("libopus", 48000, 0), "vorbis.webm": ("libvorbis", 44100, 0), "wma.asf": ("wmav2", 44100, 2048)}
SLOW |= {f"mp3.{ending}": ("libmp3lame", 44100, late) for ending, late in (("mp4", 0), ("mkv", 0), ("flv", 1105))}
SLOW |= {f"aac.{ending}": ("aac", 44100, 0) for ending in ("3gp", "mkv")}
SLOW |= {"ac3.ts": ("ac3", 48000, 256), "mp2.ts": ("mp2", 44100, 481), "mp2.mpg": ("mp2", 44100, 481)}
_PICTURES = {"ts": "mpeg2video", "mpg": "mpeg2video", "webm": "libvpx", "ogv": "libtheora", "flv": "flv"}
CLICKS = (0.5, 1.2, 4.0)
LATE, GAP, GAP_AT = 1.5, 1.25, 3.2

Make = Callable[..., str]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Clicks in noise as a file: from its name, coding, rate, words for ffmpeg before and after the sound, and pictures."""
    program, folder = ffmpeg.program(), tmp_path_factory.mktemp("media")
    if program is None:
        pytest.skip("there is no ffmpeg")

    def made(name: str, coding: str, rate: int, before: tuple = (), after: tuple = (), pictures: bool = True) -> str:
        sound, out = folder / f"{rate}.wav", folder / name
        samples = np.random.default_rng(0).normal(0, 3e-4, 5 * rate)
        for time in CLICKS:
            tone = np.sin(2 * np.pi * 1000 * np.arange(rate // 50) / rate)
            samples[round(time * rate) :][: len(tone)] += 0.5 * tone
        soundfile.write(sound, samples, rate, subtype="PCM_16")
        seen, coded = (), ()
        if pictures:
            seen = ("-f", "lavfi", "-i", f"color=s=64x64:r={25 if name.endswith(('ts', 'mpg')) else 5}:d=9")
            coded = ("-map", "0:v", "-map", "1:a", "-c:v", _PICTURES.get(out.suffix[1:], "mpeg4"))
        command = [program, "-v", "error", "-nostdin", "-y", *seen, *before, "-i", str(sound), *coded]
        subprocess.run([*command, "-c:a", coding, "-strict", "-2", *after, str(out)], check=True)
        return str(out)

    return made


def read(path: str, **place: float) -> np.ndarray:
    return np.concatenate(list(read_blocks(path, rate=probe(path).rate, **place)))


def heard(path: str) -> list[float]:
    """Times of clicks, s."""
    rate = probe(path).rate
    loud = np.flatnonzero(np.abs(np.concatenate(list(read_blocks(path, rate=rate)))) > 0.12) / rate
    return loud[np.diff(loud, prepend=-1) > 0.3].tolist()


def check(path: str, expected: list[float]) -> None:
    """Clicks are heard at their times; a place equals that part of the whole; a clip of a click holds it."""
    assert heard(path) == pytest.approx(expected, abs=0.01)
    whole, rate = read(path), probe(path).rate
    with caching():
        for start, end in ((0.2, 2.3), (3.1, 4.6), (expected[-1] - 0.1, expected[-1] + 0.1)):
            place, same = read(path, start=start, end=end), whole[round(start * rate) : round(end * rate)]
            assert np.allclose(place, same, rtol=0, atol=1e-6 if path.endswith("mp3") else 0)
    clip = read_clip(path, expected[-1], expected[-1] + 0.02, pad=0.3)
    assert clip.begin + np.argmax(np.abs(clip.samples) > 0.12) / rate == pytest.approx(expected[-1], abs=0.01)


@pytest.mark.parametrize(
    ("ending", "coding", "rate"),
    [
        ("wav", "pcm_s16le", 16000),
        ("flac", "flac", 16000),
        ("ogg", "libvorbis", 22050),
        ("opus", "libopus", 48000),
        ("mp3", "libmp3lame", 44100),
        *((ending, "aac", 44100) for ending in ("m4a", "3gp")),
        ("m4a", "alac", 16000),
        ("webm", "libopus", 48000),
    ],
)
def test_sound_without_pictures(make: Make, ending: str, coding: str, rate: int) -> None:
    """Whoever decodes it: delays of encoders are taken off where the file states them."""
    check(make(f"{coding}-{rate}.{ending}", coding, rate, pictures=False), list(CLICKS))


_DELAYED, _GAPPED = ("-itsoffset", str(LATE)), ("-af", f"asetpts='PTS+gt(T,{GAP_AT})*{GAP}/TB'")


@pytest.mark.parametrize("name", FORMS)
def test_sound_that_starts_late_and_has_a_gap(make: Make, name: str) -> None:
    coding, rate, _ = FORMS[name]
    path = make(name, coding, rate, _DELAYED, _GAPPED)
    check(path, [LATE + 0.5, LATE + 1.2, LATE + GAP + 4.0])
    if name == "flac.mkv":  # a place may outlast the sound, as the pictures do
        rest = np.append(read(path)[7 * rate :], np.zeros(12000, np.float32))
        assert np.array_equal(read(path, start=7.0, end=8.5), rest)
        assert not read(path, start=8.0, end=8.5).any()


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FORMS, *SLOW])
def test_every_container(make: Make, name: str) -> None:
    """At its beginning, late, and with a gap; AVI states neither, MOV none in PCM, and Ogg only the second of a gap."""
    coding, rate, samples = (FORMS | SLOW)[name]
    priming = samples / rate
    check(make(f"plain-{name}", coding, rate), [priming + time for time in CLICKS])
    check(make(f"late-{name}", coding, rate, _DELAYED), [LATE + time for time in CLICKS])
    if not name.endswith("ogv"):
        check(make(f"gap-{name}", coding, rate, (), _GAPPED), [priming + 0.5, priming + 1.2, priming + GAP + 4.0])


def test_edit_lists_and_timestamps(make: Make) -> None:
    """They delay the sound of an MP4 without pictures; one in pieces starts when its stream did, Matroska's at zero."""
    path = make("alone.m4a", "aac", 44100, _DELAYED, pictures=False)
    check(path, [LATE + time for time in CLICKS])
    assert probe(path).duration == pytest.approx(LATE + 5, abs=0.03)
    pieces = make("pieces.m4a", "aac", 44100, _DELAYED, ("-movflags", "frag_keyframe+empty_moov"), pictures=False)
    assert heard(pieces) == pytest.approx([1024 / 44100 + time for time in CLICKS], abs=0.01)
    path = make("alone.mka", "flac", 16000, _DELAYED, pictures=False)
    check(path, list(CLICKS))
    assert probe(path).duration == pytest.approx(5, abs=0.01)
    # A gap of 50 ms moves what follows; timestamps that jitter, stand or go back lose no sound.
    same = ("0", "PTS+0.02*(random(0)-0.5)/TB", "PTS-gt(TS*TB,3)*0.9/TB")
    for timestamps, moved in (*((one, 0.0) for one in same), ("PTS+gt(TS*TB,3)*0.05/TB", 0.05)):
        after = ("-bsf:a", f"setts=ts={timestamps}".replace(",", "\\,"))
        path = make("odd.mka", "pcm_s16le", 16000, (), after, pictures=False)
        assert heard(path) == pytest.approx([*CLICKS[:2], CLICKS[2] + moved], abs=0.01), timestamps
        assert len(read(path)) == pytest.approx((5 + moved) * 16000, abs=160), timestamps


def test_joined_streams_and_vorbis_that_is_cut(make: Make, tmp_path: Path) -> None:
    """Also where the number of channels changes, and timestamps go back."""
    parts = [make(f"{n}.ts", "ac3", 48000, (), ("-ac", str(n)), pictures=False) for n in (1, 2)]
    joined = tmp_path / "joined.ts"
    joined.write_bytes(b"".join(Path(part).read_bytes() for part in parts))
    assert heard(str(joined)) == pytest.approx([*CLICKS, *(5.02 + time for time in CLICKS)], abs=0.03)
    # Its first page starts before zero, in each mode of its setup.
    for rate in (16000, 44100):
        path, cut = make(f"{rate}.ogg", "libvorbis", rate, pictures=False), str(tmp_path / f"{rate}.ogg")
        subprocess.run([str(ffmpeg.program()), "-v", "error", "-ss", "1.5", "-i", path, "-c", "copy", cut], check=True)
        assert heard(path) == pytest.approx(CLICKS, abs=0.01)
        assert heard(cut) == pytest.approx([CLICKS[-1] - 1.5], abs=0.01)
        assert np.array_equal(read(cut, start=2.4, end=3.0), read(cut)[round(2.4 * rate) : round(3.0 * rate)])
