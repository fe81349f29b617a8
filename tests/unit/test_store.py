"""The feature store: what is written is read, memory is bounded, and damage is found."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile

from swsdist.core.codes import families
from swsdist.core.codes import storage as store_codes
from swsdist.core.errors import StoreError
from swsdist.core.types import DOCUMENTS, FRAMES
from swsdist.features.blocks import BLOCK_FRAMES
from swsdist.io.filesystem import Folder
from swsdist.pipeline.operation.cleaning import clean
from swsdist.store import manifest as manifests
from swsdist.store import parquet, writing
from swsdist.store.maintaining import check, compact
from swsdist.store.manifest import REJECTED_DOCUMENTS, File, NewTrack, Shard, commit
from swsdist.store.reading import Store
from swsdist.store.writing import ShardWriter, write_tracks
from tests.support.coded import raises

RATE = 1000


class Counter:
    """An extractor of 100 Hz sound whose frames are the samples themselves and their negatives: shift 10 ms, exact."""

    name, version, sample_rate, frame_length, hop, context, dimension = "counter", 1, RATE, 1, 1, 0, 2

    def extract(self, samples: np.ndarray) -> np.ndarray:
        return np.stack([samples, -samples], axis=1)

    def describe(self) -> dict[str, Any]:
        return {}


def write_wav(path: Path, samples: np.ndarray) -> str:
    soundfile.write(path, samples.astype(np.float32), RATE, subtype="FLOAT")
    return str(path)


def noise(seed: int, tenths: float) -> np.ndarray:
    return np.random.default_rng(seed).normal(scale=0.1, size=round(tenths * RATE / 10)).astype(np.float32)


def corpus_row(doc_id: str, path: str, speaker: str | None = None, channel: int = 1) -> dict[str, Any]:
    return {"doc_id": doc_id, "channel": channel, "path": path, "speaker": speaker, "identity": "1:2", "duration": None}


def made(documents: pa.Table, frozen: pa.Table | None = None) -> NewTrack:
    return NewTrack("counter", {"name": "counter"}, 2, documents, frozen)


def make_store(root: Path, groups: list[list[dict[str, Any]]]) -> Store:
    """A committed store with a shard a group."""
    folder = Folder(str(root))
    shards, documents, rejected = [], [DOCUMENTS.empty_table()], [REJECTED_DOCUMENTS.empty_table()]
    for k, rows in enumerate(groups):
        indexed = write_tracks(folder, f"{k:032x}", rows, Counter())[0]
        documents.append(indexed.documents)
        rejected.append(indexed.rejected)
        output = indexed.outputs[0]
        frames = sum(indexed.documents["frames"].to_pylist())
        shards.append(Shard(output.name, {"counter": File(*output)}, indexed.documents.num_rows, frames))
    commit(folder, made(pa.concat_tables(documents)), 0.01, shards, pa.concat_tables(rejected))
    return Store(folder)


@pytest.fixture
def sounds(tmp_path: Path) -> dict[str, np.ndarray]:
    return {f"d{k}": noise(k, 1 + k) for k in range(5)}


@pytest.fixture
def store(tmp_path: Path, sounds: dict[str, np.ndarray]) -> Store:
    rows = [
        corpus_row(name, write_wav(tmp_path / f"{name}.wav", samples), "even" if k % 2 == 0 else None)
        for k, (name, samples) in enumerate(sounds.items())
    ]
    return make_store(tmp_path / "store", [rows[:2], rows[2:]])


def same_frames(found: np.ndarray, samples: np.ndarray) -> bool:
    return found.dtype == np.float32 and np.array_equal(found, np.stack([samples, -samples], axis=1))


def test_what_is_written_is_read(store: Store, sounds: dict[str, np.ndarray]) -> None:
    assert store.documents()["doc_id"].to_pylist() == ["d0", "d1", "d2", "d3", "d4"]
    for name, samples in sounds.items():
        assert same_frames(store.features(name), samples)
    row = store.documents().to_pylist()[3]
    assert (row["frames"], row["rows"], row["duration"], row["speaker"]) == (400, 1, 0.4, None)
    assert np.allclose(row["mean"], [sounds["d3"].mean(), -sounds["d3"].mean()], atol=1e-9)
    assert np.allclose(row["variance"], sounds["d3"].astype(float).var(), rtol=1e-9)
    # Of so low a rate all is taken for speech.
    seconds = {"seconds": 1.5, "heard_seconds": 15.0, "speech_seconds": 15.0}
    counts = {"documents": 5, "frames": 1500, "fitted_to": 5.0, "rejected": 0, "cut_off": 0, "statistics_gone": 0}
    assert store.manifest.counts == {**counts, **seconds}
    assert list(check(store)) == []
    assert store.documents().schema.equals(DOCUMENTS)
    assert store.rejected().schema.equals(REJECTED_DOCUMENTS)


def test_documents_of_a_shard_are_a_row_group_of_their_own(store: Store) -> None:
    """Else each task of a search would read the table of the whole collection."""
    with parquet.reader(store.folder, store.manifest.tracks[0].documents) as file:
        groups = [parquet.row_groups_with(file, "shard", shard.name) for shard in store.manifest.shards]
    assert groups == [[0], [1]]
    first, second = (shard.name for shard in store.manifest.shards)
    assert store.documents(first)["doc_id"].to_pylist() == ["d0", "d1"]
    assert store.documents(second, ["doc_id"]).to_pydict()["doc_id"] == ["d2", "d3", "d4"]
    assert store.documents("shards/other.parquet").num_rows == 0
    assert {block.doc_id for block in store.blocks(second)} == {"d2", "d3", "d4"}
    assert {block.doc_id for block in store.blocks(second, {("d3", 1)})} == {"d3"}
    again = manifests.require(store.folder)
    assert again == store.manifest
    assert again.shard(second) == again.shards[1]


def test_statistics_are_frozen(store: Store) -> None:
    """A state that follows keeps what is known, and adds new speakers only."""
    before = store.statistics()
    rows = [{**row, "speaker": row["speaker"] or "odd"} for row in store.documents().to_pylist()][1:]
    state = store.manifest
    frozen = parquet.read(store.folder, state.models["statistics.counter"])
    table = pa.Table.from_pylist(rows, DOCUMENTS)
    commit(store.folder, made(table, frozen), 0.01, state.shards, store.rejected())
    after = Store(store.folder).statistics()
    assert set(after) - set(before) == {("speaker", "odd")}
    for scope, value in before.items():
        assert after[scope].mean.tobytes() == value.mean.tobytes()
    assert after["speaker", "odd"].frames == 200 + 400


def test_the_same_documents_give_the_same_bytes(tmp_path: Path, store: Store) -> None:
    rows = [corpus_row(f"d{k}", str(tmp_path / f"d{k}.wav"), "even" if k % 2 == 0 else None) for k in range(5)]
    other = make_store(tmp_path / "other", [rows[:2], rows[2:]])
    assert other.manifest == store.manifest
    for name in store.folder.listing():
        assert other.folder.read_bytes(name) == store.folder.read_bytes(name)


def test_rows_and_row_groups_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "ROW_GROUP_BYTES", 40_000)
    rows = [corpus_row(f"d{k}", write_wav(tmp_path / f"{k}.wav", noise(k, s))) for k, s in enumerate((100, 1, 50, 2))]
    store = make_store(tmp_path / "store", [rows])
    file = pq.ParquetFile(store.folder.path(store.manifest.shards[0].name))
    assert file.num_row_groups == 3
    frames = file.read(columns=["frames"])["frames"].to_pylist()
    assert max(frames) == BLOCK_FRAMES == 4096
    for k in range(file.num_row_groups):
        features = file.read_row_group(k, columns=["features"])["features"]
        assert sum(len(blob) for blob in features.to_pylist()) < 40_000 + BLOCK_FRAMES * 8
    counts = {"rows": [3, 1, 2, 1], "frames": [10_000, 100, 5_000, 200]}
    assert store.documents(columns=["rows", "frames"]).to_pydict() == counts
    assert [block.first_frame for block in store.blocks(store.manifest.shards[0].name, {("d0", 1)})] == [0, 4096, 8192]
    assert same_frames(store.features("d0"), noise(0, 100))
    assert list(check(store)) == []


def test_a_document_that_is_rejected_midway(tmp_path: Path) -> None:
    """Its first rows were written when the NaN was met: they are dead, and the others whole."""
    bad = noise(9, 700)
    bad[66_000] = np.nan
    rows = [
        corpus_row("good", write_wav(tmp_path / "good.wav", noise(1, 50))),
        corpus_row("bad", write_wav(tmp_path / "bad.wav", bad)),
        {**corpus_row("gone", str(tmp_path / "gone.wav")), "identity": "missing"},
        corpus_row("last", write_wav(tmp_path / "last.wav", noise(2, 1))),
    ]
    store = make_store(tmp_path / "store", [rows])
    written = pq.read_table(store.folder.path(store.manifest.shards[0].name), columns=["doc_id"])["doc_id"].to_pylist()
    assert written.count("bad") > 0
    assert store.documents()["doc_id"].to_pylist() == ["good", "last"]
    assert {block.doc_id for block in store.blocks(store.manifest.shards[0].name)} == {"good", "last"}
    assert same_frames(store.features("good"), noise(1, 50))
    assert same_frames(store.features("last"), noise(2, 1))
    refused = store.rejected().to_pylist()
    reasons = [(row["id"], row["part"], row["reason"]) for row in refused]
    assert reasons == [("bad", 1, "not-finite"), ("gone", 1, "missing")]
    assert "66.000 s" in refused[0]["message"]
    assert refused[0]["identity"] == "1:2"
    assert store.manifest.counts["rejected"] == 2
    assert list(check(store)) == []
    with raises(families.UNKNOWN_NAME, document="bad", channel=1):
        store.features("bad")


def test_a_damaged_manifest(tmp_path: Path, store: Store) -> None:
    seven = b'{"schema": "swsdist-store/7"'
    for text in (b"", b"{", b"\xff\xfe", b"[]", b"null", b"{}", seven + b"}", seven + b', "shards": 3}'):
        (tmp_path / "manifest.json").write_bytes(text)
        with raises(families.DAMAGED_FILE, where=str(tmp_path / "manifest.json")):
            manifests.load(Folder(str(tmp_path)))
    values = json.loads(store.folder.read_bytes("manifest.json"))
    store.folder.write_bytes("manifest.json", json.dumps({**values, "schema": "swsdist-store/2"}).encode())
    with raises(families.MISMATCH, schema="swsdist-store/2", known="swsdist-store/7"):
        Store(store.folder)
    empty = Folder(str(tmp_path / "empty"))
    assert manifests.load(empty) is None
    with raises(store_codes.NO_STORE):
        Store(empty)


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(bytes(data))


def damaged(store: Store, name: str, change: Callable[[Path], Any]) -> str:
    """What check says of a store after something happened to a file of it; it is whole again afterwards."""
    path = Path(store.folder.path(name))
    whole = path.read_bytes()
    change(path)
    found = list(check(Store(store.folder)))
    path.write_bytes(whole)
    assert all(problem.startswith(f"{path}: ") for problem in found), found
    return "\n".join(found)


def test_check_finds_damage_anywhere(store: Store) -> None:
    state = store.manifest
    first, second = (shard.name for shard in state.shards)
    size = state.shards[1].files["counter"].size
    for place in range(0, size, size // 40):
        assert "SHA-256 differs" in damaged(store, second, lambda path, place=place: flip(path, place)), place
    found = damaged(store, second, lambda path: path.write_bytes(path.read_bytes()[:-100]))
    assert "the manifest tells" in found
    assert "the file is damaged" in found
    assert "the file is damaged" in damaged(store, second, lambda path: path.write_text("not Parquet"))
    for name in (second, state.tracks[0].documents, state.models["statistics.counter"], state.rejected):
        assert damaged(store, name, Path.unlink) == f"{store.folder.path(name)}: the file is missing"
    assert list(check(store)) == []
    for name in (first, second):
        Path(store.folder.path(name)).unlink()
    assert len(list(check(store))) == 2, "it goes on after damage"


def test_no_page_is_read_that_is_not_what_was_written(store: Store) -> None:
    """Pages bear checksums: a flip is an error, never another number. The footer bears none."""
    name = store.manifest.tracks[0].documents
    path = Path(store.folder.path(name))
    whole = path.read_bytes()
    expected = parquet.read(store.folder, name)
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    messages = []
    for place in range(4, footer, 7):
        flip(path, place)
        try:
            assert parquet.read(store.folder, name).equals(expected)  # a hint for readers that ours does not take
        except StoreError as error:
            messages.append(error.message)
        path.write_bytes(whole)
    assert len(messages) > 100
    assert all(message.startswith("the file is damaged") for message in messages)


def rewritten(store: Store, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> list[str]:
    """What check says of rows that are well written but wrong, the manifest agreeing to size and SHA-256."""
    shard = store.manifest.shards[1]
    path = Path(store.folder.path(shard.name))
    rows = change(pq.read_table(path).to_pylist())
    with parquet.writer(path, FRAMES) as file:
        file.write_table(pa.Table.from_pylist(rows, FRAMES))
    output = parquet.describe(path, shard.name)
    values = json.loads(store.folder.read_bytes("manifest.json"))
    values["shards"][1]["files"]["counter"] |= {"size": output.size, "sha256": output.sha256}
    store.folder.write_bytes("manifest.json", json.dumps(values).encode())
    return [problem.split(": ", 1)[1] for problem in check(Store(store.folder))]


def test_check_finds_rows_that_are_missing_apart_or_wrong(store: Store) -> None:
    def split(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        row, half, frames = rows[0], len(rows[0]["features"]) // 2, rows[0]["frames"] // 2
        rest = {"features": row["features"][half:], "frames": row["frames"] - frames, "first_frame": frames}
        return [{**row, "features": row["features"][:half], "frames": frames}, rows[1], {**row, **rest}, *rows[2:]]

    nan = np.full(2, np.nan, "<f4").tobytes()
    path = Path(store.folder.path(store.manifest.shards[1].name))
    whole = path.read_bytes()
    for change, told in (
        (lambda rows: [row for row in rows if row["doc_id"] != "d3"], "document ('d3', 1): 400 frames are missing"),
        (
            lambda rows: [{**row, "first_frame": row["first_frame"] + (row["doc_id"] == "d3")} for row in rows],
            "document ('d3', 1): frame 0 is missing",
        ),
        (split, "document ('d2', 1): its rows do not stand together"),
        (
            lambda rows: [{**rows[0], "features": nan + rows[0]["features"][8:]}, *rows[1:]],
            "document ('d2', 1): a feature is not finite",
        ),
    ):
        assert told in rewritten(store, change)
        path.write_bytes(whole)


def test_check_finds_documents_in_no_shard(store: Store) -> None:
    values = json.loads(store.folder.read_bytes("manifest.json"))
    gone = values["shards"].pop()["name"]
    values["counts"]["documents"] = 4
    store.folder.write_bytes("manifest.json", json.dumps(values).encode())
    problems = list(check(Store(store.folder)))
    assert any("5 documents, the manifest tells 4" in problem for problem in problems)
    assert any(f"it places documents in {gone}" in problem for problem in problems)


def removed(store: Store, keep: set[str]) -> Store:
    """The state without some documents: their rows are dead."""
    state = store.manifest
    rows = [row for row in store.documents().to_pylist() if row["doc_id"] in keep]
    frozen = parquet.read(store.folder, state.models["statistics.counter"])
    table = pa.Table.from_pylist(rows, DOCUMENTS)
    commit(store.folder, made(table, frozen), 0.01, state.shards, store.rejected())
    return Store(store.folder)


@pytest.mark.parametrize(("hours", "shards"), [(1.0, 1), (0.5 / 3600, 2), (0.05 / 3600, 4)])
def test_compact_keeps_what_lives(store: Store, sounds: dict[str, np.ndarray], hours: float, shards: int) -> None:
    before = removed(store, {"d0", "d2", "d3", "d4"})
    old = {shard.name for shard in before.manifest.shards}
    statistics = parquet.read(store.folder, before.manifest.models["statistics.counter"])
    done = compact(store.folder, hours)
    after = Store(store.folder)
    assert (done.shards_before, done.shards) == (2, shards) == (2, len(after.manifest.shards))
    assert done.bytes < done.bytes_before or shards > 2
    assert all(same_frames(after.features(name), sounds[name]) for name in ("d0", "d2", "d3", "d4"))
    assert parquet.read(store.folder, after.manifest.models["statistics.counter"]).equals(statistics)
    assert list(check(after)) == []
    assert old < set(store.folder.listing()), "for whoever reads them"
    clean(store.folder, 0.0, dry=False)
    assert not old & set(store.folder.listing())
    files = {name: store.folder.read_bytes(name) for name in store.folder.listing()}
    assert len([name for name in files if name.startswith(("documents-", "models/", "rejected-"))]) == 4
    compact(store.folder, hours)
    assert {name: store.folder.read_bytes(name) for name in store.folder.listing()} == files


@pytest.mark.slow
def test_compact_holds_few_bytes_of_a_document(tmp_path: Path) -> None:
    """Of those of one shard rows, of all columns."""
    path = write_wav(tmp_path / "x.wav", noise(1, 1))

    def peak(count: int) -> int:
        rows = [corpus_row(f"d{k:05d}", path) for k in range(count)]
        store = make_store(tmp_path / str(count), [rows[k : k + 100] for k in range(0, count, 100)])
        compact(store.folder, 5 / 3600)
        gc.collect()
        tracemalloc.start()
        try:
            compact(store.folder, 10 / 3600)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert (peak(1200) - peak(200)) / 1000 < 1500


def test_frames_are_little_endian_and_bear_no_statistics(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    with parquet.writer(path, FRAMES) as file:
        shard = ShardWriter(file)
        shard.append("d", 1, 0, np.array([[1, 2]], ">f4"))
        shard.append("d", 1, 1, np.asfortranarray(np.array([[3, 4], [5, 6]], np.float32)))
        shard.flush()
        shard.flush()  # nothing is left
    table = pq.read_table(path)
    assert b"".join(table["features"].to_pylist()) == np.array([1, 2, 3, 4, 5, 6], "<f4").tobytes()
    (group,) = (pq.ParquetFile(path).metadata.row_group(k) for k in range(pq.ParquetFile(path).num_row_groups))
    column = next(group.column(k) for k in range(group.num_columns) if group.column(k).path_in_schema == "features")
    assert (column.compression, column.is_stats_set) == ("UNCOMPRESSED", False)
    assert "DICTIONARY" not in "".join(column.encodings)
