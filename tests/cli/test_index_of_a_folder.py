"""`swsdist index FOLDER`, with no config, and what is asked of such a store, also when folder and store have moved."""

import shutil
from pathlib import Path

import pytest
import soundfile
from commands import Command, hits

pytestmark = pytest.mark.xdist_group("index-of-a-folder")


@pytest.fixture(scope="module")
def tapes(corpus: Path, tmp_path_factory: pytest.TempPathFactory, swsdist: Command) -> Path:
    """A folder with recordings, indexed; to be read only."""
    folder = tmp_path_factory.mktemp("folder") / "a"
    (folder / "tapes").mkdir(parents=True)
    for file in sorted((corpus / "corpus" / "audio").iterdir())[:4]:
        shutil.copy(file, folder / "tapes")
    swsdist("index", "tapes", "--set", "executor.kind=serial", cwd=folder)
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


def test_another_folder_of_that_name(swsdist: Command, corpus: Path, tmp_path: Path) -> None:
    """Its recordings would take the place of the first one's."""
    plain = ("--set", "features=[{name: mfcc}]", "--set", "executor.kind=serial")
    for name in ("a", "b"):
        (tmp_path / name / "tapes").mkdir(parents=True)
        shutil.copy(corpus / "corpus/audio/d001.flac", tmp_path / name / "tapes")
    assert "search it: swsdist search tapes-swsdist --query" in swsdist("index", "a/tapes", *plain, cwd=tmp_path).out
    refused = swsdist("index", "b/tapes", *plain, cwd=tmp_path, code=5).err
    assert f"this is the index of another folder, {tmp_path}/a/tapes" in refused
    assert "--run FOLDER" in refused
    again = ("index", "b/tapes", *plain, "--run", "tapes-swsdist")
    assert "another-index" in swsdist(*again, cwd=tmp_path, code=5).err
    swsdist(*again, "--force", cwd=tmp_path)


@pytest.mark.slow
def test_two_seconds_are_enough(swsdist: Command, tapes: Path, tmp_path: Path) -> None:
    """The mixture that nobody chose has fewer components; one that somebody chose is an error."""
    (tmp_path / "one").mkdir()
    samples, rate = soundfile.read(min(tapes.iterdir()), dtype="int16")
    soundfile.write(tmp_path / "one" / "a.wav", samples[: 2 * rate], rate)
    assert "fewer-components" in swsdist("index", "one", "--set", "executor.kind=serial", cwd=tmp_path).out
    best = hits(swsdist("search", "one-swsdist", "--query", "one/a.wav:0.5-1.1", "--csv", cwd=tmp_path))[0]
    assert abs(float(best["start"]) - 0.5) < 0.1
    chosen = '[{"name": "mfcc", "transforms": [{"name": "gmm", "options": {"components": 128}}]}]'
    refused = swsdist("index", "one", "--run", "chosen", "--set", f"features={chosen}", cwd=tmp_path, code=2)
    assert "nothing-to-fit" in refused.err
