"""Bytes that this process reads are counted where files are opened; a recording's once, whoever decodes it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from swsdist.audio import reader, streams
from swsdist.io.filesystem import Folder
from swsdist.io.local import bytes_read


def read_by(do) -> int:
    before = bytes_read()
    do()
    return bytes_read() - before


def test_a_file_by_pieces_and_whole(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(300_000))
    folder = Folder(str(tmp_path))
    assert read_by(lambda: folder.read_bytes("a")) == 300_000

    def pieces() -> None:
        with folder.open("a") as file:
            while file.read(70_000):
                pass

    assert read_by(pieces) == 300_000


@pytest.mark.parametrize("told", [True, False])
def test_a_recording_is_counted_as_it_is_decoded(tmp_path: Path, told: bool) -> None:
    path = tmp_path / "a.flac"
    noise = np.random.default_rng(1).normal(0, 0.1, 16000 * 20)
    soundfile.write(path, noise, 16000)
    if not told:  # as a pipe writes it: no number of samples in the header
        data = bytearray(path.read_bytes())
        data[21] &= 0xF0
        data[22:26] = bytes(4)
        path.write_bytes(data)
    size = path.stat().st_size

    def decode() -> None:
        assert sum(len(block) for block in reader.read_blocks(str(path), rate=16000)) == 320_000

    assert read_by(decode) == pytest.approx(size, rel=0.1)
    assert read_by(lambda: streams.sha256(str(path))) == 0, "that is no reading for its content"
