"""What a key of the corpus names is told by its content; what a key does not read is refused with what was found."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import soundfile

from swsdist.core.codes import audio as audio_codes
from swsdist.core.codes import corpora as corpora_codes
from swsdist.core.codes import families
from swsdist.core.codes import io as io_codes
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


def test_what_a_key_does_not_read(tmp_path: Path) -> None:
    for name, content in {"ecf.xml": b"<ecf/>", "stdlist.xml": b"<stdlist/>", "sheet.csv": b"PK\x03\x04"}.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "docs.csv").write_text("doc_id,path\nb,b.wav\na,touch me |\n")
    (tmp_path / "queries.csv").write_text("query_id,path\nq,touch me |\n")
    (tmp_path / "empty").mkdir()
    none, queries, docs = CORPUS.empty_table(), f"{tmp_path}/queries.csv", f"{tmp_path}/docs.csv"
    for code, values, call in (
        (families.WRONG_KIND, {"kind": "an ECF (<ecf>)"}, lambda: read_queries(f"{tmp_path}/ecf.xml", none)),
        (families.WRONG_KIND, {"key": "references"}, lambda: kind_of(f"{tmp_path}/stdlist.xml", "references", ENDINGS)),
        (
            families.WRONG_KIND,
            {"kind": "a spreadsheet or a zip archive"},
            lambda: read_documents(f"{tmp_path}/sheet.csv"),
        ),
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
    rows = [(row["doc_id"], row["channel"], row["duration"], row["path"]) for row in found.to_pylist()]
    assert rows == [("one", channel, 1, f"{tmp_path}/one.flac") for channel in (1, 2)]
    assert read_queries(str(tmp_path / "one.flac"), found)["query_id"].to_pylist() == ["one"]


def test_files_of_a_kaldi_data_folder(tmp_path: Path) -> None:
    for name, line in {
        "segments": "a-1 a 0.5 2.25",
        "utt2spk": "a-1 ann",
        "spk2utt": "ann a-1 a-2",
        "text.gz": "a-1 and so on",
    }.items():
        path = tmp_path / name
        path.write_bytes(gzip.compress(line.encode()) if name.endswith(".gz") else f"{line}\n".encode())
        for key in READS:
            with raises(families.WRONG_KIND, key=key) as caught:
                kind_of(str(path), key, ENDINGS)
            assert f"Name the folder, {tmp_path}, in corpus.documents" in str(caught.value)
        path.write_text("doc_id,path\na,a.wav\n")  # a table may be called so
        assert kind_of(str(path), "documents", ENDINGS) == "table"
    (tmp_path / "words.rttm").write_bytes(FILES["x.rttm"][0])
    with raises(families.WRONG_KIND):
        read_system(str(tmp_path / "words.rttm"))


def test_recordings_without_a_path(tmp_path: Path) -> None:
    """That queries are searched as text is told where their table is of recordings."""
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
