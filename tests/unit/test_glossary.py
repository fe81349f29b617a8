"""A glossary: entries, judgements, undoing, who changed what; damaged files, full disks, several programs at once."""

import io
import json
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
import soundfile

from swsdist.core.codes import families
from swsdist.core.errors import SwsdistError, UserError
from swsdist.core.fingerprint import plain
from swsdist.core.types import REFERENCES
from swsdist.glossary.exports import as_json
from swsdist.glossary.importing import Incoming, import_file, take_in
from swsdist.glossary.project import Project
from swsdist.glossary.words import Place, Places, is_same, overlap
from swsdist.io.tables import read_table
from tests.support.coded import raises


def wav(seconds: float = 0.5, rate: int = 8000, **kind: str) -> bytes:
    file, kind = io.BytesIO(), {"format": "WAV", "subtype": "PCM_16", **kind}
    soundfile.write(file, np.linspace(-0.5, 0.5, round(seconds * rate)), rate, **kind)
    return file.getvalue()


def at(start: float, end: float, doc_id: str = "talk", channel: int = 1) -> Place:
    return Place(doc_id, channel, start, end)


@pytest.fixture
def project(tmp_path: Path):
    with Project.open(tmp_path / "words") as opened:
        yield opened


def test_what_is_set_aside_is_taken_back_before_an_earlier_judgement(project, tmp_path: Path) -> None:
    word = project.add_entry(person="Ann", form="mwana")
    token = project.judge(word.entry_id, at(1, 2), "yes", person="Ann")
    project.set_aside("a", True, person="Ann")
    project.set_aside("b", True, person="Ann")
    assert project.undo(person="Ann") is not None
    file = tmp_path / "glossary.json"
    file.write_text(json.dumps(as_json(project)))
    with Project.open(tmp_path / "empty") as empty, Project.open(tmp_path / "other") as other:
        other.set_aside("c", True, person="Bob")
        for each in (empty, other):
            import_file(each, file, person="Cem", store=None)
        assert (project.aside(), empty.aside(), other.aside()) == ({"a"}, {"a"}, {"a", "c"})
    assert project.undo(person="Ann") is not None
    assert (project.aside(), project.tokens(word.entry_id)) == (set(), [token])


def test_an_entry_is_found_whatever_its_case_and_accents(project) -> None:
    given = {"gloss": "Name", "variants": ["Kombo", "kombo ", "Kombo"], "note": "a\r\nb"}
    word = project.add_entry(person="Ann", form=" kɔ́mbɔ  ", **given)
    other = project.add_entry(person="Ann", form="mwana", gloss="child")
    assert (word.form, word.variants, word.note) == ("kɔ́mbɔ", ("Kombo", "kombo"), "a\nb")
    assert [entry.entry_id for entry in project.entries()] == [word.entry_id, other.entry_id]
    for text in ("KƆMBƆ", "kombo", "name", "b"):
        assert [entry.form for entry in project.entries(text)] == ["kɔ́mbɔ"], text
    assert project.entries("nothing") == []


