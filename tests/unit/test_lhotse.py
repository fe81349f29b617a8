"""Manifests of lhotse as corpora; lines as its documentation (docs/corpus.rst, docs/cuts.rst) and its fixtures have them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from swsdist.core.codes import corpora as corpora_codes
from swsdist.core.codes import families
from swsdist.core.errors import DataError, SwsdistError, UserError
from swsdist.core.types import CORPUS, PLACED
from swsdist.corpora.documents import ENDINGS, kind_of, read_documents
from swsdist.corpora.lhotse import aligned_words
from swsdist.corpora.queries import read_queries
from tests.support.coded import raises

MONO = {
    "id": "recording-1",
    "sources": [{"type": "file", "channels": [0], "source": "audio/mono.wav"}],
    "sampling_rate": 8000,
    "num_samples": 32000,
    "duration": 4.0,
    "channel_ids": [0],
}
STEREO = {
    "id": "recording-2",
    "sources": [{"type": "file", "channels": [0, 1], "source": "/elsewhere/stereo.flac"}],
    "sampling_rate": 8000,
    "num_samples": 8000,
    "duration": 1.0,
    "channel_ids": [0, 1],
}
SUPERVISION = {
    "id": "segment-1",
    "recording_id": "recording-1",
    "start": 0.5,
    "duration": 1.25,
    "channel": 0,
    "text": "transcript of the first segment",
    "language": "english",
    "speaker": "Norman Dyhrentfurth",
    "alignment": {"word": [["first", 1.0, 0.3, 0.9], ["transcript", 0.5, 0.5, 1.0]]},
}
OTHER = {"id": "segment-2", "recording_id": "recording-2", "start": 0.1, "duration": 0.5, "channel": [0, 1]}
CUT = {
    "id": "cut-1",
    "start": 0.5,
    "duration": 1.25,
    "channel": 0,
    "supervisions": [{**SUPERVISION, "start": 0.0}],
    "recording": MONO,
    "type": "MonoCut",
}


def manifest(path: Path, *rows: Mapping[str, Any]) -> str:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return str(path)


def test_recordings_are_documents(tmp_path: Path) -> None:
    source = manifest(tmp_path / "dev_recordings.jsonl.gz", MONO, STEREO)
    assert kind_of(source, "documents", ENDINGS) == "lhotse recordings"
    table = read_documents(source)
    assert table.schema == CORPUS
    assert [tuple(row.values())[:4] for row in table.to_pylist()] == [
        ("recording-1", 1, f"{tmp_path}/audio/mono.wav", 4.0),
        ("recording-2", 1, "/elsewhere/stereo.flac", 1.0),
        ("recording-2", 2, "/elsewhere/stereo.flac", 1.0),
    ]
    assert read_documents(source, audio_folder="/data")["path"][0].as_py() == "/data/audio/mono.wav"


def test_supervisions_are_places_in_the_recordings_beside_them(tmp_path: Path) -> None:
    manifest(tmp_path / "dev_recordings.jsonl.gz", STEREO, MONO)
    source = manifest(tmp_path / "dev_supervisions.jsonl.gz", SUPERVISION, OTHER)
    table = read_documents(source)
    assert table.schema == PLACED
    first, second, third = table.to_pylist()
    assert (first["doc_id"], first["recording"], first["start"], first["end"]) == (
        "segment-1",
        "recording-1",
        0.5,
        1.75,
    )
    assert (first["path"], first["speaker"]) == (f"{tmp_path}/audio/mono.wav", "Norman Dyhrentfurth")
    assert first["listed"] == f"{source}, line 1"
    assert [(row["doc_id"], row["channel"], row["end"]) for row in (second, third)] == [
        ("segment-2", 1, 0.6),
        ("segment-2", 2, 0.6),
    ]


def test_cuts_are_documents_and_queries(tmp_path: Path) -> None:
    whole = {**CUT, "id": "cut-2", "custom": {"long": "x" * 5000}}
    source = manifest(tmp_path / "cuts.jsonl", whole, CUT)
    assert kind_of(source, "queries", ENDINGS) == "lhotse cuts"
    row = read_documents(source).to_pylist()[1]
    assert (row["doc_id"], row["recording"], row["start"], row["end"]) == ("cut-1", "recording-1", 0.5, 1.75)
    assert row["speaker"] == "Norman Dyhrentfurth"
    query = read_queries(source, CORPUS.empty_table()).to_pylist()[1]
    assert query == {
        "query_id": "cut-1",
        "example": 1,
        "path": f"{tmp_path}/audio/mono.wav",
        "doc_id": None,
        "channel": 1,
        "start": 0.5,
        "end": 1.75,
        "speaker": "Norman Dyhrentfurth",
        "term": "transcript of the first segment",
    }


def test_whole_recordings_are_queries(tmp_path: Path) -> None:
    source = manifest(tmp_path / "recordings.jsonl", MONO, STEREO)
    rows = read_queries(source, CORPUS.empty_table()).to_pylist()
    assert [(row["query_id"], row["channel"], row["start"], row["term"]) for row in rows] == [
        ("recording-1", 1, None, None),
        ("recording-2", 1, None, None),
    ]


def test_alignments_tell_where_words_are_said(tmp_path: Path) -> None:
    source = manifest(tmp_path / "supervisions.jsonl", SUPERVISION, OTHER)
    assert kind_of(source, "references", ENDINGS) == "lhotse supervisions"
    assert [tuple(row.values())[:5] for row in aligned_words(source).to_pylist()] == [
        ("recording-1", 1, 0.5, 0.5, "transcript"),
        ("recording-1", 1, 1.0, 0.3, "first"),
    ]


@pytest.mark.parametrize(
    ("row", "kind", "message"),
    [
        (
            {**MONO, "sources": MONO["sources"] * 2},
            DataError,
            r"line 1.*'recording\-1'.*\[unsupported\]",
        ),
        (
            {**MONO, "sources": [{**MONO["sources"][0], "type": "command"}]},
            DataError,
            r"\[unsupported\]",
        ),
        (
            {**MONO, "sources": [{**MONO["sources"][0], "channels": [1]}]},
            DataError,
            r"\[unsupported\]",
        ),
        ({**MONO, "transforms": [{"name": "Speed"}]}, DataError, r"\[unsupported\]"),
        (
            {**MONO, "sources": [{"type": "file", "channels": [0], "source": "touch x |"}]},
            DataError,
            r"\[unsupported\]",
        ),
        ({**MONO, "sources": [{"type": "file", "source": "a.wav"}]}, DataError, r"\[unsupported\]"),
        ({**MONO, "sources": ["a.wav"]}, DataError, r"\[unsupported\]"),
        ({**MONO, "duration": "4"}, DataError, r"'4'.*\[malformed-line\]"),
        ({**CUT, "type": "MixedCut", "tracks": []}, DataError, r"\[unsupported\]"),
        ({**CUT, "recording": None}, DataError, r"\[unsupported\]"),
        ({**CUT, "channel": 1}, DataError, r"'recording\-1'.*\[unknown-name\]"),
        ({**CUT, "start": -1}, DataError, r"\[malformed-line\]"),
        (SUPERVISION, UserError, r"\[missing-input\]"),
        ({"some": "thing"}, UserError, r"\[wrong-kind\]"),
    ],
)
def test_what_is_refused(tmp_path: Path, row: dict[str, Any], kind: type[SwsdistError], message: str) -> None:
    with pytest.raises(kind, match=message):
        read_documents(manifest(tmp_path / "some.jsonl", row))


def test_duplicates_and_strange_names_are_refused(tmp_path: Path) -> None:
    with raises(corpora_codes.DUPLICATE_ENTRY, where="line 2", name="recording-1"):
        read_documents(manifest(tmp_path / "recordings.jsonl", MONO, MONO))
    manifest(tmp_path / "recordings.jsonl", STEREO)
    with raises(families.UNKNOWN_NAME, recording="recording-1"):
        read_documents(manifest(tmp_path / "supervisions.jsonl", SUPERVISION))
    (tmp_path / "cut.jsonl").write_text(json.dumps(CUT) + "\n{broken\n")
    with raises(families.MALFORMED_LINE, where="line 2"):
        read_documents(str(tmp_path / "cut.jsonl"))
    bare = {key: value for key, value in SUPERVISION.items() if key != "alignment"}
    with raises(families.MISSING_INPUT):
        aligned_words(manifest(tmp_path / "bare.jsonl", bare))
    with raises(families.MALFORMED_LINE):
        aligned_words(manifest(tmp_path / "bad.jsonl", {**bare, "alignment": {"word": [["x", 1]]}}))
