"""`swsdist index FOLDER --text` and `--model RECOGNISER`: recordings become words, beside frames or alone."""

import dataclasses
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from commands import Command, hits

import swsdist as swsdist_package
from swsdist.chains.search.words import SearchOptions
from swsdist.cli import models
from swsdist.core.codes import families
from swsdist.io.filesystem import Folder
from swsdist.registry.registries import RECOGNISERS
from swsdist.searcher.searcher import setup_of
from swsdist.server.running import settings_for
from swsdist.server.service import Service
from swsdist.store.reading import Store
from tests.support import tones
from tests.support.coded import raises

#: A recording a task.
SERIAL = ("--set", "executor.kind=serial", "--set", "index.shard_hours=1e-6")
#: Frames that are soon made.
PLAIN = ("--set", 'features=[{"name": "mfcc"}]', "--set", "search.streams=[]")
SRT = "1\n00:00:00,000 --> 00:00:01,000\nhello window\n"


@pytest.fixture(autouse=True)
def _entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RECOGNISERS._entries, "tones", tones.ENTRY)
    monkeypatch.setattr(tones.Tones, "heard", [])


@pytest.fixture
def tapes(tmp_path: Path) -> Path:
    """Three recordings, the last of two channels; and a model."""
    (tmp_path / "tapes").mkdir()
    tones.say(tmp_path / "tapes" / "a.wav", ["red", "green", "blue", "house"])
    tones.say(tmp_path / "tapes" / "b.wav", ["river", "red", "stone", "stone"])
    tones.say(tmp_path / "tapes" / "c.wav", ["apple", "table"] * 2, ["window", "red"] * 2)
    (tmp_path / "model").mkdir()
    for name in tones.ENTRY.model_files:
        (tmp_path / "model" / name).write_text("{}")
    return tmp_path / "tapes"


def places(swsdist: Command, tapes: Path, run: str, *query: str) -> set[tuple[str, int, float]]:
    found = hits(swsdist("search", run, *query, "--csv", cwd=tapes.parent))
    return {(row["doc_id"], int(row["channel"]), float(row["start"])) for row in found}


def test_recordings_are_recognised(swsdist: Command, tapes: Path) -> None:
    said = swsdist("index", "tapes", "--text", "--model", "model", *SERIAL, cwd=tapes.parent)
    assert "search it: swsdist search tapes-text --text TEXT" in said.out
    assert " s of audio" in said.err
    red = {("a", 1, 0.0), ("b", 1, 0.5), ("c", 2, 0.5), ("c", 2, 1.5)}
    assert places(swsdist, tapes, "tapes-text", "--text", "red") == red
    again = ("index", "tapes", "--text", *SERIAL)  # by the same recogniser
    assert "nothing to do" in swsdist(*again, cwd=tapes.parent).out
    assert sorted(tones.Tones.heard) == ["a", "b", "c", "c"]
    swsdist(*again, "--language", "yy", cwd=tapes.parent)
    assert len(tones.Tones.heard) == 8
    assert "nothing to do" in swsdist(*again, cwd=tapes.parent).out, "the language is kept"
    # Whatever sets the recogniser.
    given = (
        "--set",
        'options.source="recogniser"',
        "--set",
        'options.recogniser={"name": "tones"}',
        "--language",
        "zz",
    )
    swsdist("index", "tapes", "--text", "--run", "mine", *given, *SERIAL, cwd=tapes.parent)
    (config,) = models._configs(str(tapes.parent / "mine"))
    assert config.options["recogniser"]["options"]["language"] == "zz"


