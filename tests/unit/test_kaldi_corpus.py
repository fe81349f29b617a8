"""Kaldi's data folders as documents: what a line says, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from swsdist.audio.streams import permitted
from swsdist.core.codes import audio as audio_codes
from swsdist.core.codes import families
from swsdist.core.types import CORPUS, PLACED
from swsdist.corpora.documents import read_documents
from swsdist.corpora.kaldi import demand_permission
from swsdist.corpora.places import Places, searched_stretches
from swsdist.corpora.queries import read_queries
from swsdist.corpora.references import read_references
from swsdist.io.filesystem import Folder
from swsdist.io.notices import Notices
from tests.support.coded import raises


def folder(path: Path, **files: str) -> str:
    path.mkdir(exist_ok=True)
    for name, text in files.items():
        (path / name.replace("_scp", ".scp")).write_text(text)
    return str(path)


@pytest.fixture
def placed(tmp_path: Path) -> str:
    return folder(
        tmp_path / "data",
        wav_scp="r1 audio/one.wav\nr2 /a/b c.flac\n",
        segments="r1-a r1 0.5 2.25\nr1-b r1 2 4\nr2-a r2 0 1\n",
        utt2spk="r1-a anna\nr1-b bert\n",
    )


def test_without_segments_recordings_are_documents(tmp_path: Path) -> None:
    given = folder(
        tmp_path / "d", wav_scp="r1\taudio/one.wav\nr2 ../x.ark:17\n", reco2dur="r1 2.5\n", utt2spk="r1 anna\n"
    )
    for source in (given, f"{given}/wav.scp"):
        table = read_documents(source)
        assert table.schema == CORPUS
        rows = table.to_pylist()
        assert [row["path"] for row in rows] == [f"{given}/audio/one.wav", f"{tmp_path}/x.ark:17"]
        assert [row["doc_id"] for row in rows] == ["r1", "r2"]
    # The list by itself is a list of recordings, and no folder.
    assert [row["duration"] for row in read_documents(given).to_pylist()] == [2.5, None]
    assert read_documents(f"{given}/wav.scp")["duration"].to_pylist() == [None, None]
    elsewhere = read_documents(given, audio_folder=str(tmp_path / "other"))
    assert elsewhere["path"].to_pylist() == [f"{tmp_path}/other/audio/one.wav", f"{tmp_path}/x.ark:17"]


def test_segments_are_places_in_recordings(placed: str) -> None:
    table = read_documents(placed)
    assert table.schema == PLACED
    first = table.to_pylist()[0]
    assert (first["doc_id"], first["recording"], first["start"], first["end"]) == ("r1-a", "r1", 0.5, 2.25)
    assert (first["speaker"], first["duration"], first["channel"]) == ("anna", 1.75, 1)
    assert first["listed"] == f"{placed}/segments, line 1"
    assert table["path"].to_pylist() == [f"{placed}/audio/one.wav"] * 2 + ["/a/b c.flac"]
    assert searched_stretches(table) == {("r1", 1): [(0.5, 4.0)], ("r2", 1): [(0.0, 1.0)]}
    held = Places(table).containing("r1", 1, 2.0, 2.2)
    assert [place.doc_id for place in held] == ["r1-a", "r1-b"]


def test_on_s3(s3) -> None:
    data = Folder(f"s3://{s3.bucket}/data", s3.storage)
    data.write_bytes("wav.scp", b"r1 ../audio/a.wav\nr2 s3://other/b.wav\nr3 /here/c.wav\n")
    data.write_bytes("segments", b"u r1 0 1\n")
    data.write_bytes("lists/wav.scp", b"r1 ../audio/a.wav\nr2 s3://other/b.wav\nr3 /here/c.wav\n")
    assert read_documents(data.path(), s3.storage)["path"].to_pylist() == [f"s3://{s3.bucket}/audio/a.wav"]
    assert read_documents(data.path("lists"), s3.storage)["path"].to_pylist() == [
        f"s3://{s3.bucket}/data/audio/a.wav",
        "s3://other/b.wav",
        "/here/c.wav",
    ]


def test_lines_that_are_wrong(tmp_path: Path) -> None:
    one = {"wav_scp": "r1 a.wav\n"}
    for k, (files, line, code) in enumerate(
        [
            (one | {"segments": "u1 r1 0 1\nu2 r9 0 1\n"}, 2, families.UNKNOWN_NAME),
            (one | {"segments": "u1 r1 1 1\n"}, 1, families.INVALID_TIMES),
            (one | {"segments": "u1 r1 0 -1\n"}, 1, families.MALFORMED_LINE),
            (one | {"segments": "u1 r1 0 1\nu1 r1 2 3\n"}, 2, families.DUPLICATE_NAME),
            ({"wav_scp": "r1 a.wav\nr1 b.wav\n"}, 2, families.DUPLICATE_NAME),
            ({"wav_scp": "r1\n"}, 1, families.MALFORMED_LINE),
            ({"wav_scp": "r1 -\n"}, 1, families.UNSUPPORTED),
            ({"wav_scp": "r1 a.ark:12[0:3]\n"}, 1, families.UNSUPPORTED),
            ({"wav_scp": "r1 a.bin:12\n"}, 1, families.UNSUPPORTED),
            (one | {"reco2dur": "r1 long\n"}, 1, families.MALFORMED_LINE),
            ({"wav_scp": "\n"}, None, families.EMPTY_INPUT),
            (one | {"segments": ""}, None, families.EMPTY_INPUT),
        ]
    ):
        with raises(code, where=f"line {line}" if line else None):
            read_documents(folder(tmp_path / str(k), **files))
    notices = Notices()
    data = folder(tmp_path / "d", **one, utt2spk="r1 a\nr2 b\nr3 b\n", reco2dur="r1 1\nr7 1\n")
    read_documents(data, notices=notices)  # lines about others are told
    assert sorted(notice.count for notice in notices.entries.values()) == [1, 2]


def test_a_command_is_refused_with_its_line(tmp_path: Path) -> None:
    data = folder(tmp_path / "d", wav_scp="r1 a.wav\nr2 sox b.mp3 -t wav - |\n")
    table = read_documents(data)
    command = table["path"][1].as_py()
    assert command == f"cd {data} && sox b.mp3 -t wav - |"
    with raises(audio_codes.COMMAND_NOT_ALLOWED, where=f"{data}/wav.scp, line 2") as caught:
        demand_permission(table["path"].to_pylist(), data)
    assert "--allow-commands" in str(caught.value)
    demand_permission(["/a.wav"], data)
    with permitted(True):
        demand_permission(table["path"].to_pylist(), data)


def test_references_and_queries_are_in_the_recordings_time(tmp_path: Path, placed: str) -> None:
    documents, queries, refs = read_documents(placed), tmp_path / "queries.csv", tmp_path / "refs.csv"
    queries.write_text("query_id,doc_id,start,end\nq1,r1,2.5,3\nq2,r1-a,1,2\nq3,r1-b,,\n")
    table = read_queries(str(queries), documents)
    assert [(row["path"], row["start"], row["end"], row["speaker"]) for row in table.to_pylist()] == [
        (f"{placed}/audio/one.wav", 2.5, 3.0, None),
        (f"{placed}/audio/one.wav", 1.0, 2.0, "anna"),
        (f"{placed}/audio/one.wav", 2.0, 4.0, "bert"),
    ]

    def read(row: str) -> list[str]:
        refs.write_text(f"query_id,doc_id,start,end\nq1,r1,2.5,3\n{row}\n")
        return read_references(str(refs), documents, table)["doc_id"].to_pylist()

    assert read("q1,r1-b,3,3.5") == ["r1", "r1"]
    with raises(families.INVALID_TIMES, where="line 3", span="0.5 to 1", document="r1-b", place="2 to 4 s of 'r1'"):
        read("q1,r1-b,0.5,1")
    with raises(families.UNKNOWN_NAME, where="line 3", what="document"):
        read("q1,r8,3,3.5")
