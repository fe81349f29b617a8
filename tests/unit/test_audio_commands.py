"""Recordings that a command writes, and recordings inside of an archive."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
import soundfile

from swsdist.audio import streams as commands
from swsdist.audio.reader import probe, read_blocks
from swsdist.audio.streams import only_files, permitted, sha256
from swsdist.core.codes import audio as codes
from swsdist.core.errors import StorageError, TransientError
from tests.support.coded import raises


@pytest.fixture
def wav(tmp_path: Path) -> Path:
    path = tmp_path / "a.wav"
    soundfile.write(path, np.random.default_rng(1).uniform(-0.5, 0.5, 16000), 16000, subtype="PCM_16")
    return path


def samples(path: str, **place: float) -> np.ndarray:
    return np.concatenate(list(read_blocks(path, rate=16000, **place)))


def test_none_is_run_unless_it_is_allowed(tmp_path: Path, wav: Path) -> None:
    command = f"touch {tmp_path}/seen; cat {wav} |"
    for read in (samples, probe, sha256):
        with raises(codes.COMMAND_NOT_ALLOWED, where=command, command=command):
            read(command)
    with permitted(True), permitted(False), raises(codes.COMMAND_NOT_ALLOWED):
        samples(command)
    assert not (tmp_path / "seen").exists()


def test_a_path_that_must_be_a_file_is_nothing_else(tmp_path: Path, wav: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
