"""Documents, queries and references from tables, folders, data sets and arrays: told by content, and how they must fit."""

import errno
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import soundfile

import swsdist
from swsdist.audio.reader import MARKER, read_blocks
from swsdist.core.codes import audio as audio_codes
from swsdist.core.codes import corpora as corpora_codes
from swsdist.core.codes import families
from swsdist.core.codes import io as io_codes
from swsdist.core.errors import TableError, UserError
from swsdist.core.types import CORPUS, QUERIES, REFERENCES
from swsdist.corpora.documents import ENDINGS, READS, kind_of, part_of, read_documents
from swsdist.corpora.queries import read_queries
from swsdist.corpora.references import read_references
from swsdist.io.filesystem import Folder
from swsdist.io.notices import Notices
from swsdist.testing.synthesis import make_corpus
from tests.support.coded import raises


def table(tmp_path: Path, name: str, *lines: str) -> str:
    (tmp_path / name).write_text("\n".join(lines) + "\n")
    return str(tmp_path / name)


@pytest.fixture
def documents(tmp_path):
    rows = ("a,sub/a.wav,1,anna", "b,../b.wav,1,", "b,/b.wav,2,")
    return read_documents(table(tmp_path, "docs.csv", "doc_id,path,channel,speaker", *rows))


def test_paths_are_relative_to_the_table(tmp_path, documents, s3):
    assert documents.schema == CORPUS
    assert documents["path"].to_pylist() == [f"{tmp_path}/sub/a.wav", f"{tmp_path.parent}/b.wav", "/b.wav"]
    folder = Folder(f"s3://{s3.bucket}/corpus", s3.storage)
    folder.write_bytes("lists/docs.csv", b"doc_id,path\na,../audio/a.wav\nb,s3://other/b.wav\nc,./c.wav\n")
    found = read_documents(folder.path("lists/docs.csv"), s3.storage)["path"].to_pylist()
    assert found == [f"{folder.root}/audio/a.wav", "s3://other/b.wav", f"{folder.root}/lists/c.wav"]


def audio(folder: Path) -> None:
    (folder / "talks").mkdir(parents=True)
    soundfile.write(str(folder / "talks" / "monday.flac"), np.zeros((8000, 2)), 8000)
    soundfile.write(str(folder / "b.2.WAV"), np.zeros(16000), 16000)
    (folder / "bad.mp3").write_text("not a sound")
    (folder / "films.wma").write_bytes(bytes.fromhex("3026b2758e66cf11"))
    (folder / "notes.txt").write_text("not a recording")
    (folder / "._b.2.WAV").write_text("left by a Mac")


EXPECTED = [("b.2", 1, 1.0), ("bad", 1, None), ("films", 1, None), ("talks/monday", 1, 1.0), ("talks/monday", 2, 1.0)]


def test_folder(tmp_path, s3):
    with raises(families.MISSING_FILE):
        read_documents(str(tmp_path / "nothing"))
    with raises(families.EMPTY_INPUT):
        read_documents(str(tmp_path))
    audio(tmp_path / "audio")
    found = read_documents(str(tmp_path / "audio"))
    assert found.schema == CORPUS
    assert [(row["doc_id"], row["channel"], row["duration"]) for row in found.to_pylist()] == EXPECTED
    assert found["path"][3].as_py() == str(tmp_path / "audio" / "talks" / "monday.flac")
    queries = read_queries(str(tmp_path / "audio"), found)
    assert queries.schema == QUERIES
    assert queries["query_id"].to_pylist() == ["b.2", "bad", "films", "talks/monday"]
    assert set(queries["example"].to_pylist()) == set(queries["channel"].to_pylist()) == {1}
    folder = Folder(f"s3://{s3.bucket}/recordings", s3.storage)
    for name in Folder(str(tmp_path / "audio")).listing():
        folder.write_bytes(name, (tmp_path / "audio" / name).read_bytes())
    found = read_documents(folder.root, s3.storage)
    assert [(row["doc_id"], row["channel"], row["duration"]) for row in found.to_pylist()] == EXPECTED
    assert found["path"][0].as_py() == folder.path("b.2.WAV")


