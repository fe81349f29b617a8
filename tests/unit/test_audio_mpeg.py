"""What the MP3 decoder says has the name of its file; everything else on standard error goes on as it was."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import soundfile

from swsdist.audio.formats import libsndfile
from swsdist.audio.reader import probe, read_blocks
from swsdist.core.errors import AudioError


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


def test_a_broken_file_is_rejected_and_named(odd: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = (odd.parent / "whole.mp3").read_bytes()
    odd.write_bytes(data[: len(data) // 2] + bytes(3000) + data[len(data) // 2 + 3000 :])
    with pytest.raises(AudioError):
        list(read_blocks(str(odd), rate=16_000))
    lines = capfd.readouterr().err.splitlines()
    assert lines
    assert all(line.startswith(f"warning: {odd}: the MP3 decoder says: ") for line in lines)


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


def test_threads_leave_no_raw_lines(odd: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Headers are read side by side; whose line it is is not known then, and standard error comes back in the end."""
    barrier = threading.Barrier(4)

    def one(number: int) -> float:
        barrier.wait()
        return sum(probe(str(odd)).duration for _ in range(20))

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(one, range(4)))) == 1
    told = capfd.readouterr().err
    assert all(line.startswith(f"warning: {odd}: ") for line in told.splitlines())
    os.write(2, b"back\n")
    assert capfd.readouterr().err == "back\n"
