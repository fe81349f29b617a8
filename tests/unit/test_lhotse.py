"""Manifests of lhotse and lists of NIST as corpora; who is nobody in every kind of list."""

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import soundfile

from swsdist.config import config_from_dict
from swsdist.core.codes import corpora as corpora_codes
from swsdist.core.codes import families
from swsdist.core.errors import DataError
from swsdist.core.types import CORPUS, PLACED, QUERIES
from swsdist.corpora.documents import ENDINGS, kind_of, read_documents
from swsdist.corpora.lhotse import aligned_words
from swsdist.corpora.queries import read_queries
from swsdist.io.tables import NOBODY
from swsdist.stages.inputs.corpus import depends_on_score
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


def test_recordings_are_documents_of_known_names_told_once(tmp_path: Path) -> None:
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
    ({**MONO, "duration": "4"}, families.MALFORMED_LINE),
    ({**CUT, "type": "MixedCut", "tracks": []}, families.UNSUPPORTED),
    ({**CUT, "channel": 1}, families.UNKNOWN_NAME),
    ({**CUT, "start": -1}, families.MALFORMED_LINE),
    (SUPERVISION, families.MISSING_INPUT),
    ({"some": "thing"}, families.WRONG_KIND),
]


@pytest.mark.parametrize(("row", "code"), REFUSED)
def test_what_is_refused(tmp_path: Path, row: dict[str, Any], code: Any) -> None:
    with raises(code):
        read_documents(manifest(tmp_path / "some.jsonl", row))


EXCERPT = '<excerpt audio_filename="{}" channel="{}" tbeg="{}" dur="{}" source_type="bnews"/>'


def ecf(path: Path, *excerpts: tuple[object, ...]) -> str:
    path.write_text(f"<ecf>{''.join(EXCERPT.format(*one) for one in excerpts)}</ecf>")
    return str(path)


def terms(path: Path, *texts: str) -> str:
    body = "".join(f'<kw kwid="k{k}"><kwtext>{text}</kwtext></kw>' for k, text in enumerate(texts, 1))
    path.write_text(f"<kwlist>{body}</kwlist>")
    return str(path)


def test_excerpts_are_places_in_recordings_and_copies_are_found_by_name(tmp_path: Path) -> None:
    excerpts = (("BN/a.sph", 1, 0, 10), ("b.x.wav", 1, 5, 2.5), ("b.x.wav", 1, 7, 3), ("/c.wav", 2, 0, 1))
    table = read_documents(ecf(tmp_path / "ecf.xml", *excerpts))
    assert table.schema == PLACED
    keys = ("doc_id", "recording", "path", "channel", "start", "end")
    assert [tuple(row[key] for key in keys) for row in table.to_pylist()] == [
        ("a", "a", f"{tmp_path}/BN/a.sph", 1, 0, 10),
        ("b.x:5-7.5", "b.x", f"{tmp_path}/b.x.wav", 1, 5, 7.5),
        ("b.x:7-10", "b.x", f"{tmp_path}/b.x.wav", 1, 7, 10),
        ("c", "c", "/c.wav", 2, 0, 1),
    ]
    for wrong, code in (
        ([("x/a.sph", 1, 0, 1), ("y/a.sph", 1, 0, 1)], "duplicate-name"),
        ([("a.sph", 1, 0, 1), ("a.sph", 1, 0, 1)], "duplicate-name"),
        ([("touch me |", 1, 0, 1)], "wrong-kind"),
        ([("a.sph", 1, 3, 0)], "invalid-times"),
    ):
        with pytest.raises(DataError) as caught:
            read_documents(ecf(tmp_path / "ecf.xml", *wrong))
        assert caught.value.code == code
    names = ("BN/a.sph", "b.wav", "c.sph", "d.sph")
    given, audio = ecf(tmp_path / "ecf.xml", *((name, 1, 0, 1) for name in names)), tmp_path / "audio"
    for name in ("deep/a.flac", "b.wav", "b.mp3", "c.wav", "c.mp3"):
        (audio / name).parent.mkdir(parents=True, exist_ok=True)
        (audio / name).touch()
    # Of two copies none is taken, and what is not there is told by indexing.
    found = read_documents(given, audio_folder=str(audio))["path"].to_pylist()
    assert found == [f"{audio}/{name}" for name in ("deep/a.flac", "b.wav", "c.sph", "d.sph")]