def sounds(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        ending = name.rpartition(".")[2].upper()
        soundfile.write(folder / name, np.zeros(1600), 16000, format={"MP3": "MP3", "FLAC": "FLAC"}.get(ending, "WAV"))


def test_masters_and_access_copies_and_what_swsdist_wrote(tmp_path: Path) -> None:
    """Two files of one stem are two documents, and the master's name stays when a copy is added; or one, by a rule."""
    sounds(tmp_path, "a.flac", "b/c.wav")
    assert read_documents(str(tmp_path))["doc_id"].to_pylist() == ["a", "b/c"]
    sounds(tmp_path, "a.mp3", "b/c.mp3", "b/c.flac")
    found = read_documents(str(tmp_path))
    assert found["doc_id"].to_pylist() == ["a", "a.mp3", "b/c", "b/c.flac", "b/c.mp3"]
    assert [Path(path).name for path in found["path"].to_pylist()] == ["a.flac", "a.mp3", "c.wav", "c.flac", "c.mp3"]
    notices = Notices()
    best = read_documents(str(tmp_path), notices=notices, prefer=["mp3", ".FLAC"])
    assert [Path(path).name for path in best["path"].to_pylist()] == ["a.mp3", "c.mp3"]
    assert best["doc_id"].to_pylist() == ["a", "b/c"]
    assert not notices.entries
    assert [notice.count for notice in notices.requested.values()] == [3]
    assert read_documents(str(tmp_path), notices=Notices(strict=True), prefer=["mp3"]).num_rows == 2

    def read(name: str) -> list[str]:
        return read_documents(str(tmp_path / name))["doc_id"].to_pylist()

    clip = "exports/clips/q001_1.wav"
    sounds(tmp_path / "below", "talk.wav", f"runs/one/{clip}", "runs/two/x.wav")
    sounds(tmp_path / "itself", "talk.wav", "queries/talk.wav", clip)
    sounds(tmp_path / "search", "talk.wav", "hits/001-q.wav", "hits of mine/x.wav")
    assert len(read("itself")) == 3
    for name in ("plan.json", "config.yaml"):
        (tmp_path / "below" / "runs" / "one" / name).write_text("")
        (tmp_path / "itself" / name).write_text("")
    (tmp_path / "search" / "hits" / MARKER).touch()
    assert read("below") == ["runs/two/x", "talk"]
    assert read("itself") == ["queries/talk", "talk"]
    assert read("search") == ["hits of mine/x", "talk"]
    assert read("search/hits") == ["001-q"]  # named itself


def test_odd_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that are not UTF-8, loops, pipes, folders that cannot be read: the rest goes on."""
    sounds(tmp_path, "good.wav", "deep/good.wav", "secret/hidden.wav")
    soundfile.write(os.fsencode(tmp_path) + b"/caf\xe9.wav", np.zeros(1600), 16000, format="WAV")
    os.mkfifo(tmp_path / "pipe.wav")
    (tmp_path / "deep" / "up").symlink_to(tmp_path)
    (tmp_path / "dangling.wav").symlink_to(tmp_path / "nowhere.wav")
    real = os.scandir

    def scandir(path: Any) -> Any:
        if str(path).endswith("secret"):  # root may read everything
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    notices = Notices()
    found = read_documents(str(tmp_path), notices=notices)
    assert found["doc_id"].to_pylist() == ["deep/good", "good", "pipe"]
    assert dict(zip(found["doc_id"].to_pylist(), found["duration"].to_pylist(), strict=True))["pipe"] is None
    told = " ".join(notice.first for notice in notices.entries.values())
    assert "secret (Permission denied)" in told
    assert "caf\\udce9.wav" in told


def test_queries_from_files_and_from_documents_and_empty_tables(tmp_path, documents):
    lines = ("q1,2,,a,,1.5,2.0,", "q1,1,cut.wav,,,,,zoe", "q2,5,,b,2,0,1,eve")
    path = table(tmp_path, "queries.csv", "query_id,example,path,doc_id,channel,start,end,speaker", *lines)
    every = read_queries(path, documents, "all").to_pylist()
    assert [(row["query_id"], row["example"], row["path"], row["channel"], row["speaker"]) for row in every] == [
        ("q1", 2, f"{tmp_path}/sub/a.wav", 1, "anna"),
        ("q1", 1, f"{tmp_path}/cut.wav", 1, "zoe"),
        ("q2", 5, "/b.wav", 2, "eve"),
    ]
    assert (every[0]["doc_id"], every[0]["start"], every[0]["end"]) == ("a", 1.5, 2.0)
    assert read_queries(path, documents, "primary").to_pylist() == every[1:]
    # the first example alone is the documented default, whether the table numbers them or not
    path = table(tmp_path, "plain.csv", "query_id,doc_id,channel,start,end", "q1,a,,1.5,2.0", "q1,a,,3,4", "q2,b,2,0,1")
    assert read_queries(path, documents, "primary", notices=Notices(strict=True)).num_rows == 2
    with raises(families.EMPTY_INPUT, what="documents"):
        read_documents(table(tmp_path, "empty.csv", "doc_id,path"))
    with raises(families.EMPTY_INPUT, what="queries"):
        read_queries(table(tmp_path, "empty.csv", "query_id,path"), documents)
    path = table(tmp_path, "docs.csv", "doc_id,path", "a,a.wav", "b,b.wav", "a,c.wav")
    with raises(families.DUPLICATE_NAME, where=f"{path}, line 4", first="line 2"):
        read_documents(path)


def test_what_does_not_fit_is_refused(tmp_path, documents):
    """With an example column, or the second row of a query would be its second example."""
    for row in ("q,,c,", "q,,a,3", "q,,b,", "q,,,", "q,x.wav,a,", "p,x.wav,,"):
        path = table(tmp_path, "queries.csv", "query_id,path,doc_id,channel,example", "p,p.wav,,,1", row + ",1")
        with pytest.raises(TableError) as caught:
            read_queries(path, documents)
        assert caught.value.where == f"{path}, line 3"
    queries = read_queries(table(tmp_path, "queries.csv", "query_id,path", "q,q.wav"), documents)
    header = "query_id,doc_id,start,end,channel"
    found = read_references(table(tmp_path, "refs.csv", header, "q,a,0,1,", "q,b,0,1,2"), documents, queries)
    assert found.schema == REFERENCES
    assert found["channel"].to_pylist() == [1, 2]
    for row in ("x,a,0,1,", "q,x,0,1,", "q,a,0,1,2", "q,b,0,1,2"):
        path = table(tmp_path, "refs.csv", header, "q,b,0,1,2", row)
        with pytest.raises(TableError) as caught:
            read_references(path, documents, queries)
        assert caught.value.where == f"{path}, line 3"


def test_speakers_and_parts_come_from_tables_and_wrong_rows_are_told_together(tmp_path: Path) -> None:
    rows = ("a,1,a.wav,", "a,2,a.wav,", "b,1,b.wav,own", "c,1,c.wav,")
    docs = table(tmp_path, "docs.csv", "doc_id,channel,path,speaker", *rows)
    who = table(tmp_path, "who.csv", "doc_id,channel,speaker", "a,,anna", "a,2,ben", "b,1,other")
    found = read_documents(docs, None, who)
    assert found["speaker"].to_pylist() == ["anna", "ben", "own", None]
    assert found.schema.equals(CORPUS)
    who = table(tmp_path, "who.csv", "doc_id,speaker", "a,anna", "z,zoe")
    with raises(families.UNKNOWN_NAME, where=f"{who}, line 3", what="document", name="'z'"):
        read_documents(docs, None, who)
    lines = ("a,1,a.wav", "a,2,a.wav", "b,1,b.wav", "c,1,c.wav")
    documents = read_documents(table(tmp_path, "docs.csv", "doc_id,channel,path", *lines))
    assert part_of(documents, ["c"])["doc_id"].to_pylist() == ["c"]
    train = table(tmp_path, "train.csv", "doc_id", "c", "a")
    assert part_of(documents, train)["doc_id"].to_pylist() == ["a", "a", "c"]
    with raises(families.UNKNOWN_NAME, documents="'x'"):
        part_of(documents, ["a", "x"])
    with raises(families.UNKNOWN_NAME, where=f"{train}, line 3", what="document", name="'x'"):
        part_of(documents, table(tmp_path, "train.csv", "doc_id", "c", "x"))
    documents = pa.Table.from_pylist([{"doc_id": f"d{k}", "channel": 1, "path": "a.wav"} for k in range(5)], CORPUS)
    rows = ("q1,d1,0,1", "q2,x1,0,1", "q3,x2,0,1", "q4,x3,0,1", "q5,x4,0,1")
    queries, known = table(tmp_path, "queries.csv", "query_id,doc_id,start,end", *rows), pa.table({"query_id": ["q1"]})
    header = "query_id,doc_id,channel,start,end"

    def refused(read: Callable[[], object], line: int) -> str:
        with pytest.raises(TableError) as met:
            read()
        assert str(met.value.where).endswith(f", line {line}")
        return met.value.message

    def references(*rows: str) -> Callable[[], object]:
        return lambda: read_references(table(tmp_path, "refs.csv", header, *rows), documents, known)

    told = refused(lambda: read_queries(queries, documents), 3)
    assert "3 other rows name: 'x1' (line 3), 'x2' (line 4), 'x3' (line 5), ..." in told
    told = refused(references("q1,d1,1,0,1", "q7,d1,1,1,2", "q8,d1,1,1,2"), 3)
    assert "1 other rows name: 'q7' (line 3), 'q8' (line 4)" in told
    told = refused(references("q1,y,1,0,1", "q1,d1,2,1,2"), 2)
    assert "1 other rows name: 'y' with channel 1 (line 2), 'd1' with channel 2 (line 3)" in told
    assert "1 other rows (line 4)" in refused(references("q1,d1,0,0,1", "q1,d1,1,1,2", "q1,d1,0,1,2"), 2)


FILES = {
    "docs.csv": (b"doc_id,path\na,a.wav\n", "table"),
    "docs.parquet": (b"PAR1....", "table"),
    "ecf.xml": (b'<?xml version="1.0"?>\n<!-- none -->\n<ecf version="1">', "ECF"),
    "ecf.csv": (b"\xef\xbb\xbf<ecf>", "ECF"),
    "kw.xml": (b"<kwlist>", "term list"),
    "terms": (b"\n<termlist>", "term list"),
    "x.rttm": (b";; a comment\nSPEAKER a 1 0 1 <NA> <NA> s <NA>\n", "RTTM"),
    "words.ctm": (b"a 1 0 1 word\n", "CTM"),
    "wav.scp": (b"a a.wav\n", "wav.scp"),
    "a.FLAC": (b"fLaC", "recording"),
    "unnamed": (b"RIFF....WAVE", "recording"),
}


def test_kinds(tmp_path: Path) -> None:
    for name, (content, kind) in FILES.items():
        path = tmp_path / name
        path.write_bytes(content)
        for key, reads in READS.items():
            if kind in reads:
                assert kind_of(str(path), key, ENDINGS) == kind
            else:
                with raises(families.WRONG_KIND, key=key):
                    kind_of(str(path), key, ENDINGS)


def test_what_a_key_does_not_read_and_recordings_without_a_path(tmp_path: Path) -> None:
    for name, content in {"ecf.xml": b"<ecf/>", "stdlist.xml": b"<stdlist/>", "sheet.csv": b"PK\x03\x04"}.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "docs.csv").write_text("doc_id,path\nb,b.wav\na,touch me |\n")
    (tmp_path / "queries.csv").write_text("query_id,path\nq,touch me |\n")
    (tmp_path / "empty").mkdir()
    none, queries, docs = CORPUS.empty_table(), f"{tmp_path}/queries.csv", f"{tmp_path}/docs.csv"
    for code, values, call in (
        (families.WRONG_KIND, {"kind": "an ECF (<ecf>)"}, lambda: read_queries(f"{tmp_path}/ecf.xml", none)),
        (families.WRONG_KIND, {"key": "references"}, lambda: kind_of(f"{tmp_path}/stdlist.xml", "references", ENDINGS)),
        (families.WRONG_KIND, {}, lambda: read_documents(f"{tmp_path}/sheet.csv")),
        (families.INVALID_VALUE, {}, lambda: read_documents("s3:/bucket/docs.csv")),
        (families.EMPTY_INPUT, {}, lambda: read_documents(f"{tmp_path}/empty")),
        (families.UNUSED_OPTION, {}, lambda: read_documents(docs, audio_folder=str(tmp_path))),
        (families.UNUSED_OPTION, {}, lambda: read_queries(queries, none, spoken=queries)),
        (audio_codes.COMMAND_NOT_FILE, {"name": "touch me |", "source": "a table"}, lambda: read_documents(docs)),
        (audio_codes.COMMAND_NOT_FILE, {"name": "touch me |"}, lambda: read_queries(queries, none)),
    ):
        with raises(code, **values):
            call()
    for order, mark in (("utf-16", b""), ("utf-16-be", b"\xfe\xff"), ("utf-16-le", b"\xff\xfe")):
        (tmp_path / "docs.csv").write_bytes(mark + "doc_id,path\nä,b.wav\n".encode(order))
        with raises(io_codes.UTF16_TEXT):
            read_documents(docs)
    for header, row, columns in (
        ("query_id,term", "q{},word", None),
        ("query_id,text,speaker", "q{},word,anna", None),
        ("query_id,example,speaker,term", "q{},1,anna,word", "example, speaker"),
        ("query_id,example,term,path", "q{},1,word,one.flac", None),
    ):
        (tmp_path / "queries.csv").write_text("\n".join([header, *(row.format(k) for k in range(3)), ""]))
        notices = Notices()
        read_queries(str(tmp_path / "queries.csv"), CORPUS.empty_table(), notices=notices)
        found = [(item.code, item.count, item.values["columns"]) for item in notices.entries.values()]
        assert found == ([] if columns is None else [(corpora_codes.RECORDINGS_WITHOUT_PATH, 3, columns)])


def test_folders(tmp_path: Path, s3) -> None:
    assert kind_of(str(tmp_path), "documents", ENDINGS) == "folder"
    (tmp_path / "a.htk").touch()
    with raises(families.WRONG_KIND, key="queries", kind="a folder of files of frames"):
        kind_of(str(tmp_path), "queries", ENDINGS)
    (tmp_path / "a.wav").touch()
    assert kind_of(str(tmp_path), "queries", ENDINGS) == "folder"
    (tmp_path / "wav.scp").write_text("a a.wav\n")
    assert kind_of(str(tmp_path), "documents", ENDINGS) == "Kaldi data folder"
    with raises(families.WRONG_KIND, key="spoken"):
        kind_of(str(tmp_path), "spoken", ENDINGS)
    folder = Folder(f"s3://{s3.bucket}/data", s3.storage)
    folder.write_bytes("wav.scp", b"a a.wav\n")
    folder.write_bytes("lists/ecf.xml", b"<ecf>")
    kinds = {"": "Kaldi data folder", "lists": "folder", "lists/ecf.xml": "ECF", "no.csv": "table"}
    for name, kind in kinds.items():
        assert kind_of(folder.path(name), "documents", ENDINGS, s3.storage) == kind


def test_a_single_recording_is_a_corpus(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "one.flac", np.zeros((8000, 2)), 8000)
    found = read_documents(str(tmp_path / "one.flac"))
    rows = [(row["doc_id"], row["channel"], row["duration"], row["path"]) for row in found.to_pylist()]
    assert rows == [("one", channel, 1, f"{tmp_path}/one.flac") for channel in (1, 2)]
    assert read_queries(str(tmp_path / "one.flac"), found)["query_id"].to_pylist() == ["one"]


SOUND = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
RATE = 8000


def sound(seconds: float, form: str = "WAV", channels: int = 1) -> bytes:
    rng = np.random.default_rng(int(seconds * 100))
    file = io.BytesIO()
    soundfile.write(file, rng.uniform(-0.5, 0.5, (int(seconds * RATE), channels)), RATE, format=form, subtype="PCM_16")
    return file.getvalue()


def saved(folder: Path, rows: list[dict[str, Any]], files: int = 1, features: dict[str, Any] | None = None) -> str:
    """A data set on disk, its rows shared out over some files, in batches of two."""
    folder.mkdir(parents=True)
    names = list(rows[0]) if rows else ["audio"]
    names_of = [f"data-{k:05d}-of-{files:05d}.arrow" for k in range(files)]
    types = {name: SOUND if name == "audio" else pa.int64() if name == "speaker_id" else pa.string() for name in names}
    schema = pa.schema([(name, types[name]) for name in names])
    for k, name in enumerate(names_of):
        with pa.ipc.new_stream(str(folder / name), schema) as out:
            out.write_table(pa.Table.from_pylist(rows[k::files], schema), max_chunksize=2)
    told = {
        name: {"sampling_rate": RATE, "_type": "Audio"} if name == "audio" else {"dtype": "string", "_type": "Value"}
        for name in names
    }
    (folder / "dataset_info.json").write_text(json.dumps({"citation": "", "features": features or told}))
    state = {"_data_files": [{"filename": name} for name in names_of], "_fingerprint": "x", "_split": "train"}
    (folder / "state.json").write_text(json.dumps(state))
    return str(folder)


def test_sound_is_read_where_it_stands(tmp_path: Path) -> None:
    contents = [sound(0.5), sound(0.3, "FLAC"), sound(0.4, channels=2), sound(0.2)]
    rows = [
        {"id": f"u{k}", "audio": {"bytes": content, "path": f"{k}.wav"}, "speaker_id": k // 2, "text": f"word {k}"}
        for k, content in enumerate(contents)
    ]
    source = saved(tmp_path / "set", rows)
    assert kind_of(source, "documents", ENDINGS) == "data set"
    table = read_documents(source)
    assert table.schema == CORPUS
    listed = table.to_pylist()
    assert [(row["doc_id"], row["channel"], row["duration"], row["speaker"]) for row in listed] == [
        *(("u0", 1, 0.5, "0"), ("u1", 1, 0.3, "0"), ("u2", 1, 0.4, "1"), ("u2", 2, 0.4, "1"), ("u3", 1, 0.2, "1"))
    ]
    for row in listed:
        wanted, _ = soundfile.read(io.BytesIO(contents[int(row["doc_id"][1:])]), always_2d=True)
        found = np.concatenate([*read_blocks(row["path"], rate=RATE, channel=row["channel"])])
        assert np.allclose(found, wanted[:, row["channel"] - 1], atol=1e-4)
    query = read_queries(source, CORPUS.empty_table()).to_pylist()[1]
    expected = {"query_id": "u1", "example": 1, "path": listed[1]["path"], "channel": 1, "speaker": "0"}
    assert {key: value for key, value in query.items() if value is not None} == expected | {"term": "word 1"}


def test_paths_and_names(tmp_path: Path) -> None:
    rows = [
        {"audio": {"bytes": None, "path": "/far/away/a.wav"}},
        {"audio": {"bytes": sound(0.1), "path": None}},
        {"audio": {"bytes": sound(0.2), "path": "clips/c.wav"}},
        {"audio": {"bytes": None, "path": "clips/d.flac"}},
    ]
    source = saved(tmp_path / "set", rows, files=2)
    listed = read_queries(source, CORPUS.empty_table()).to_pylist()
    # The files come one after the other: rows 0 and 2, then 1 and 3; the third has no name.
    assert [row["query_id"] for row in listed] == ["a", "c", "2", "d"]
    assert [row["path"] for row in listed][::3] == ["/far/away/a.wav", f"{source}/clips/d.flac"]
    assert [".arrow:" in row["path"] for row in listed] == [False, True, True, False]


def test_what_is_refused(tmp_path: Path) -> None:
    def one(content: bytes | None, path: str | None, **more: str) -> dict[str, Any]:
        return {**more, "audio": {"bytes": content, "path": path}}

    no_sound = [{"text": "no sound"}]
    for k, (rows, features, code) in enumerate(
        [
            ([one(None, None)], None, families.BAD_CELL),
            ([one(b"x", "a/1.wav"), one(b"y", "b/1.wav")], None, families.DUPLICATE_NAME),
            (no_sound, None, families.AMBIGUOUS),
            ([], None, families.EMPTY_INPUT),
            (no_sound, {"text": {"_type": "Audio"}}, families.BAD_CELL),
            # A command is no file: it would be run where commands of a wav.scp may be.
            ([one(None, "touch x |", id="u")], None, audio_codes.COMMAND_NOT_FILE),
        ]
    ):
        with raises(code):
            read_documents(saved(tmp_path / str(k), rows, features=features))
    source = saved(tmp_path / "sets/train", [one(sound(0.1), "a.wav")])
    (tmp_path / "sets/dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with raises(families.WRONG_KIND):  # one of several is to be named
        read_documents(str(tmp_path / "sets"))
    assert read_documents(source)["doc_id"].to_pylist() == ["a"]
    file = Path(source) / "data-00000-of-00001.arrow"
    file.write_bytes(file.read_bytes()[:1000])
    for code, spoil in (
        (corpora_codes.UNREADABLE_DATASET, file.unlink),
        (corpora_codes.UNREADABLE_DATASET, lambda: (Path(source) / "state.json").write_text("[]")),
        (corpora_codes.NOT_A_JSON_OBJECT, lambda: None),
    ):
        with raises(code):
            read_documents(source)
        spoil()


def test_bytes_of_any_type_are_read_or_refused(tmp_path: Path) -> None:
    source, content = saved(tmp_path / "set", [{"audio": {"bytes": None, "path": None}}]), sound(0.5)[:1000]
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.list_(pa.uint8()), pa.binary(1000)):
        given = {"bytes": [*content] if pa.types.is_list(kind) else content, "path": "a.wav"}
        typed = pa.array([given], pa.struct([("bytes", kind), ("path", pa.string())]))
        with pa.ipc.new_stream(f"{source}/data-00000-of-00001.arrow", pa.schema([("audio", typed.type)])) as out:
            out.write_table(pa.table({"audio": typed}))
        if kind in (pa.binary(), pa.large_binary()):
            (row,) = read_queries(source, CORPUS.empty_table()).to_pylist()
            begin, length = map(int, row["path"].rpartition(":")[2].split("+"))
            assert Path(row["path"].partition(":")[0]).read_bytes()[begin:][:length] == content
        else:
            with raises(corpora_codes.BAD_AUDIO_COLUMN):
                read_queries(source, CORPUS.empty_table())


RATE = 8000


def noise(seed: int, seconds: float = 1.0) -> tuple[Any, int]:
    return np.random.default_rng(seed).normal(0, 0.1, round(seconds * RATE)), RATE


def references(*queries: str) -> pd.DataFrame:
    """One of each, in document d."""
    return pd.DataFrame({"query_id": queries, "doc_id": "d", "start": 0.1, "end": 0.4})


def test_a_corpus_of_arrays_is_that_of_the_files(tmp_path: Path) -> None:
    make_corpus(tmp_path / "files", documents=3, queries=2, voices=2)
    tables = {name: pd.read_csv(tmp_path / "files" / f"{name}.csv") for name in ("docs", "queries", "refs")}

    def sounds(table: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for _, row in tables[table].iterrows():
            found.setdefault(row.iloc[0], []).append(soundfile.read(tmp_path / "files" / row["path"]))
        return found

    queries, documents = sounds("queries"), {name: given for name, (given,) in sounds("docs").items()}
    assert max(map(len, queries.values())) > 1
    corpus = swsdist.save_corpus(tmp_path / "arrays", documents, queries, tables["refs"])
    known = read_documents(corpus["documents"])
    saved = read_queries(corpus["queries"], known, "all")
    for table, given in (
        (known, {(name, 1): one for name, one in documents.items()}),
        (saved, {(name, k): one for name, some in queries.items() for k, one in enumerate(some, 1)}),
    ):
        rows = table.to_pylist()
        names = [(row.get("query_id", row["doc_id"]), row.get("example", row["channel"])) for row in rows]
        assert sorted(names) == sorted(given)
        for name, row in zip(names, rows, strict=True):
            samples, rate = given[name]
            assert np.array_equal(np.concatenate([*read_blocks(row["path"], rate=rate)]), samples.astype(np.float32))
    true = read_references(corpus["references"], known, saved).to_pandas()
    assert true[["query_id", "doc_id", "start", "end"]].equals(tables["refs"][["query_id", "doc_id", "start", "end"]])
    one = tables["refs"].assign(query_id="one")
    before = {path.name: path.read_bytes() for path in (tmp_path / "arrays").rglob("*.*")}
    assert swsdist.save_corpus(tmp_path / "arrays", documents, {"one": documents["d001"]}, one) == corpus
    after = {path.name: path.read_bytes() for path in (tmp_path / "arrays").rglob("*.*")}
    assert {name for name in before if before[name] != after[name]} == {"queries.csv", "references.csv", "q000000.wav"}


def test_what_is_no_corpus_and_documents_alone_are_one(tmp_path: Path) -> None:
    d, q, invalid = {"d": noise(0)}, {"q": noise(1)}, families.INVALID_VALUE
    lacking = pd.DataFrame({"query_id": ["q"], "start": [0.0]})
    cases: list[tuple[tuple[Any, ...], str, Any]] = [
        (({},), "documents", families.EMPTY_INPUT),
        (({"d": noise(0)[0]},), "documents['d']", invalid),
        ((d, {"q": [noise(0), (np.zeros(5, int), RATE)]}), "queries['q'], example 2", invalid),
        ((d, {"q": []}), "queries['q']", invalid),
        ((d, {"q": 5}), "queries['q']", invalid),
        (({"d": ([0.0, [1.0, 2.0]], RATE)},), "documents['d']", invalid),
        ((d, {}, {"query_id": ["q"]}), "references", invalid),
        ((d, {}, lacking), "references", families.MISSING_COLUMN),
        ((d, {"q1": noise(1)}, references("q1", "q2", "q3")), "references", families.UNKNOWN_NAME),
        (({"d7": noise(0)}, q, references("q")), "references", families.UNKNOWN_NAME),
    ]
    for given, where, code in cases:
        with raises(code, where=where):
            swsdist.save_corpus(tmp_path / "new", *given)
    assert list(tmp_path.iterdir()) == []
    for name in ("plan.json", "manifest.json", None):  # a run, a store, a file
        place = tmp_path / f"{name}"
        if name is None:
            place.write_text("")
        else:
            place.mkdir()
            (place / name).write_text("{}")
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(UserError):
            swsdist.save_corpus(place, d, q, references("q"))
        assert sorted(tmp_path.rglob("*")) == before
    corpus = swsdist.save_corpus(tmp_path / "tuple", {"d": noise(0)}, {"q": (noise(1), noise(2))})
    assert pd.read_csv(corpus["queries"])["example"].tolist() == [1, 2]
    with raises(families.UNSUPPORTED):
        swsdist.save_corpus("s3://bucket/corpus", {"d": noise(0)})
    corpus = swsdist.save_corpus(tmp_path / "alone", {"d": noise(0)})
    assert list(corpus) == ["documents"]
    assert read_documents(corpus["documents"])["duration"].to_pylist() == [1.0]
    corpus = swsdist.save_corpus(tmp_path / "elsewhere", {"d": noise(0)}, references=references("q"))
    assert list(corpus) == ["documents", "references"]
