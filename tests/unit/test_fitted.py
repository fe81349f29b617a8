"""What is fitted by sums: PCA, LDA, HLDA, phones, labels, thresholds; as defined, the same in any order and any cut."""

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
from scipy.linalg import eigh

from swsdist.calibrate.procedure import Procedure, by_fold, count, fit_procedure, from_bytes, threshold_of, to_bytes
from swsdist.calibrate.steps.interface import TwvParameters
from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.core.errors import ConfigError
from swsdist.core.types import TRIALS
from swsdist.features.fitting.files import identity_of, read_labels, summed
from swsdist.features.fitting.interface import FEWER, Document, Fitted, Model, fit
from swsdist.features.fitting.mixture import Mixture, MixtureRounds, PhoneRounds
from swsdist.features.fitting.moments import Classes, Moments, OfClasses, Sums, hlda, lda, moments, products
from swsdist.features.fitting.moments import mean_and_deviation as mean_of
from swsdist.features.mfcc import Mfcc
from swsdist.features.transforms.gmm import Phones
from swsdist.features.transforms.interface import FittedTransform, Shape, Splice
from swsdist.features.transforms.project import Projection
from swsdist.features.transforms.projections import Lda, Pca
from swsdist.io.filesystem import Folder
from swsdist.kernels import regression
from swsdist.kernels.regression import LABELLED_ROWS, Labelled
from swsdist.registry.registries import TRANSFORMS
from swsdist.score.events import of_table
from swsdist.score.measures.curve import Counts, total
from tests.oracles.thresholds import fit_threshold
from tests.support.coded import raises

NORMAL = [np.random.default_rng(k).normal(k, 3 + k, (20 + 7 * k, 5)).astype(np.float32) for k in range(6)]


def sums_of(order: list[int]) -> Sums:
    total = Sums(0, [0] * 5, [0] * 5)
    for k in order:
        total = total + Sums.from_blocks([NORMAL[k]], 5)
    return total


@settings(max_examples=20)
@given(st.permutations(range(6)), st.integers(1, 30))
def test_any_order_and_any_blocks(order: list[int], rows: int) -> None:
    assert sums_of(order) == sums_of(list(range(6)))
    mean, deviation = sums_of(order).mean_and_deviation()
    whole = np.concatenate(NORMAL)
    blocks = [whole[k : k + rows] for k in range(0, len(whole), rows)]
    one = sum(products([NORMAL[k]], mean, deviation) for k in order)
    assert np.array_equal(one, products(blocks, mean, deviation))


def test_moments_are_those_of_numpy_and_small_numbers_count_too() -> None:
    whole = np.concatenate(NORMAL).astype(np.float64)
    mean, deviation = sums_of(list(range(6))).mean_and_deviation()
    assert mean == pytest.approx(whole.mean(axis=0), rel=1e-9)
    assert deviation == pytest.approx(whole.std(axis=0), rel=1e-9)
    totals = {"frames": np.array([len(whole)]), "products": products(NORMAL, mean, deviation)}
    found = moments(totals, mean, deviation)
    assert found.covariance == pytest.approx(np.cov(whole.T, bias=True), rel=1e-3, abs=1e-2)
    # Posteriors: most of them near 0.
    small = np.full((100, 2), 1e-4, np.float32)
    small[:, 1] *= np.arange(100, dtype=np.float32)
    mean, deviation = Sums.from_blocks([small], 2).mean_and_deviation()
    assert deviation[0] == 1  # it does not vary
    assert deviation[1] == pytest.approx(small[:, 1].std(dtype=np.float64), rel=1e-4)
    assert mean == pytest.approx(small.mean(axis=0, dtype=np.float64), rel=1e-5)


def test_axes_are_the_same_whatever_their_sign_and_need_variance() -> None:
    axes = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    known = Moments(9, np.zeros(4), axes @ np.diag([8.0, 4.0, 2.0, 1.0]) @ axes.T)
    made = Pca(columns=3, whiten=False).solve(known).arrays["projection"]
    assert np.abs(made.T @ axes) == pytest.approx(np.eye(4)[:3], abs=1e-9)
    assert (made[np.abs(made).argmax(axis=0), range(3)] > 0).all()
    white = Pca(columns=3).solve(known).arrays["projection"]
    assert white.T @ known.covariance @ white == pytest.approx(np.eye(3), abs=1e-9)
    # Logits without their mean, for example: one dimension fewer than columns.
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
    tables = [_aligned(6, 40, seed, decimals) for seed in range(12)]
    memory: dict[int, Counts] = {}
    for table in tables:
        for fold, rows in by_fold(table, folds):
            memory[fold] = memory.get(fold, Counts.zero()) + Counts.of(rows)
    for beta in (0.5, 20.0, 1e6):
        others = [total(counts for k, counts in memory.items() if folds == 1 or k != fold) for fold in range(folds)]
        expected = tuple(fit_threshold(counts, trials=100_000, beta=beta) for counts in others)
        how: dict[str, Any] = {"own_threshold": True, "point": TwvParameters(100_000, beta), "trained_on": {"of": "x"}}
        found = fit_procedure(lambda: tables, Procedure(()), folds=folds, **how)
        assert found.thresholds == expected
        assert found.trained_on == {"of": "x", "queries": 6 * len(tables)}


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


