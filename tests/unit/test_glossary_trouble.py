"""Glossaries in trouble: damaged files, newer versions, full and read-only disks, several programs at once."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import soundfile

from swsdist.core.codes import families
from swsdist.core.errors import StorageError, SwsdistError
from swsdist.core.types import REFERENCES
from swsdist.glossary.project import Project
from swsdist.glossary.words import Place
from swsdist.io.tables import read_table
from tests.support.coded import raises


def at(start: float) -> Place:
    return Place("talk", 1, start, start + 0.5)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with a word of 40 tokens."""
    with Project.open(tmp_path / "words", store="store") as project:
        word = project.add_entry(person="Ann", form="a").entry_id
        for k in range(40):
            project.judge(word, at(k), "yes", person="Ann", note="n" * 200)
    return tmp_path / "words"


def code_of(folder: Path) -> str:
    with pytest.raises(SwsdistError) as raised:
        Project.open(folder)
    return raised.value.code


def test_a_project_stays_as_it_was(folder: Path) -> None:
    with Project.open(folder) as project:
        assert (project.store, project.entry(1).yes, project.change) == (str(Path("store").absolute()), 40, 41)
    with Project.open(folder, store="s3://bucket/store") as project:
        assert project.store == "s3://bucket/store"
    names = sorted(item.name for item in folder.iterdir())
    assert names == [".swsdist", "project.backup.sqlite", "project.sqlite", "sounds"]
    with raises(families.CLOSED):
        project.entries()


