"""Curves and warping paths on demand are those of the search."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

import swsdist
from swsdist.core.codes import families
from swsdist.core.codes import methods as methods_codes
from swsdist.core.errors import ConfigError, DataError, StoreError, UserError
from swsdist.kernels.distances.interface import Part, create, weighted_sum
from swsdist.kernels.products import local_distances
from swsdist.methods.curve import curve, path
from swsdist.methods.dtw.search import search
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.query.example import Example
from swsdist.registry.registries import RECURRENCES
from tests.oracles.patterns import ALL_BY_ONE, QUERY_BY_QUERY, candidate_cost
from tests.support.coded import raises

COSINE = create("cosine", 3)
SUM = weighted_sum([Part(COSINE, 0, 3, 2), Part(create("euclidean-squared", 3), 0, 3, 1)], 3)
KIND = st.sampled_from(["random", "few", "constant"])


def frames(rng: np.random.Generator, kind: str, length: int, distance, side: str) -> np.ndarray:
    data = {
        "random": rng.normal(size=(length, 3)),
        "few": rng.integers(-1, 2, (length, 3)),
        "constant": np.ones((length, 3)),
    }
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


@pytest.mark.parametrize("name", list(RECURRENCES))
def test_a_long_query_at_the_largest_distances(name: str) -> None:
    query = frames(np.random.default_rng(0), "constant", 600, COSINE, "query")
    document = -query[:1].repeat(900, axis=0)
    whole = curve(query, document, COSINE, name)
    # All cells are equal; non-segmental takes diagonal steps, which count double in the length.
    assert whole.cost[-1] == (candidate_cost(600 * 4095, 1200, 600) if name == "non-segmental" else 600 * 4095)


def test_what_cannot_be_traced() -> None:
    one = frames(np.random.default_rng(0), "constant", 3, COSINE, "query")
    for end in (-1, 3):
        with pytest.raises(UserError):
            path(one, one, end, COSINE)
    with pytest.raises(UserError):
        curve(np.zeros(((1 << 14) + 1, 3), np.float32), one, COSINE, "non-segmental")


# -- of a store -------------------------------------------------------------------------------------------------------

RATE = 8000


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three documents of coloured noise; `hello.wav` is a cut of d1, from 0.80 s to 1.30 s."""
    root = tmp_path_factory.mktemp("curve")
    rng = np.random.default_rng(5)
    (root / "audio").mkdir()
    for k in range(3):
        colour = np.cumsum(rng.normal(size=2 * RATE)) * 0.002
        soundfile.write(root / "audio" / f"d{k}.wav", (colour - colour.mean()).clip(-1, 1), RATE)
    samples, _ = soundfile.read(root / "audio" / "d1.wav")
    soundfile.write(root / "hello.wav", samples[round(0.8 * RATE) : round(1.3 * RATE)], RATE)
    from swsdist.pipeline.chain_run import StepSelection

    config = {
        "run": str(root / "run"),
        "corpus": {"documents": str(root / "audio")},
        "features": {"options": {"sample_rate": RATE, "n_fft": 256, "win_length": 200, "hop_length": 80}},
        "index": {"shards": 2},
        "executor": {"kind": "serial"},
    }
    swsdist.run(config, selection=StepSelection(until="index"))
    return root


@pytest.mark.parametrize("name", list(RECURRENCES))
@pytest.mark.parametrize("documents_by", ["document", "collection"])
def test_detections_lie_on_the_curve(place: Path, name: str, documents_by: str) -> None:
    store, query = str(place / "run" / "store"), str(place / "hello.wav")
    options = {"recurrence": name, "documents_by": documents_by} | ({"band": 4} if name == "segmental" else {})
    hits = swsdist.search(store, query, options=options, top=9, trim=False)
    best = hits.iloc[0]
    assert (best["doc_id"], abs(best["end"] - 1.3) < 0.1) == ("d1", True)
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


def test_columns_and_missing_values(place: Path) -> None:
    found = swsdist.curve(swsdist.open_store(str(place / "run" / "store")), str(place / "hello.wav"), "d1", trim=False)
    assert list(found.columns) == ["start", "end", "score", "cost", "frames"]
    assert found["end"].iloc[0] == 0.01
    missing = found["cost"].isna().tolist()  # a query of 48 frames needs 24 frames of the document
    assert missing == [k < 23 for k in range(len(found))] == found["score"].isna().tolist()


def test_mistakes(place: Path) -> None:
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
