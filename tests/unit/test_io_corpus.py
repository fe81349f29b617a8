"""Documents, queries and references from tables and folders, and how they must fit each other."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import soundfile

from swsdist.audio.reader import MARKER
from swsdist.core.codes import corpora as corpora_codes
from swsdist.core.codes import families
from swsdist.core.errors import AudioError, TableError
from swsdist.core.types import CORPUS, QUERIES, REFERENCES
from swsdist.corpora.documents import part_of, read_documents
from swsdist.corpora.queries import read_queries
from swsdist.corpora.references import read_references
from swsdist.io.filesystem import Folder
from swsdist.io.notices import Notices
from tests.support.coded import raises

MBOSHI = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "mboshi"


def table(tmp_path: Path, name: str, *lines: str) -> str:
    (tmp_path / name).write_text("\n".join(lines) + "\n")
    return str(tmp_path / name)


@pytest.fixture
def documents(tmp_path):
    return read_documents(
        table(tmp_path, "docs.csv", "doc_id,path,channel,speaker", "a,sub/a.wav,1,anna", "b,../b.wav,1,", "b,/b.wav,2,")
    )


def test_paths_are_relative_to_the_table(tmp_path, documents):
    assert documents.schema == CORPUS
    assert documents["path"].to_pylist() == [f"{tmp_path}/sub/a.wav", f"{tmp_path.parent}/b.wav", "/b.wav"]


def test_table_on_s3(s3):
    folder = Folder(f"s3://{s3.bucket}/corpus", s3.storage)
    folder.write_bytes("lists/docs.csv", b"doc_id,path\na,../audio/a.wav\nb,s3://other/b.wav\nc,./c.wav\n")
    assert read_documents(folder.path("lists/docs.csv"), s3.storage)["path"].to_pylist() == [
        f"s3://{s3.bucket}/corpus/audio/a.wav",
        "s3://other/b.wav",
        f"s3://{s3.bucket}/corpus/lists/c.wav",
    ]


def audio(folder: Path) -> None:
    (folder / "talks").mkdir(parents=True)
    soundfile.write(str(folder / "talks" / "monday.flac"), np.zeros((8000, 2)), 8000)
    soundfile.write(str(folder / "b.2.WAV"), np.zeros(16000), 16000)
    (folder / "bad.mp3").write_text("not a sound")
    (folder / "films.wma").write_bytes(bytes.fromhex("3026b2758e66cf11"))
    (folder / "notes.txt").write_text("not a recording")
    (folder / "._b.2.WAV").write_text("left by a Mac")


EXPECTED = [("b.2", 1, 1.0), ("bad", 1, None), ("films", 1, None), ("talks/monday", 1, 1.0), ("talks/monday", 2, 1.0)]


def test_folder(tmp_path):
    audio(tmp_path / "audio")
    found = read_documents(str(tmp_path / "audio"))
    assert found.schema == CORPUS
    assert [(row["doc_id"], row["channel"], row["duration"]) for row in found.to_pylist()] == EXPECTED
    assert found["path"][3].as_py() == str(tmp_path / "audio" / "talks" / "monday.flac")
    queries = read_queries(str(tmp_path / "audio"), found)
    assert queries.schema == QUERIES
    assert queries["query_id"].to_pylist() == ["b.2", "bad", "films", "talks/monday"]
    assert set(queries["example"].to_pylist()) == set(queries["channel"].to_pylist()) == {1}


def test_folder_on_s3(tmp_path, s3):
    audio(tmp_path / "audio")
    folder = Folder(f"s3://{s3.bucket}/recordings", s3.storage)
    for name in Folder(str(tmp_path / "audio")).listing():
        folder.write_bytes(name, (tmp_path / "audio" / name).read_bytes())
    found = read_documents(folder.root, s3.storage)
    assert [(row["doc_id"], row["channel"], row["duration"]) for row in found.to_pylist()] == EXPECTED
    assert found["path"][0].as_py() == folder.path("b.2.WAV")


def test_bad_folders(tmp_path):
    with raises(families.MISSING_FILE):
        read_documents(str(tmp_path / "nothing"))
    with raises(families.EMPTY_INPUT):
        read_documents(str(tmp_path))


def sounds(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        ending = name.rpartition(".")[2].upper()
        soundfile.write(folder / name, np.zeros(1600), 16000, format={"MP3": "MP3", "FLAC": "FLAC"}.get(ending, "WAV"))


def test_masters_and_access_copies(tmp_path: Path) -> None:
    """Two files of one stem are two documents, and the master's name stays when a copy is added; or one, by a rule."""
    sounds(tmp_path, "a.flac", "b/c.wav")
    assert read_documents(str(tmp_path))["doc_id"].to_pylist() == ["a", "b/c"]
    sounds(tmp_path, "a.mp3", "b/c.mp3", "b/c.flac")
    found = read_documents(str(tmp_path))
    ids = ["a", "a.mp3", "b/c", "b/c.flac", "b/c.mp3"]
    assert found["doc_id"].to_pylist() == ids
    assert [Path(path).name for path in found["path"].to_pylist()] == ["a.flac", "a.mp3", "c.wav", "c.flac", "c.mp3"]
    notices = Notices()
    best = read_documents(str(tmp_path), notices=notices, prefer=["mp3", ".FLAC"])
    assert [Path(path).name for path in best["path"].to_pylist()] == ["a.mp3", "c.mp3"]
    assert best["doc_id"].to_pylist() == ["a", "b/c"]
    assert not notices.entries
    (notice,) = notices.requested.values()
    assert notice.count == 3
    assert "a.flac beside a.mp3" in notice.first
    assert read_documents(str(tmp_path), notices=Notices(strict=True), prefer=["mp3"]).num_rows == 2


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
    told = {notice.code: notice.first for notice in notices.entries.values()}
    assert "secret (Permission denied)" in told[corpora_codes.UNREADABLE_FOLDER]
    assert "caf\\udce9.wav" in told[corpora_codes.FILE_NAME_NOT_UTF8]


