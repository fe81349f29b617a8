"""Searches with a first pass, a cap, without silence, and with the parts of SUPERB."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile

import swsdist
from swsdist.audio.speech import unpack_marks
from swsdist.config import config_from_dict
from swsdist.core.codes import config as config_codes
from swsdist.core.codes import families
from swsdist.core.codes import methods as codes
from swsdist.io.filesystem import Folder
from swsdist.methods import sample
from swsdist.methods.method import SPANS, create
from swsdist.pipeline.chain_run import StepSelection
from swsdist.registry.registries import FIRST_PASSES
from swsdist.store.reading import Store
from swsdist.store.statistics import statistics_in
from tests.support.coded import raises
from tests.support.tables import read_rows, write_rows


def first_pass(name: str, **settings: object) -> str:
    return f"search.first_pass={json.dumps({'name': name, **settings})}"


@pytest.mark.slow
@pytest.mark.until("decide")
@pytest.mark.parametrize("name", sorted(FIRST_PASSES))
def test_a_sample_of_everything_is_the_exact_search(scene: Any, undisturbed: dict[str, str], name: str) -> None:
    scene.run("index.shards=2", first_pass(name))
    sampled = scene.digest()
    assert {table: sampled[table] for table in undisturbed} == undisturbed


@pytest.mark.slow
@pytest.mark.until("decide")
@pytest.mark.parametrize("over", ["collection", "document"])
def test_a_collection_that_shrinks_is_searched_like_a_new_one(
    own_corpus: Any, over: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The share of the sample changes with the collection, and so do tasks of shards that do not."""
    monkeypatch.setattr(sample, "_FEWEST", 0)
    scene = own_corpus
    settings = first_pass("coarse", over=over, sample=12, windows={"least": 1, "per_second": 0})
    store = "index.store=" + str(scene.folder / "store")
    scene.run(settings, store, "index.shards=4")
    scene.select(1, 2, 3, 4)
    scene.run(settings, store, "index.shards=4")
    scene.run(settings, store, run="new")
    assert scene.digest() == scene.digest("new")


def saturated(scene: Any, *sets: str, run: str = "run") -> tuple[dict[str, Any], int, int]:
    """Summary of the one task of the search, and how many frames its examples and its documents have."""
    state = scene.run("search.distance=euclidean", *sets, run=run, until="search").outcome.chain_run
    (queries,), (search,) = state.outcomes["queries"].receipts, state.outcomes["search"].receipts
    return (
        search.result,
        queries.result["frames"],
        sum(shard.frames for shard in state.chain.inputs.store.manifest.shards),
    )


@pytest.mark.slow
def test_frames_beyond_the_cap_are_counted(own_corpus: Any) -> None:
    tiny = "search.cap=0.001"  # no frame of speech is within it
    summary, examples, documents = saturated(own_corpus, tiny)
    assert summary["saturated"] == examples + documents
    summary, examples, documents = saturated(own_corpus, tiny, "corpus.examples=all", "search.examples=template")
    assert summary["saturated"] == examples + documents, "those of all examples that a template is made of"
    some = saturated(own_corpus, "search.cap=6")[0]["saturated"]
    assert 0 < some < examples + documents
    cut = saturated(own_corpus, "search.cap=6", "search.piece_seconds=1", run="cut")
    assert cut[0]["saturated"] == some, "pieces of documents overlap, and are counted before they are cut"
    assert saturated(own_corpus, "search.cap=1e6")[0]["saturated"] == 0


@pytest.mark.parametrize("first_pass", ["quantised", "coarse"])
def test_with_a_first_pass_each_document_is_counted_once(own_corpus: Any, first_pass: str) -> None:
    summary, examples, documents = saturated(own_corpus, "search.cap=0.001", f"search.first_pass.name={first_pass}")
    assert summary["saturated"] == examples + documents, "the first pass reads them, and the visit reads them again"


ROOM = 2.0  # s between two words of a document


@pytest.fixture
def spoken(own_corpus: Any) -> Any:
    """Documents are words with room between them; queries are three of the words."""
    spoken = own_corpus
    rng = np.random.default_rng(8)
    rows = [row for row in read_rows(spoken.corpus / "queries.csv") if row["example"] == "1"]
    words = {row["query_id"]: soundfile.read(spoken.corpus / row["path"])[0] for row in rows}
    rate = soundfile.info(spoken.corpus / rows[0]["path"]).samplerate
    documents, references = [], []
    for k in range(4):
        parts, at = [rng.normal(scale=1e-4, size=round(ROOM * rate))], ROOM
        for query_id in rng.permutation(sorted(words)):
            word = words[query_id]
            place = {"channel": 1, "start": round(at, 3), "end": round(at + len(word) / rate, 3)}
            references.append({"query_id": query_id, "doc_id": f"d{k}", **place})
            parts += [word, rng.normal(scale=1e-4, size=round(ROOM * rate))]
            at += len(word) / rate + ROOM
        path = spoken.corpus / f"d{k}.wav"
        soundfile.write(path, np.concatenate(parts), rate)
        documents.append({"doc_id": f"d{k}", "path": path.name, "duration": round(at, 4)})
    write_rows(spoken.corpus / "docs.csv", documents)
    write_rows(spoken.corpus / "refs.csv", references)
    write_rows(spoken.corpus / "queries.csv", [{name: row[name] for name in ("query_id", "path")} for row in rows])
    return spoken


