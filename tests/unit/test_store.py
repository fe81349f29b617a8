"""The feature store: what is written is read, by track and from a cache, and damage is found."""

import hashlib
import json
import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile

from swsdist.config import config_from_dict
from swsdist.config.search import Search
from swsdist.core.codes import families
from swsdist.core.codes import storage as store_codes
from swsdist.core.errors import StoreError
from swsdist.core.types import DOCUMENTS, FRAMES
from swsdist.features.blocks import BLOCK_FRAMES
from swsdist.features.statistics import Statistics
from swsdist.io.filesystem import Folder
from swsdist.kernels.halves import single
from swsdist.methods.dtw import shard
from swsdist.methods.dtw.shard import offset_and_scale
from swsdist.methods.method import tracks_read
from swsdist.pipeline.operation.cleaning import clean
from swsdist.stages.inputs.corpus_documents import stored
from swsdist.store import manifest as manifests
from swsdist.store import parquet, writing
from swsdist.store.maintaining import check, compact, refit
from swsdist.store.manifest import REJECTED_DOCUMENTS, File, NewTrack, Shard, commit, relocated_paths
from swsdist.store.memory import Cache, Memory
from swsdist.store.reading import Store, Tracks
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


def test_what_is_written_is_read_and_a_shard_is_one_row_group(store: Store, sounds: dict[str, np.ndarray]) -> None:
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
    assert reasons == [("bad", 1, "not-finite"), ("gone", 1, "missing-recording")]
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
    for place in range(4, footer, 41):
        flip(path, place)
        try:
            assert parquet.read(store.folder, name).equals(expected)  # a hint for readers that ours does not take
        except StoreError as error:
            messages.append(error.message)
        path.write_bytes(whole)
    assert len(messages) > 20
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
        (lambda rows: [{**rows[0], "features": nan + rows[0]["features"][8:]}, *rows[1:]], "a feature is not finite"),
    ):
        assert told in "\n".join(rewritten(store, change))
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