def test_what_cannot_be(project) -> None:
    word, other = (project.add_entry(person="Ann", form=form).entry_id for form in ("é", "b"))
    token, gone = project.judge(word, at(0, 1), "yes", person="Ann").token_id, Place(None, 1, 0, 1, "0" * 64)
    places: list[object] = [at(1, 1), at(2, 1), at(-1, 1), at(0, float("inf")), at(float("nan"), 1), at(0, 1, "")]
    places += [at(0, 1, channel=-1), Place(None, 1, 0, 1), Place("talk", 1, 0, 1, "ab"), {}]
    places += [{"doc_id": "talk", "start": "x", "end": 1}, {"doc_id": 3, "start": 0, "end": 1}]
    name, value, twice = families.UNKNOWN_NAME, families.INVALID_VALUE, families.DUPLICATE_NAME
    for code, do in (
        (name, lambda: project.entry(99)),
        (name, lambda: project.merge(word, 99, person="Ann")),
        (name, lambda: project.change_token(99, person="Ann", note="x")),
        (name, lambda: project.split(other, [token], person="Ann", form="c")),
        (name, lambda: project.judge(word, gone, "yes", person="Ann")),
        (name, lambda: project.change_token(token, person="Ann", place=gone)),
        (name, lambda: project.sound_file("../project")),
        (name, lambda: project.change_entry(word, person="Ann", entry_id=3)),
        (name, lambda: project.change_token(token, person="Ann", entry_id=3)),
        (value, lambda: project.merge(word, word, person="Ann")),
        (value, lambda: project.judge(word, at(0, 1), "maybe", person="Ann")),
        (value, lambda: project.judge(word, at(0, 1), "yes", person="Ann", score=float("nan"))),
        (value, lambda: project.judge(word, at(0, 1), "yes", person=" ")),
        *((value, lambda place=place: project.judge(word, place, "yes", person="Ann")) for place in places),
        *((value, lambda f=f: project.add_entry(person="Ann", form=f)) for f in ("", "a\x00b", "\ud800", 3, None)),
        # A form is there once, however it is composed.
        (twice, lambda: project.add_entry(person="Bob", form="é")),
        (twice, lambda: project.change_entry(other, person="Bob", form="é")),
        (twice, lambda: project.split(word, [], person="Bob", form="é")),
    ):
        change = project.change
        with raises(code):
            do()
        assert project.change == change
    assert [entry.form for entry in project.entries()] == ["b", "é"]


def test_a_place_is_judged_once_for_an_entry(project) -> None:
    word = project.add_entry(person="Ann", form="a").entry_id
    first = project.judge(word, at(1, 2), "yes", person="Ann", score=-0.25, note="clear")
    assert (first.example, first.score) == (True, -0.25)
    assert datetime.fromisoformat(first.at).tzinfo is not None
    again = project.judge(word, at(1.4, 2.2), "no", person="Bob")
    assert again.token_id == first.token_id
    assert (again.place, again.verdict, again.example, again.person) == (at(1.4, 2.2), "no", False, "Bob")
    assert (again.score, again.note) == (-0.25, "clear")
    # Half of the shorter is not more than half; and other channels and documents are other places.
    for place in (at(1.9, 2.5), at(1.4, 2.2, channel=2), at(1.4, 2.2, "other")):
        assert project.judge(word, place, "unsure", person="Ann").token_id not in {first.token_id}
    entry = project.entry(word)
    assert (entry.yes, entry.no, entry.unsure, entry.examples) == (0, 1, 3, 0)
    assert [token.place.doc_id for token in project.tokens(word)] == ["other", "talk", "talk", "talk"]


def test_examples_are_chosen_among_what_is_sure(project) -> None:
    word = project.add_entry(person="Ann", form="a").entry_id
    token = project.judge(word, at(0, 1), "yes", person="Ann")
    token = project.change_token(token.token_id, person="Ann", example=False)
    assert not token.example
    assert not project.judge(word, at(0, 1), "yes", person="Ann").example, "it was unchosen before"
    assert not project.change_token(token.token_id, person="Ann", verdict="no", example=True).example
    assert project.change_token(token.token_id, person="Ann", verdict="yes").example
    assert not project.judge(word, at(0, 1), "yes", person="Ann", example=False).example


def test_a_sound_is_an_example(project) -> None:
    for data in (b"", b"RIFF", b"x" * 100, wav(0.0), wav(format="FLAC"), wav(subtype="FLOAT")):
        with raises(families.MALFORMED_FILE):
            project.add_sound(data, name="x", person="Ann")
    assert list((project.folder / "sounds").iterdir()) == []
    word = project.add_entry(person="Ann", form="a").entry_id
    sound = project.add_sound(wav(), name="me.wav", person="Ann")
    assert (sound.duration, sound.rate, sound.name) == (0.5, 8000, "me.wav")
    assert project.add_sound(wav(), name="again.wav", person="Bob") == sound
    token = project.judge(word, Place(None, 1, 0.1, 0.4, sound.sound), "yes", person="Ann")
    assert (token.example, token.place.sound) == (True, sound.sound)
    assert project.sound_file(sound.sound).read_bytes() == wav()