def hits(result: Any) -> dict[tuple[str, str], tuple[float, float, int]]:
    """The best detection of each query in each document."""
    found: dict[tuple[str, str], tuple[float, float, int]] = {}
    for row in result.detections().sort_values("score", ascending=False).to_dict("records"):
        found.setdefault((row["query_id"], row["doc_id"]), (row["start"], row["end"], row["cost"]))
    return found


@pytest.mark.slow
def test_what_is_found_without_the_silence_is_found_at_the_same_place(spoken: Any) -> None:
    everything = spoken.run("index.shards=1")
    silent = spoken.run("index.shards=3", "search.skip_silence=true", run="spoken")
    assert silent.report.counts.speech == everything.report.counts.speech
    assert 0.1 < silent.report.counts.speech < 0.6
    store = spoken.store("spoken")
    documents = store.documents()
    # As many cells as there are frames of speech.
    marked = sum(unpack_marks(row["speech"], row["frames"]).sum() for row in documents.to_pylist())
    cells = [
        sum(receipt.cost.cells for receipt in result.outcome.chain_run.outcomes["search"].receipts)
        for result in (silent, everything)
    ]
    assert cells[0] * sum(documents["frames"].to_pylist()) == cells[1] * marked
    references = read_rows(spoken.corpus / "refs.csv")
    of_all, of_spoken = hits(everything), hits(silent)
    assert len(references) == len(of_spoken) > 10
    for row in references:
        key, true = (row["query_id"], row["doc_id"]), (float(row["start"]), float(row["end"]))
        for start, end, _ in (of_all[key], of_spoken[key]):
            assert start < true[1]
            assert true[0] < end
        # The word itself lies whole in speech, so the best path through it is the same.
        assert of_spoken[key] == of_all[key]


@pytest.mark.until("queries")
def test_a_second_track_and_a_query_have_no_marks(spoken: Any) -> None:
    spoken.run("features=[{name: mfcc}, {name: mfcc, track: fewer, options: {n_mfcc: 7}}]", "search.distance=cosine")
    store = spoken.store()
    assert [store.documents(track=track.name)["speech"].null_count for track in store.manifest.tracks] == [0, 4]
    assert spoken.store("run", "queries").manifest.counts.get("heard_seconds", 0) == 0


DIMENSION, POOLED = 6, {"documents_by": "pooled", "queries_by": "pooled"}
SUPERB = {"distance": "cosine-exp", "recurrence": "asymmetric", "row_range": True, "least_query_frames": 5, **POOLED}
Run = Callable[..., Any]


@pytest.fixture(scope="module")
def frames() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    lengths = {f"d{k}": 20 + 11 * k for k in range(7)} | {"q0-1": 9, "q1-1": 4, "q2-1": 14, "q3-1": 12}
    scale = 1 + np.arange(DIMENSION)
    return {key: (scale * rng.normal(size=(n, DIMENSION)) + 1).astype(np.float32) for key, n in lengths.items()}


