"""Data sets of Hugging Face from disk: folders as `save_to_disk` of `datasets` writes them (state.json, dataset_info.json,
Arrow streams; a column of the type Audio is a struct of bytes and path), made here with pyarrow alone.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import soundfile

from swsdist.audio.reader import read_blocks
from swsdist.core.codes import audio as audio_codes
from swsdist.core.codes import corpora as corpora_codes
from swsdist.core.codes import families
from swsdist.core.types import CORPUS
from swsdist.corpora.documents import ENDINGS, kind_of, read_documents
from swsdist.corpora.queries import read_queries
from tests.support.coded import raises

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