def test_middles_are_near() -> None:
    values = np.array([[-3.14159], [0.0], [1e-9], [2.5], [1e7]])
    table = _aligned(1, 5, 0, 2)
    found = Labelled.total([Labelled.of(table, values).coarse()]).columns
    assert found == pytest.approx(np.sort(values, axis=0), rel=2**-13)
    assert found[1] == 0.0


RNG = np.random.default_rng(11)
NAMES = ("a", "b", "c", "d")
CENTRES = RNG.normal(0, 2, (4, 6)) * 10 + 50
SPREADS = RNG.uniform(1, 8, (4, 6))


def document(frames: int) -> Document:
    labels = RNG.integers(-1, 4, frames)
    values = CENTRES[labels.clip(0)] + RNG.normal(0, 1, (frames, 6)) * SPREADS[labels.clip(0)]
    values[labels < 0] = 1000.0  # what has no label does not count
    return Document([values.astype(np.float32)[:40], values.astype(np.float32)[40:]], None, labels.astype(np.int64))


DOCUMENTS = [document(80 + 37 * k) for k in range(5)]
FRAMES = np.concatenate([block for each in DOCUMENTS for block in each.blocks]).astype(np.float64)
LABELS = np.concatenate([each.labels for each in DOCUMENTS if each.labels is not None])


def of_class(k: int) -> np.ndarray:
    return FRAMES[k == LABELS]


def test_lda_is_the_generalised_eigenproblem(tmp_path: Path) -> None:
    model = fit(OfClasses(NAMES, 3, heteroscedastic=False, transform="lda"), DOCUMENTS)
    known = FRAMES[LABELS >= 0]
    within = sum(np.cov(of_class(k).T, bias=True) * len(of_class(k)) for k in range(4)) / len(known)
    between = np.cov(known.T, bias=True) - within
    values, axes = eigh(between, within)
    model.save(Folder(str(tmp_path)), "m.npz")
    made = Lda(columns=3, model=str(tmp_path / "m.npz"))
    assert made.becomes(Shape(tuple("uvwxyz"), "features")).columns == ("d0", "d1", "d2")
    found = made.apply(known.astype(np.float32)).astype(np.float64)
    expected = (known - known.mean(axis=0)) @ axes[:, ::-1][:, :3]
    signs = np.sign((found * expected).sum(axis=0))
    assert np.abs(found - expected * signs).max() < 0.05
    # Within classes the variance is 1, and between them the eigenvalue.
    spread = sum(np.cov(found[LABELS[LABELS >= 0] == k].T, bias=True) * len(of_class(k)) for k in range(4)) / len(known)
    assert spread == pytest.approx(np.eye(3), abs=0.01)
    assert np.cov(found.T, bias=True) == pytest.approx(np.diag(values[::-1][:3]) + np.eye(3), rel=0.01, abs=0.02)


@pytest.mark.parametrize("heteroscedastic", [False, True])
@settings(max_examples=10, deadline=None)
@given(st.permutations(range(5)), st.integers(1, 4))
def test_any_cut_gives_the_same_model(heteroscedastic: bool, order: list[int], border: int) -> None:
    rounds = OfClasses(NAMES, 2, heteroscedastic=heteroscedastic, transform="lda")
    known = None
    for _ in range(2):
        several = [rounds.totals(known, DOCUMENTS[k]) for k in order]
        known, done = rounds.go_on(known, summed([summed(several[:border]), summed(several[border:])]))
    assert done
    assert known.fingerprint == fit(rounds, DOCUMENTS).fingerprint


