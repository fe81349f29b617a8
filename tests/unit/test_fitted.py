"""Sums that transforms and thresholds are fitted on: exact, the same in any order and any cut."""

import inspect
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.calibrate.procedure import Procedure, by_fold, count, fit_procedure, from_bytes, threshold_of, to_bytes
from swsdist.calibrate.steps.interface import TwvParameters
from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.core.errors import ConfigError
from swsdist.core.types import TRIALS
from swsdist.features.fitting.interface import FEWER, Document, Fitted, Model, fit
from swsdist.features.fitting.moments import Moments, Sums, moments, products
from swsdist.features.transforms.interface import FittedTransform, Shape
from swsdist.features.transforms.project import Projection
from swsdist.features.transforms.projections import Pca
from swsdist.io.filesystem import Folder
from swsdist.kernels import regression
from swsdist.kernels.regression import LABELLED_ROWS, Labelled
from swsdist.registry.registries import TRANSFORMS
from swsdist.score.events import of_table
from swsdist.score.measures.curve import Counts, total
from tests.oracles.thresholds import fit_threshold
from tests.support.coded import raises

DOCUMENTS = [np.random.default_rng(k).normal(k, 3 + k, (20 + 7 * k, 5)).astype(np.float32) for k in range(6)]


def summed(order: list[int]) -> Sums:
    total = Sums(0, [0] * 5, [0] * 5)
    for k in order:
        total = total + Sums.from_blocks([DOCUMENTS[k]], 5)
    return total


@settings(max_examples=20)
@given(st.permutations(range(6)), st.integers(1, 30))
def test_any_order_and_any_blocks(order: list[int], rows: int) -> None:
    assert summed(order) == summed(list(range(6)))
    mean, deviation = summed(order).mean_and_deviation()
    whole = np.concatenate(DOCUMENTS)
    blocks = [whole[k : k + rows] for k in range(0, len(whole), rows)]
    one = sum(products([DOCUMENTS[k]], mean, deviation) for k in order)
    assert np.array_equal(one, products(blocks, mean, deviation))


def test_moments_are_those_of_numpy() -> None:
    whole = np.concatenate(DOCUMENTS).astype(np.float64)
    mean, deviation = summed(list(range(6))).mean_and_deviation()
    assert mean == pytest.approx(whole.mean(axis=0), rel=1e-9)
    assert deviation == pytest.approx(whole.std(axis=0), rel=1e-9)
    totals = {"frames": np.array([len(whole)]), "products": products(DOCUMENTS, mean, deviation)}
    found = moments(totals, mean, deviation)
    assert found.covariance == pytest.approx(np.cov(whole.T, bias=True), rel=1e-3, abs=1e-2)


def test_small_numbers_count_too() -> None:
    """Posteriors: most of them near 0."""
    small = np.full((100, 2), 1e-4, np.float32)
    small[:, 1] *= np.arange(100, dtype=np.float32)
    mean, deviation = Sums.from_blocks([small], 2).mean_and_deviation()
    assert deviation[0] == 1  # it does not vary
    assert deviation[1] == pytest.approx(small[:, 1].std(dtype=np.float64), rel=1e-4)
    assert mean == pytest.approx(small.mean(axis=0, dtype=np.float64), rel=1e-5)


def test_axes_are_the_same_whatever_their_sign() -> None:
    axes = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    known = Moments(9, np.zeros(4), axes @ np.diag([8.0, 4.0, 2.0, 1.0]) @ axes.T)
    made = Pca(columns=3, whiten=False).solve(known).arrays["projection"]
    assert np.abs(made.T @ axes) == pytest.approx(np.eye(4)[:3], abs=1e-9)
    assert (made[np.abs(made).argmax(axis=0), range(3)] > 0).all()
    white = Pca(columns=3).solve(known).arrays["projection"]
    assert white.T @ known.covariance @ white == pytest.approx(np.eye(3), abs=1e-9)