def state(project: Project) -> list[object]:
    return [*((entry, project.tokens(entry.entry_id)) for entry in project.entries()), project.corrections()]


def words(project: Project) -> tuple[int, int]:
    """Two entries with a place that both have."""
    one = project.add_entry(person="Ann", form="a", gloss="sun", variants=["a1"]).entry_id
    two = project.add_entry(person="Ann", form="b", gloss="moon", variants=["b1", "a"], note="n").entry_id
    for start in (0, 10, 20):
        project.judge(one, at(start, start + 1), "no", person="Ann")
    project.judge(two, at(0.1, 1.1), "yes", person="Bob", score=0.5)
    project.judge(two, at(10.1, 11.1), "unsure", person="Bob")
    project.judge(two, at(30, 31), "no", person="Bob")
    project.correct(at(5, 6), "moon", person="Bob")
    return one, two


def test_merging_and_splitting(project) -> None:
    one, two = words(project)
    merged = project.merge(one, two, person="Ann")
    assert (merged.form, merged.gloss, merged.variants, merged.note) == ("a", "sun; moon", ("a1", "b", "b1"), "n")
    tokens = project.tokens(one)
    assert [(token.place.start, token.verdict, token.variant, token.person) for token in tokens] == [
        (0.1, "yes", "b", "Bob"),
        (10.1, "unsure", "b", "Bob"),
        (20, "no", "", "Ann"),
        (30, "no", "b", "Bob"),
    ]
    assert [entry.entry_id for entry in project.entries()] == [one]
    new = project.split(one, [tokens[0].token_id, tokens[2].token_id], person="Ann", form="a 2")
    assert (new.form, new.gloss, new.yes, new.no) == ("a 2", "sun; moon", 1, 1)
    assert [token.token_id for token in project.tokens(one)] == [tokens[1].token_id, tokens[3].token_id]


def test_undoing(project) -> None:
    one, two = words(project)
    first = project.tokens(one)[0].token_id
    for do in (
        lambda: project.merge(one, two, person="Cem"),
        lambda: project.split(one, [first], person="Cem", form="c"),
        lambda: project.remove_entry(two, person="Cem"),
        lambda: project.add_entry(person="Cem", form="c"),
        lambda: project.change_entry(one, person="Cem", form="z", variants=["y"]),
        lambda: project.judge(one, at(0, 1), "yes", person="Cem", note="x"),
        lambda: project.judge(one, at(50, 51), "yes", person="Cem"),
        lambda: project.change_token(first, person="Cem", verdict="unsure"),
        lambda: project.remove_token(first, person="Cem"),
        lambda: project.correct(at(4.9, 6.5), "the moon", person="Cem"),
        lambda: project.remove_correction(project.corrections()[0].correction_id, person="Cem"),
    ):
        before, count = state(project), project.change
        do()
        assert state(project) != before
        assert project.change == count + 1
        done = project.changes(count)[0]
        undone = project.undo(person="Cem")
        assert undone is not None
        assert (undone.kind, undone.undoes, undone.person) == ("undo", done.change_id, "Cem")
        assert (undone.before, undone.after) == (done.after, done.before)
        assert state(project) == before
        assert project.undo(person="Cem") is None


def test_a_stretch_is_corrected_once(project) -> None:
    stretches = ((1, "a"), (2, "b"), (3, " c  d "))
    words = [project.correct(at(start, start + 1), text, person="Ann") for start, text in stretches]
    assert [each.text for each in project.corrections(at(1.5, 3))] == ["a", "b"]
    assert project.correct(at(3, 4), "c d", person="Bob") == words[2]  # as it is
    both = project.correct(at(1, 3), "", person="Bob")
    assert project.corrections() == [both, words[2]]
    assert project.corrections(at(1, 3, channel=2)) == []
    for place, text in ((Place(None, 1, 0, 1, "0" * 64), "x"), (at(1, 2), "x" * 501), (at(1, 2), "a\0")):
        with pytest.raises(UserError):
            project.correct(place, text, person="Ann")


