"""Files of lattices in a folder: formats, preferences, tasks, names of documents; postings of shards."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from swsdist.chains.lattices.inputs import LatticeInputs
from swsdist.chains.lattices.recordings import FileSource
from swsdist.config import config_from_dict
from swsdist.core.codes import families
from swsdist.io.filesystem import Folder
from swsdist.lattices import collection
from swsdist.lattices.collection import (
    LatticeFile,
    chunks,
    detect,
    document_id,
    files_in,
    find_files,
    read_file,
    speakers_in,
    tiers_of,
)
from swsdist.lattices.lattice import Broken, Origin, Word, transcript
from swsdist.lattices.packed import Recipe, pack
from swsdist.pipeline.ledger import Ledger
from swsdist.registry.entries import LatticeFormatEntry
from swsdist.registry.registries import LATTICE_FORMATS
from swsdist.store.lattice_shards import LatticeShardWriter, lattices_name, postings_of, read_lattices
from swsdist.store.manifest import File
from swsdist.store.memory import Memory
from tests.support.coded import raises
from tests.support.lattices import COMPACT_TEXT

JSON = json.dumps({"segments": [{"words": [{"word": " hello", "start": 0.5, "end": 1.0, "probability": 0.5}]}]})
VTT = "WEBVTT\n\n00:00.000 --> 00:01.000\nhello\n"
SRT = "1\n00:00:00,000 --> 00:00:01,000\nhello\n"
CTM = "talk 1 0.5 0.5 hello 0.5\n"
KALDI = f"u1 \n{COMPACT_TEXT}\n"


def put(folder: Path, **files: str | bytes) -> None:
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def listed(path: Path, form: str | None = None) -> tuple[dict[str, str], dict[str, str | None]]:
    """Formats of files that are taken, and what is said of others."""
    left: dict[str, str | None] = {}
    files = find_files(str(path), form, {}, lambda file, better: left.update({Path(file).name: better}))
    assert [file.path for file in files] == sorted(file.path for file in files)
    assert all(file.size == Path(file.path).stat().st_size and file.identity for file in files)
    return {Path(file.path).relative_to(path).as_posix(): file.format for file in files}, left


def test_formats_of_a_folder(tmp_path: Path) -> None:
    put(tmp_path, a_json=JSON, b_vtt=VTT, c_srt=SRT, sub__d_ctm=CTM, sub__lat_1_gz=gzip.compress(KALDI.encode()))
    put(tmp_path, notes_md="# Notes\n", _hidden_json=JSON, _git__x_json=JSON, sub___y_vtt=VTT)
    (tmp_path / "\udcff.json").write_text(JSON)  # a name that is not UTF-8
    expected = {"a.json": "json", "b.vtt": "webvtt", "c.srt": "srt", "sub/d.ctm": "ctm", "sub/lat.1.gz": "kaldi"}
    assert listed(tmp_path) == (expected, {"notes.md": None, "\udcff.json": None})


def test_of_one_transcript_in_several_formats_the_first_is_taken(tmp_path: Path) -> None:
    order = list(LATTICE_FORMATS)
    assert order.index("json") < order.index("webvtt") < order.index("srt")
    put(tmp_path, x__a_json=JSON, x__a_srt=SRT, x__a_vtt=VTT, x__b_srt=SRT, x__b_vtt=VTT, x__c__a_srt=SRT)
    taken = {"a.json": "json", "b.vtt": "webvtt", "c/a.srt": "srt"}
    assert listed(tmp_path / "x") == (taken, {"a.srt": "json", "a.vtt": "json", "b.srt": "webvtt"})
    # Files of one name and format are both taken: that their documents are the same is an error, not a choice.
    put(tmp_path, y__a_json=JSON, y__a_json_gz=gzip.compress(JSON.encode()), y__lat_1=KALDI, y__lat_2=KALDI)
    taken = {"a.json": "json", "a.json.gz": "json", "lat.1": "kaldi", "lat.2": "kaldi"}
    assert listed(tmp_path / "y") == (taken, {})
    put(tmp_path, v1_0__first=KALDI, v1_0__second=SRT)
    assert listed(tmp_path / "v1.0") == ({"first": "kaldi", "second": "srt"}, {})


def test_a_format_that_is_named_comes_before_others(tmp_path: Path) -> None:
    put(tmp_path, a_txt=CTM, b_json=JSON, x__notes_md="# Notes\n")
    assert listed(tmp_path, "ctm") == ({"a.txt": "ctm", "x/notes.md": "ctm"}, {"b.json": None})
    (tmp_path / "a.txt").rename(tmp_path / "a.ctm")
    reader = "swsdist.lattices.formats.ctm:read"
    LATTICE_FORMATS.add("own-ctm", LatticeFormatEntry(reader, 1, "swsdist.lattices.formats.ctm:detect"))
    try:
        assert listed(tmp_path, "own-ctm")[0]["a.ctm"] == "own-ctm"
        assert listed(tmp_path) == ({"a.ctm": "ctm", "b.json": "json"}, {"notes.md": None})
    finally:
        LATTICE_FORMATS.remove("own-ctm")
    for path, code in ((tmp_path / "x", families.EMPTY_INPUT), (tmp_path / "x" / "notes.md", families.UNKNOWN_NAME)):
        with raises(code, where=str(path), formats=", ".join(LATTICE_FORMATS)):
            listed(path)
    (file,) = find_files(str(tmp_path / "a.ctm"), None, {}, lambda *_: None)
    assert (Path(file.path).name, file.format) == ("a.ctm", "ctm")
    (file,) = find_files(str(tmp_path / "a.ctm"), "srt", {}, lambda *_: None)
    assert file.format == "srt"


def test_an_unreadable_file_has_the_format_that_its_name_says(tmp_path: Path) -> None:
    put(tmp_path, a_json_gz=gzip.compress(JSON.encode())[:15])
    path = str(tmp_path / "a.json.gz")
    assert detect(path, {}) == "json"
    (broken,) = read_file("json", Origin(path))
    assert isinstance(broken, Broken)
    assert path in (broken.error.where or "")


def test_documents() -> None:
    for key, file, path, document in (
        ("talk", "/t/talk.json", "/t", "talk"),
        ("talk", "/t/a/b/talk.json.gz", "/t", "a/b/talk"),
        ("talk", "/t/a/talk.wav.json", "/t/", "a/talk"),
        ("u1", "/t/a/lat.1.gz", "/t", "u1"),
        ("talk", "/t/talk.json", "/t/talk.json", "talk"),
        ("talk", "s3://b/t/a/talk.json", "s3://b/t", "a/talk"),
        ("talk", "/t/a/talks.json", "/t", "talk"),
    ):
        assert document_id(key, file, path) == document


def files(count: int) -> list[LatticeFile]:
    return [LatticeFile(f"/t/{k:05}.json", str(k), 1000, "json") for k in range(count)]


def test_a_file_more_or_less_changes_few_tasks() -> None:
    some = files(3000)
    before = list(chunks(some))
    assert [file for task in before for file in task] == some
    assert 20 < len(before) < 120
    for k in (0, 777, 2999):
        without = list(chunks(some[:k] + some[k + 1 :]))
        old, new = ({tuple(task) for task in tasks} for tasks in (before, without))
        assert len(new - old) <= 2
        assert len(old - new) <= 2


def test_sizes_of_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "_MOST_FILES", 7)
    assert max(map(len, chunks(files(200)))) == 7
    monkeypatch.setattr(collection, "_MOST_BYTES", 2500)
    assert max(map(len, chunks(files(200)))) == 2
    large = [file._replace(size=1 << 40) for file in files(5)]
    assert list(map(len, chunks(large))) == [1] * 5
    assert list(chunks([])) == []


def test_a_table_beside_a_recording_has_tiers_and_speakers(tmp_path: Path) -> None:
    put(
        tmp_path,
        talk_wav="",
        talk_csv="text,start,end,tier,speaker\nzwei,1,2,words,Anna\neins,0,1,words,Anna\n,2,3,words,Ben\nlaut,x,1,notes,\n",
        both_tsv="start\tend\ttext\tspeaker\n0\t1\tja\tAnna\n1\t2\tnein\tBen\n2\t3\thm\tunknown\n",
        list_csv="path,start,end\na.wav,0,1\n",
    )
    files = {Path(name).name: file for name, file in files_in(str(tmp_path), {}).items()}
    assert set(files) == {"talk", "both"}
    (tier,), left_out = tiers_of(files["talk"], Folder(str(tmp_path)))
    assert (tier.name, tier.speaker, [row.text for row in tier.rows]) == ("words", "Anna", ["eins", "zwei"])
    assert [error.where for error in left_out.errors] == [f"{tmp_path / 'talk.csv'}, line 5"]
    tiers, _ = tiers_of(files["both"], Folder(str(tmp_path)))
    assert [(tier.name, tier.speaker) for tier in tiers] == [("text", "Anna"), ("text", "Ben"), ("text", "")]
    assert speakers_in(str(tmp_path), {}) == {f"{tmp_path}/talk": "Anna"}


HALF_A_SECOND = "1\n00:00:00,000 --> 00:00:00,500\nhello\n"


def test_recordings_beside_transcripts_are_not_left_out(tmp_path: Path) -> None:
    for name, content in (("talk.srt", HALF_A_SECOND), ("talk.WAV", ""), ("notes.txt", "of June\n")):
        (tmp_path / name).write_text(content)
    config = config_from_dict({"run": "run", "chain": "lattices", "corpus": {"documents": str(tmp_path)}})
    inputs = LatticeInputs(config, Ledger(Folder(config.run)))
    source = inputs.source
    assert isinstance(source, FileSource)
    assert [Path(file.path).name for file in source.files] == ["talk.srt"]
    assert [(Path(item.first).name, item.count) for item in inputs.notices.requested.values()] == [("notes.txt", 1)]
    assert source.table()["path"].to_pylist() == [str(tmp_path / "talk.WAV")]


@pytest.fixture
def shard(tmp_path: Path) -> tuple[Folder, dict[str, File]]:
    """Three documents: `to be`, `be be`, `or`."""
    folder = Folder(str(tmp_path))
    writer = LatticeShardWriter(folder, lattices_name("x", 0))
    for k, text in enumerate(("to be", "be be", "or")):
        words = [Word(word, place, place + 0.5, 0.75) for place, word in enumerate(text.split())]
        writer.append(f"d{k}", 1, pack(transcript(f"d{k}", words), Recipe()))
    written = writer.publish()
    assert (written.documents, written.labels) == (3, 3)
    return folder, {"lattices": File(*written.lattices), "postings": File(*written.postings)}


def test_postings_are_of_the_labels_that_are_wanted(shard: tuple[Folder, dict[str, File]]) -> None:
    everything = postings_of(*shard)
    assert list(everything.numbers) == ["be", "or", "to"]
    assert sorted(everything.numbers.values()) == [1, 2, 3]
    assert {text: rows.tolist() for text, rows in everything.rows.items()} == {"be": [0, 1], "or": [2], "to": [0]}
    some = postings_of(*shard, {"or", "not", "a", "zoo"})
    assert some.numbers == {"or": everything.numbers["or"]}
    assert some.rows["or"].tolist() == [2]
    assert some.labels == everything.labels == 3
    assert postings_of(*shard, {"zoo"}).numbers == {}


def test_row_groups_stay_in_memory(shard: tuple[Folder, dict[str, File]]) -> None:
    memory = Memory(1 << 20)
    (first,) = (lattices for _, lattices in read_lattices(*shard, memory=memory))
    left = memory.room
    assert left < 1 << 20
    (again,) = (lattices for _, lattices in read_lattices(*shard, memory=memory))
    assert memory.room == left
    assert again.doc_ids == first.doc_ids == ["d0", "d1", "d2"]
    for one, other in zip(first[3:], again[3:], strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.shares_memory(first.steps, again.steps)
    assert list(read_lattices(*shard, rows=np.zeros(3, bool), memory=memory)) == []