@pytest.mark.parametrize("where", ["head", "middle", "end", "text", "emptied", "gone"])
def test_damaged(folder: Path, where: str) -> None:
    """It is told, the file is left alone, and the copy of the last opening is sound."""
    Project.open(folder).close()  # makes the copy
    file = folder / "project.sqlite"
    data = bytearray(file.read_bytes())
    if where == "head":
        data[:100] = b"\xff" * 100
    elif where == "middle":
        for k in range(1, len(data) // 4096):
            data[k * 4096 : k * 4096 + 64] = b"\xff" * 64
    elif where == "end":
        del data[len(data) // 2 :]
    else:
        data[:] = b"id,form\n1,a\n" if where == "text" else b""
    file.write_bytes(data)
    if where == "gone":
        file.unlink()
    assert code_of(folder) == "damaged-file"
    if where not in ("emptied", "gone"):
        assert file.read_bytes() == bytes(data)
        with raises(families.DAMAGED_FILE):
            read_table(str(folder), REFERENCES)
    shutil.copy(folder / "project.backup.sqlite", file)
    with Project.open(folder) as project:
        assert project.entry(1).yes == 40


def test_newer_and_foreign(folder: Path, tmp_path: Path) -> None:
    file = folder / "project.sqlite"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 2")
    before = file.read_bytes()
    assert (code_of(folder), file.read_bytes()) == ("mismatch", before)
    with raises(families.MISMATCH):
        read_table(str(file), REFERENCES)
    (tmp_path / "other").mkdir()
    with closing(sqlite3.connect(tmp_path / "other" / "project.sqlite")) as connection:
        connection.execute("CREATE TABLE mine (a)")
        assert code_of(tmp_path / "other") == "wrong-kind"
        assert [row[0] for row in connection.execute("SELECT name FROM sqlite_master")] == ["mine"]


def test_not_in_a_store_or_a_file(tmp_path: Path) -> None:
    for name, content in {"store": '{"schema": "swsdist-store/7"}', "site": "{}"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text(content)
    assert code_of(tmp_path / "store") == code_of(tmp_path / "store" / "deep" / "words") == "output-refused"
    assert [item.name for item in (tmp_path / "store").iterdir()] == ["manifest.json"]
    Project.open(tmp_path / "site").close()
    (tmp_path / "file").write_text("")
    assert code_of(tmp_path / "file") in ("not-a-folder", "existing-file")
    assert code_of(tmp_path / "file" / "words") == "not-a-folder"


def test_corrections_are_never_temporary_because_another_writes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder / "project.sqlite"
    with closing(sqlite3.connect(file, isolation_level=None)) as writer:
        writer.execute("DROP TABLE correction")  # as an earlier version left it
        writer.execute("BEGIN IMMEDIATE")
        monkeypatch.setattr("swsdist.glossary.database.PATIENCE", 0.01)
        assert code_of(folder) == "glossary-not-saved"
        writer.execute("ROLLBACK")
    with Project.open(folder) as project:
        project.correct(at(1), "a", person="Ann")
    with Project.open(folder) as project:
        assert [each.text for each in project.corrections()] == ["a"]


def test_full_within_the_file(folder: Path) -> None:
    """SQLite's own limit of pages stands for a disk without room."""
    with Project.open(folder) as project:
        connection = project._database._idle[0]
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")

        def judge_on() -> None:
            for k in range(200, 400):
                project.judge(1, at(k), "yes", person="Ann", note="n" * 500)

        with pytest.raises(StorageError) as raised:
            judge_on()
        assert raised.value.code == "project-full"
        count, change = project.entry(1).yes, project.change
        assert change == count + 1
        connection.execute("PRAGMA max_page_count = 100000")
        project.judge(1, at(900), "no", person="Ann")
    with Project.open(folder) as project:
        assert (project.entry(1).yes, project.entry(1).no, project.change) == (count, 1, change + 1)


def mounted(script: str, folder: Path) -> list[str]:
    """What a script printed, in lines, that has a file system of 1 MiB, `disk`, of its own."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        pytest.skip("needs a mount namespace of its own")
    command = 'mkdir -p disk && mount -t tmpfs -o size=1m none disk && exec "$@"'
    arguments = ["unshare", "-rm", "sh", "-c", command, "sh", sys.executable, "-c", script]
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


FULL = """
import os
from pathlib import Path
from swsdist.core.errors import StorageError
from swsdist.glossary.project import Project
from swsdist.glossary.words import Place
SOUND = open('sound.wav', 'rb').read()
project = Project.open("disk/words")
word = project.add_entry(person="Ann", form="a").entry_id
saved = 0
with open("disk/ballast", "wb", buffering=0) as ballast:
    try:
        while True:
            ballast.write(bytes(64 << 10))
    except OSError:
        pass
try:
    for k in range(10000):
        project.judge(word, Place("talk", 1, k, k + 0.5), "yes", person="Ann", note="n" * 100)
        saved += 1
except StorageError as error:
    print(error.code)
try:
    project.add_sound(SOUND, name="me", person="Ann")
except StorageError as error:
    print(error.code)
print(len(project.tokens(word)) == saved, project.change == saved + 1, list(Path("disk/words/sounds").iterdir()))
print(Project.open("disk/words").entry(word).yes == saved)
os.remove("disk/ballast")
project.judge(word, Place("talk", 1, 99999, 100000), "yes", person="Ann")
project.add_sound(SOUND, name="me", person="Ann")
project.close()
with Project.open("disk/words") as again:
    print(again.entry(word).yes == saved + 1, again.people())
"""


def test_a_full_disk_while_judging(tmp_path: Path) -> None:
    """Nothing that was saved is lost, and all goes on when there is room."""
    soundfile.write(tmp_path / "sound.wav", np.linspace(-0.5, 0.5, 160_000), 8000, subtype="PCM_16")
    told = ["project-full", "project-full", "True True []", "True", "True ['Ann']"]
    assert mounted(FULL, tmp_path) == told


READ_ONLY = """
import subprocess
from swsdist.core.errors import StorageError
from swsdist.core.types import REFERENCES
from swsdist.glossary.project import Project
from swsdist.glossary.words import Place
from swsdist.io.tables import read_table
with Project.open("disk/words") as project:
    project.judge(project.add_entry(person="Ann", form="a").entry_id, Place("talk", 1, 0, 1), "yes", person="Ann")
subprocess.run(["mount", "-o", "remount,ro", "disk"], check=True)
print(read_table("disk/words", REFERENCES).num_rows)
project = Project.open("disk/words")
print(project.entries()[0].yes)
for do in (lambda: project.undo(person="Ann"), lambda: Project.open("disk/other")):
    try:
        do()
    except StorageError as error:
        print(error.code)
"""


def test_a_disk_that_cannot_be_written(tmp_path: Path) -> None:
    assert mounted(READ_ONLY, tmp_path) == ["1", "1", "glossary-not-saved", "read-only-file-system"]


JUDGING = """
import sys
from swsdist.glossary.project import Project
from swsdist.glossary.words import Place
name = sys.argv[1]
with Project.open("words") as project:
    for k in range(40):
        project.judge(1, Place(name, 1, k, k + 0.5), "yes", person=name)
        if k % 4 == 3:
            project.undo(person=name)
"""


def test_processes_at_once(tmp_path: Path) -> None:
    """Two people with a server of their own each, and one who is killed: what was saved stays."""

    def start(script: str, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", script, *arguments], cwd=tmp_path)

    made = "from swsdist.glossary.project import Project; Project.open('words').add_entry(person='A', form='{}')"
    assert [process.wait(120) for process in [start(made.format(k)) for k in range(4)]] == [0, 0, 0, 0]
    with Project.open(tmp_path / "words") as project:
        assert len(project.entries()) == 4
        assert [process.wait(120) for process in [start(JUDGING, name) for name in ("Ann", "Bob", "Cem")]] == [0, 0, 0]
        assert (project.entry(1).yes, project.change) == (3 * 30, 4 + 3 * 50)
        killed = start(JUDGING.replace("range(40)", "range(10000)"), "Dee")
        while not any(token.place.doc_id == "Dee" for token in project.tokens(1)):
            assert killed.poll() is None
        killed.kill()
        killed.wait()
        project.judge(1, at(0), "no", person="Ann")
    with Project.open(tmp_path / "words") as project:
        assert (project.entry(1).no, project.entry(1).yes) == (1, len(project.tokens(1)) - 1)
    with closing(sqlite3.connect(tmp_path / "words" / "project.sqlite")) as connection:
        for statement in ("DELETE FROM change", "UPDATE change SET person = 'Bob'"):  # changes cannot be deleted
            with pytest.raises(sqlite3.IntegrityError):
                connection.execute(statement)
