"""Search, curves and warping paths without a run; what is no number is refused, with the argument's name."""

import inspect
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

import swsdist
from swsdist import metrics
from swsdist.core.codes import audio as audio_codes
from swsdist.core.codes import families
from swsdist.core.codes import methods as methods_codes
from swsdist.core.codes import searcher as searcher_codes
from swsdist.core.errors import ConfigError, DataError, StoreError, TableError, UserError
from swsdist.core.numbers import integer, number
from swsdist.core.types import DETECTIONS
from swsdist.kernels.distances.interface import Part, create, weighted_sum
from swsdist.kernels.products import local_distances
from swsdist.methods.curve import curve, path
from swsdist.methods.dtw.search import search
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.query.example import Example
from swsdist.pipeline.chain_run import StepSelection
from swsdist.registry.registries import RECURRENCES
from swsdist.searcher.queries import parse_query
from swsdist.searcher.searcher import Searcher
from swsdist.store.reading import Store
from tests.oracles.patterns import ALL_BY_ONE, QUERY_BY_QUERY, candidate_cost
from tests.support.coded import raises

RATE = 8000
OPTIONS = {"sample_rate": RATE, "n_fft": 256, "win_length": 200, "hop_length": 80}


@pytest.fixture(scope="module")
def store(place: Path) -> Store:
    return swsdist.open_store(str(place / "run" / "store"))


def test_parse(tmp_path: Path) -> None:
    for text, name, channel, start, end in (
        ("hello.wav", "hello.wav", None, None, None),
        ("talk.flac:12.3-13.1", "talk.flac", None, 12.3, 13.1),
        ("talk.flac:12:03.5-12:04.2", "talk.flac", None, 723.5, 724.2),
        ("s3://b/talk.flac:1:02:03-1:02:04.25", "s3://b/talk.flac", None, 3723.0, 3724.25),
        ("talk.flac:1:2:3:4-5", "talk.flac:1", None, 7384.0, 5.0),
        ("a:b.wav:1.-2.5", "a:b.wav", None, 1.0, 2.5),
        ("talk.flac:-1-2", "talk.flac:-1-2", None, None, None),
        ("talk.flac:100,0-100,8", "talk.flac", None, 100.0, 100.8),
        ("talk.flac:1:02,500-1:03,250", "talk.flac", None, 62.5, 63.25),
        ("talk.flac#2", "talk.flac", 2, None, None),
        ("s3://bucket/talk.flac#2:1-2", "s3://bucket/talk.flac", 2, 1.0, 2.0),
        ("a#1#2:1-2", "a#1", 2, 1.0, 2.0),
        ("a#b.wav", "a#b.wav", None, None, None),
        ("#2", "#2", None, None, None),
    ):
        row = parse_query(text)
        found = tuple(row[key] for key in ("query_id", "path", "channel", "start", "end", "example", "speaker"))
        assert found == (text, name, channel, start, end, 1, None)
    (tmp_path / "talk:1-2").touch()  # a file whose name looks like a place
    assert parse_query(f"{tmp_path}/talk:1-2")["path"] == f"{tmp_path}/talk:1-2"
    for text, decimal in {"1,234-1,300": "1.234", "1-1,300": "1.300", "1.5-100,250": "100.250"}.items():
        with raises(families.AMBIGUOUS, where=text, decimal=decimal, thousands=decimal.replace(".", "")):
            parse_query(f"talk.flac:{text}")