@pytest.fixture(scope="module")
def folder(frames: dict[str, np.ndarray], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("superb")
    np.savez(folder / "features.npz", **frames)
    (folder / "docs.csv").write_text("\n".join(["doc_id", *(key for key in frames if key[0] == "d"), ""]))
    queries = [key.replace("-", ",") for key in frames if key[0] == "q"]
    (folder / "queries.csv").write_text("\n".join(["query_id,example", *queries, ""]))
    return folder


@pytest.fixture(scope="module")
def searched_by(folder: Path) -> Run:
    def searched_by(name: str, search: dict[str, object], until: str = "search", **index: object) -> Any:
        features = {"path": str(folder / "features.npz"), "shift": 0.02, "dimension": DIMENSION}
        return swsdist.run(
            {
                "run": str(folder / name),
                "corpus": {"documents": str(folder / "docs.csv"), "queries": str(folder / "queries.csv")},
                "features": {"name": "external", "options": features},
                "index": index,
                "search": search,
                "calibrate": {"steps": ["q-norm"]},
                "executor": {"kind": "serial"},
                "report": {"exports": ["csv"]},
            },
            selection=StepSelection(until=until) if until else None,
        )

    return searched_by


def candidates(folder: Path, name: str) -> list[dict[str, Any]]:
    rows = [
        row
        for file in (folder / name / "tables" / "candidates").glob("*.parquet")
        for row in pq.read_table(file).to_pylist()
    ]
    return sorted(rows, key=lambda row: [row[key] for key in ("query_id", "example", "doc_id", "last")])


def test_pooled_statistics_are_of_all_frames_whatever_the_shards(
    searched_by: Run, folder: Path, frames: dict[str, Any]
) -> None:
    for shards in (1, 3):
        searched_by(f"of-{shards}", SUPERB, shards=shards)
    of_shards = [candidates(folder, f"of-{shards}") for shards in (1, 3)]
    assert of_shards[0] == of_shards[1]
    assert {row["query_id"] for row in of_shards[0]} == {"q0", "q2", "q3"}  # q1 is too short
    assert all(row["scale"] == 4095 * len(frames[f"{row['query_id']}-{row['example']}"]) for row in of_shards[0])
    (file,) = (folder / "of-3" / "tables" / "pooled_statistics").glob("*.parquet")
    queries = statistics_in(pq.read_table(file))["pooled", ""]
    pooled = Store(Folder(str(folder / "of-3" / "store"))).statistics()["collection", ""].pooled(queries)
    everything = np.concatenate(list(frames.values())).astype(np.float64)
    assert pooled.frames == len(everything)
    assert pooled.mean == pytest.approx(everything.mean(axis=0))
    assert pooled.variance == pytest.approx(everything.var(axis=0, ddof=1))


def test_too_short_queries_are_named(searched_by: Run, folder: Path) -> None:
    ended = searched_by("named", SUPERB, until="")
    warning = "1 query examples have fewer frames than search.least_query_frames, 5: they are not searched"
    assert any(warning in text for text in ended.report.warnings)
    assert set(ended.detections()["query_id"]) == {"q0", "q2", "q3"}
    searched_by("none-left", {**SUPERB, "least_query_frames": 15})
    assert candidates(folder, "none-left") == []


def test_curve_path_and_spans_have_the_range_of_the_document(
    searched_by: Run, folder: Path, frames: dict[str, Any]
) -> None:
    search = {**SUPERB, "documents_by": "collection", "queries_by": "collection", "least_query_frames": 1}
    searched_by("curves", search)
    store, query = str(folder / "curves" / "store"), str(folder / "q0.npy")
    np.save(query, frames["q0-1"])
    rows = [row for row in candidates(folder, "curves") if row["query_id"] == "q0"]
    assert len({row["doc_id"] for row in rows}) == 7
    for row in rows:
        curve = swsdist.curve(store, query, row["doc_id"], options=search)
        assert curve["cost"][row["last"]] == row["cost"]
        assert curve["score"][row["last"]] == pytest.approx(-row["cost"] / row["scale"])
        path = swsdist.warping_path(store, query, row["doc_id"], (row["last"] + 1) * 0.02, options=search)
        assert path["distance"].sum() * 4095 == pytest.approx(row["cost"])
        assert (path["frame"].iloc[0], path["frame"].iloc[-1]) == (row["first"], row["last"])
    opened = Store(Folder(store))
    method = create(config_from_dict({"run": "r", "corpus": {"documents": "d"}, "search": search}).search)
    example = {"query_id": "q0", "example": 1, "duration": 0.18, "frames": 9, "features": frames["q0-1"].tobytes()}
    table = pa.Table.from_pylist([example], swsdist.core.types.EXAMPLES)
    spans = pa.Table.from_pylist([{name: row[name] for name in SPANS.names} for row in rows], SPANS)
    rescored = method.rescore(method.prepare(table, opened), opened, spans).to_pylist()
    assert [(row["cost"], row["scale"]) for row in rescored] == [(row["cost"], row["scale"]) for row in rows]


def test_what_is_refused(searched_by: Run, folder: Path) -> None:
    def config(**search: object) -> object:
        return config_from_dict({"run": "r", "corpus": {"documents": "d"}, "search": search})

    with raises(families.CONFLICTING_OPTIONS, documents_by="pooled", queries_by="speaker"):
        config(documents_by="pooled")
    with raises(config_codes.NOTHING_NORMALISED, key="documents_by"):
        config(**POOLED, normalise="none")
    for setting in ("row_range", "skip_silence"):
        for name in FIRST_PASSES:
            with raises(config_codes.FIRST_PASS_CONFLICT, setting=f"{setting}: true"):
                config(**{setting: True, "first_pass": {"name": name}})
    with raises(codes.UNUSED_SEARCH_KEY, key="row_range"):
        create(config(method="windows", row_range=True).search)  # type: ignore[attr-defined]
    searched_by("refused", SUPERB, until="index")
    with raises(families.UNSUPPORTED, where="search.documents_by"):
        swsdist.search(str(folder / "refused"), str(folder / "queries.csv"))