def test_undoing_goes_back_change_by_change_and_only_in_ones_own(project) -> None:
    word = project.add_entry(person="Ann", form="a").entry_id
    for k in range(3):
        project.judge(word, at(k, k + 1), "yes", person="Ann")
        project.judge(word, at(k, k + 1, "other"), "no", person="Bob")
    for left in (2, 1, 0):
        project.undo(person="Ann")
        assert (project.entry(word).yes, project.entry(word).no) == (left, 3)
    with pytest.raises(UserError) as raised:  # others judged for the entry that she made
        project.undo(person="Ann")
    assert (raised.value.code, raised.value.values["others"]) == ("changed-since", "Ann, Bob")
    assert project.people() == ["Ann", "Bob"]
    assert [change.kind for change in project.changes()].count("undo") == 3


def test_what_another_changed_since_is_not_taken_back(project) -> None:
    word = project.add_entry(person="Ann", form="a").entry_id
    project.judge(word, at(0, 1), "yes", person="Ann")
    project.judge(word, at(0, 1), "no", person="Bob")
    with pytest.raises(UserError) as raised:
        project.undo(person="Ann")
    assert (raised.value.code, project.tokens(word)[0].verdict) == ("changed-since", "no")
    project.undo(person="Bob")
    project.undo(person="Ann")
    assert project.tokens(word) == []


def test_what_changes_nothing_is_no_change(project) -> None:
    word = project.add_entry(person="Ann", form="a")
    token = project.judge(word.entry_id, at(0, 1), "yes", person="Ann")
    count = project.change
    project.change_entry(word.entry_id, person="Bob", form="a", gloss="")
    project.change_entry(word.entry_id, person="Bob")
    project.change_token(token.token_id, person="Bob", verdict="yes")
    assert (project.change, project.token(token.token_id)) == (count, token)
    project.remove_entry(word.entry_id, person="Ann")
    assert project.add_entry(person="Ann", form="b").entry_id > word.entry_id  # ids are not used again
    # Changes come in pages, and everything is JSON.
    assert [change.change_id for change in project.changes(1, 2)] == [2, 3]
    assert project.changes(project.change) == []
    values = [*project.entries(), token, *project.changes(), project.add_sound(wav(), name="x", person="Ann")]
    assert json.loads(json.dumps(plain(values))) == plain(values)


def test_threads_at_once(project) -> None:
    words = [project.add_entry(person="Ann", form=f"w{k}").entry_id for k in range(2)]
    errors: list[Exception] = []

    def work(k: int) -> None:
        try:
            for n in range(15):
                project.judge(words[n % 2], at(n, n + 1, f"doc{k}"), "yes", person=f"P{k}")
                project.entries("w")
                if n % 3 == 2:
                    project.undo(person=f"P{k}")
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert sum(entry.yes for entry in project.entries()) == 8 * 10
    assert project.change == 2 + 8 * 20


def test_places_are_found_as_by_comparing_with_all() -> None:
    random = np.random.default_rng(3)
    kept: list[tuple[Place, int]] = []
    places = Places[int]()
    for number in range(400):
        start = float(random.uniform(0, 20))
        place = at(start, start + float(random.choice([0.1, 0.5, 3.0, 30.0]) * random.uniform(0.5, 2)))
        shared = [(overlap(other, place), -other.start, -thing, thing) for other, thing in kept]
        best = max(shared, default=None)
        assert places.same(place) == (best[3] if best and is_same(best[0]) else None)
        places.add(place, number)
        kept.append((place, number))
        if number % 3 == 0:
            gone = kept.pop(int(random.integers(len(kept))))
            places.remove(*gone)