def test_a_cut_and_samples_are_found_where_they_were_cut(store: Store, place: Path) -> None:
    found = swsdist.search(store, str(place / "hello.wav"), trim=False)
    assert list(found.columns) == [name for name in DETECTIONS.names if name not in ("decision", "system")]
    first = found.iloc[0]
    assert first[["doc_id", "start", "end"]].tolist() == ["d2", *(pytest.approx(t, abs=0.05) for t in (1.0, 1.6))]
    assert (found["score"].diff().dropna() <= 0).all()
    text = f"{place / 'audio' / 'd2.wav'}:1.0-1.6"
    both = swsdist.search(store, [text, str(place / "hello.wav")], top=3, trim=False)
    assert both.groupby("query_id").size().to_dict() == {text: 3, str(place / "hello.wav"): 3}
    assert both[both["query_id"] == text].iloc[0][["doc_id", "start"]].tolist() == ["d2", 1.0]
    how = {"options": {"distance": "cosine-squared"}, "trim": False}
    squared = swsdist.search(store, str(place / "hello.wav"), **how).iloc[0]
    assert (squared["doc_id"], squared["cost"] != first["cost"]) == ("d2", True)
    samples, rate = soundfile.read(place / "hello.wav")
    same = swsdist.search(store, str(place / "hello.wav"), trim=False).drop(columns="query_id")
    for asked in ((samples, rate), (samples.astype(np.float32), np.int64(rate)), (samples.tolist(), float(rate))):
        found = swsdist.search(store, asked, trim=False)
        assert set(found["query_id"]) == {"array 1"}
        assert found.drop(columns="query_id").equals(same)
    both = swsdist.search(store, [str(place / "hello.wav"), (samples, rate)], top=2, trim=False)
    assert both["query_id"].tolist() == [str(place / "hello.wav")] * 2 + ["array 2"] * 2


ZEROS = np.zeros(RATE)


