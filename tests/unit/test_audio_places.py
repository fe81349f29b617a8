"""What is kept from one place in a recording to the next: the same samples, of one decoding."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest
import soundfile

from swsdist.audio.formats import ffmpeg
from swsdist.audio.formats import ffmpeg as places
from swsdist.audio.reader import probe, read_blocks
from swsdist.core.codes import audio as codes
from swsdist.features.extractors import create
from swsdist.io.filesystem import Folder
from swsdist.store.writing import write_tracks
from tests.support.coded import raises

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


def test_places_in_the_order_of_time_are_one_decoding(recording: str, starts: Path) -> None:
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


def test_what_is_no_longer_kept_is_decoded_again(recording: str, starts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