def test_many_annotations_of_one_word(project) -> None:
    word = {"verdict": "yes", "score": None, "variant": "", "speaker": "", "note": ""}
    many = [Incoming({"form": "x"}, at(number, number + 0.9), word, False) for number in range(3000)]
    odd = [Incoming({"form": "x" * 9000}, at(1, 2), word, False), Incoming({"form": "y"}, at(3, 1e9), word, False)]
    beyond = Incoming({"form": "y"}, at(9.0, 9.5, "short"), word, False)
    counts = take_in(project, [*many, *odd, beyond], person="Ann", lengths={("short", 1): 3.0})
    assert (counts.added, counts.entries, counts.unusable) == (3000, 1, 3)
    again = project.add_entry(person="Ann", form="z")
    take_in(project, [item._replace(entry={"form": "z"}) for item in many], person="Ann")
    assert project.merge(1, again.entry_id, person="Ann").yes == 3000  # so many comparisons that none may take all
    with raises(families.TOO_LARGE):
        take_in(project, many * 17, person="Ann")


def half_second(start: float) -> Place:
    return Place("talk", 1, start, start + 0.5)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with a word of 40 tokens."""
    with Project.open(tmp_path / "words", store="store") as project:
        word = project.add_entry(person="Ann", form="a").entry_id
        for k in range(40):
            project.judge(word, half_second(k), "yes", person="Ann", note="n" * 200)
    return tmp_path / "words"


def code_of(folder: Path) -> str:
    with pytest.raises(SwsdistError) as raised:
        Project.open(folder)
    return raised.value.code


def test_a_project_stays_as_it_was_and_waits_for_another_writer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Project.open(folder) as project:
        assert (project.store, project.entry(1).yes, project.change) == (str(Path("store").absolute()), 40, 41)
    with Project.open(folder, store="s3://bucket/store") as project:
        assert project.store == "s3://bucket/store"
    names = sorted(item.name for item in folder.iterdir())
    assert names == [".swsdist", "project.backup.sqlite", "project.sqlite", "sounds"]
    with raises(families.CLOSED):
        project.entries()
    file = folder / "project.sqlite"
    with closing(sqlite3.connect(file, isolation_level=None)) as writer:
        writer.execute("DROP TABLE correction")  # as an earlier version left it
        writer.execute("BEGIN IMMEDIATE")
        monkeypatch.setattr("swsdist.glossary.database.PATIENCE", 0.01)
        assert code_of(folder) == "glossary-not-saved"
        writer.execute("ROLLBACK")
    with Project.open(folder) as project:
        project.correct(half_second(1), "a", person="Ann")
    with Project.open(folder) as project:
        assert [each.text for each in project.corrections()] == ["a"]


@pytest.mark.parametrize("where", ["head", "middle", "end", "text", "emptied", "gone"])
def test_damaged(folder: Path, where: str) -> None:
    """It is told, the file is left alone, and the copy of the last opening is sound."""
    Project.open(folder).close()  # makes the copy
    file = folder / "project.sqlite"
    data = file.read_bytes()
    pages = [data[k : k + 4096] for k in range(0, len(data), 4096)]
    spoilt = {
        "head": b"\xff" * 100 + data[100:],
        "middle": pages[0] + b"".join(b"\xff" * 64 + page[64:] for page in pages[1:]),
        "end": data[: len(data) // 2],
        "text": b"id,form\n1,a\n",
        "emptied": b"",
    }.get(where)
    file.unlink()
    if spoilt is not None:
        file.write_bytes(spoilt)
    assert code_of(folder) == "damaged-file"
    if spoilt:
        assert file.read_bytes() == spoilt
        with raises(families.DAMAGED_FILE):
            read_table(str(folder), REFERENCES)
    shutil.copy(folder / "project.backup.sqlite", file)
    with Project.open(folder) as project:
        assert project.entry(1).yes == 40


def test_newer_and_foreign_files_and_folders_of_others(folder: Path, tmp_path: Path) -> None:
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
    for name, content in {"store": '{"schema": "swsdist-store/7"}', "site": "{}"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text(content)
    assert code_of(tmp_path / "store") == code_of(tmp_path / "store" / "deep" / "words") == "output-refused"
    assert [item.name for item in (tmp_path / "store").iterdir()] == ["manifest.json"]
    Project.open(tmp_path / "site").close()
    (tmp_path / "file").write_text("")
    assert code_of(tmp_path / "file") in ("not-a-folder", "existing-file")
    assert code_of(tmp_path / "file" / "words") == "not-a-folder"


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
import subprocess
from pathlib import Path
from swsdist.core.errors import StorageError
from swsdist.core.types import REFERENCES
from swsdist.glossary.project import Project
from swsdist.glossary.words import Place
from swsdist.io.tables import read_table
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
with Project.open("disk/words") as seen:
    print(seen.entry(word).yes == saved)
os.remove("disk/ballast")
project.judge(word, Place("talk", 1, 99999, 100000), "yes", person="Ann")
project.add_sound(SOUND, name="me", person="Ann")
project.close()
with Project.open("disk/words") as again:
    print(again.entry(word).yes == saved + 1, again.people())
subprocess.run(["mount", "-o", "remount,ro", "disk"], check=True)
project = Project.open("disk/words")
print(read_table("disk/words", REFERENCES).num_rows == project.entries()[0].yes == saved + 1)
for do in (lambda: project.undo(person="Ann"), lambda: Project.open("disk/other")):
    try:
        do()
    except StorageError as error:
        print(error.code)
"""