def classes() -> Classes:
    known = FRAMES[LABELS >= 0]
    x = [(of_class(k) - known.mean(axis=0)) / known.std(axis=0) for k in range(4)]
    return Classes(
        np.array([float(len(each)) for each in x]),
        np.array([each.mean(axis=0) for each in x]),
        np.array([np.cov(each.T, bias=True) for each in x]),
    )


def likelihood(classes: Classes, rows: np.ndarray, columns: int) -> float:
    """What HLDA maximises, a frame: of a whole matrix of rows, of which the first `columns` discriminate."""
    frames = classes.counts.sum()
    within = (classes.counts[:, None, None] * classes.covariances).sum(axis=0) / frames
    total = within + classes.between
    of_classes = np.log(np.einsum("ki,cij,kj->ck", rows[:columns], classes.covariances, rows[:columns])).sum(axis=1)
    of_all = np.log(np.einsum("ki,ij,kj->k", rows[columns:], total, rows[columns:])).sum()
    spread = (classes.counts / frames) @ of_classes + of_all
    return float(np.linalg.slogdet(rows)[1] - 0.5 * spread)


def test_hlda_is_more_likely_than_lda_and_of_equal_covariances_it_is_lda() -> None:
    known = classes()
    within = (known.counts[:, None, None] * known.covariances).sum(axis=0) / known.counts.sum()
    _, axes = eigh(known.between, within)
    start = np.ascontiguousarray(axes[:, ::-1].T)
    made = hlda(known, 6)
    assert likelihood(known, made.T, 6) > likelihood(known, start, 6) + 1e-3
    # Of a maximum: no row that is a little different is better.
    best = likelihood(known, made.T, 6)
    for _ in range(30):
        assert likelihood(known, made.T + RNG.normal(0, 1e-3, (6, 6)), 6) <= best + 1e-4
    two = hlda(known, 2)
    total = within + known.between
    assert np.diag(two.T @ total @ two) == pytest.approx(np.ones(2))
    known = classes()
    within = (known.counts[:, None, None] * known.covariances).sum(axis=0) / known.counts.sum()
    same = known._replace(covariances=np.repeat(within[None], 4, axis=0))
    theirs = lda(Classes(known.counts, known.means, within[None]), 3)
    ours = hlda(same, 3)
    # One plane: each direction of ours is made of theirs.
    parts, *_ = np.linalg.lstsq(theirs, ours, rcond=None)
    assert np.abs(theirs @ parts - ours).max() < 1e-3


def test_what_cannot_be_fitted(tmp_path: Path) -> None:
    def fitted(documents: list[Document], columns: int = 2) -> None:
        fit(OfClasses(NAMES, columns, heteroscedastic=False, transform="lda"), documents)

    with raises(families.INVALID_VALUE, wanted=4, available=3):
        fitted(DOCUMENTS, 4)
    nothing = [each._replace(labels=np.full(len(each.labels), -1)) for each in DOCUMENTS if each.labels is not None]
    twice = [Document([np.repeat(block, 2, axis=1) for block in each.blocks], None, each.labels) for each in DOCUMENTS]
    for documents in (nothing, twice):
        with raises(families.NOTHING_TO_FIT):
            fitted(documents)
    many = OfClasses([str(k) for k in range(3000)], 2, heteroscedastic=True, transform="hlda")
    moments = Model("moments", 1, {"mean": np.zeros(200), "deviation": np.ones(200)})
    with raises(families.TOO_LARGE, classes=3000, columns=200):
        many.totals(moments, Document([np.zeros((5, 200), np.float32)], None, np.zeros(5, np.int64)))
    rounds = PhoneRounds(MixtureRounds(2, 1, 0.01), ("x",), 1.0)
    with raises(families.NOTHING_TO_FIT):
        fit(rounds, [each._replace(labels=np.full(400, -1)) for each in SPOKEN])
    fit(MixtureRounds(2, 1, 0.01), SPOKEN).save(Folder(str(tmp_path)), "gmm.npz")
    with raises(codes.WRONG_MODEL, name="gmm", wanted="an estimator of phones"):
        Phones(model=str(tmp_path / "gmm.npz")).becomes(Shape(("a", "b"), "features"))


