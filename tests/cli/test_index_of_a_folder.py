"""`swsdist index FOLDER`, with no config, and what is asked of such a store, also when folder and store have moved."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import scipy.signal
import soundfile
from commands import Command, hits

from swsdist.audio.formats import ffmpeg

pytestmark = pytest.mark.xdist_group("index-of-a-folder")


@pytest.fixture(scope="module")
def tapes(corpus: Path, tmp_path_factory: pytest.TempPathFactory, swsdist: Command) -> Path:
    """A folder with recordings, indexed; only the last test here changes that."""
    folder = tmp_path_factory.mktemp("folder") / "a"
    (folder / "tapes").mkdir(parents=True)
    for file in sorted((corpus / "corpus" / "audio").iterdir())[:4]:
        shutil.copy(file, folder / "tapes")
    said = swsdist("index", "tapes", cwd=folder).out
    assert "search it: swsdist search tapes-swsdist --query" in said
    return folder / "tapes"


@pytest.mark.slow
def test_it_is_asked_at_once_and_after_a_move(swsdist: Command, tapes: Path, tmp_path: Path) -> None:
    """By a file, a place in one, and a place in a document; the fitted models have moved with the store."""
    asked = ("search", "tapes-swsdist", "--top", "5", "--csv", "--query")
    file = sorted(tapes.iterdir())[2]
    for query in (f"tapes/{file.name}:0.5-1.1", f"{file.stem}:0.5-1.1"):
        answer = swsdist(*asked, query, cwd=tapes.parent)
        (tapes.parent).rename(tmp_path / "b")
        moved = swsdist(*asked, query, cwd=tmp_path / "b")
        (tmp_path / "b").rename(tapes.parent)
        assert moved.out == answer.out.replace(f"{tapes}/", f"{tmp_path}/b/tapes/")
        best = hits(answer)[0]
        assert (best["doc_id"], round(float(best["start"]), 1)) == (file.stem, 0.5)


@pytest.mark.slow
def test_hits_in_videos_are_where_a_player_has_them(swsdist: Command, corpus: Path, tmp_path: Path) -> None:
    """So are their clips and annotations, though the sound starts late and has a gap."""
    program, late, gap = ffmpeg.program(), 1.5, 2.0
    if program is None:
        pytest.skip("there is no ffmpeg")
    (tmp_path / "tapes").mkdir()
    recordings = sorted((corpus / "corpus" / "audio").iterdir())[:4]
    for file in recordings[1:]:
        shutil.copy(file, tmp_path / "tapes")
    length = soundfile.info(recordings[0]).duration
    at = round(length / 2, 2)
    before = f"-f lavfi -i color=s=64x64:r=25:d={length + 5} -itsoffset {late} -i".split()
    after = f"-map 0:v -map 1:a -c:v mpeg2video -af asetpts=PTS+gt(T\\,{late + at / 2})*{gap}/TB -c:a".split()
    for name, coding in (("a.mkv", "flac"), ("b.mp4", "aac"), ("c.ts", "aac")):
        command = [program, "-v", "error", *before, recordings[0], *after, coding, tmp_path / "tapes" / name]
        subprocess.run(command, check=True)
    swsdist("index", "tapes", cwd=tmp_path)
    query = f"{recordings[0]}:{at}-{at + 0.6}"
    asked = ("search", "tapes-swsdist", "--no-trim", "--query", query, "--clips", "clips", "--annotations", "seen")
    rows = hits(swsdist(*asked, "--top", "1", "--csv", cwd=tmp_path))
    assert {row["doc_id"] for row in rows} == {"a", "b", "c"}  # of the same sound
    sound, rate = soundfile.read(recordings[0])
    said = sound[round(at * rate) :][: round(0.6 * rate)]
    for row in rows:
        assert float(row["start"]) == pytest.approx(late + gap + at, abs=0.011)
        for file in (tmp_path / "seen").rglob(f"{row['doc_id']}.eaf"):
            assert f'TIME_VALUE="{round(float(row["start"]) * 1000)}"' in file.read_text()
    clips = list((tmp_path / "clips").glob("*.wav"))
    assert len(clips) == 1
    for clip in clips:
        found = np.argmax(scipy.signal.correlate(soundfile.read(clip)[0], said, "valid")) / rate
        assert found == pytest.approx(0.2, abs=0.011)  # the context


def test_another_folder_of_that_name(swsdist: Command, tapes: Path, tmp_path: Path) -> None:
    """Its recordings would take the place of the first one's."""
    other = tmp_path / "other" / "tapes"
    shutil.copytree(tapes, other)
    refused = swsdist("index", other, cwd=tapes.parent, code=5).err
    assert f"this is the index of another folder, {tapes}" in refused
    assert "--run FOLDER" in refused
    assert "another-index" in swsdist("index", other, "--run", "tapes-swsdist", cwd=tapes.parent, code=5).err
    swsdist("index", other, "--run", "tapes-swsdist", "--force", cwd=tapes.parent)


@pytest.mark.slow
def test_two_seconds_are_enough(swsdist: Command, tapes: Path, tmp_path: Path) -> None:
    """The mixture that nobody chose has fewer components; one that somebody chose is an error."""
    (tmp_path / "one").mkdir()
    samples, rate = soundfile.read(min(tapes.iterdir()), dtype="int16")
    soundfile.write(tmp_path / "one" / "a.wav", samples[: 2 * rate], rate)
    assert "fewer-components" in swsdist("index", "one", cwd=tmp_path).out
    best = hits(swsdist("search", "one-swsdist", "--query", "one/a.wav:0.5-1.1", "--csv", cwd=tmp_path))[0]
    assert abs(float(best["start"]) - 0.5) < 0.1
    chosen = '[{"name": "mfcc", "transforms": [{"name": "gmm", "options": {"components": 128}}]}]'
    refused = swsdist("index", "one", "--run", "chosen", "--set", f"features={chosen}", cwd=tmp_path, code=2)
    assert "nothing-to-fit" in refused.err