def test_what_swsdist_wrote_is_no_recording(tmp_path: Path) -> None:
    sounds(tmp_path, "talk.wav", "runs/one/exports/clips/q001_1.wav", "runs/two/x.wav")
    for name in ("plan.json", "config.yaml"):
        (tmp_path / "runs" / "one" / name).write_text("")
    assert read_documents(str(tmp_path))["doc_id"].to_pylist() == ["runs/two/x", "talk"]


def test_a_run_in_the_archive_itself(tmp_path: Path) -> None:
    """Its clips are left out; what else is there is the archive's, whatever it is called."""
    sounds(tmp_path, "talk.wav", "queries/talk.wav", "exports/clips/q001_1.wav")
    assert read_documents(str(tmp_path)).num_rows == 3
    for name in ("plan.json", "config.yaml"):
        (tmp_path / name).write_text("")
    assert read_documents(str(tmp_path))["doc_id"].to_pylist() == ["queries/talk", "talk"]


def test_clips_of_a_search_are_no_recordings(tmp_path: Path) -> None:
    sounds(tmp_path, "talk.wav", "hits/001-q.wav", "hits of mine/x.wav")
    (tmp_path / "hits" / MARKER).touch()
    assert read_documents(str(tmp_path))["doc_id"].to_pylist() == ["hits of mine/x", "talk"]
    assert read_documents(str(tmp_path / "hits"))["doc_id"].to_pylist() == ["001-q"]  # named itself


def test_empty_tables(tmp_path, documents):
    with raises(families.EMPTY_INPUT, what="documents"):
        read_documents(table(tmp_path, "empty.csv", "doc_id,path"))
    with raises(families.EMPTY_INPUT, what="queries"):
        read_queries(table(tmp_path, "empty.csv", "query_id,path"), documents)


def test_same_document_twice(tmp_path):
    path = table(tmp_path, "docs.csv", "doc_id,path", "a,a.wav", "b,b.wav", "a,c.wav")
    with pytest.raises(TableError) as caught:
        read_documents(path)
    assert caught.value.where == f"{path}, line 4"
    assert "first in line 2" in caught.value.message