def test_what_is_said_of_recordings(swsdist: Command, tapes: Path) -> None:
    """Their language, how much is speech, and what was left out of their words: at the end, in the store and the report."""
    tones.say(tapes / "b.wav", ["river"] * 3, level=0.05)
    said = swsdist("index", "tapes", "--text", "--model", "model", *SERIAL, cwd=tapes.parent).out.splitlines()
    assert "languages: xx 4" in said
    assert "left out, doubted: 3; unlikely-text 3 (1.5 s)" in said
    swsdist("transcribe", "tapes-text", "--format", "json", cwd=tapes.parent)
    assert json.loads((tapes.parent / "tapes-transcripts" / "a.json").read_text())["language"] == "xx"
    assert "speech      0.002 h, 80 %" in swsdist("store", "info", "tapes-text/store", cwd=tapes.parent).out
    (tapes.parent / "queries.csv").write_text("query_id,term\nq,red\n")
    (tapes.parent / "words.yaml").write_text(
        "chain: lattices\noptions: {source: recogniser, recogniser: {name: tones}}\nsearch: {method: lattice}\n"
        "corpus: {documents: tapes, queries: queries.csv}\ncalibrate: {steps: []}\nexecutor: {kind: serial}\nrun: run\n"
    )
    swsdist("run", "words.yaml", cwd=tapes.parent)
    counts = json.loads((tapes.parent / "run" / "report.json").read_text())["counts"]
    assert (counts["languages"], counts["speech"]) == ({"xx": 4}, pytest.approx(0.8, abs=0.1))
    assert counts["left_out"] == [{"reason": "unlikely-text", "items": 3, "seconds": 1.5}]


def test_transcripts_win(swsdist: Command, tapes: Path) -> None:
    """Also one that cannot be read, which is named; the other channel of a recording with one is not recognised."""
    (tapes / "c.srt").write_text(SRT)
    (tapes / "b.json").write_text('{"segments": [')
    (tapes / "notes.md").write_text("notes")
    (tapes / "lone.srt").write_text(SRT)
    index = ("index", "tapes", "--text", *SERIAL)
    said = swsdist(*index, "--model", "model", "--all", cwd=tapes.parent)
    assert tones.Tones.heard == ["a"]
    (line,) = (line for line in said.out.splitlines() if "[transcripts-taken]" in line)
    assert "2 recordings with" in line
    assert "1 without" in line
    assert places(swsdist, tapes, "tapes-text", "--text", "window") == {("c", 1, 0.0), ("lone", 1, 0.0)}
    rejected = swsdist("store", "rejected", "tapes-text", cwd=tapes.parent).out
    assert "document b, channel 1: malformed-file" in rejected
    assert rejected.endswith("1 rejected\n")
    (tapes / "b.json").unlink()
    swsdist(*index, cwd=tapes.parent)
    assert tones.Tones.heard == ["a", "b"]
    for name in "ab":
        (tapes / f"{name}.srt").write_text(SRT)
    swsdist(*index, cwd=tapes.parent)
    assert len(places(swsdist, tapes, "tapes-text", "--text", "window")) == 4
    assert tones.Tones.heard == ["a", "b"]


def test_a_transcript_may_be_of_several_recordings(tapes: Path) -> None:
    """Where it is not named after one."""
    (tapes / "a.srt").write_text(SRT)
    (tapes / "more.ctm").write_text("b 1 0.0 0.5 river\nc 1 0.0 0.5 apple\n")
    assert models.words([], f"{tapes}-text", str(tapes), []) == []