def test_rare_classes_are_one_and_frames_are_spliced() -> None:
    """A class of fewer frames than columns has no covariance of its own."""
    labels = LABELS.copy()
    few = np.flatnonzero(labels == 3)
    labels[few[5:]] = -1
    whole = [Document([FRAMES.astype(np.float32)], None, labels)]
    model = fit(OfClasses(NAMES, 2, heteroscedastic=True, transform="hlda"), whole)
    mean, _ = mean_of(model)
    assert mean == pytest.approx(FRAMES[labels >= 0].mean(axis=0), rel=1e-6)
    assert np.isfinite(model.arrays["projection"]).all()
    made = Splice(frames=1)
    shape = made.becomes(Shape(("a", "b"), "features"))
    assert shape.columns == ("a-1", "b-1", "a+0", "b+0", "a+1", "b+1")
    frames = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    assert made.apply(frames).tolist() == [[1, 2, 1, 2, 3, 4], [1, 2, 3, 4, 5, 6], [3, 4, 5, 6, 5, 6]]


RANDOM = np.random.default_rng(3)


def test_labels_of_a_ctm_and_of_a_master_label_file(tmp_path: Path) -> None:
    path = tmp_path / "p.ctm"
    path.write_text("d1 1 0.10 0.10 a\nd1 1 0.20 0.05 b\nd1 2 0 1 c\n;; nothing\nd2 A 0 0.5 a\n")
    labels = read_labels(str(path), identity_of(str(path)))
    assert labels.names == ("a", "b", "c")
    # The middle of frame t is at 10 t + 16 ms.
    assert labels.of_frames("d1", 1, 30, Mfcc()).tolist() == [-1] * 9 + [0] * 10 + [1] * 5 + [-1] * 6
    assert labels.of_frames("d1", 2, 2, Mfcc()).tolist() == [2, 2]
    assert labels.of_frames("d3", 1, 2, Mfcc()).tolist() == [-1, -1]
    assert labels.has("d2", 1)
    assert not labels.has("d2", 2)
    path.write_text("d1 1 0 1 z\n")
    assert read_labels(str(path), identity_of(str(path))).names == ("z",)
    path.write_text("d1 1 0\n")
    with raises(families.MALFORMED_LINE, fields=3):
        read_labels(str(path), identity_of(str(path)))
    with raises(families.UNREADABLE_FILE):
        identity_of(str(tmp_path / "no.ctm"))
    path = tmp_path / "p.mlf"
    path.write_text('#!MLF!#\n"*/d1.rec"\n0 1000000 a -1\n1000000 2000000 b -1\n.\n"*/d2.2.rec"\n0 5000000 b -1\n.\n')
    labels = read_labels(str(path), identity_of(str(path)))
    assert labels.of_frames("d1", 1, 20, Mfcc()).tolist() == [0] * 9 + [1] * 10 + [-1]
    assert labels.has("d2", 2)
    assert not labels.has("d2", 1)


MIDDLES = np.array([[0.0, 0], [10, 0], [0, 10]])
SAID = [RANDOM.integers(0, 3, 400) for _ in range(3)]
SPOKEN = [
    Document([(MIDDLES[said] + RANDOM.normal(0, 1.5, (400, 2))).astype(np.float32)], None, said.astype(np.int64))
    for said in SAID
]


def test_phones_given_components(tmp_path: Path) -> None:
    rounds = PhoneRounds(MixtureRounds(6, 5, 0.01, speech=False), ("x", "y", "z", "never"), 1.0)
    model = fit(rounds, SPOKEN)
    assert model.settings["labels"] == ["x", "y", "z"]
    # By the definition, in floating point.
    mixture = Mixture.of(model)
    frames, said = np.concatenate([d.blocks[0] for d in SPOKEN]), np.concatenate(SAID)
    classes = mixture.posteriors(frames)
    counts = np.array([classes[said == k].sum(axis=0) for k in range(3)])
    spread = counts.sum(axis=1) / counts.sum()
    conditional = ((counts + spread[:, None]) / (counts + spread[:, None]).sum(axis=0)).T
    assert model.arrays["conditional"] == pytest.approx(conditional, abs=1e-4)
    model.save(Folder(str(tmp_path)), "m.npz")
    made = Phones(components=6, model=str(tmp_path / "m.npz"), floor=1e-6)
    assert made.becomes(Shape(("a", "b"), "features")) == Shape(("x", "y", "z"), "posteriors")
    found = made.apply(frames)
    assert found == pytest.approx(classes @ conditional, abs=1e-4)
    assert (found.argmax(axis=1) == said).mean() > 0.98
    logits = Phones(components=6, model=str(tmp_path / "m.npz"), floor=1e-6, values="logits").apply(frames)
    assert logits.mean(axis=1) == pytest.approx(np.zeros(len(frames)), abs=1e-5)
    # In any order it is the same.
    assert fit(rounds, SPOKEN[::-1]).fingerprint == model.fingerprint
