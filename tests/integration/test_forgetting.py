"""Documents that must be forgotten leave stores, runs and a glossary; nothing else changes."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from commands import expecting, in_this_process

from swsdist.core.codes import pipeline as pipeline_codes
from swsdist.core.codes import storage as codes
from swsdist.core.errors import UserError
from swsdist.glossary import forgetting
from swsdist.glossary.forgetting import Outcome, forget
from swsdist.glossary.project import Project
from swsdist.glossary.words import Place
from swsdist.io.filesystem import Folder
from swsdist.pipeline import lock
from swsdist.store.maintaining import check
from swsdist.store.reading import Store
from tests.support.coded import says

swsdist = expecting(in_this_process)
SHARDS = "index.shards=3"
CLIPS = "report.clips=50"


def strings(column: Any) -> Iterator[str]:
    for value in column:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from strings(value.values())
        elif isinstance(value, list):
            yield from strings(value)


def naming(folder: Path, name: str) -> list[str]:
    """Files below a folder that name a document: by this test's own reading, of a name that nothing else has."""

    def holds(path: Path) -> bool:
        if name in str(path) or name.encode() in path.read_bytes():
            return True
        return path.suffix == ".parquet" and any(name in text for text in strings(pq.read_table(path).to_pylist()))

    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and holds(path))


def gone(done: Outcome) -> dict[str, int]:
    return {item.what: item.number for item in done.removed}


def run_of(scene: Any) -> Folder:
    return Folder(str(scene.folder / "run"))


def test_a_document_leaves_everything(own_corpus: Any) -> None:
    kept, run = own_corpus, own_corpus.folder / "run"
    kept.select(1, 2, 3, 4, 5, 6)
    kept.run(SHARDS, CLIPS)
    places = {name.partition("/")[0] for name in naming(run, "d003")}
    assert places == {"store", "tables", "exports", "report.html", "report.json"}
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    (kept.corpus / "audio" / "d003.srt").write_text("1\n00:00:00,000 --> 00:00:01,000\nriver\n")
    shown = forget([run_of(kept)], ["d003"], dry=True)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    done = forget([run_of(kept)], ["d003"])
    assert done.removed == shown.removed
    assert gone(done)["documents"] == gone(done)["shards rewritten"] == 1
    assert gone(done)["frames"] > 100
    assert (done.documents, done.models, done.named, done.equal) == (["d003"], [], [], [])
    assert naming(run, "d003") == []
    assert [Path(path).stem for path in done.sounds] == ["d003"] * 2, "it is still there, with a transcript"
    assert len(set(run.glob("store/shards/*")) & before.keys()) == 6, "two shards, each with two lists, stay"
    store = Store(Folder(str(run / "store")))
    assert list(check(store)) == []
    assert store.manifest.counts["documents"] == 5
    for recording in kept.corpus.glob("audio/*"):
        recording.rename(recording.with_suffix(".away"))
    assert "d003" not in swsdist("search", str(run / "store"), "--query", str(next(kept.corpus.glob("queries/*")))).out
    for recording in kept.corpus.glob("audio/*"):
        recording.rename(recording.with_suffix(".flac"))
    kept.select(1, 2, 4, 5, 6)
    assert kept.run(SHARDS, CLIPS).outcome.tasks_done
    assert Store(Folder(str(run / "store"))).manifest == store.manifest, "the index has nothing to do"
    kept.run(SHARDS, CLIPS, run="without")
    assert kept.digest() == kept.digest("without")
    assert naming(run, "d003") == []


def test_rows_that_are_no_longer_live_are_forgotten(own_corpus: Any) -> None:
    for numbers in ((1, 2, 3, 4, 5, 6), (1, 2, 4, 5, 6)):
        own_corpus.select(*numbers)
        own_corpus.run(SHARDS, until="index")
    run = own_corpus.folder / "run"
    assert "d003" not in own_corpus.store().documents()["doc_id"].to_pylist()
    assert naming(run, "d003")
    done = forget([own_corpus.store().folder], ["d003"])
    assert ("documents" not in gone(done), gone(done)["shards rewritten"]) == (True, 1)
    assert naming(run, "d003") == done.named == []