def test_terms_and_their_examples_and_what_an_ecf_holds(tmp_path: Path) -> None:
    listed, spoken = terms(tmp_path / "kw.xml", "one two", "three", "four"), tmp_path / "spoken.csv"
    spoken.write_text("query_id,path,term\nk2,b.wav,\nk2,c.wav,Three\nk1,a.wav,one  two\n")
    table = read_queries(listed, CORPUS.empty_table(), "all", spoken=str(spoken))
    assert table.schema == QUERIES
    assert [(row["query_id"], row["example"], row["path"], row["term"]) for row in table.to_pylist()] == [
        ("k1", 1, f"{tmp_path}/a.wav", "one two"),
        ("k2", 1, f"{tmp_path}/b.wav", "three"),
        ("k2", 2, f"{tmp_path}/c.wav", "three"),
        ("k3", 1, None, "four"),
    ]
    assert read_queries(listed, CORPUS.empty_table(), spoken=str(spoken)).num_rows == 3
    assert read_queries(listed, CORPUS.empty_table())["path"].to_pylist() == [None] * 3
    listed = terms(tmp_path / "kw.xml", "one")
    spoken.write_text("query_id,path\nk7,a.wav\n")
    with raises(families.UNKNOWN_NAME, query="k7"):
        read_queries(listed, CORPUS.empty_table(), spoken=str(spoken))
    spoken.write_text("query_id,path,term\nk1,a.wav,two\n")
    with raises(families.CONFLICTING_ROWS, example="two", listed="one"):
        read_queries(listed, CORPUS.empty_table(), spoken=str(spoken))
    (tmp_path / "docs.csv").write_text("doc_id,path\na,a.wav\n")
    (tmp_path / "words").write_text("LEXEME a 1 0 1 word lex a <NA>\n")
    for name, depends in {"files.xml": True, "files.ecf": True, "list": True, "docs.csv": False, "no": False}.items():
        if depends:
            ecf(tmp_path / name, ("a.wav", 1, 0, 10))
        corpus = {"documents": str(tmp_path / name), "queries": "q.csv"}
        assert depends_on_score(config_from_dict({"run": "run", "corpus": corpus})) == depends
        with_words = {**corpus, "references": str(tmp_path / "words")}
        assert depends_on_score(config_from_dict({"run": "run", "corpus": with_words}))


#: As lists name speakers, and who they are.
NAMES = {name: None for word in NOBODY if word for name in (word, word.upper(), word.title(), f" {word}\t")}
NAMES |= {" eva ": "eva", "EVA": "EVA", "nana": "nana", "no one": "no one", "unknown 2": "unknown 2"}


def recordings(folder: Path) -> list[str]:
    soundfile.write(folder / "a.wav", np.zeros(1600), 16000)
    return [f"d{k}" for k in range(len(NAMES))]


def of_table(folder: Path) -> Sequence[str | None]:
    rows = "".join(f"{name},a.wav,{who}\n" for name, who in zip(recordings(folder), NAMES, strict=True))
    (folder / "docs.csv").write_text(f"doc_id,path,speaker\n{rows}d,a.wav,\ne,a.wav,  \n")
    *found, empty, blank = read_documents(str(folder / "docs.csv"))["speaker"].to_pylist()
    assert (empty, blank) == (None, None)
    return found


def of_kaldi(folder: Path) -> Sequence[str | None]:
    names = recordings(folder)
    (folder / "wav.scp").write_text("".join(f"{name} {folder}/a.wav\n" for name in names))
    said = [who.strip().replace(" ", "_") for who in NAMES]
    (folder / "utt2spk").write_text("".join(f"{name} {who}\n" for name, who in zip(names, said, strict=True)))
    table = read_documents(str(folder))
    found = dict(zip(table["doc_id"].to_pylist(), table["speaker"].to_pylist(), strict=True))
    return [None if found[name] is None else found[name].replace("_", " ") for name in names]


def of_lhotse(folder: Path) -> Sequence[str | None]:
    names = recordings(folder)
    lines = []
    for name, who in zip(names, NAMES, strict=True):
        recording = {"id": name, "sources": [{"type": "file", "channels": [0], "source": f"{folder}/a.wav"}]}
        recording |= {"sampling_rate": 16000, "num_samples": 1600, "duration": 0.1}
        said = {"id": name, "recording_id": name, "start": 0.0, "duration": 0.1, "channel": 0, "speaker": who}
        cut = {"id": name, "start": 0, "duration": 0.1, "channel": 0, "supervisions": [said], "recording": recording}
        lines.append(json.dumps({**cut, "type": "MonoCut"}))
    (folder / "cuts.jsonl").write_text("\n".join(lines))
    documents = read_documents(str(folder / "cuts.jsonl"))["speaker"].to_pylist()
    queries = read_queries(str(folder / "cuts.jsonl"), pa.table({"doc_id": pa.array([], pa.string())}))
    assert queries["speaker"].to_pylist() == documents
    return documents


@pytest.mark.parametrize("listed", [of_table, of_kaldi, of_lhotse], ids=lambda one: one.__name__)
def test_who_is_nobody(listed: Callable[[Path], Sequence[str | None]], tmp_path: Path) -> None:
    assert dict(zip(NAMES, listed(tmp_path), strict=True)) == NAMES
