"""Recordings that a command writes, of archives, on S3, in places kept; MP3s that complain; clips."""

import base64
import hashlib
import io
import os
import shlex
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from swsdist.audio import streams as commands
from swsdist.audio.formats import ffmpeg, libsndfile
from swsdist.audio.formats import ffmpeg as places
from swsdist.audio.reader import PAGE_RATE, data_uri, probe, read_blocks, read_clip, write_clip
from swsdist.audio.streams import Digest, digested, digesting, only_files, permitted, sha256
from swsdist.core.codes import audio as codes
from swsdist.core.errors import StorageError, TransientError
from swsdist.features.extractors import create
from swsdist.io.filesystem import READ_AHEAD, Folder
from swsdist.store.writing import write_tracks
from tests.support.coded import raises
from tests.support.fault_proxy import FaultProxy


@pytest.fixture
def wav(tmp_path: Path) -> Path:
    path = tmp_path / "a.wav"
    soundfile.write(path, np.random.default_rng(1).uniform(-0.5, 0.5, 16000), 16000, subtype="PCM_16")
    return path


def samples(path: str, **place: float) -> np.ndarray:
    return np.concatenate(list(read_blocks(path, rate=16000, **place)))


def test_none_is_run_unless_it_is_allowed_nor_where_a_file_must_be(
    tmp_path: Path, wav: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = f"touch {tmp_path}/seen; cat {wav} |"
    for read in (samples, probe, sha256):
        with raises(codes.COMMAND_NOT_ALLOWED, where=command, command=command):
            read(command)
    with permitted(True), permitted(False), raises(codes.COMMAND_NOT_ALLOWED):
        samples(command)
    assert not (tmp_path / "seen").exists()
    monkeypatch.chdir(tmp_path)
    for name in ("a;touch seen;|", "touch seen|", "b.ark:4", "b.arrow:0+9"):
        (tmp_path / name).write_bytes(wav.read_bytes())
        with permitted(True), only_files():
            assert len(samples(str(tmp_path / name))) == probe(name).frames == 16000
            assert sha256(name) == sha256(str(tmp_path / name))
            with raises(codes.MISSING_RECORDING):
                samples(f"gone{name}")
    assert not (tmp_path / "seen").exists()


def test_its_output_is_read_like_a_file_and_it_is_run_once(tmp_path: Path, wav: Path) -> None:
    command = f"echo x >> {tmp_path}/runs; cat {wav} |"
    with permitted(True):
        assert probe(command) == probe(str(wav))
        assert sha256(command) == sha256(str(wav))
        assert (samples(command) == samples(str(wav))).all()
        assert (samples(command, start=0.25, end=0.5) == samples(str(wav), start=0.25, end=0.5)).all()
    assert (tmp_path / "runs").read_text() == "x\n"
    with permitted(True):
        probe(command)
    assert (tmp_path / "runs").read_text() == "x\nx\n"
    data = bytearray(wav.read_bytes())
    data[4:8] = data[40:44] = (0x7FFFFFFF).to_bytes(4, "little")  # of unknown length
    (tmp_path / "stream.wav").write_bytes(data)
    with permitted(True):
        assert (samples(f"cat {tmp_path}/stream.wav |") == samples(str(wav))).all()


def test_what_fails(wav: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for command, code, values in (
        ("echo bad luck >&2; exit 3 |", codes.COMMAND_FAILED, {"ending": "exit status 3", "stderr": "bad luck"}),
        ("true |", codes.COMMAND_WITHOUT_OUTPUT, {"stderr": "empty"}),
        ("no-such-program-here |", codes.COMMAND_FAILED, {"ending": "exit status 127"}),
        ("kill -SEGV $$ |", codes.COMMAND_FAILED, {"ending": "signal 11"}),
        (f"{{ cat {wav}; exit 3; }} | cat |", codes.COMMAND_FAILED, {"ending": "exit status 3"}),
        ("echo not a sound |", codes.NOT_AUDIO, {}),
        ("kill -9 $$ |", codes.COMMAND_KILLED, {"ending": "signal 9"}),
        ("sh -c 'kill -KILL $$'; exit $? |", codes.COMMAND_KILLED, {"ending": "exit status 137"}),
    ):
        with permitted(True), raises(code, where=command, **values) as caught:
            samples(command)
        # One that somebody ends may be run again.
        ended = code is codes.COMMAND_KILLED
        assert isinstance(caught.value, StorageError) == isinstance(caught.value, TransientError) == ended
    with permitted(True), pytest.raises(StorageError) as full:
        samples(f"cat {wav} > /dev/full |")
    assert isinstance(full.value, TransientError)
    with permitted(True):  # one that has read enough has not failed
        assert len(samples(f"yes | head -c 1 >/dev/null; cat {wav} /dev/zero | head -c {wav.stat().st_size} |"))
    monkeypatch.setattr(commands, "TIMEOUT", 0.2)
    with permitted(True), raises(codes.COMMAND_TIMEOUT, seconds=0.2):
        samples("sleep 60 & sleep 60 |")


def test_its_identity_tells_whether_its_programs_are_there() -> None:
    for command, lacking in {
        "no-such-program -x a.wav |": "no-such-program",
        "A=1 cat x | no-such-program - | cat |": "no-such-program",
        "(cat a; no-such-program b) 2>/dev/null && true |": "no-such-program",
        "cat a.wav 2>&1 |": None,
        "echo 'a; b | c' >&2; exit 3 |": None,
        "$HERE/program a |": None,
        "echo 'open |": None,
    }.items():
        _, absent, name = commands.identity(command).partition(commands.ABSENT)
        assert (name if absent else None) == lacking


def test_threads_do_not_take_each_others_output(tmp_path: Path) -> None:
    for k in range(4):
        soundfile.write(tmp_path / f"{k}.wav", np.zeros(1000 * (k + 1)), 16000)
    found: dict[int, int] = {}

    def look(k: int) -> None:
        for _ in range(5):
            found[k] = probe(f"cat {tmp_path}/{k}.wav |").frames

    with permitted(True):
        threads = [threading.Thread(target=look, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == {k: 1000 * (k + 1) for k in range(4)}


def test_an_archive(tmp_path: Path, wav: Path, s3) -> None:
    second = tmp_path / "b.wav"
    soundfile.write(second, np.random.default_rng(2).uniform(-0.5, 0.5, 24000), 16000, subtype="PCM_16")
    archive = b"r1 " + wav.read_bytes() + b"r2 " + second.read_bytes()
    (tmp_path / "x.ark").write_bytes(archive)
    place = 3 + wav.stat().st_size + 3
    assert probe(f"{tmp_path}/x.ark:3") == probe(str(wav))
    assert (samples(f"{tmp_path}/x.ark:3") == samples(str(wav))).all()
    assert (samples(f"{tmp_path}/x.ark:{place}", start=0.5) == samples(str(second), start=0.5)).all()
    assert sha256(f"{tmp_path}/x.ark:{place}") == sha256(str(second))
    for byte in (4, len(archive), 10**12):
        with raises(codes.NO_WAV_IN_ARCHIVE, byte=byte):
            probe(f"{tmp_path}/x.ark:{byte}")
    with raises(codes.MISSING_RECORDING):
        probe(f"{tmp_path}/y.ark:3")
    from swsdist.io.filesystem import Folder

    Folder(f"s3://{s3.bucket}/a", s3.storage).write_bytes("x.ark", archive)
    remote = np.concatenate(list(read_blocks(f"s3://{s3.bucket}/a/x.ark:3", rate=16000, storage=s3.storage)))
    assert (remote == samples(str(wav))).all()


RATE, SECONDS = 16000, 12
PLACES = [(0.5, 1.5), (1.5, 3.0), (2.2, 4.0), (5.0, 6.25), (6.25, 11.0), (7.0, 8.0)]


@pytest.fixture
def starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A real ffmpeg on the PATH that writes its arguments down, a line each time that it is started."""
    program, folder = ffmpeg.program(), tmp_path / "bin"
    if program is None:
        pytest.skip("there is no ffmpeg")
    folder.mkdir()
    log, script = tmp_path / "log", folder / "ffmpeg"
    script.write_text(f'#!/bin/sh\necho "$@" >> {shlex.quote(str(log))}\nexec {shlex.quote(program)} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    ffmpeg.version(str(script))
    return log


@pytest.fixture
def recording(starts: Path, tmp_path: Path) -> str:
    sound = np.random.default_rng(3).normal(scale=0.1, size=(SECONDS * RATE, 2))
    soundfile.write(tmp_path / "sound.wav", sound, RATE)
    out = tmp_path / "sound.m4a"
    command = [str(ffmpeg.program()), "-v", "error", "-i", str(tmp_path / "sound.wav"), "-c:a", "alac", str(out)]
    subprocess.run(command, check=True)
    starts.write_text("")
    return str(out)


def counts(log: Path) -> tuple[int, int]:
    """How often a header was read, and a recording decoded."""
    lines = [line for line in log.read_text().splitlines() if "pcm_f32be" in line]
    brief = sum("-frames:a 1" in line for line in lines)
    return brief, len(lines) - brief


def cut(path: str, start: float, end: float, channel: int = 1) -> np.ndarray:
    return np.concatenate(list(read_blocks(path, channel=channel, rate=RATE, start=start, end=end)))


def test_places_in_the_order_of_time_are_one_decoding_while_kept(
    recording: str, starts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = [cut(recording, *place) for place in PLACES]
    assert counts(starts) == (0, len(PLACES))
    starts.write_text("")
    with places.caching():
        found = [cut(recording, *place) for place in PLACES]
        assert [probe(recording).duration for _ in PLACES] == [SECONDS] * len(PLACES)
        # The other channel, and back to what is still kept.
        other = cut(recording, *PLACES[1], channel=2)
    assert counts(starts) == (1, 1)
    assert all(np.array_equal(mine, theirs) for mine, theirs in zip(found, alone, strict=True))
    assert np.array_equal(other, cut(recording, *PLACES[1], channel=2))
    assert not places.is_caching()
    monkeypatch.setattr(places, "_KEPT_BYTES", 1)
    whole = cut(recording, 0.0, SECONDS)
    starts.write_text("")
    with places.caching():
        for start, end in [(9.0, 10.0), (0.5, 1.0), (1.0, 2.0)]:
            assert np.array_equal(cut(recording, start, end), whole[round(start * RATE) : round(end * RATE)])
    assert counts(starts) == (0, 2)


def test_what_ends_early_or_fails_is_let_go(recording: str) -> None:
    whole = cut(recording, 0.0, SECONDS)
    with places.caching():
        left = read_blocks(recording, rate=RATE, start=1.0, end=11.0, block_seconds=0.5)
        next(left)
        with raises(codes.PLACE_OUTSIDE):
            cut(recording, 11.0, 20.0)
        other = read_blocks(recording, rate=RATE, start=2.0, end=9.0, block_seconds=0.5)
        blocks = [next(other)]
        left.close()
        assert np.array_equal(np.concatenate([*blocks, *other]), whole[2 * RATE : 9 * RATE])


def test_documents_of_a_shard(recording: str, starts: Path, tmp_path: Path) -> None:
    """Of segments the length is asked for once, and the recording decoded once; again for what lies after its stated end."""
    rows = [
        {"doc_id": f"s{k}", "channel": 1, "path": recording, "speaker": None, "identity": "1:2", "recording": "r"}
        | {"start": start, "end": end, "listed": f"segments, line {k + 1}"}
        for k, (start, end) in enumerate([*PLACES, (11.0, 12.3), (12.5, 13.0)])
    ]
    made = write_tracks(Folder(str(tmp_path / "store")), "fp", rows, create("mfcc", {}))[0]
    assert counts(starts) == (1, 2)
    assert made.rejected.to_pylist()[0]["reason"] == codes.SEGMENT_OUTSIDE.name
    assert made.documents["duration"].to_pylist() == pytest.approx([end - start for start, end in PLACES] + [1.0])


@pytest.fixture
def proxy(s3: Any) -> Iterator[FaultProxy]:
    """It counts."""
    with FaultProxy(s3.endpoint) as made:
        yield made


def put(folder: Folder, name: str, seconds: float, path: Path) -> bytes:
    """Noise in a file on S3; its bytes."""
    noise = np.random.default_rng(5).normal(0, 0.1, round(seconds * 16_000)).astype(np.float32)
    soundfile.write(path / name, noise, 16_000)
    data = (path / name).read_bytes()
    folder.write_bytes(name, data)
    return data


def test_another_object_is_digested_anew(s3: Any, tmp_path: Path) -> None:
    folder = Folder(f"s3://{s3.bucket}/{tmp_path.name}", s3.storage)
    put(folder, "x.wav", 3.0, tmp_path)
    digest = Digest(folder.path("x.wav"))
    with digesting(digest):
        list(read_blocks(digest.path, rate=16_000, storage=folder.storage))
        data = put(folder, "x.wav", 5.0, tmp_path)
        list(read_blocks(digest.path, rate=16_000, end=1.0, storage=folder.storage))
    assert digested(digest, folder.storage) == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("ending", ["wav", "flac", "mp3"])
def test_indexing_fetches_it_once(s3: Any, proxy: FaultProxy, tmp_path: Path, ending: str) -> None:
    """Some megabytes, listened to and digested while features are computed; of a compressed file the end may come first."""
    folder = Folder(f"s3://{s3.bucket}/{tmp_path.name}", {**s3.storage, "endpoint_url": proxy.endpoint})
    name = f"x.{ending}"
    data = put(folder, name, 60.0 if ending == "mp3" else 300.0, tmp_path)
    row = {"doc_id": "x", "channel": 1, "path": folder.path(name), "speaker": None, "identity": folder.identity(name)}
    proxy.asked.clear()
    (found,) = write_tracks(folder, "0" * 32, [row], create("mfcc", {}))
    assert found.documents["sha256"].to_pylist() == [hashlib.sha256(data).hexdigest()]
    assert sha256(folder.path(name), folder.storage) == hashlib.sha256(data).hexdigest()
    asked = [verb for verb, path in proxy.asked if path.endswith(name)]
    assert asked.count("GET") <= 2 * (len(data) // READ_AHEAD + 2) + (ending != "wav")
    assert asked.count("HEAD") <= 4


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An MP3 whose Xing tag states half of its bytes: the decoder complains, and it can be read."""
    monkeypatch.setattr(libsndfile, "_printed", set())
    rng = np.random.default_rng(0)
    whole = tmp_path / "whole.mp3"
    soundfile.write(whole, 0.1 * rng.standard_normal(160_000), 16_000, format="MP3", subtype="MPEG_LAYER_III")
    data = whole.read_bytes()
    path = tmp_path / "odd.mp3"
    size = data.index(b"Xing") + 12
    path.write_bytes(data[:size] + (len(data) // 2).to_bytes(4, "big") + data[size + 4 :])
    return path


def test_a_complaint_has_a_name(odd: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Once, however often the file is opened; the samples are those that soundfile gives."""
    samples = np.concatenate(list(read_blocks(str(odd), rate=16_000)))
    probe(str(odd))
    told = capfd.readouterr().err
    assert told.count("Xing stream size off") == 1
    assert told.startswith(f"warning: {odd}: the MP3 decoder says: Xing stream size off")
    assert np.allclose(samples, soundfile.read(odd, dtype="float32")[0], rtol=0, atol=1e-6)


def test_what_others_write_goes_on(odd: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Another thread's words, even in the middle of a line, as a bar writes them; and Warning: lines outside of it."""
    with libsndfile.listening("x.mp3", True):
        os.write(2, b"\x1b[2K bar 10 %")
        os.write(2, b"Warning: Xing stream size off\n")
        os.write(2, b"\x1b[2K bar 20 %")
    os.write(2, b"Warning: mine\n")
    out = capfd.readouterr().err
    assert out.replace("\x1b[2K", "") == (
        " bar 10 % bar 20 %warning: x.mp3: the MP3 decoder says: Xing stream size off\nWarning: mine\n"
    )
    with libsndfile.listening("x.wav", False):
        os.write(2, b"Note: not an MP3\n")
    assert capfd.readouterr().err == "Note: not an MP3\n"


@pytest.fixture
def stereo(tmp_path) -> str:
    t = np.arange(3 * 44100) / 44100
    samples = np.stack([np.zeros_like(t), 0.5 * np.sin(2 * np.pi * (300 + 100 * t) * t)], axis=1)
    soundfile.write(str(tmp_path / "a.wav"), samples, 44100, subtype="PCM_16")
    return str(tmp_path / "a.wav")


def test_clips_and_data_uris(stereo, tmp_path):
    whole, _ = soundfile.read(stereo, dtype="int16")
    for start, end, pad, first, last in ((1.0, 2.0, 0.2, 0.8, 2.2), (0.1, 2.9, 0.2, 0, 3), (1, 2, 0, 1, 2)):
        write_clip(stereo, start, end, tmp_path / "clip.wav", pad=pad, channel=2)
        info = soundfile.info(str(tmp_path / "clip.wav"))
        assert (info.format, info.subtype, info.samplerate, info.channels) == ("WAV", "PCM_16", 44100, 1)
        clip, _ = soundfile.read(str(tmp_path / "clip.wav"), dtype="int16")
        assert np.array_equal(clip, whole[round(first * 44100) : round(last * 44100), 1])
    with raises(codes.PLACE_OUTSIDE):
        write_clip(stereo, 2.0, 3.5, tmp_path / "clip.wav")
    uri = data_uri(read_clip(stereo, 1.0, 2.0, channel=2, rate=PAGE_RATE))
    assert uri == data_uri(read_clip(stereo, 1.0, 2.0, channel=2, rate=PAGE_RATE))
    kind, _, data = uri.partition(",")
    assert kind == "data:audio/mpeg;base64"
    samples, rate = soundfile.read(io.BytesIO(base64.b64decode(data)))
    assert rate == 16000
    assert samples.shape == (round(1.4 * 16000),)
    t = 0.8 + np.arange(len(samples)) / 16000
    assert np.corrcoef(samples, np.sin(2 * np.pi * (300 + 100 * t) * t))[0, 1] > 0.95
    assert len(uri) < 12000