def test_a_call_that_was_killed_is_repeated(finished: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    remove, left = forgetting.remove, 0

    def killed(folder: Folder, names: Any) -> None:
        nonlocal left
        left -= 1
        remove(folder, sorted(names)[: len(names) if left >= 0 else len(names) // 2])
        if left < 0:
            raise KeyboardInterrupt

    unfinished = 0
    for after in range(6):
        run = finished.folder / f"killed-{after}"
        shutil.copytree(finished.folder / "run", run)
        left = after
        monkeypatch.setattr(forgetting, "remove", killed)
        with pytest.raises(KeyboardInterrupt):
            forget([Folder(str(run))], ["d003", "d005"])
        monkeypatch.setattr(forgetting, "remove", remove)
        if naming(run, "d003"):
            unfinished += 1
            assert forget([Folder(str(run))], ["d003", "d005"]).named == []
        assert naming(run, "d003") == naming(run, "d005") == []
        assert list(check(Store(Folder(str(run / "store"))))) == []
    assert unfinished > 3


def test_copies_are_named(own_corpus: Any) -> None:
    shutil.copyfile(next(own_corpus.corpus.glob("audio/d003*")), next(own_corpus.corpus.glob("audio/d004*")))
    own_corpus.run(SHARDS, until="index")
    assert forget([run_of(own_corpus)], ["d003"]).equal == [f"{own_corpus.folder}/run/store: d004"]


def test_a_glossary_forgets_its_history(finished: Any) -> None:
    with Project.open(finished.folder / "words", store=str(finished.folder / "run" / "store")) as project:
        word = project.add_entry(person="Ann", form="mbo").entry_id
        for k, doc_id in enumerate(("d003", "d004")):
            project.judge(word, Place(doc_id, 1, k, k + 0.5), "yes", person="Ann", content="abc")
            project.correct(Place(doc_id, 1, 0.0, 1.0), f"say {k}", person="Ben", content="abc")
        project.merge(word, project.add_entry(person="Ann", form="kɔ").entry_id, person="Ann")
    assert naming(finished.folder / "words", "d003")
    words = ("--glossary", str(finished.folder / "words"))
    shown = swsdist("store", "forget", str(finished.folder / "run"), "d003", *words)
    assert shown.out.endswith(" files read: none names it, none holds its frames\n")
    assert naming(finished.folder / "words", "d003") == []
    assert naming(finished.folder / "words", "d004")
    with Project.open(finished.folder / "words") as project:
        assert [token.place.doc_id for token in project.tokens(word)] == ["d004"]
        assert [each.text for each in project.corrections()] == ["say 1"]
        assert [change.kind for change in project.changes()] == ["add-entry", "judge", "correct", "add-entry", "merge"]
        assert project.undo(person="Ben") is not None
        assert project.corrections() == []
        with pytest.raises(Exception, match="never"), project.editing("Ann", "x") as edit:
            edit.connection.execute("DELETE FROM change")


def test_what_cannot_be_forgotten(finished: Any) -> None:
    run = run_of(finished)
    store = Folder(run.path("store"))

    def refused(*names: str) -> UserError:
        with pytest.raises(UserError) as raised:
            forget([run], names)
        return raised.value

    unknown = refused("d003", "d03")
    assert (unknown.code, unknown.values["close"]) == (codes.UNKNOWN_DOCUMENT.name, "; did you mean d003?")
    assert refused("store").code == codes.UNKNOWN_DOCUMENT.name, "a word of some file, no document"
    other = {**lock.Lock(store).identity(), "pid": 1, "born": lock._born(1), "t": time.time()}
    store.write_bytes("readers/other.json", json.dumps(other).encode())
    assert refused("d003").code == codes.STORE_IS_READ.name
    assert forget([run], ["d003"], dry=True).named == []
    store.remove("readers/other.json")
    for name in ("lock.json", "store/lock.json"):
        with lock.locked(Folder(run.path(name.removesuffix("lock.json")))):
            assert says(swsdist("store", "forget", run.root, "d003", code=2).err, pipeline_codes.FOLDER_IN_USE)
    before = naming(Path(run.root), "d003")
    assert refused(*Store(store).documents()["doc_id"].to_pylist()).code == codes.FORGETS_ALL.name
    assert naming(Path(run.root), "d003") == before != [], "nothing was removed"
    other = swsdist("store", "forget", str(finished.folder), "d003", code=3)
    assert says(other.err, pipeline_codes.NEITHER_RUN_NOR_STORE)