def test_frames_and_words_in_one_store(swsdist: Command, tapes: Path) -> None:
    (tapes / "c.srt").write_text(SRT)
    index = ("index", "tapes", *SERIAL, *PLAIN)
    assert "[unused-option]" in swsdist(*index, "--language", "yy", cwd=tapes.parent, code=2).err
    said = swsdist(*index, "--model", "model", "--language", "yy", cwd=tapes.parent)
    assert "c" not in tones.Tones.heard
    (config,) = models._configs(str(tapes.parent / "tapes-swsdist"))
    assert config.options["words"]["recogniser"]["options"]["language"] == "yy"
    for query in ("--query FILE[:START-END]", "--text TEXT"):
        assert f"search it: swsdist search tapes-swsdist {query}" in said.out
    store = tapes.parent / "tapes-swsdist" / "store"
    for target in ("tapes-swsdist", "tapes-swsdist/store"):
        assert places(swsdist, tapes, target, "--text", "stone") == {("b", 1, 1.0), ("b", 1, 1.5)}
        assert ("b", 1, 0.0) in places(swsdist, tapes, target, "--no-trim", "--query", "tapes/b.wav:0.0-0.5")
    assert setup_of(str(tapes.parent / "tapes-swsdist"), texts=True).terms["units"] == "words"
    assert set(swsdist_package.search(Store(Folder(str(store))), "stone", texts=True)["doc_id"]) == {"b"}
    manifests = (store / "manifest.json", store / "words" / "manifest.json")
    before = [file.read_bytes() for file in manifests]
    assert "nothing to do" in swsdist(*index, cwd=tapes.parent).out
    swsdist("clean", "tapes-swsdist", "--older", "0", cwd=tapes.parent)
    swsdist("store", "check", store, cwd=tapes.parent)
    assert [file.read_bytes() for file in manifests] == before
    assert "words" in swsdist("digest", "tapes-swsdist", "--tables", cwd=tapes.parent).out
    tones.say(tapes / "d.wav", ["window", "window"])
    swsdist(*index, cwd=tapes.parent)
    assert tones.Tones.heard.count("a") == 1
    assert places(swsdist, tapes, "tapes-swsdist", "--text", "window window") == {("d", 1, 0.0)}


@pytest.mark.parametrize("both", [False, True])
def test_what_is_done_is_kept(swsdist: Command, tapes: Path, monkeypatch: pytest.MonkeyPatch, both: bool) -> None:
    """After an interruption; the same as without one."""
    index = ("index", "tapes", *(PLAIN if both else ("--text",)), *SERIAL, "--model", "model")
    swsdist(*index, "--run", "whole", cwd=tapes.parent)
    tones.Tones.heard.clear()
    lattice, run = tones.Tones.lattice, "tapes-swsdist" if both else "tapes-text"

    def interrupted(self: tones.Tones, key: str, *others: Any) -> Any:
        if len(self.heard) == 2:
            raise KeyboardInterrupt
        return lattice(self, key, *others)

    with monkeypatch.context() as patch:
        patch.setattr(tones.Tones, "lattice", interrupted)
        swsdist(*index, cwd=tapes.parent, code=130)
    said = swsdist("search", run, "--text", "red", cwd=tapes.parent)
    assert "2 of 4 tasks" in said.err
    assert places(swsdist, tapes, run, "--text", "red") == {("a", 1, 0.0), ("b", 1, 0.5)}
    swsdist(*index, cwd=tapes.parent)
    assert sorted(tones.Tones.heard) == ["a", "b", "c", "c"]
    assert swsdist("digest", run, cwd=tapes.parent).out == swsdist("digest", "whole", cwd=tapes.parent).out


def test_words_beside_frames_may_be_phones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RECOGNISERS._entries, "tones", dataclasses.replace(tones.ENTRY, holds="phones"))
    assert SearchOptions.terms_in({"words": {"recogniser": {"name": "tones"}}})["units"] == "phones"
    assert SearchOptions.terms_in({}) == {}


