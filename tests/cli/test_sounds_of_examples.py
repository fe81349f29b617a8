"""The sounds of examples that a project keeps, and which of them a pack has."""

import os
from pathlib import Path

import pytest
from commands import Command

from swsdist.glossary import project as projects
from swsdist.glossary.project import KeptSounds, Project
from swsdist.glossary.words import Place
from swsdist.io.filesystem import Folder
from swsdist.store.reading import Store

FIRST, SECOND = Place("d001", 1, 0.5, 1.0), Place("d001", 1, 2.0, 2.5)


@pytest.fixture(scope="module")
def store(place: Path) -> Store:
    return Store(Folder(str(place / "run" / "store"), {}))


@pytest.fixture
def project(place: Path, tmp_path: Path):
    with Project.open(tmp_path / "words", store=str(place / "run" / "store")) as opened:
        word = opened.add_entry(person="Ann", form="nzo").entry_id
        (held,) = {
            row["sha256"]
            for row in Store(Folder(opened.store or "")).documents().to_pylist()
            if row["doc_id"] == "d001"
        }
        for where in (FIRST, SECOND):
            opened.judge(word, where, "yes", person="Ann", content=held)
        yield opened


def test_a_sound_is_kept_once_whatever_the_clocks_say(project: Project, store: Store) -> None:
    assert (project.keep_sounds(store), project.keep_sounds(store)) == (2, 0)
    for file in KeptSounds(project.folder).files("d001"):
        os.utime(file, (0, 0))
    assert project.keep_sounds(store) == 0


def test_the_sound_is_that_of_what_the_document_holds(project: Project, store: Store) -> None:
    project.keep_sounds(store)
    mine = project.tokens(1)[0].content
    old = KeptSounds(project.folder).of(FIRST, mine)
    assert old is not None
    other = Path(old.path).with_name(f"{Path(old.path).stem.rpartition('-')[0]}-{projects._digest('other')}.flac")
    other.write_bytes(b"")
    assert KeptSounds(project.folder).of(FIRST, mine) == old
    assert KeptSounds(project.folder).of(FIRST, "other") == old._replace(path=str(other))
    assert KeptSounds(project.folder).of(FIRST, "third") is None
    os.utime(old.path, (0, 0))
    assert KeptSounds(project.folder).of(FIRST, None) == old._replace(path=str(other)), "the newest"


def test_one_that_cannot_be_cut(project: Project, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    read = projects.read_clip

    def fail(path: str, start: float, *rest: float, **options: object) -> object:
        if start == FIRST.start:
            raise ValueError("damaged")
        return read(path, start, *rest, **options)

    monkeypatch.setattr(projects, "read_clip", fail)
    assert project.keep_sounds(store) == 1
    assert KeptSounds(project.folder).of(SECOND, None) is not None


def test_a_pack_has_no_voice_taken_out(place: Path, project: Project, swsdist: Command, tmp_path: Path) -> None:
    wavs = sorted((place / "corpus" / "queries").glob("*.wav"))[:2]
    kept, taken = (project.add_sound(wav.read_bytes(), name=wav.name, person="Ann").sound for wav in wavs)
    project.judge(1, Place(None, 1, 0.0, 0.3, kept), "yes", person="Ann")
    gone = project.judge(1, Place(None, 1, 0.0, 0.3, taken), "yes", person="Ann")
    project.keep_sounds(Store(Folder(project.store or "")))
    project.remove_token(gone.token_id, person="Ann")
    project.judge(1, FIRST, "no", person="Ann")
    assert swsdist("glossary", "pack", project.folder, tmp_path / "pack").code == 0
    with Project.open(tmp_path / "pack" / "words") as packed:
        assert [file.stem for file in (packed.folder / "sounds").iterdir()] == [kept]
        assert len(list((packed.folder / "examples").iterdir())) == 1
        assert KeptSounds(packed.folder).of(SECOND, None) is not None
        assert packed.tokens(1) == project.tokens(1)


def test_a_pack_needs_a_store(swsdist: Command, tmp_path: Path) -> None:
    Project.open(tmp_path / "words").close()
    assert "[missing-input]" in swsdist("glossary", "pack", tmp_path / "words", tmp_path / "pack", code=2).err
