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
import pytest
import soundfile

from swsdist.audio.reader import read_blocks
from swsdist.core.codes import audio as audio_codes
from swsdist.core.codes import corpora as corpora_codes
from swsdist.core.codes import families
from swsdist.core.errors import DataError, SwsdistError, UserError
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
    assert query == {
        "query_id": "u1",
        "example": 1,
        "path": listed[1]["path"],
        "doc_id": None,
        "channel": 1,
        "start": None,
        "end": None,
        "speaker": "0",
        "term": "word 1",
    }


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


def test_one_of_several_is_to_be_named(tmp_path: Path) -> None:
    saved(tmp_path / "sets/train", [{"audio": {"bytes": sound(0.1), "path": "a.wav"}}])
    (tmp_path / "sets/dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with raises(families.WRONG_KIND) as caught:
        read_documents(str(tmp_path / "sets"))
    assert "Name one of them, " in str(caught.value)
    assert "/sets/NAME: train, test" in str(caught.value)
    assert read_documents(str(tmp_path / "sets/train"))["doc_id"].to_pylist() == ["a"]


@pytest.mark.parametrize(
    ("rows", "features", "kind", "message"),
    [
        ([{"audio": {"bytes": None, "path": None}}], None, DataError, r"row 0.*\[bad-cell\]"),
        (
            [{"audio": {"bytes": b"x", "path": "a/1.wav"}}, {"audio": {"bytes": b"y", "path": "b/1.wav"}}],
            None,
            DataError,
            r"'1'.*\[duplicate-name\]",
        ),
        ([{"text": "no sound"}], None, UserError, r"\[ambiguous\]"),
        ([], None, UserError, r"\[empty-input\]"),
        ([{"text": "no sound"}], {"text": {"_type": "Audio"}}, DataError, r"\[bad-cell\]"),
    ],
)
def test_what_is_refused(
    tmp_path: Path, rows: list[dict[str, Any]], features: Any, kind: type[SwsdistError], message: str
) -> None:
    with pytest.raises(kind, match=message):
        read_documents(saved(tmp_path / "set", rows, features=features))


def test_damaged_files_are_named(tmp_path: Path) -> None:
    source = saved(tmp_path / "set", [{"audio": {"bytes": sound(0.5), "path": "a.wav"}}])
    file = tmp_path / "set/data-00000-of-00001.arrow"
    file.write_bytes(file.read_bytes()[:1000])
    with raises(corpora_codes.UNREADABLE_DATASET):
        read_documents(source)
    file.unlink()
    with raises(corpora_codes.UNREADABLE_DATASET):
        read_documents(source)
    (tmp_path / "set/state.json").write_text("[]")
    with raises(corpora_codes.NOT_A_JSON_OBJECT):
        read_documents(source)


def test_a_command_is_no_file(tmp_path: Path) -> None:
    """It would be run where commands of a wav.scp may be."""
    rows = [{"id": "u", "audio": {"bytes": None, "path": "touch x |"}}]
    with raises(audio_codes.COMMAND_NOT_FILE, name="touch x |"):
        read_documents(saved(tmp_path / "set", rows))


@pytest.mark.parametrize(
    "kind", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.list_(pa.uint8()), pa.binary(1000)]
)
def test_bytes_of_any_type_are_read_or_refused(tmp_path: Path, kind: pa.DataType) -> None:
    source = saved(tmp_path / "set", [{"audio": {"bytes": None, "path": None}}])
    content = sound(0.5)[:1000]
    typed = pa.array(
        [{"bytes": [*content] if pa.types.is_list(kind) else content, "path": "a.wav"}],
        pa.struct([("bytes", kind), ("path", pa.string())]),
    )
    with pa.ipc.new_stream(f"{source}/data-00000-of-00001.arrow", pa.schema([("audio", typed.type)])) as out:
        out.write_table(pa.table({"audio": typed}))
    if kind in (pa.binary(), pa.large_binary()):
        (row,) = read_queries(source, CORPUS.empty_table()).to_pylist()
        with Path(row["path"].partition(":")[0]).open("rb") as file:
            begin, length = map(int, row["path"].rpartition(":")[2].split("+"))
            file.seek(begin)
            assert file.read(length) == content
    else:
        with raises(corpora_codes.BAD_AUDIO_COLUMN):
            read_queries(source, CORPUS.empty_table())