def test_frames_are_little_endian(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    with parquet.writer(path, FRAMES) as file:
        shard = ShardWriter(file)
        shard.append("d", 1, 0, np.array([[1, 2]], ">f4"))
        shard.append("d", 1, 1, np.asfortranarray(np.array([[3, 4], [5, 6]], np.float32)))
        shard.flush()
        shard.flush()  # nothing is left
    table = pq.read_table(path)
    assert b"".join(table["features"].to_pylist()) == np.array([1, 2, 3, 4, 5, 6], "<f4").tobytes()


class Remote:
    """Stands for a folder on S3; counts what is read."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.opened: list[str] = []

    def local(self, name: str = "") -> None:
        """It is none."""

    def path(self, name: str = "") -> str:
        return f"s3://bucket/{name}"

    def open(self, name: str) -> BytesIO:
        self.opened.append(name)
        return BytesIO(self.files[name])

    def put(self, name: str, data: bytes) -> tuple[str, int, str]:
        """A file, as a manifest has it."""
        self.files[name] = data
        return name, len(data), hashlib.sha256(data).hexdigest()


def _read(place: tuple[Folder, str]) -> bytes:
    return place[0].read_bytes(place[1])


def test_a_file_is_fetched_once_and_again_if_it_is_damaged(tmp_path: Path) -> None:
    remote: Any = Remote()
    files = [remote.put(name, name.encode() * 40) for name in ("a", "b", "c")]
    cache = Cache(str(tmp_path / "cache"), 100)
    for k, file in enumerate(files[:2]):
        assert _read(cache.at(remote, *file)) == remote.files[file[0]]
        os.utime(tmp_path / f"cache-{os.getuid()}/{file[2]}.cached", (k + 1, k + 1))
    assert _read(cache.at(remote, *files[0])) == b"a" * 40
    assert remote.opened == ["a", "b"]
    # a was used after b: for c there is room when b goes.
    assert _read(cache.at(remote, *files[2])) == b"c" * 40
    assert {path.name for path in (tmp_path / f"cache-{os.getuid()}").iterdir()} == {
        f"{files[k][2]}.cached" for k in (0, 2)
    }
    other = Cache(str(tmp_path / "cache"), 100)  # another process
    assert _read(other.at(remote, *files[0])) == b"a" * 40
    assert remote.opened == ["a", "b", "c"]
    remote: Any = Remote()
    file = remote.put("a", b"x" * 10)
    Cache(str(tmp_path / "c"), 100).at(remote, *file)
    (tmp_path / f"c-{os.getuid()}/{file[2]}.cached").write_bytes(b"y" * 10)
    assert _read(Cache(str(tmp_path / "c"), 100).at(remote, *file)) == b"x" * 10
    assert remote.opened == ["a", "a"]
    remote.files["a"] = b"z" * 10
    with pytest.raises(StoreError, match=r"not what the store's manifest says"):
        Cache(str(tmp_path / "d"), 100).at(remote, *file)
    assert list((tmp_path / f"d-{os.getuid()}").iterdir()) == []


def test_what_is_local_or_too_large_and_a_folder_of_others_are_not_cached(tmp_path: Path) -> None:
    remote: Any = Remote()
    file = remote.put("a", b"x" * 10)
    assert Cache(str(tmp_path / "cache"), 9).at(remote, *file) == (remote, "a")
    local = Folder(str(tmp_path))
    assert Cache(str(tmp_path / "cache"), 99).at(local, *file) == (local, "a")
    (tmp_path / f"file-{os.getuid()}").write_text("")
    assert Cache(str(tmp_path / "file"), 99).at(remote, *file) == (remote, "a"), "there is no such folder"
    assert not (tmp_path / f"cache-{os.getuid()}").exists()
    mine = tmp_path / f"c-{os.getuid()}"
    mine.mkdir()
    mine.chmod(0o777)
    assert Cache(str(tmp_path / "c"), 99).at(remote, *file) == (remote, "a")
    mine.rmdir()
    (tmp_path / "elsewhere").mkdir()
    mine.symlink_to(tmp_path / "elsewhere")
    assert Cache(str(tmp_path / "c"), 99).at(remote, *file) == (remote, "a")
    mine.unlink()
    assert Cache(str(tmp_path / "c"), 99).at(remote, *file) != (remote, "a")


def test_what_a_killed_process_fetched_in_part_counts_and_goes(tmp_path: Path) -> None:
    remote: Any = Remote()
    first, second = (remote.put(name, name.encode() * 40) for name in ("a", "b"))
    cache = Cache(str(tmp_path / "c"), 100)
    cache.at(remote, *first)
    place = tmp_path / f"c-{os.getuid()}"
    (place / "old.part").write_bytes(b"z" * 50)
    os.utime(place / "old.part", (1, 1))
    (place / "now.part").write_bytes(b"z" * 30)  # another process fetches it
    cache.at(remote, *second)
    assert {path.name for path in place.iterdir()} == {"now.part", f"{second[2]}.cached"}


def test_what_a_process_writes_is_kept_and_told_the_least_recently_used_first(tmp_path: Path) -> None:
    remote: Any = Remote()
    cache = Cache(str(tmp_path / "c"), 100)
    files = {name: (name.encode() * 40, hashlib.sha256(name.encode() * 40).hexdigest()) for name in ("a", "b", "c")}
    for k, (name, (data, digest)) in enumerate(files.items()):
        written = tmp_path / name
        written.write_bytes(data)
        cache.keep(remote, written, len(data), digest)
        written.unlink()  # it was published
        os.utime(tmp_path / f"c-{os.getuid()}/{digest}.cached", (k + 1, k + 1))
    assert cache.files() == [(files[name][1], 40) for name in ("b", "c")], "a went: there was no room"
    assert _read(cache.at(remote, "c", 40, files["c"][1])) == files["c"][0]
    assert remote.opened == []
    again = tmp_path / "c"
    again.write_bytes(files["c"][0])
    cache.keep(remote, again, 40, files["c"][1])
    assert len(cache.files()) == 2, "nothing goes for what is there"
    local = tmp_path / "d"
    local.write_bytes(b"d")
    cache.keep(Folder(str(tmp_path)), local, 1, hashlib.sha256(b"d").hexdigest())
    assert len(cache.files()) == 2, "what is written here need not be kept twice"


def test_a_variable_of_the_node_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_DISK", str(tmp_path))
    assert Cache("$NODE_DISK/c", 1).root == tmp_path / f"c-{os.getuid()}"
    for change in (lambda: monkeypatch.setenv("NODE_DISK", ""), lambda: monkeypatch.delenv("NODE_DISK")):
        change()
        with raises(families.UNSET_VARIABLE, root="$NODE_DISK/c", variable="NODE_DISK"):
            Cache("$NODE_DISK/c", 1)


class Layers:
    """Two tracks in one pass: the sample, and its double and its negative."""

    name, version, sample_rate, frame_length, hop, context, dimension = "layers", 1, RATE, 1, 1, 0, 3
    tracks = (("low", 1), ("high", 2))

    def extract(self, samples: np.ndarray) -> np.ndarray:
        return np.stack([samples, 2 * samples, -samples], axis=1)

    def describe(self) -> dict[str, Any]:
        return {}


class Longer(Layers):
    """A track of frames of two samples, one fewer a document."""

    name, frame_length, dimension = "sums", 2, 1
    tracks = (("sums", 1),)

    def extract(self, samples: np.ndarray) -> np.ndarray:
        return (samples[1:] + samples[:-1])[:, None]


@pytest.fixture
def heard(tmp_path: Path) -> dict[str, np.ndarray]:
    found = {name: noise(k, tenths) for k, (name, tenths) in enumerate({"a": 1.0, "b": 50.0, "c": 2.0}.items())}
    for name, samples in found.items():
        write_wav(tmp_path / f"{name}.wav", samples)
    return found


@pytest.fixture
def tracked(tmp_path: Path, heard: dict[str, np.ndarray]) -> Store:
    """Documents a and b in one shard, c in another; three tracks of two recipes."""
    folder = Folder(str(tmp_path / "store"))
    shards, tables, rejected = [], {"low": [], "high": [], "sums": []}, []
    for k, names in enumerate(["ab", "c"]):
        rows = [corpus_row(name, str(tmp_path / f"{name}.wav"), name) for name in names]
        low, high = write_tracks(folder, f"{k:032x}", rows, Layers())
        (sums,) = write_tracks(folder, f"{k + 10:032x}", rows, Longer(), partition=low.outputs[0].name)
        made = {"low": low, "high": high, "sums": sums}
        files = {name: File(*one.outputs[0]) for name, one in made.items()}
        shards.append(Shard(low.outputs[0].name, files, len(names), sum(low.documents["frames"].to_pylist())))
        for name, one in made.items():
            tables[name].append(one.documents)
        rejected.append(low.rejected)
    tracks = [made_of("low", tables["low"], 1), made_of("high", tables["high"], 2), made_of("sums", tables["sums"], 1)]
    commit(folder, tracks, 0.01, shards, rejected[0])
    return Store(folder)


def made_of(name: str, tables: list[Any], dimension: int) -> NewTrack:
    return NewTrack(name, {"name": name}, dimension, pa.concat_tables(tables))


@pytest.mark.parametrize("by", ["document", "speaker", "collection"])
@pytest.mark.parametrize("memory", [0, 1 << 30])
def test_documents_are_prepared_as_alone(tracked: Store, monkeypatch: pytest.MonkeyPatch, by: str, memory: int) -> None:
    monkeypatch.setattr(shard, "_TOGETHER_BYTES", 70_000)
    search, tracks = Search.model_validate({"documents_by": by}), Tracks(tracked)
    shards = [one.name for one in tracked.manifest.shards]
    rows, frozen = tracks.documents().to_pylist(), tracks.statistics()
    documents = shard.Documents(tracked.with_memory(Memory(memory) if memory else None), shards, search)
    for _ in range(2):
        indices = []
        for index, blocks in documents.stream():
            indices.append(index)
            row = rows[index]
            own = Statistics.from_variance(row["frames"], row["mean"], row["variance"])
            named = frozen["collection", ""] if by == "collection" else frozen["speaker", row["speaker"]]
            features = np.concatenate([block.features for block in tracks.blocks(row["shard"], {(row["doc_id"], 1)})])
            scaling = offset_and_scale(search, own if by == "document" else named)
            expected = documents.distance.prepare(features, *scaling, "document").frames
            assert np.concatenate(list(blocks)).tobytes() == expected.tobytes()
        assert indices == [0, 1, 2]


def test_they_are_compacted_and_refitted_together(tracked: Store, heard: dict[str, np.ndarray]) -> None:
    pinned = tracked.manifest.models
    compact(tracked.folder, 1.0)
    after = Store(tracked.folder)
    assert len(after.manifest.shards) == 1
    assert after.manifest.models == pinned
    for name, samples in heard.items():
        assert np.array_equal(after.features(name, track="high"), np.stack([2 * samples, -samples], axis=1))
    assert list(check(after)) == []
    refit(after.folder)
    assert Store(tracked.folder).manifest.models == pinned
    # A search reads the tracks of its streams in the store's order: it keeps its identity, however these are sorted.
    for names, read in ((("sums", "high", "low"), list(Tracks(after).places)), (("high", "low"), ["low", "high"])):
        search = Search.model_validate({"streams": [{"track": name} for name in names]})
        assert list(tracks_read(after, search).places) == read
    lost = after.manifest.shards[0].files["high"].name
    tracked.folder.remove(lost)
    assert [lost in problem for problem in check(Store(tracked.folder))] == [True]


def test_row_groups_that_hold_a_value(tmp_path: Path) -> None:
    """Whatever the order of values, as codes or not; a file that is written anew is read anew."""
    schema = pa.schema([pa.field("shard", pa.string(), False), pa.field("k", pa.int64(), False)])
    folder = Folder(str(tmp_path))

    def write(names: list[list[str]]) -> None:
        tables = [pa.table({"shard": some, "k": range(len(some))}, schema=schema) for some in names]
        parquet.publish(folder, "t.parquet", tables, schema)

    def read(name: str, **more: Any) -> pa.Table:
        return parquet.read_where(folder, "t.parquet", "shard", name, **more)

    write([["c", "a"], ["b"], ["a", "d"]])
    for _ in range(2):
        assert read("a")["shard"].to_pylist() == ["c", "a", "a", "d"]
        assert read("a").schema.equals(schema)
        assert read("b", columns=["k"])["k"].to_pylist() == [0]
        assert read("no").num_rows == 0
        coded = read("d", codes=["shard"])["shard"]
        assert (coded.to_pylist(), pa.types.is_dictionary(coded.type)) == (["a", "d"], True)
    write([["no"], ["a"]])
    assert read("no")["shard"].to_pylist() == ["no"]
    write([])
    assert read("a").num_rows == 0
    for k in range(9):
        parquet.publish(folder, f"t{k}.parquet", [], schema)
        parquet.read_where(folder, f"t{k}.parquet", "shard", "a")
    assert len(parquet._footers) <= 4


def test_stores_of_other_contents_are_others_and_frames_are_shared_by_decoders() -> None:
    def held(**sections: Any) -> dict[str, object]:
        corpus = {"documents": "d.csv", "queries": "q.csv"}
        return stored(config_from_dict({"run": "run", "corpus": corpus, **sections}))

    lattices: dict[str, Any] = {"chain": "lattices", "search": {"method": "lattice"}}
    options = [{}, {"source": "recogniser"}, {"source": "recogniser", "recogniser": {"options": {"scale": 10}}}]
    options.append({"recipe": {"acoustic_scale": 2}})
    frames = held(chain="search")
    others = [
        held(chain="search", features={"options": {"n_mfcc": 12}}),
        *(held(**lattices, options=o) for o in options),
    ]
    assert all(one not in [frames, *others[:k]] for k, one in enumerate(others))
    loops = [held(**lattices, options={"source": "frames", "decoding": {"scale": scale}}) for scale in (0.3, 1)]
    assert loops == [frames, frames]


def test_all_halves_as_single_precision() -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)].reshape(2, -1)
    halves.flags.writeable = False  # as those of a file are
    assert single(halves).tobytes() == halves.astype(np.float32).tobytes()


@pytest.mark.parametrize("name", ["1", "2", "3"])
def test_any_recording_that_is_there_shows_where_all_are(tmp_path: Path, name: str) -> None:
    paths = pa.chunked_array([[f"/gone/old/{each}.wav" for each in "123"]])
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / f"{name}.wav").touch()
    now = relocated_paths(Folder(str(tmp_path / "store")), "../new", paths, paths)
    assert now.to_pylist() == [f"{tmp_path}/new/{each}.wav" for each in "123"]
