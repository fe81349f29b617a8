"""Small inputs after public bug reports of other tools (`../shared/golden/public`), by the commands that a user types."""

import csv
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
import soundfile

from tests.commands import expecting, in_this_process

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "golden" / "public"
EXPECTED = SHARED / "expected.csv"
#: Columns file, kind and expected; one line says so where the folder is absent.
ROWS = list(csv.reader(EXPECTED.open(encoding="utf-8")))[1:] if EXPECTED.is_file() else [("none", "none", "")]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not EXPECTED.is_file(), reason=f"no inputs after public reports beside the checkout ({SHARED})"),
]


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def swsdist(*words: str | Path, code: int = 0) -> str:
    """Output of a command, and what it says to people."""
    ended = expecting(in_this_process)(*words, code=code)
    return ended.out + ended.err


def indexed(file: Path, folder: Path, *options: str) -> str:
    """Index a folder with a copy of one file (and a recording of its name beside it)."""
    (folder / "in").mkdir()
    shutil.copyfile(file, folder / "in" / file.name)
    if file.suffix == ".eaf":
        shutil.copyfile(file.with_suffix(".wav"), folder / "in" / f"{file.stem}.wav")
    run = [] if "--text" in options else ["--run", folder / "run"]
    return swsdist("index", folder / "in", "--set", "executor.kind=serial", *run, *options)


def seconds_read(folder: Path) -> list[float]:
    parts = (folder / "run" / "store").glob("documents-*.parquet")
    return pd.concat([pd.read_parquet(part) for part in parts])["duration"].unique().tolist()  # a part for each track


@pytest.mark.parametrize(("file", "kind", "expected"), ROWS, ids=[row[0] for row in ROWS])
def test_as_expected(file: str, kind: str, expected: str, tmp_path: Path) -> None:
    source = SHARED / file
    if kind == "seconds":
        indexed(source, tmp_path)
        assert seconds_read(tmp_path) == [pytest.approx(float(expected), abs=0.1)]
    elif kind == "seconds-or-notice":
        said = indexed(source, tmp_path)
        told = swsdist("store", "rejected", tmp_path / "run")
        if seconds_read(tmp_path) != [pytest.approx(float(expected), abs=0.1)]:
            assert "cut-off" in said + told
            assert not re.search(r"remove it|record it again", said + told)
    elif kind == "hit":
        indexed(source, tmp_path)
        query = source.parent / "q.wav"
        swsdist("search", tmp_path / "run", "--query", query, "--no-trim", "--annotations", tmp_path / "out")
        csv_text = swsdist("search", tmp_path / "run", "--query", query, "--no-trim", "--csv", "--top", "1")
        row = next(csv.DictReader(line for line in csv_text.splitlines() if "," in line))
        assert float(row["start"]) == pytest.approx(float(expected), abs=0.1)
        slots = re.findall(r'TIME_VALUE="(\d+)"', next((tmp_path / "out").rglob("*.eaf")).read_text())
        assert min(abs(int(slot) / 1000 - float(expected)) for slot in slots) < 0.1
    elif kind == "words":
        indexed(source, tmp_path, "--text")
        assert float(swsdist("search", tmp_path / "in-text", "--text", expected, "--csv").count(f"\n{expected},")) > 0
    elif kind == "clip":
        indexed(source, tmp_path, "--text")
        swsdist("search", tmp_path / "in-text", "--text", "river", "--clips", tmp_path / "clips")
        (clip,) = (tmp_path / "clips").rglob("*.wav")
        sound, rate = soundfile.read(clip)
        full, _ = soundfile.read(source.with_suffix(".wav"))
        first = int(float(expected) * rate)
        assert any(
            abs(sound[k : k + rate // 2] - full[first : first + rate // 2]).max() < 1e-3
            for k in range(len(sound) - rate // 2 + 1)
            if abs(sound[k] - full[first]) < 1e-3
        )
    else:
        assert kind == "refusal"
        config = tmp_path / "config.yaml"
        config.write_text(f"run: run\ncorpus: {{documents: {source}}}\nexecutor: {{kind: serial}}\n")
        said = swsdist("index", config, code=3)
        assert source.name in said
        assert "duration" in said
