"""What a key of the corpus names is told by its content; what a key does not read is refused with what was found."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import soundfile

from swsdist.core.codes import audio as audio_codes
from swsdist.core.codes import corpora as corpora_codes
from swsdist.core.codes import families
from swsdist.core.codes import io as io_codes
from swsdist.core.errors import UserError
from swsdist.core.types import CORPUS
from swsdist.corpora.documents import ENDINGS, READS, kind_of, read_documents
from swsdist.corpora.queries import read_queries
from swsdist.evaluation.scoring_task import read_system
from swsdist.io.filesystem import Folder
from swsdist.io.notices import Notices
from tests.support.coded import raises

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


@pytest.mark.parametrize("name", sorted(FILES))
def test_kinds(tmp_path: Path, name: str) -> None:
    content, kind = FILES[name]
    path = tmp_path / name
    path.write_bytes(content)
    for key, reads in READS.items():
        if kind in reads:
            assert kind_of(str(path), key, ENDINGS) == kind
        else:
            with pytest.raises(UserError, match=f"corpus.{key} names ") as caught:
                kind_of(str(path), key, ENDINGS)
            assert f"corpus.{key} reads: " in (caught.value.remedy or "")


def test_what_belongs_to_another_key_is_told_which(tmp_path: Path) -> None:
    (tmp_path / "ecf.xml").write_text("<ecf/>")
    (tmp_path / "stdlist.xml").write_text("<stdlist/>")
    (tmp_path / "sheet.csv").write_bytes(b"PK\x03\x04")
    with raises(families.WRONG_KIND, key="queries", kind="an ECF (<ecf>)") as caught:
        read_queries(str(tmp_path / "ecf.xml"), CORPUS.empty_table())
    assert "An ECF (<ecf>) belongs to corpus.documents" in str(caught.value)
    with raises(families.WRONG_KIND, key="references", kind="XML (<stdlist>)"):
        kind_of(str(tmp_path / "stdlist.xml"), "references", ENDINGS)
    with raises(families.WRONG_KIND, kind="a spreadsheet or a zip archive"):
        read_documents(str(tmp_path / "sheet.csv"))


def test_folders(tmp_path: Path) -> None:
    assert kind_of(str(tmp_path), "documents", ENDINGS) == "folder"
    (tmp_path / "wav.scp").write_text("a a.wav\n")
    assert kind_of(str(tmp_path), "documents", ENDINGS) == "Kaldi data folder"
    with raises(families.WRONG_KIND, key="spoken"):
        kind_of(str(tmp_path), "spoken", ENDINGS)


def test_on_s3(s3) -> None:
    folder = Folder(f"s3://{s3.bucket}/data", s3.storage)
    folder.write_bytes("wav.scp", b"a a.wav\n")
    folder.write_bytes("lists/ecf.xml", b"<ecf>")
    kinds = {
        "": "Kaldi data folder",
        "wav.scp": "wav.scp",
        "lists": "folder",
        "lists/ecf.xml": "ECF",
        "no.csv": "table",
    }
    for name, kind in kinds.items():
        assert kind_of(folder.path(name), "documents", ENDINGS, s3.storage) == kind


def test_a_single_recording_is_a_corpus(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "one.flac", np.zeros((8000, 2)), 8000)
    found = read_documents(str(tmp_path / "one.flac"))
    assert [(row["doc_id"], row["channel"], row["duration"]) for row in found.to_pylist()] == [
        ("one", 1, 1),
        ("one", 2, 1),
    ]
    assert found["path"][0].as_py() == f"{tmp_path}/one.flac"
    assert read_queries(str(tmp_path / "one.flac"), found)["query_id"].to_pylist() == ["one"]


def test_utf_16(tmp_path: Path) -> None:
    for order in ("utf-16", "utf-16-be", "utf-16-le"):
        mark = b"\xfe\xff" if order == "utf-16-be" else b"\xff\xfe" if order == "utf-16-le" else b""
        (tmp_path / "docs.csv").write_bytes(mark + "doc_id,path\nä,b.wav\n".encode(order))
        with raises(io_codes.UTF16_TEXT) as caught:
            read_documents(str(tmp_path / "docs.csv"))
        assert "iconv -f UTF-16" in str(caught.value)


def test_hints(tmp_path: Path) -> None:
    with raises(families.INVALID_VALUE) as caught:
        read_documents("s3:/bucket/docs.csv")
    assert "s3://bucket/docs.csv" in str(caught.value)
    (tmp_path / "empty").mkdir()
    with raises(families.EMPTY_INPUT) as caught:
        read_documents(str(tmp_path / "empty"))
    assert "wma" in str(caught.value)
    assert "flac" in str(caught.value)


def test_keys_that_do_not_fit(tmp_path: Path) -> None:
    (tmp_path / "docs.csv").write_text("doc_id,path\na,a.wav\n")
    (tmp_path / "queries.csv").write_text("query_id,path\nq,q.wav\n")
    with raises(families.UNUSED_OPTION):
        read_documents(str(tmp_path / "docs.csv"), audio_folder=str(tmp_path))
    with raises(families.UNUSED_OPTION):
        read_queries(str(tmp_path / "queries.csv"), CORPUS.empty_table(), spoken=str(tmp_path / "queries.csv"))


def test_a_table_names_no_commands(tmp_path: Path) -> None:
    (tmp_path / "docs.csv").write_text("doc_id,path\nb,b.wav\na,touch me |\n")
    with raises(audio_codes.COMMAND_NOT_FILE, where="line 3", name="touch me |", source="a table"):
        read_documents(str(tmp_path / "docs.csv"))
    (tmp_path / "queries.csv").write_text("query_id,path\nq,touch me |\n")
    with raises(audio_codes.COMMAND_NOT_FILE, where="line 2", name="touch me |"):
        read_queries(str(tmp_path / "queries.csv"), CORPUS.empty_table())


@pytest.mark.parametrize(
    ("name", "line"),
    [("segments", "a-1 a 0.5 2.25"), ("utt2spk", "a-1 ann"), ("spk2utt", "ann a-1 a-2"), ("text.gz", "a-1 and so on")],
)
def test_files_of_a_kaldi_data_folder(tmp_path: Path, name: str, line: str) -> None:
    path, plain = tmp_path / name, name.removesuffix(".gz")
    path.write_bytes(gzip.compress(line.encode()) if name.endswith(".gz") else f"{line}\n".encode())
    for key in READS:
        with pytest.raises(UserError, match=f"corpus.{key} names the {plain} of a Kaldi data folder") as caught:
            kind_of(str(path), key, ENDINGS)
        assert f"Name the folder, {tmp_path}, in corpus.documents" in str(caught.value)
    path.write_text("doc_id,path\na,a.wav\n")  # a table may be called so
    assert kind_of(str(path), "documents", ENDINGS) == "table"


def test_a_folder_of_frames(tmp_path: Path) -> None:
    (tmp_path / "a.htk").touch()
    with raises(families.WRONG_KIND, key="queries", kind="a folder of files of frames") as caught:
        kind_of(str(tmp_path), "queries", ENDINGS)
    assert "Frames belong to features (name: external" in str(caught.value)
    (tmp_path / "a.wav").touch()
    assert kind_of(str(tmp_path), "queries", ENDINGS) == "folder"


def test_an_rttm_is_no_systems_list(tmp_path: Path) -> None:
    (tmp_path / "words.rttm").write_bytes(FILES["x.rttm"][0])
    with pytest.raises(UserError, match=r"\[wrong-kind\]") as caught:
        read_system(str(tmp_path / "words.rttm"))
    assert "--rttm" in str(caught.value)


@pytest.mark.parametrize(
    ("header", "row", "columns"),
    [
        ("query_id,term", "q{},word", None),
        ("query_id,text,speaker", "q{},word,anna", None),
        ("query_id,example,speaker,term", "q{},1,anna,word", "example, speaker"),
        ("query_id,example,term,path", "q{},1,word,one.flac", None),
    ],
)
def test_recordings_without_a_path(tmp_path: Path, header: str, row: str, columns: str | None) -> None:
    """That queries are searched as text is told where their table is of recordings."""
    (tmp_path / "queries.csv").write_text("\n".join([header, *(row.format(k) for k in range(3)), ""]))
    notices = Notices()
    read_queries(str(tmp_path / "queries.csv"), CORPUS.empty_table(), notices=notices)
    found = [(item.code, item.count, item.values["columns"]) for item in notices.entries.values()]
    assert found == ([] if columns is None else [(corpora_codes.RECORDINGS_WITHOUT_PATH, 3, columns)])