def test_what_does_not_vary_is_no_component() -> None:
    """Logits without their mean, for example: one dimension fewer than columns."""
    model = Pca(columns=3).solve(Moments(9, np.zeros(3), np.diag([2.0, 0.0, 1.0])))
    made = Projection.of(model)
    assert (model.settings[FEWER], made.made(3, "pca"), made.made(1, "pca")) == (3, 2, 1)
    with raises(codes.TOO_MANY_COMPONENTS, wanted=4, available=2):
        made.made(4, "pca")


def test_what_tells_the_position_is_removed() -> None:
    """Frames are a small word and a large wave of their position: the first component is the word's."""
    random = np.random.default_rng(4)
    word, wave = np.array([0.6, 0.8, 0.0, 0.0]), np.array([0.0, 0.0, 0.8, 0.6])
    documents = []
    for frames in random.integers(20, 60, 400):
        said, at = random.normal(size=frames), np.arange(frames)
        made = said[:, None] * word + 9 * np.sin(at / 3)[:, None] * wave + random.normal(scale=0.1, size=(frames, 4))
        documents.append(Document([made.astype(np.float32)], positions=at))
    first = {n: fit(Pca(columns=1, positions=n).rounds(), documents).arrays["projection"][:, 0] for n in (0, 1)}
    assert abs(first[0] @ wave) > 50 * abs(first[0] @ word)
    assert abs(first[1] @ word) > 50 * abs(first[1] @ wave)
    with raises(families.UNSUPPORTED):
        fit(Pca(columns=1, positions=1).rounds(), [Document(item.blocks) for item in documents])
    one_place = [Document([item.blocks[0][:1]], positions=np.zeros(1, int)) for item in documents]
    fit(Pca(columns=3, positions=3).rounds(), one_place)  # there is one direction to remove
    assert Pca(columns=1).describe().keys() == Pca(columns=1, positions=1).describe().keys() - {"positions"}


def fitted_ones() -> list[str]:
    loaded = {name: TRANSFORMS[name].load() for name in TRANSFORMS}
    return [name for name, one in loaded.items() if inspect.isclass(one) and hasattr(one, "rounds")]


def test_what_all_say_alike(tmp_path: Path) -> None:
    """Without a model, with a file that is none, and with the model of something else."""
    assert Pca(columns=2).becomes(Shape(("a", "b", "c"), "logits")) == Shape(("p0", "p1"), "features")
    names = fitted_ones()
    assert set(names) >= {"correspondence", "gmm", "hlda", "lda", "mean-variance", "pca", "phones", "warp"}
    Model("other", 1, {"it": np.zeros(3)}).save(Folder(str(tmp_path)), "other.npz")
    shape = Shape(("a", "b", "c"), "features")
    for name in names:
        one: Any = TRANSFORMS[name].load()
        made = one(**NEEDED.get(name, {}))
        assert isinstance(made, FittedTransform)
        assert isinstance(made, Fitted)
        assert made.files() == []
        with raises(codes.MODEL_NOT_FITTED, where=f"features.transforms: {name}, model", name=f"the transform {name}"):
            made.apply(np.zeros((1, 3), np.float32))
        none, other = (made.with_model(str(tmp_path / file)) for file in ("none.npz", "other.npz"))
        assert (none["model"], none.get("labels")) == (str(tmp_path / "none.npz"), None)
        assert one(**none).files() == [tmp_path / "none.npz"]
        with raises(codes.NO_MODEL_OBJECT, where=f"features.transforms: {name}, model: {none['model']}"):
            one(**none).becomes(shape)
        with pytest.raises(ConfigError) as told:
            one(**other).becomes(shape)
        assert told.value.where == f"features.transforms: {name}, model: {other['model']}"


#: What each must be given.
NEEDED = {"pca": {"columns": 2}, "lda": {"columns": 2}, "hlda": {"columns": 2}, "correspondence": {"columns": 2}}