def test_what_are_no_samples_and_cannot_be_searched(store: Store, place: Path) -> None:
    no_samples: list[tuple[Any, Any]] = [
        (ZEROS, audio_codes.NOT_A_RECORDING),
        ((ZEROS.astype(np.int16), RATE), audio_codes.SAMPLES_NOT_FLOAT),
        ((np.stack([ZEROS, ZEROS]), RATE), audio_codes.SAMPLES_NOT_MONO),
        ((ZEROS[:0], RATE), audio_codes.SAMPLES_NOT_MONO),
        ((ZEROS + np.nan, RATE), audio_codes.NON_FINITE_SAMPLES),
        ((ZEROS + 3e4, RATE), audio_codes.SAMPLES_TOO_LARGE),
        *(((ZEROS, rate), audio_codes.BAD_SAMPLE_RATE) for rate in (0, 8000.5, float("nan"), "8000")),
        (5, audio_codes.NOT_A_RECORDING),
    ]
    for asked, code in no_samples:
        for queries in (asked, [asked]):
            with pytest.raises(UserError) as caught:
                swsdist.search(store, queries)
            message = code.message.partition("{")[0] or code.message.rpartition("}")[2]
            assert message in caught.value.message
            assert caught.value.where == "array 1"
    with pytest.raises(DataError, match="the query contains no speech") as silent:
        swsdist.search(store, [(ZEROS, RATE)])
    assert silent.value.where == "array 1"
    hello = str(place / "hello.wav")
    for queries in (f"{place}/gone.wav", [hello, f"{place}/gone.wav"]):
        with pytest.raises(DataError, match="there is no file"):
            swsdist.search(store, queries, trim=False)
    with pytest.raises(DataError, match=r"does not contain 1\.0 s to 9\.0 s"):
        swsdist.search(store, f"{hello}:1-9", trim=False)
    for options in ({"distanse": "cosine"}, {"distance": "hamming"}, {"lanes": 0}):
        with pytest.raises(ConfigError) as caught:
            swsdist.search(store, hello, options=options, trim=False)
        assert caught.value.where == f"search.{next(iter(options))}"
    with raises(families.MISSING_COLUMN, columns="name"):
        swsdist.search(store, pd.DataFrame({"name": ["x"]}), trim=False)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Four documents of noise; `hello.wav` is a cut of d2, from 1.00 s to 1.60 s."""
    root = tmp_path_factory.mktemp("direct")
    rng = np.random.default_rng(5)
    (root / "audio").mkdir()
    for k in range(4):
        colour = np.cumsum(rng.normal(size=3 * RATE)) * 0.002  # each moment differs from all others
        soundfile.write(root / "audio" / f"d{k}.wav", (colour - colour.mean()).clip(-1, 1), RATE)
    samples, _ = soundfile.read(root / "audio" / "d2.wav")
    soundfile.write(root / "hello.wav", samples[RATE : round(1.6 * RATE)], RATE)
    config = {"run": str(root / "run"), "corpus": {"documents": str(root / "audio")}, "index": {"shards": 2}}
    config |= {"features": {"options": OPTIONS}, "executor": {"kind": "serial"}}
    swsdist.run(config, selection=StepSelection(until="index"))
    return root


COSINE = create("cosine", 3)
SUM = weighted_sum([Part(COSINE, 0, 3, 2), Part(create("euclidean-squared", 3), 0, 3, 1)], 3)
KIND = st.sampled_from(["random", "few", "constant"])


def frames(rng: np.random.Generator, kind: str, n: int, distance, side: str) -> np.ndarray:
    data = {"random": rng.normal(size=(n, 3)), "few": rng.integers(-1, 2, (n, 3)), "constant": np.ones((n, 3))}
    return distance.prepare(data[kind].astype(np.float32), np.zeros(3), np.ones(3), side).frames


def check_path(cells: np.ndarray, table: np.ndarray, name: str, end: int, cost: int, size: int) -> None:
    """A path's cells are steps of the recurrence, and their charge is the detection's cost."""
    n = len(table)
    assert tuple(cells[0]) == (0, end - size + 1)
    assert tuple(cells[-1]) == (n - 1, end)
    charge = int(table[cells[:, 0], cells[:, 1]].sum())
    steps = [tuple(step) for step in np.diff(cells, axis=0).tolist()]
    if name == "bounded-slope":
        assert cells[:, 0].tolist() == list(range(n))
        # (1, 0) is the second query frame of a step (2, 1), and so comes after a (1, 1)
        assert set(steps) <= {(1, 1), (1, 2), (1, 0)}
        assert all(before == (1, 1) for before, step in zip([(1, 1), *steps], steps, strict=False) if step == (1, 0))
        assert charge == cost
    elif name == "asymmetric":
        assert set(steps) <= set(QUERY_BY_QUERY)
        assert charge == cost
    elif name == "non-segmental":
        assert set(steps) <= set(QUERY_BY_QUERY)
        assert candidate_cost(charge, 2 + sum(2 if step == (1, 1) else 1 for step in steps), n) == cost
    else:
        assert set(steps) <= set(ALL_BY_ONE)
        assert candidate_cost(charge, len(cells), n) == cost


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(list(RECURRENCES)),
    query=st.tuples(KIND, st.integers(1, 12)),
    document=st.tuples(KIND, st.integers(1, 90)),
    distance=st.sampled_from([COSINE, SUM]),
    band=st.integers(1, 6),
    ranged=st.booleans(),
    seed=st.integers(0, 2**20),
)
def test_curve_and_paths_are_the_candidates(name, query, document, distance, band, ranged, seed) -> None:
    rng = np.random.default_rng(seed)
    left, right = frames(rng, *query, distance, "query"), frames(rng, *document, distance, "document")
    table = local_distances(left, right, distance, ranged=ranged)
    assert table.shape == (query[1], document[1])
    options = {"band": band} if name == "segmental" else {}
    whole = curve(left, right, distance, name, options, ranged)
    assert ((whole.cost == -1) == (whole.frames == 0)).all()
    chosen = Settings(distance, 2, 16, 30, name, options=options, row_range=ranged)
    found = search([Example("q", 1, left)], [(0, [right])], np.array([99]), chosen)
    assert whole.cost[found.end_frame].tolist() == found.cost.tolist()
    assert whole.frames[found.end_frame].tolist() == found.frames.tolist()
    assert (len(found.cost) > 0) == bool((whole.frames > 0).any())
    for end in range(document[1]):
        if whole.frames[end] > 0:
            cells = path(left, right, end, distance, name, options, ranged)
            check_path(cells, table, name, end, int(whole.cost[end]), int(whole.frames[end]))
            if name == "segmental":
                assert cells[0, 1] % band == 0
                assert (np.abs(cells[:, 0] - (cells[:, 1] - cells[0, 1])) <= band).all()
        else:
            with pytest.raises(UserError, match=f"no path ends at frame {end}"):
                path(left, right, end, distance, name, options, ranged)


@pytest.mark.parametrize(
    ("name", "documents_by"), [("averages", "collection"), *((name, "document") for name in RECURRENCES)]
)
def test_detections_lie_on_the_curve(place: Path, name: str, documents_by: str) -> None:
    store, query = str(place / "run" / "store"), str(place / "hello.wav")
    options = {"recurrence": name, "documents_by": documents_by} | ({"band": 4} if name == "segmental" else {})
    hits = swsdist.search(store, query, options=options, top=5, trim=False)
    best = hits.iloc[0]
    assert (best["doc_id"], abs(best["end"] - 1.6) < 0.1) == ("d2", True)
    for hit in hits.to_dict("records"):
        found = swsdist.curve(store, query, hit["doc_id"], options=options, trim=False)
        row = found[np.isclose(found["end"], hit["end"])].iloc[0]
        assert (row["cost"], row["frames"], row["start"]) == (hit["cost"], hit["frames"], hit["start"])
        cells = swsdist.warping_path(store, query, hit["doc_id"], hit["end"], options=options, trim=False)
        assert cells["time"].iloc[0] == hit["start"]
        assert cells["time"].iloc[-1] == pytest.approx(hit["end"] - 0.01)
        assert cells["query_frame"].iloc[0] == 0
    if name == "bounded-slope":
        assert cells["distance"].mean() == pytest.approx(-row["score"])


def test_missing_values_and_what_cannot_be_traced(place: Path) -> None:
    found = swsdist.curve(swsdist.open_store(str(place / "run" / "store")), str(place / "hello.wav"), "d1", trim=False)
    assert list(found.columns) == ["start", "end", "score", "cost", "frames"]
    assert found["end"].iloc[0] == 0.01
    missing = found["cost"].isna().tolist()  # a query of 57 frames needs 29 frames of the document
    assert missing == [k < 28 for k in range(len(found))] == found["score"].isna().tolist()
    store, query = str(place / "run" / "store"), str(place / "hello.wav")
    for doc_id, channel in (("d9", 1), ("d1", 2)):
        with pytest.raises(StoreError, match=f"no document '{doc_id}', channel {channel}"):
            swsdist.curve(store, query, doc_id, channel=channel, trim=False)
    with pytest.raises(ConfigError, match="the recurrence asymmetric has no option band"):
        swsdist.curve(store, query, "d1", options={"recurrence": "asymmetric", "band": 3}, trim=False)
    with raises(families.UNDEFINED, frame=0):
        swsdist.warping_path(store, query, "d1", 0.01, trim=False)
    with raises(methods_codes.NO_SUCH_FRAME):
        swsdist.warping_path(store, query, "d1", 99.0, trim=False)
    for end in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(UserError, match=f"end: {end} "):
            swsdist.warping_path(store, query, "d1", end, trim=False)
    with pytest.raises(DataError):
        swsdist.curve(store, str(place / "none.wav"), "d1", trim=False)
    one = frames(np.random.default_rng(0), "constant", 3, COSINE, "query")
    for end in (-1, 3):
        with pytest.raises(UserError):
            path(one, one, end, COSINE)
    with pytest.raises(UserError):
        curve(np.zeros(((1 << 14) + 1, 3), np.float32), one, COSINE, "non-segmental")


TRUE = {"query_id": ["a"], "doc_id": ["x"], "start": [10.0], "end": [10.5]}
FOUND = {**TRUE, "score": [2.0], "decision": [True]}
NUMBERS = {"int", "float", "int | None", "float | None"}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(swsdist, name) for name in swsdist.__all__ if inspect.isfunction(getattr(swsdist, name))},
    "Searcher": Searcher,
    **{f"Searcher.{name}": one for name, one in inspect.getmembers(Searcher, inspect.isfunction) if name[0] != "_"},
    **{
        f"metrics.{name}": one
        for name, one in inspect.getmembers(metrics, inspect.isfunction)
        if one.__module__ == metrics.__name__ and name[0] != "_"
    },
}


def numbers() -> Iterator[tuple[str, str, bool]]:
    """Public function, argument that is a number, and whether it may be None."""
    for name, function in FUNCTIONS.items():
        known = {key: str(one.annotation) for key, one in inspect.signature(function).parameters.items()}
        if name.startswith("metrics."):
            known |= {key: str(kind.__forward_arg__) for key, kind in metrics.Options.__annotations__.items()}
        yield from ((name, key, "None" in kind) for key, kind in known.items() if kind in NUMBERS)


def arguments_of(name: str, place: Path) -> dict[str, Any]:
    """Arguments with which the function does its work."""
    hello, documents = str(place / "hello.wav"), str(place / "audio")
    mine: dict[str, Any] = {"store": str(place / "run" / "store"), "queries": hello, "query": hello, "doc_id": "d2"}
    mine |= {"end": 1.6, "trim": False, "weights": "none", "documents": documents}
    if name.startswith("metrics."):
        mine = {"key": "mtwv", "references": TRUE, "detections": FOUND, "total_seconds": 100.0}
    known = inspect.signature(FUNCTIONS[name]).parameters
    return {key: value for key, value in mine.items() if key in known}


def call(name: str, place: Path, **more: object) -> object:
    arguments = {**arguments_of(name, place), **more}
    if not name.startswith("Searcher."):
        return FUNCTIONS[name](**arguments)
    with Searcher(str(place / "run" / "store"), trim=False, memory=0) as searcher:
        found = FUNCTIONS[name](searcher, **arguments)
        return list(found) if inspect.isgenerator(found) else found


def test_what_is_no_number_is_refused_and_numbers_of_numpy_are_some(place: Path) -> None:
    asked = list(numbers())
    found = {(name, key) for name, key, _ in asked}
    assert {("search", "top"), ("Searcher", "memory"), ("warping_path", "end"), ("metrics.mtwv", "documents")} <= found
    for name, key, optional in asked:
        for bad in ("5", True, math.nan, [1], -1, *(() if optional else (None,))):
            if (key, bad) != ("penalty", -1):
                with pytest.raises(UserError) as told:
                    call(name, place, **{key: bad})
                assert (name, key, bad, told.value.where) == (name, key, bad, key)
                assert f"{key}=" in str(told.value.remedy)
    for name in ("search", "Searcher.search", "Searcher.stream"):  # no hits at all
        with raises(families.INVALID_VALUE, value="0", expected="a whole number of at least 1"):
            call(name, place, top=0)
    assert integer(np.int64(3), "top", 1) == 3
    assert number(np.float32(0.5), "end") == 0.5
    found = call("search", place, top=np.int16(2))
    assert found.equals(call("search", place, top=2))
    assert len(call("warping_path", place, end=np.float64(1.6)))


def test_a_closed_searcher_and_what_is_no_table_are_refused(place: Path) -> None:
    with Searcher(str(place / "run" / "store"), trim=False) as searcher:
        assert len(searcher.search(str(place / "hello.wav")))
    for name in ("search", "stream", "query_rows", "curve", "warping_path"):
        function = FUNCTIONS[f"Searcher.{name}"]
        with raises(searcher_codes.CLOSED_SEARCHER):
            list(function(searcher, **arguments_of(f"Searcher.{name}", place)))
    for table in ([1, 2], ["a"], 5, None, "references.csv"):
        for pair, where in (((table, FOUND), "references"), ((TRUE, table), "detections")):
            with pytest.raises(TableError) as told:
                metrics.mtwv(*pair, 100.0)
            assert told.value.where == where
