"""Recordings that libsndfile does not read, by a real ffmpeg: the samples, in bounded memory, and every kind of bad file."""

import os
import subprocess
from pathlib import Path
from unittest import mock

import numpy as np
import psutil
import pytest
import scipy.signal
import soundfile

from swsdist.audio import reader
from swsdist.audio.formats import ffmpeg
from swsdist.audio.reader import AudioInfo, probe, read_blocks
from swsdist.core.codes import audio as codes
from swsdist.core.errors import AudioError, CutOffError
from swsdist.corpora.documents import read_documents, readable_endings
from swsdist.io.filesystem import Folder
from tests.support.coded import raises

RATE = 22050

#: Codings without loss, in containers that only ffmpeg reads.
LOSSLESS = {"alac.m4a": "alac", "flac.mka": "flac", "pcm.mov": "pcm_s16le", "tta.tta": "tta", "wv.wv": "wavpack"}
LOSSY = {"aac.m4a": "aac", "vorbis.webm": "libvorbis", "ac3.ac3": "ac3", "mp3.avi": "libmp3lame"}


@pytest.fixture(scope="module")
def program() -> str:
    found = ffmpeg.program()
    if found is None:
        pytest.skip("there is no ffmpeg")
    return found


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four seconds of stereo in WAV."""
    t = np.arange(4 * RATE) / RATE
    noise = np.random.default_rng(1).standard_normal((len(t), 2)) * 0.02
    path = tmp_path_factory.mktemp("ffmpeg") / "sound.wav"
    tones = np.stack([0.4 * np.sin(2 * np.pi * (150 + 200 * t) * t), 0.3 * np.sin(2 * np.pi * 500 * t)], axis=1)
    soundfile.write(str(path), tones + noise, RATE, subtype="PCM_16")
    return path


@pytest.fixture(scope="module")
def made(program: str, sound: Path):
    """The sound in another form: from its name, further words for ffmpeg, and what it is made of."""

    def make(name: str, *words: str, source: Path | None = None) -> str:
        out, coding = sound.parent / name, {**LOSSLESS, **LOSSY, "bare.aac": "aac"}.get(name)
        if not out.exists():
            words = ("-c:a", coding, *words) if coding else words
            command = [program, "-v", "error", "-nostdin", "-i", str(source or sound), *words, f"file:{out}"]
            subprocess.run(command, check=True)
        return str(out)

    return make


def read(path: str, **options) -> np.ndarray:
    options.setdefault("rate", RATE)
    return np.concatenate(list(read_blocks(path, **options)))


def reason(path: str, **options) -> AudioError:
    with pytest.raises(AudioError) as caught:
        read(path, **options)
    assert caught.value.where == path
    assert type(caught.value) in (AudioError, CutOffError)
    return caught.value


def test_samples_are_those_of_the_wav_or_near(made, sound: Path) -> None:
    for name in LOSSLESS:
        path = made(name)
        assert probe(path) == AudioInfo(4 * RATE, RATE, 2)
        for how in ({"channel": 1}, {"channel": 2}, {"rate": 16000}):
            assert np.array_equal(read(path, **how), read(str(sound), **how))
    # Of a video its sound, as it is: the pictures are longer.
    words = "-f lavfi -i testsrc=d=6:s=64x48:r=5 -map 1:v -map 0:a -c:a alac -c:v mpeg4"
    assert np.array_equal(read(made("video.mov", *words.split()), channel=2), read(str(sound), channel=2))
    for name in LOSSY:
        path = made(name, *(("-ar", "48000") if name.startswith("ac3") else ()))
        info = probe(path)
        assert (info.channels, abs(info.duration - 4) < 0.15) == (2, True)
        found, whole = read(path), read(str(sound))
        count = min(len(found), len(whole))
        assert abs(len(found) - len(whole)) < 0.15 * RATE
        across = scipy.signal.correlate(found[:count], whole[:count], method="fft")  # coders delay the sound a little
        assert np.abs(across).max() > 0.95 * np.linalg.norm(found[:count]) * np.linalg.norm(whole[:count])
    bare = made("bare.aac")  # a stream that does not tell its length
    assert probe(bare).frames == len(read(bare)) > 4 * RATE


def test_bad_files_and_names_that_look_like_something_else(made, tmp_path: Path, sound: Path, monkeypatch) -> None:
    whole = Path(made("aac.m4a")).read_bytes()
    moved = Path(made("fast.m4a", "-c:a", "aac", "-movflags", "+faststart")).read_bytes()
    video = made("silent.mp4", "-f", "lavfi", "-i", "testsrc=d=1:s=64x48:r=5", "-map", "1:v", "-c:v", "mpeg4")
    playlist = f"#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n{sound}\n#EXT-X-ENDLIST\n"
    remote = b"v=0\no=- 0 0 IN IP4 127.0.0.1\nc=IN IP4 127.0.0.1\nm=audio 5004 RTP/AVP 0\n"
    for name, data, expected in (
        ("index-is-cut-off.m4a", whole[: len(whole) // 2], codes.FFMPEG_CANNOT_READ),
        ("sound-is-cut-off.m4a", moved[: len(moved) // 2], codes.TRUNCATED),
        ("damaged.m4a", moved[:20000] + os.urandom(3000) + moved[23000:], codes.DAMAGED_STREAM),
        ("silent.mp4", Path(video).read_bytes(), codes.NO_AUDIO_TRACK),
        ("junk.m4a", b"\0\0\0 ftypM4A \0" + bytes(2000), codes.FFMPEG_CANNOT_READ),
        ("cut.webm", Path(made("vorbis.webm")).read_bytes()[:20000], codes.TRUNCATED),
        # Lists of other files: else a folder of recordings could name any file of the machine.
        ("a.m4a", f"ffconcat version 1.0\nfile '{sound}'\n".encode(), codes.NOT_AUDIO),
        ("b.mp4", playlist.encode(), codes.NOT_AUDIO),
        ("c.webm", remote, codes.NOT_AUDIO),
    ):
        (tmp_path / name).write_bytes(data)
        error = reason(str(tmp_path / name))
        assert error.code == expected.name, name
        assert "\n" not in error.message
    data = Path(made("alac.m4a")).read_bytes()
    monkeypatch.chdir(tmp_path)
    for name in ("-i.m4a", "concat:a|b.m4a", "http:x.m4a", "%03d.m4a", "a b'\"$(x).m4a", "Ünï-语.m4a", "pipe:0"):
        Path(name).write_bytes(data)
        assert np.array_equal(read(name), read(str(sound))), name


def test_a_program_that_hangs_is_given_up(made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a header and half of the samples, and before anything; and one that does not start."""
    path = made("alac.m4a")
    header = "printf '.snd\\000\\000\\000\\030\\377\\377\\377\\377\\000\\000\\000\\006\\000\\000\\126\\042\\000\\000\\000\\002'"
    monkeypatch.setattr(ffmpeg, "TIMEOUT", 0.3)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    fake = tmp_path / "ffmpeg"
    for lines in ("exec sleep 1000", f"{header}; head -c 200000 /dev/zero; exec sleep 1000"):
        fake.write_text(f"#!/bin/sh\n{lines}\n")
        fake.chmod(0o755)
        assert ffmpeg.program() == str(fake)
        error = reason(path)  # the program would take a quarter of an hour
        assert (error.code, error.values["seconds"]) == (codes.FFMPEG_TIMEOUT.name, 0.3)
    assert not [child for child in psutil.Process().children(recursive=True) if child.name() == "sleep"]
    fake.write_bytes(b"\x7fELFnothing")
    assert reason(path).code == codes.FFMPEG_NOT_STARTED.name