def test_a_full_disk_and_one_that_cannot_be_written(tmp_path: Path) -> None:
    """Nothing that was saved is lost, and all goes on when there is room."""
    soundfile.write(tmp_path / "sound.wav", np.linspace(-0.5, 0.5, 160_000), 8000, subtype="PCM_16")
    full = ["project-full", "project-full", "True True []", "True", "True ['Ann']"]
    assert mounted(FULL, tmp_path) == [*full, "True", "glossary-not-saved", "read-only-file-system"]


JUDGES = """
import sys
from swsdist.glossary.project import Project
from swsdist.glossary.words import Place
name = sys.argv[1]
with Project.open("words") as project:
    for k in range(16):
        project.judge(1, Place(name, 1, k, k + 0.5), "yes", person=name)
        if k % 4 == 3:
            project.undo(person=name)
"""


def test_processes_at_once(tmp_path: Path) -> None:
    """Two people with a server of their own each, and one who is killed: what was saved stays."""

    def start(script: str, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", script, *arguments], cwd=tmp_path)

    made = "from swsdist.glossary.project import Project; Project.open('words').add_entry(person='A', form='{}')"
    assert [process.wait(120) for process in [start(made.format(k)) for k in range(2)]] == [0, 0]
    with Project.open(tmp_path / "words") as project:
        assert len(project.entries()) == 2
        assert [process.wait(120) for process in [start(JUDGES, name) for name in ("Ann", "Bob")]] == [0, 0]
        assert (project.entry(1).yes, project.change) == (2 * 12, 2 + 2 * 20)
        killed = start(JUDGES.replace("range(16)", "range(10000)"), "Dee")
        while not any(token.place.doc_id == "Dee" for token in project.tokens(1)):
            assert killed.poll() is None
        killed.kill()
        killed.wait()
        project.judge(1, half_second(0), "no", person="Ann")
    with Project.open(tmp_path / "words") as project:
        assert (project.entry(1).no, project.entry(1).yes) == (1, len(project.tokens(1)) - 1)
    with closing(sqlite3.connect(tmp_path / "words" / "project.sqlite")) as connection:
        for statement in ("DELETE FROM change", "UPDATE change SET person = 'Bob'"):  # changes cannot be deleted
            with pytest.raises(sqlite3.IntegrityError):
                connection.execute(statement)