def test_a_run_with_words_finds_what_one_without_does(swsdist: Command, tapes: Path) -> None:
    """Its words are in its digest; options by hand, of files relative to the config."""
    (tapes.parent / "texts").mkdir()
    (tapes.parent / "texts" / "a.srt").write_text(SRT)
    (tapes.parent / "queries.csv").write_text("query_id,path,start,end\nred,tapes/b.wav,0.5,1.0\n")
    base = "corpus: {documents: tapes, queries: queries.csv}\nexecutor: {kind: serial}\nqueries: {trim: none}\n"
    words = "options: {words: {recogniser: {name: tones, options: {model: model}}, lattices: {path: texts}}}\n"
    digests = []
    for name, more in (("plain", ""), ("words", words)):
        (tapes.parent / f"{name}.yaml").write_text(f"run: runs/{name}\n{base}{more}")
        swsdist("check", f"{name}.yaml", cwd=tapes.parent)
        swsdist("run", f"{name}.yaml", cwd=tapes.parent)
        assert "nothing to do" in swsdist("run", f"{name}.yaml", cwd=tapes.parent).out
        said = swsdist("digest", f"runs/{name}", "--tables", cwd=tapes.parent).out
        digests.append(set(said.splitlines()[:-1]))
    assert sorted(tones.Tones.heard) == ["b", "c", "c"]
    assert places(swsdist, tapes, "runs/words", "--text", "window") == {("a", 1, 0.0), ("c", 2, 0.0), ("c", 2, 1.0)}
    assert [line.split()[1] for line in digests[1] - digests[0]] == ["words"]
    assert not digests[0] - digests[1]


def test_texts_are_aligned_though_most_recordings_are_broken(swsdist: Command, tapes: Path) -> None:
    (tapes / "a.txt").write_text("red green blue house")
    for name in ("d", "e", "f", "g"):
        (tapes / f"{name}.wav").write_text("no audio")
        (tapes / f"{name}.txt").write_text("red green")
    said = swsdist("align", "tapes", "--model", "model", "--set", "executor.kind=serial", cwd=tapes.parent)
    assert "rejected: 4 document(s), not-audio" in said.err
    assert (tapes.parent / "tapes-aligned-transcripts" / "a.srt").exists()


def test_what_is_no_recogniser(swsdist: Command, tapes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tapes.parent / "cache"))
    for name in ("nothing", "torch", "none", "told"):
        (tapes.parent / name).mkdir()
    (tapes.parent / "torch" / "config.json").write_text('{"model_type": "whisper"}')
    (tapes.parent / "told" / "a.srt").write_text(SRT)
    cases = {
        "index tapes --text": "[no-recogniser] .. 3 recordings without a transcript",
        "index tapes --text --model nobody/model": "[missing-model] .. download it: hf download nobody/model\n",
        "index tapes --text --model /no/such/folder": "[missing-model] .. check the path",
        "index tapes --text --model nothing": "[wrong-kind] .. this folder is no model of a recogniser",
        "index tapes --model .": "[wrong-kind] .. name one of them: ",
        "index tapes --text --model torch": "[wrong-kind] .. a model of the type whisper is no model",
        "index tapes --text --model model --model model": "[conflicting-options] .. model and model are both",
        **{f"align {name} --text tapes --model model": "[empty-input]" for name in ("none", "told")},
        **{f"index {name} --text --model model": "[empty-input]" for name in ("none", "told")},
        "align tapes --set options.source=files": "[conflicting-options]",
        "index tapes --text --model model --set options.source=files": "[conflicting-options]",
        "discover tapes --model model": "[unsupported]",
    }
    for typed, parts in cases.items():
        refused = swsdist(*typed.split(), cwd=tapes.parent, code=2).err
        assert [part for part in parts.split(" .. ") if part not in refused] == [], typed