def test_queries_from_files_and_from_documents(tmp_path, documents):
    path = table(
        tmp_path,
        "queries.csv",
        "query_id,example,path,doc_id,channel,start,end,speaker",
        "q1,2,,a,,1.5,2.0,",
        "q1,1,cut.wav,,,,,zoe",
        "q2,5,,b,2,0,1,eve",
    )
    every = read_queries(path, documents, "all").to_pylist()
    assert [(row["query_id"], row["example"], row["path"], row["channel"], row["speaker"]) for row in every] == [
        ("q1", 2, f"{tmp_path}/sub/a.wav", 1, "anna"),
        ("q1", 1, f"{tmp_path}/cut.wav", 1, "zoe"),
        ("q2", 5, "/b.wav", 2, "eve"),
    ]
    assert every[0]["doc_id"] == "a"
    assert (every[0]["start"], every[0]["end"]) == (1.5, 2.0)
    assert read_queries(path, documents, "primary").to_pylist() == every[1:]
    # the first example alone is the documented default, whether the table numbers them or not
    path = table(tmp_path, "plain.csv", "query_id,doc_id,channel,start,end", "q1,a,,1.5,2.0", "q1,a,,3,4", "q2,b,2,0,1")
    assert read_queries(path, documents, "primary", notices=Notices(strict=True)).num_rows == 2


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("q,,c,", "no document 'c'"),
        ("q,,a,3", "document 'a' has no channel 3"),
        ("q,,b,", "document 'b' has channels 1, 2"),
        ("q,,,", "neither path nor doc_id"),
        ("q,x.wav,a,", "both path and doc_id"),
        ("p,x.wav,,", "query_id 'p', example 1"),
    ],
)
def test_refused_queries(tmp_path, documents, row, message):
    # With an example column, or the second row of a query would be its second example.
    path = table(tmp_path, "queries.csv", "query_id,path,doc_id,channel,example", "p,p.wav,,,1", row + ",1")
    with pytest.raises(TableError) as caught:
        read_queries(path, documents)
    assert caught.value.where == f"{path}, line 3"
    assert message in caught.value.message


def test_references_must_fit(tmp_path, documents):
    queries = read_queries(table(tmp_path, "queries.csv", "query_id,path", "q,q.wav"), documents)
    good = table(tmp_path, "refs.csv", "query_id,doc_id,start,end,channel", "q,a,0,1,", "q,b,0,1,2")
    found = read_references(good, documents, queries)
    assert found.schema == REFERENCES
    assert found["channel"].to_pylist() == [1, 2]
    for row, message in {
        "x,a,0,1,": "no query 'x'",
        "q,x,0,1,": "no document 'x' with channel 1",
        "q,a,0,1,2": "no document 'a' with channel 2",
        "q,b,0,1,2": "first in line 2",
    }.items():
        path = table(tmp_path, "refs.csv", "query_id,doc_id,start,end,channel", "q,b,0,1,2", row)
        with pytest.raises(TableError) as caught:
            read_references(path, documents, queries)
        assert caught.value.where == f"{path}, line 3"
        assert message in caught.value.message


@pytest.mark.skipif(not MBOSHI.is_dir(), reason="needs the shared folder with the Mboshi corpus")
def test_mboshi():
    documents = read_documents(str(MBOSHI / "dev" / "docs.csv"))
    assert documents.num_rows == 1203
    assert all(Path(path).is_file() for path in documents["path"].to_pylist())
    queries = read_queries(str(MBOSHI / "dev" / "queries.csv"), documents)
    assert queries.num_rows == 120
    assert set(queries["example"].to_pylist()) == {1}
    assert read_queries(str(MBOSHI / "dev" / "queries.csv"), documents, "all").num_rows == 226
    assert all(Path(path).is_file() for path in queries["path"].to_pylist())
    assert read_references(str(MBOSHI / "dev" / "refs.csv"), documents, queries).num_rows == 562
    folder = read_documents(str(MBOSHI / "dev" / "audio"))
    assert folder["doc_id"].to_pylist() == sorted(documents["doc_id"].to_pylist())


# -- speakers and parts ------------------------------------------------------------------------------------------------


def test_speakers_fill_what_documents_do_not_tell(tmp_path: Path) -> None:
    (tmp_path / "docs.csv").write_text(
        "doc_id,channel,path,speaker\na,1,a.wav,\na,2,a.wav,\nb,1,b.wav,own\nc,1,c.wav,\n"
    )
    (tmp_path / "who.csv").write_text("doc_id,channel,speaker\na,,anna\na,2,ben\nb,1,other\n")
    found = read_documents(str(tmp_path / "docs.csv"), None, str(tmp_path / "who.csv"))
    assert found["speaker"].to_pylist() == ["anna", "ben", "own", None]
    assert found.schema.equals(CORPUS)
    (tmp_path / "who.csv").write_text("doc_id,speaker\na,anna\nz,zoe\n")
    with raises(families.UNKNOWN_NAME, what="document", name="'z'") as caught:
        read_documents(str(tmp_path / "docs.csv"), None, str(tmp_path / "who.csv"))
    assert caught.value.where == f"{tmp_path}/who.csv, line 3"


