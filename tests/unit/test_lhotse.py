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
from swsdist.core.types import CORPUS, PLACED
from swsdist.corpora.documents import ENDINGS, kind_of, read_documents
from swsdist.corpora.lhotse import aligned_words
from swsdist.corpora.queries import read_queries
from tests.support.coded import raises

_FILE = {"type": "file", "channels": [0], "source": "audio/mono.wav"}
MONO = {"id": "recording-1", "sources": [_FILE], "sampling_rate": 8000, "num_samples": 32000, "duration": 4.0}
MONO |= {"channel_ids": [0]}
STEREO = MONO | {"id": "recording-2", "num_samples": 8000, "duration": 1.0, "channel_ids": [0, 1]}
STEREO |= {"sources": [{"type": "file", "channels": [0, 1], "source": "/elsewhere/stereo.flac"}]}
PLACE = {"start": 0.5, "duration": 1.25, "channel": 0}
SUPERVISION = PLACE | {
    "id": "segment-1",
    "recording_id": "recording-1",
    "text": "transcript of the first segment",
    "speaker": "Norman Dyhrentfurth",
    "alignment": {"word": [["first", 1.0, 0.3, 0.9], ["transcript", 0.5, 0.5, 1.0]]},
}
OTHER = {"id": "segment-2", "recording_id": "recording-2", "start": 0.1, "duration": 0.5, "channel": [0, 1]}
CUT = PLACE | {"id": "cut-1", "supervisions": [{**SUPERVISION, "start": 0.0}], "recording": MONO, "type": "MonoCut"}


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


def test_supervisions_are_places_in_the_recordings_beside_them_and_their_alignments_words(tmp_path: Path) -> None:
    manifest(tmp_path / "dev_recordings.jsonl.gz", STEREO, MONO)
    source = manifest(tmp_path / "dev_supervisions.jsonl.gz", SUPERVISION, OTHER)
    table = read_documents(source)
    assert table.schema == PLACED
    rows = [tuple(row[key] for key in ("doc_id", "recording", "channel", "start", "end")) for row in table.to_pylist()]
    assert rows == [
        ("segment-1", "recording-1", 1, 0.5, 1.75),
        ("segment-2", "recording-2", 1, 0.1, 0.6),
        ("segment-2", "recording-2", 2, 0.1, 0.6),
    ]
    first = table.to_pylist()[0]
    assert (first["path"], first["speaker"]) == (f"{tmp_path}/audio/mono.wav", "Norman Dyhrentfurth")
    assert first["listed"] == f"{source}, line 1"
    assert kind_of(source, "references", ENDINGS) == "lhotse supervisions"
    assert [tuple(row.values())[:5] for row in aligned_words(source).to_pylist()] == [
        ("recording-1", 1, 0.5, 0.5, "transcript"),
        ("recording-1", 1, 1.0, 0.3, "first"),
    ]


def test_cuts_are_documents_and_queries_as_whole_recordings_are(tmp_path: Path) -> None:
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
    rows = read_queries(manifest(tmp_path / "recordings.jsonl", MONO, STEREO), CORPUS.empty_table()).to_pylist()
    assert [tuple(row[key] for key in ("query_id", "channel", "start", "term")) for row in rows] == [
        ("recording-1", 1, None, None),
        ("recording-2", 1, None, None),
    ]


#: Changes of a row, and the code that each is refused with.
REFUSED: list[tuple[dict[str, Any], Any]] = [
    ({**MONO, "sources": [_FILE, _FILE]}, families.UNSUPPORTED),
    ({**MONO, "sources": [{**_FILE, "type": "command"}]}, families.UNSUPPORTED),
    ({**MONO, "sources": [{**_FILE, "channels": [1]}]}, families.UNSUPPORTED),
    ({**MONO, "transforms": [{"name": "Speed"}]}, families.UNSUPPORTED),
    ({**MONO, "sources": [{**_FILE, "source": "touch x |"}]}, families.UNSUPPORTED),
    ({**MONO, "sources": [{"type": "file", "source": "a.wav"}]}, families.UNSUPPORTED),
    ({**MONO, "sources": ["a.wav"]}, families.UNSUPPORTED),
    ({**MONO, "duration": "4"}, families.MALFORMED_LINE),
    ({**CUT, "type": "MixedCut", "tracks": []}, families.UNSUPPORTED),
    ({**CUT, "recording": None}, families.UNSUPPORTED),
    ({**CUT, "channel": 1}, families.UNKNOWN_NAME),
    ({**CUT, "start": -1}, families.MALFORMED_LINE),
    (SUPERVISION, families.MISSING_INPUT),
    ({"some": "thing"}, families.WRONG_KIND),
]


@pytest.mark.parametrize(("row", "code"), REFUSED)
def test_what_is_refused(tmp_path: Path, row: dict[str, Any], code: Any) -> None:
    with raises(code):
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