def _aligned(queries: int, rows: int, seed: int, decimals: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    size = queries * rows
    true = rng.random(size) < 0.1
    score = np.round(np.where(true, rng.beta(4, 2, size), rng.beta(2, 4, size)), decimals)
    names, needed = [f"q{seed}-{k % queries}" for k in range(size)], {"doc_id": "d", "channel": 1}
    places = [0.0 if hit else None for hit in true]
    columns = [pa.array(names), pa.array(score), pa.array(places, pa.float64())]
    table = pa.table(columns, names=["query_id", "score", "ref_start"]).to_pylist()
    return pa.Table.from_pylist([needed | row for row in table], TRIALS)


@pytest.mark.parametrize(("decimals", "folds"), [(2, 4), (15, 1), (15, 4)])
def test_thresholds_are_those_of_counts_in_memory(decimals: int, folds: int) -> None:
    tables = [_aligned(6, 40, seed, decimals) for seed in range(24)]
    memory: dict[int, Counts] = {}
    for table in tables:
        for fold, rows in by_fold(table, folds):
            memory[fold] = memory.get(fold, Counts.zero()) + Counts.of(rows)
    for beta in (0.5, 20.0, 1e6):
        others = [total(counts for k, counts in memory.items() if folds == 1 or k != fold) for fold in range(folds)]
        expected = tuple(fit_threshold(counts, trials=100_000, beta=beta) for counts in others)
        how: dict[str, Any] = {
            "own_threshold": True,
            "point": TwvParameters(100_000, beta),
            "trained_on": {"of": "these"},
        }
        found = fit_procedure(lambda: tables, Procedure(()), folds=folds, **how)
        assert found.thresholds == expected
        assert found.trained_on == {"of": "these", "queries": 6 * len(tables)}


def test_nothing_to_learn_from() -> None:
    for trials in (10, 1):
        assert threshold_of([], [], TwvParameters(trials, 1.0)) is None
    empty = fit_procedure(list, Procedure(()), folds=2, own_threshold=True, point=TwvParameters(10, 1.0), trained_on={})
    assert empty.thresholds == (None, None)
    table = _aligned(1, 3, 0, 2)
    silent = table.set_column(table.schema.get_field_index("score"), "score", pa.nulls(3, pa.float64()))
    silent = silent.set_column(silent.schema.get_field_index("ref_start"), "ref_start", pa.array([0.0] * 3))
    ((events, classes),) = count(silent, Procedure(()), 1).counts
    assert threshold_of([of_table(events)], [of_table(classes)], TwvParameters(10, 1.0)) is None


@pytest.mark.parametrize("most", [10, 100, 1000])
def test_coarse_rows_depend_on_their_sum_only(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(regression, "MOST", most)
    tables = [_aligned(6, 40, seed, 15) for seed in range(8)]
    columns = [np.stack([table["score"].to_numpy(), -np.sqrt(table["score"].to_numpy())], axis=1) for table in tables]
    parts = [Labelled.of(table, column).coarse() for table, column in zip(tables, columns, strict=True)]
    whole = Labelled.of(pa.concat_tables(tables), np.concatenate(columns)).coarse()
    for sums in (
        reduce(add, parts),
        reduce(add, parts[::-1]),
        (parts[0] + parts[3]) + reduce(add, parts[4:] + parts[1:3]),
    ):
        assert all(np.array_equal(getattr(sums, name), getattr(whole, name)) for name in (*LABELLED_ROWS, "bits"))
    assert (len(whole.columns) <= most, whole.hits.sum()) == (True, sum(part.hits.sum() for part in parts))
    fitted = Labelled.total(parts).columns
    assert len(np.unique(fitted, axis=0)) == len(fitted)
    again = from_bytes(to_bytes({(0, 1): whole}))[0, 1]
    assert again.coarse(again.bits).columns.tobytes() == whole.columns.tobytes()
    assert vars(again).keys() == vars(whole).keys()


def test_middles_are_near(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.array([[-3.14159], [0.0], [1e-9], [2.5], [1e7]])
    table = _aligned(1, 5, 0, 2)
    found = Labelled.total([Labelled.of(table, values).coarse()]).columns
    assert found == pytest.approx(np.sort(values, axis=0), rel=2**-13)
    assert found[1] == 0.0