def test_a_part_is_a_list_or_a_table(tmp_path: Path) -> None:
    (tmp_path / "docs.csv").write_text("doc_id,channel,path\na,1,a.wav\na,2,a.wav\nb,1,b.wav\nc,1,c.wav\n")
    (tmp_path / "train.csv").write_text("doc_id\nc\na\n")
    documents = read_documents(str(tmp_path / "docs.csv"))
    assert part_of(documents, ["c"])["doc_id"].to_pylist() == ["c"]
    assert part_of(documents, str(tmp_path / "train.csv"))["doc_id"].to_pylist() == ["a", "a", "c"]
    with raises(families.UNKNOWN_NAME, documents="'x'"):
        part_of(documents, ["a", "x"])
    (tmp_path / "train.csv").write_text("doc_id\nc\nx\n")
    with raises(families.UNKNOWN_NAME, what="document", name="'x'") as caught:
        part_of(documents, str(tmp_path / "train.csv"))
    assert caught.value.where == f"{tmp_path}/train.csv, line 3"


def test_wrong_rows_are_told_together(tmp_path: Path) -> None:
    """With their number, the first three and their lines, and what there is."""
    documents = pa.Table.from_pylist([{"doc_id": f"d{k}", "channel": 1, "path": "a.wav"} for k in range(5)], CORPUS)
    queries = tmp_path / "queries.csv"
    queries.write_text("query_id,doc_id,start,end\nq1,d1,0,1\nq2,x1,0,1\nq3,x2,0,1\nq4,x3,0,1\nq5,x4,0,1\n")
    with pytest.raises(TableError) as met:
        read_queries(str(queries), documents)
    assert met.value.where == f"{queries}, line 3"
    shown = "'x1' (line 3), 'x2' (line 4), 'x3' (line 5), ..."
    assert met.value.message == f"there is no document 'x1', nor what 3 other rows name: {shown}"
    assert met.value.remedy == "look at the spelling; there are 'd0', 'd1', 'd2', ... (5 in all)"

    known = pa.table({"query_id": ["q1", "q2"]})
    table = tmp_path / "refs.csv"
    table.write_text("query_id,doc_id,channel,start,end\nq1,d1,1,0,1\nq7,d1,1,1,2\nq8,d1,1,1,2\n")
    with pytest.raises(TableError) as met:
        read_references(str(table), documents, known)
    assert met.value.message == "there is no query 'q7', nor what 1 other rows name: 'q7' (line 3), 'q8' (line 4)"
    assert "there are 'q1', 'q2'" in (met.value.remedy or "")
    table.write_text("query_id,doc_id,channel,start,end\nq1,y,1,0,1\nq1,d1,2,1,2\n")
    with pytest.raises(TableError) as met:
        read_references(str(table), documents, known)
    shown = "'y' with channel 1 (line 2), 'd1' with channel 2 (line 3)"
    assert met.value.message == f"there is no document 'y' with channel 1, nor what 1 other rows name: {shown}"

    table.write_text("query_id,doc_id,channel,start,end\nq1,d1,0,0,1\nq1,d1,1,1,2\nq1,d1,0,1,2\n")
    with pytest.raises(TableError) as met:
        read_references(str(table), documents, known)
    assert met.value.where == f"{table}, line 2"
    assert met.value.message == "channel 0 is less than 1; so in 1 other rows (line 4)"


def test_a_line_break_in_a_name_is_escaped(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "one\ntwo.wav", np.zeros(1600), 16000)
    soundfile.write(tmp_path / "three.wav", np.zeros(1600), 16000)
    found = read_documents(str(tmp_path))
    assert found["doc_id"].to_pylist() == ["one\\ntwo", "three"]
    assert found["path"].to_pylist()[0] == f"{tmp_path}/one\ntwo.wav"
    assert str(AudioError("it is bad", where=f"{tmp_path}/one\ntwo.wav")).count("\n") == 0
