"""Frames that search.drop leaves out, and the mean of a short query: what is found is as defined."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import soundfile
from pydantic import ValidationError

from swsdist.config.search import Search
from swsdist.core.codes import config as codes
from swsdist.core.codes import families
from swsdist.core.codes import methods as methods_codes
from swsdist.core.types import EXAMPLES
from swsdist.features.statistics import Statistics
from swsdist.io.filesystem import Folder
from swsdist.methods.dtw.shard import search_shard
from swsdist.methods.method import SPANS, create
from swsdist.methods.query.extraction import extract, prepared
from swsdist.searcher.searcher import Pair
from swsdist.store.manifest import File, NewTrack, Shard, commit
from swsdist.store.memory import Memory
from swsdist.store.reading import Store
from swsdist.store.writing import write_tracks
from tests.support.coded import raises

RATE = 1000

STREAMS = [
    {"track": "values", "distance": "cosine-squared", "normalise": "none"},
    {"track": "classes", "distance": "kl", "normalise": "none"},
]

#: Frames of documents; more than a block of a store in one.
FRAMES = {"a": 3000, "b": 90, "c": 700}


class Values:
    """A frame a sample: three numbers of it."""

    name, version, sample_rate, frame_length, hop, context, dimension = "values", 1, RATE, 1, 1, 0, 3
    tracks = (("values", 3),)

    def extract(self, samples: np.ndarray) -> np.ndarray:
        return np.stack([samples, np.cos(60 * samples), np.sin(40 * samples)], axis=1).astype(np.float32)

    def describe(self) -> dict[str, Any]:
        return {}


class Classes(Values):
    """Posteriors of four classes."""

    name, dimension = "classes", 4
    tracks = (("classes", 4),)

    def extract(self, samples: np.ndarray) -> np.ndarray:
        values = np.exp(3 * np.cos(np.outer(samples, [20, 35, 50, 65]) + np.arange(4)))
        return (values / values.sum(1, keepdims=True)).astype(np.float32)


def kept(samples: np.ndarray, above: float | None) -> np.ndarray:
    """Which frames stay if the second and third class are dropped."""
    posteriors = Classes().extract(samples)
    return ~np.isin(posteriors.argmax(1), [1, 2]) if above is None else posteriors[:, 1:3].sum(1) <= above


def store_of(place: Path, sounds: dict[str, np.ndarray], shards: list[str]) -> Store:
    folder, made, files = Folder(str(place / "store")), {"values": [], "classes": []}, []
    for k, names in enumerate(shards):
        rows = []
        for name in names:
            soundfile.write(place / f"{name}.wav", sounds[name], RATE, subtype="FLOAT")
            path = str(place / f"{name}.wav")
            rows.append({"doc_id": name, "channel": 1, "path": path, "speaker": None, "identity": "1:2"})
        (values,) = write_tracks(folder, f"{k:032x}", rows, Values())
        (classes,) = write_tracks(folder, f"{k + 10:032x}", rows, Classes(), partition=values.outputs[0].name)
        both = {"values": File(*values.outputs[0]), "classes": File(*classes.outputs[0])}
        files.append(Shard(values.outputs[0].name, both, len(names), sum(values.documents["frames"].to_pylist())))
        made["values"].append(values.documents)
        made["classes"].append(classes.documents)
        rejected = values.rejected
    tracks = [NewTrack(name, {"name": name}, len(name) - 3, pa.concat_tables(made[name])) for name in made]
    commit(folder, tracks, 1 / RATE, files, rejected)
    return Store(folder)


def examples_of(place: Path, sounds: dict[str, np.ndarray], store: Store, search: Search) -> Any:
    rows = []
    for name, samples in sounds.items():
        soundfile.write(place / f"{name}.wav", samples, RATE, subtype="FLOAT")
        row = {"query_id": name, "example": 1, "path": str(place / f"{name}.wav"), "channel": 1}
        rows.append({**row, "start": None, "end": None, "speaker": None})
    dropping = search.dropping({"values": (0, 3), "classes": (3, 7)})
    return extract(rows, [Values(), Classes()], store.folder, search, trim=False, dropping=dropping)


def found(store: Store, queries: pa.Table, search: Search) -> tuple[dict[tuple[str, str, int], tuple[int, int]], int]:
    """First frame and cost of the candidates, by query, document and last frame; and the frames that were compared."""
    rows, searched = {}, 0
    for shard in store.manifest.shards:
        examples = create(search).prepare(queries, store)(1)
        documents, matches, frames = search_shard(store, shard.name, examples, search)
        searched += frames
        names = documents["doc_id"].to_pylist()
        for query, document, end, count, cost in zip(
            matches.query, matches.document, matches.end_frame, matches.frames, matches.cost, strict=True
        ):
            rows[examples[query].query_id, names[document], int(end)] = int(end - count + 1), int(cost)
    return rows, searched


@pytest.fixture
def sounds() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    return {name: rng.normal(scale=0.1, size=count).astype(np.float32) for name, count in FRAMES.items()}


def search_of(**keys: Any) -> Search:
    return Search.model_validate({"streams": STREAMS, "candidates": {"least": 5, "per_second": 0}, **keys})


@pytest.mark.parametrize(
    ("above", "shards", "memory", "recurrence"),
    [
        (None, ["abc"], 0, "bounded-slope"),
        (0.6, ["a", "bc"], 1 << 30, "bounded-slope"),
        (0.6, ["abc"], 0, "averages"),
        (None, ["a", "bc"], 1 << 30, "averages"),
    ],
)
def test_a_store_without_these_frames_gives_the_same(tmp_path: Path, sounds, above, shards, memory, recurrence) -> None:
    places = {name: np.flatnonzero(kept(samples, above)) for name, samples in sounds.items()}
    spoken = {"q": sounds["a"][500:540], "r": sounds["c"][60:90]}
    for folder in ("full", "less"):
        (tmp_path / folder).mkdir()
    store = store_of(tmp_path / "full", sounds, shards)
    less = store_of(tmp_path / "less", {name: sounds[name][frames] for name, frames in places.items()}, ["abc"])
    plain = search_of(recurrence=recurrence)
    search = search_of(recurrence=recurrence, drop={"track": "classes", "columns": [1, 3], "above": above})
    short = {name: samples[kept(samples, above)] for name, samples in spoken.items()}
    assert all(5 < len(short[name]) < len(samples) - 5 for name, samples in spoken.items())
    expected, frames = found(less, examples_of(tmp_path / "less", short, less, plain).examples, plain)
    queries = examples_of(tmp_path / "full", spoken, store, search).examples
    store = store.with_memory(Memory(memory)) if memory else store
    moved = {
        (query, document, int(places[document][end])): (int(places[document][first]), cost)
        for (query, document, end), (first, cost) in expected.items()
    }
    assert len(moved) > 20
    for _ in range(2):  # the second time from memory
        assert found(store, queries, search) == (moved, frames)
    assert frames == sum(map(len, places.values()))


def test_curve_and_path_are_in_frames_of_the_recordings(tmp_path: Path, sounds: dict[str, np.ndarray]) -> None:
    search = search_of(drop={"track": "classes", "columns": [1, 3]})
    store = store_of(tmp_path, {**sounds, "d": sounds["b"][~kept(sounds["b"], None)]}, ["abcd"])
    queries = examples_of(tmp_path, {"q": sounds["a"][500:540]}, store, search).examples
    (_, _, end), (first, cost) = min(found(store, queries, search)[0].items(), key=lambda item: item[1][1])
    assert cost == 0
    pair = Pair.of(store, queries, "a", 1, search)
    row = next(row for row in pair.curve().to_pylist() if round(row["end"] * RATE) == end + 1)
    assert (round(row["start"] * RATE), row["cost"], row["frames"]) == (first, 0, end - first + 1)
    cells = pair.path((end + 1) / RATE)
    inside = np.flatnonzero(kept(sounds["a"][500:540], None))
    assert cells["query_frame"].to_pylist() == inside.tolist()
    assert set(cells["frame"].to_pylist()) <= set((500 + inside).tolist())
    assert [cells["frame"][0].as_py(), cells["frame"][-1].as_py()] == [first, end]
    dropped = int(np.flatnonzero(~kept(sounds["a"], None))[50])
    with raises(methods_codes.NO_SUCH_FRAME, frame=dropped):
        pair.path((dropped + 1) / RATE)
    with raises(families.UNDEFINED, doc_id="d"):
        Pair.of(store, queries, "d", 1, search)


@pytest.mark.parametrize("row_range", [False, True])
def test_rescored_spans_are_of_searched_frames(tmp_path: Path, sounds: dict[str, np.ndarray], row_range: bool) -> None:
    search = search_of(drop={"track": "classes", "columns": [1, 3]}, row_range=row_range)
    store = store_of(tmp_path, {**sounds, "d": sounds["b"][~kept(sounds["b"], None)]}, ["abcd"])
    queries = examples_of(tmp_path, {"q": sounds["a"][500:540]}, store, search).examples
    expected = found(store, queries, search)[0]
    spans = [
        {"query_id": "q", "doc_id": name, "channel": 1, "first": first, "last": last}
        for (_, name, last), (first, _) in expected.items()
    ]
    spans.append({**spans[0], "doc_id": "d", "first": 0, "last": 20})
    method = create(search)
    rescored = method.rescore(method.prepare(queries, store), store, pa.Table.from_pylist(spans, SPANS)).to_pylist()
    # A path with the same or a lower cost may begin later in the span; none is in the document that is dropped.
    assert [row["doc_id"] for row in rescored] == [name for _, name, _ in expected]
    assert all(row["cost"] <= cost for row, (_, cost) in zip(rescored, expected.values(), strict=True))
    places = {name: np.flatnonzero(kept(samples, None)).tolist() for name, samples in sounds.items()}
    assert all({row["first"], row["last"]} <= set(places[row["doc_id"]]) for row in rescored)


def test_a_query_of_which_nothing_is_left_is_rejected_and_what_is_not_there(
    tmp_path: Path, sounds: dict[str, np.ndarray]
) -> None:
    drop = {"track": "classes", "columns": [1, 3]}
    store, count = store_of(tmp_path, sounds, ["abc"]), int(kept(sounds["a"][:40], None).sum())
    spoken = {"q": sounds["a"][:40], "gone": sounds["a"][:40][~kept(sounds["a"][:40], None)]}
    for least, left in ((1, ["q"]), (count, ["q"]), (count + 1, [])):
        extracted = examples_of(tmp_path, spoken, store, search_of(drop=drop, least_query_frames=least))
        assert extracted.examples["query_id"].to_pylist() == left
        bad = {row["id"]: row for row in extracted.rejected.to_pylist()}
        assert sorted(bad) == sorted({*spoken} - {*left})
        assert bad["gone"]["reason"] == methods_codes.TOO_FEW_KEPT.name
        assert f"0 of the query's {len(spoken['gone'])} frames" in bad["gone"]["message"]
    for track, columns, code in (
        ("cz", [0, 1], codes.NO_SUCH_TRACK),
        ("classes", [1, 5], codes.NO_SUCH_COLUMNS),
        ("classes", [0, 4], families.CONFLICTING_OPTIONS),
    ):
        with raises(code):
            search_of(drop={"track": track, "columns": columns}).dropping({"values": (0, 3), "classes": (3, 7)})


NORMAL = np.random.default_rng(0).normal(3.0, 2.0, (50, 4)).astype("<f4")
COLLECTION = Statistics.from_variance(1000, np.zeros(4), np.full(4, 4.0))
OF_RECORDING = {"mean": [1.0] * 4, "variance": [9.0] * 4}


def example_of(search: Search, **columns: Any) -> np.ndarray:
    row = dict.fromkeys(EXAMPLES.names) | {"query_id": "q", "example": 1, "frames": len(NORMAL), **columns}
    row["features"] = NORMAL.tobytes()
    names = ("query_id", "example", "speaker", "frames", "features", "mean", "variance")
    table = pa.table({name: [row[name]] for name in names})
    (example,) = prepared(table, {("collection", ""): COLLECTION}, search, 4)
    return example.frames


def search_with(**settings: Any) -> Search:
    return Search(**{"distance": "cosine", "normalise": "mean-variance", **settings})


@pytest.mark.parametrize("weight", [1, 100, 10**9])
def test_own_mean_counts_by_its_frames(weight: int) -> None:
    mean = (50 * NORMAL.astype(np.float64).mean(axis=0) + weight * COLLECTION.mean) / (50 + weight)
    moved = Statistics.from_variance(1, mean, COLLECTION.variance)
    row = {"query_id": "q", "example": 1, "speaker": None, "mean": None, "variance": None}
    row |= {"frames": len(NORMAL), "features": NORMAL.tobytes()}
    table = pa.table({name: [value] for name, value in row.items()})
    (expected,) = prepared(table, {("collection", ""): moved}, search_with(), 4)
    assert np.array_equal(example_of(search_with(corpus_frames=weight)), expected.frames)


def test_own_mean_counts_where_it_is_asked_for() -> None:
    many = example_of(search_with(corpus_frames=10**12))
    assert np.array_equal(example_of(search_with()), many)
    assert not np.array_equal(example_of(search_with(corpus_frames=100)), many)
    for by in ("document", "collection"):  # a place in a recording keeps the recording's
        ways = ({"documents_by": by}, {"documents_by": by, "corpus_frames": 100})
        assert np.array_equal(*(example_of(search_with(**how), **OF_RECORDING) for how in ways))
    posteriors = {"distance": "kl", "normalise": "none"}
    Search(**posteriors)
    for setting in ({"corpus_frames": 100}, {"queries_by": "collection"}, {"documents_by": "speaker"}):
        with pytest.raises(ValidationError) as error:
            Search(**posteriors, **setting)
        assert error.value.errors()[0]["type"] == codes.NOTHING_NORMALISED.name