def test_what_decoded_is_known_and_without_it_the_remedy_is_to_have_it(
    made, sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ffmpeg.recorded_versions() as used:
        read(str(sound))
        assert used == set()
        read(made("alac.m4a"))
    assert used == {ffmpeg.version(ffmpeg.program())}
    assert "unknown" not in used
    for name in ("alac.m4a", "flac.mka"):
        (tmp_path / name).write_bytes(Path(made(name)).read_bytes())
    rows = [(row["doc_id"], row["channel"], row["duration"]) for row in read_documents(str(tmp_path)).to_pylist()]
    assert rows == [(name, channel, 4.0) for name in ("alac", "flac") for channel in (1, 2)]
    path = made("alac.m4a")
    assert "not installed" not in readable_endings()
    monkeypatch.setattr(ffmpeg, "program", lambda: None)
    for call in (probe, read):
        with raises(codes.NEEDS_FFMPEG):
            call(path)
    assert "with ffmpeg, which is not installed" in readable_endings()


def test_of_a_remote_file_the_ends_are_enough(made, s3, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a container says stands at its beginning or end; only a stream that says nothing is fetched whole."""
    folder = Folder(f"s3://{s3.bucket}/ends", s3.storage)
    copy = mock.Mock(wraps=reader.copy_of)
    monkeypatch.setattr(reader, "copy_of", copy)
    monkeypatch.setattr(reader, "ENDS", 20_000)
    for name in ("alac.m4a", "aac.m4a", "flac.mka", "bare.aac"):
        path = made(name)
        assert Path(path).stat().st_size > 3 * 20_000
        folder.write_bytes(name, Path(path).read_bytes())
        copy.reset_mock()
        assert probe(folder.path(name), s3.storage) == probe(path)
        assert [call.args[1:] for call in copy.call_args_list] == [(20_000,), ()][: 1 + (name == "bare.aac")]
    folder.write_bytes("junk.m4a", b"\0\0\0 ftypM4A \0" + bytes(200_000))
    with raises(codes.FFMPEG_CANNOT_READ, where=folder.path("junk.m4a")):
        probe(folder.path("junk.m4a"), s3.storage)