@pytest.mark.slow
def test_served(tapes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server indexes by a process of its own, which knows the recogniser as that of another package."""
    package = tmp_path / "site" / "tones-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: tones\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[swsdist.recognisers]\ntones = tests.support.tones:ENTRY\n")
    path = [str(package.parent), str(Path(tones.__file__).parents[2]), *os.environ.get("PYTHONPATH", "").split(":")]
    monkeypatch.setenv("PYTHONPATH", ":".join(path))
    settings = settings_for(str(tapes), None, models=(str(tmp_path / "model"),))
    service = Service(settings)
    try:
        until = time.monotonic() + 120
        while service.words is None and time.monotonic() < until:
            service.look_for_words(after=0.0)
            time.sleep(0.1)
        assert service.indexing is not None
        assert service.indexing.error is None
        assert service.words is not None
        assert service.words.searcher.store.folder.path().endswith("tapes-swsdist/store/words")
        assert service.archive is not None
        assert service.archive.spoken
    finally:
        service.close()
    with raises(families.UNUSED_OPTION, where=f"{tmp_path}/tapes-swsdist", option="--model"):
        settings_for(f"{tmp_path}/tapes-swsdist", None, models=("model",))


def test_a_copied_archive_is_not_recognised_again(swsdist: Command, tapes: Path) -> None:
    """Moved, with other times of change, and once more; of a recording with other bytes of the same length it is."""
    swsdist("index", "tapes", "--text", "--model", "model", *SERIAL, cwd=tapes.parent)
    heard, other = sorted(tones.Tones.heard), tapes.parent / "copy"
    shutil.copytree(tapes, other, copy_function=shutil.copyfile)
    shutil.copytree(tapes.parent / "tapes-text", tapes.parent / "copy-text")
    again = ("index", "copy", "--text", "--run", "copy-text", "--force", *SERIAL)
    swsdist(*again[:5], cwd=tapes.parent, code=5)
    for _ in range(2):
        swsdist(*again, cwd=tapes.parent)
        assert sorted(tones.Tones.heard) == heard
    said = swsdist("search", "copy-text", "--text", "river", "--csv", cwd=tapes.parent).out
    assert str(other / "b.wav") in said
    (other / "b.wav").write_bytes((other / "a.wav").read_bytes())
    swsdist(*again, cwd=tapes.parent)
    assert sorted(tones.Tones.heard) == sorted([*heard, "b"])
    other.rename(tapes.parent / "moved")
    assert "0 rejected" in swsdist("index", "moved", *again[2:], cwd=tapes.parent).out
    assert sorted(tones.Tones.heard) == sorted([*heard, "b"])


def test_good_recordings_are_transcribed_beside_bad_ones(swsdist: Command, tapes: Path) -> None:
    """Each bad one is named; where all are bad, the first fault."""
    for name in "xyz":
        (tapes / f"{name}.wav").write_bytes(b"no sound")
    swsdist("index", "tapes", "--text", "--model", "model", *SERIAL[:2], cwd=tapes.parent, code=5)
    told = swsdist("transcribe", "tapes", "--format", "txt", cwd=tapes.parent)
    assert "[many-rejected]" in told.err
    assert "x.wav" in told.err
    assert {path.name for path in (tapes.parent / "tapes-transcripts").glob("*.txt")} >= {"a.txt", "b.txt", "c.txt"}
    for path in tapes.iterdir():
        path.write_bytes(b"no sound")
    for options in (("--text", "--model", "model"), ()):
        told = swsdist("index", "tapes", "--run", "bad", *options, *SERIAL, cwd=tapes.parent, code=3).err
        assert ".wav: " in told
        assert "no audio format is recognised" in told


def test_a_recording_that_cannot_be_read_is_named_once(swsdist: Command, tapes: Path) -> None:
    (tapes / "b.wav").write_bytes(b"no sound")
    said = swsdist("index", "tapes", "--model", "model", *SERIAL, *PLAIN, "--all", cwd=tapes.parent)
    assert "words of 3 documents, 1 rejected" in said.out
    for target in ("tapes-swsdist", "tapes-swsdist/store"):
        assert swsdist("store", "rejected", target, cwd=tapes.parent).out.endswith("1 rejected\n")
    words = Store(Folder(str(tapes.parent / "tapes-swsdist" / "store" / "words")))
    shard = Path(words.folder.path(words.manifest.shards[0].name))
    shard.write_bytes(b"")
    assert str(shard) in swsdist("store", "check", "tapes-swsdist/store", cwd=tapes.parent, code=3).out
