"""LDA, HLDA, labels of frames, and phones by the components of a mixture: as defined, the same on any cut."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh

from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.features.fitting.files import identity_of, read_labels, summed
from swsdist.features.fitting.interface import Document, Model, fit
from swsdist.features.fitting.mixture import Mixture, MixtureRounds, PhoneRounds
from swsdist.features.fitting.moments import Classes, OfClasses, hlda, lda, mean_and_deviation
from swsdist.features.mfcc import Mfcc
from swsdist.features.transforms.gmm import Phones
from swsdist.features.transforms.interface import Shape, Splice
from swsdist.features.transforms.projections import Hlda, Lda
from swsdist.io.filesystem import Folder
from tests.support.coded import raises

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


def test_hlda_is_more_likely_than_lda() -> None:
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


def test_hlda_of_equal_covariances_is_lda() -> None:
    """Kumar and Andreou 1998: LDA is what is most likely where classes have one covariance, up to a rotation."""
    known = classes()
    within = (known.counts[:, None, None] * known.covariances).sum(axis=0) / known.counts.sum()
    same = known._replace(covariances=np.repeat(within[None], 4, axis=0))
    theirs = lda(Classes(known.counts, known.means, within[None]), 3)
    ours = hlda(same, 3)
    # One plane: each direction of ours is made of theirs.
    parts, *_ = np.linalg.lstsq(theirs, ours, rcond=None)
    assert np.abs(theirs @ parts - ours).max() < 1e-3


def test_the_model_of_a_run(tmp_path: Path) -> None:
    model = fit(OfClasses(NAMES, 2, heteroscedastic=True, transform="hlda"), DOCUMENTS)
    assert model.settings["labels"] == list(NAMES)
    model.save(Folder(str(tmp_path)), "m.npz")
    made = Hlda(columns=2, model=str(tmp_path / "m.npz")).apply(FRAMES[LABELS >= 0].astype(np.float32))
    assert made.std(axis=0) == pytest.approx(np.ones(2), abs=0.01)


def test_what_cannot_be() -> None:
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
    with raises(codes.MODEL_NOT_FITTED, name="the transform lda"):
        Lda(columns=2).apply(np.zeros((1, 6), np.float32))


def test_rare_classes_are_one() -> None:
    """A class of fewer frames than columns has no covariance of its own."""
    labels = LABELS.copy()
    few = np.flatnonzero(labels == 3)
    labels[few[5:]] = -1
    whole = [Document([FRAMES.astype(np.float32)], None, labels)]
    model = fit(OfClasses(NAMES, 2, heteroscedastic=True, transform="hlda"), whole)
    mean, _ = mean_and_deviation(model)
    assert mean == pytest.approx(FRAMES[labels >= 0].mean(axis=0), rel=1e-6)
    assert np.isfinite(model.arrays["projection"]).all()


def test_frames_are_spliced_and_ends_repeated() -> None:
    made = Splice(frames=1)
    shape = made.becomes(Shape(("a", "b"), "features"))
    assert shape.columns == ("a-1", "b-1", "a+0", "b+0", "a+1", "b+1")
    frames = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    assert made.apply(frames).tolist() == [[1, 2, 1, 2, 3, 4], [1, 2, 3, 4, 5, 6], [3, 4, 5, 6, 5, 6]]


RANDOM = np.random.default_rng(3)


def test_of_a_ctm(tmp_path: Path) -> None:
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


def test_of_a_master_label_file(tmp_path: Path) -> None:
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


def test_phones_that_cannot_be(tmp_path: Path) -> None:
    rounds = PhoneRounds(MixtureRounds(2, 1, 0.01), ("x",), 1.0)
    with raises(families.NOTHING_TO_FIT):
        fit(rounds, [each._replace(labels=np.full(400, -1)) for each in SPOKEN])
    with raises(codes.MODEL_NOT_FITTED, name="the transform phones"):
        Phones().apply(np.zeros((1, 2), np.float32))
    fit(MixtureRounds(2, 1, 0.01), SPOKEN).save(Folder(str(tmp_path)), "gmm.npz")
    with raises(codes.WRONG_MODEL, name="gmm", wanted="an estimator of phones"):
        Phones(model=str(tmp_path / "gmm.npz")).becomes(Shape(("a", "b"), "features"))
