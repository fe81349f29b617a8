"""What `correspondence` learns: frames of the same words come close, whoever says them; and it depends on nothing else."""

import numpy as np
import pytest
from numpy.typing import NDArray

from swsdist.core.codes import features as codes
from swsdist.discovery.correspondence import Correspondence, CorrespondenceRounds, recurring
from swsdist.features.fitting.files import summed
from swsdist.features.fitting.interface import Document, fit
from swsdist.features.transforms.interface import Shape
from swsdist.io.filesystem import Folder
from swsdist.kernels.distances.cosine import plain
from tests.support.coded import raises

#: Columns that carry words, and columns that carry the speaker of the moment.
WORDS, NOISE = 6, 6


def spoken(words: list[int], speaker: int, seed: int) -> NDArray[np.float32]:
    """Some words of 60 frames, each the same walk for all speakers, beside columns that mean nothing."""
    draw = np.random.default_rng(seed)
    walks = [np.random.default_rng(1000 + word).normal(size=(60, WORDS)) for word in words]
    meant = np.concatenate([3 * np.cumsum(walk, axis=0) / np.sqrt(np.arange(1, 61))[:, None] for walk in walks])
    other = draw.normal(size=(len(meant), NOISE)) + np.random.default_rng(speaker).normal(size=NOISE)
    return np.concatenate([meant, other], axis=1).astype(np.float32)


def documents() -> list[Document]:
    """Four speakers, who say the same twelve words in orders of their own."""
    draw = np.random.default_rng(0)
    return [
        Document([spoken(draw.permutation(12).tolist(), speaker, 10 * speaker + k)], f"s{speaker}")
        for speaker in range(4)
        for k in range(3)
    ]


def closeness(frames: list[NDArray[np.float32]], orders: list[list[int]]) -> float:
    """Mean distance of frames of one word by several speakers, over that of any frames."""
    of_word = [
        np.stack([item[order.index(word) * 60 + 30] for item, order in zip(frames, orders, strict=True)])
        for word in range(12)
    ]
    every = np.concatenate(frames)
    within = np.mean([item.var(axis=0).sum() for item in of_word])
    return float(within / every.var(axis=0).sum())


@pytest.fixture(scope="module")
def model_place(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("model")
    fit(CorrespondenceRounds(6, 0, 500), documents()).save(Folder(str(place)), "m.npz")
    return str(place / "m.npz")


def test_words_come_close(model_place: str) -> None:
    transform = Correspondence(columns=6, frames=0, model=model_place)
    orders = [np.random.default_rng(k + 50).permutation(12).tolist() for k in range(4)]
    raw = [spoken(order, 20 + k, 99 + k) for k, order in enumerate(orders)]  # speakers it never heard
    learnt = [transform.apply(item) for item in raw]
    assert closeness(learnt, orders) < closeness(raw, orders) / 3


def test_the_same_model_for_any_order_and_copies_of_documents() -> None:
    rounds = CorrespondenceRounds(4, 1, 300)
    totals = [rounds.totals(None, document) for document in documents()]
    model, _ = rounds.go_on(None, summed(totals))
    others = [rounds.go_on(None, summed(order))[0] for order in (totals[::-1], [*totals, totals[3], totals[3]])]
    assert {other.fingerprint for other in others} == {model.fingerprint}


@pytest.mark.parametrize(("speakers", "wanted"), [("abab", {"a", "b"}), ("aaaa", {"a"})])
def test_pairs_of_two_speakers_come_first(speakers: str, wanted: set[str]) -> None:
    frames = [spoken([0, 1, 2, k + 3], 7, k) for k in range(4)]
    distance = plain("cosine", 2048, WORDS + NOISE)
    size = WORDS + NOISE
    prepared = [distance.prepare(item, np.zeros(size), np.ones(size), "document").frames for item in frames]
    (first, _), *_ = recurring(prepared, list(speakers), 1)
    assert {speakers[number] for number in first} == wanted
    assert first[0] != first[1]  # rather another document than the same


def test_where_nothing_recurs_axes_are_principal_components() -> None:
    draw = np.random.default_rng(3)
    few = [Document([draw.normal(size=(40, 5)).astype(np.float32) * [5, 4, 3, 2, 1]])]  # shorter than a segment
    made = fit(CorrespondenceRounds(5, 0, 10), few)
    axes = made.arrays["projection"] * made.arrays["deviation"][:, None]
    assert axes.T @ axes == pytest.approx(np.eye(5) * (axes.T @ axes)[0, 0], abs=1e-6)


def test_what_cannot_be_is_refused_before_the_fit(model_place: str) -> None:
    given = Shape(tuple(f"c{k}" for k in range(WORDS + NOISE)), "features")
    with raises(codes.TOO_MANY_COMPONENTS, wanted=7, available=6):
        Correspondence(columns=7, frames=1).becomes(Shape(("a", "b"), "features"))
    with raises(codes.TOO_MANY_COMPONENTS, wanted=7, available=6):
        Correspondence(columns=7, frames=0, model=model_place).becomes(given)
    with raises(codes.PROJECTION_TOO_LARGE, columns=41 * 60, highest=2048):
        Correspondence(frames=20).becomes(Shape(tuple(f"c{k}" for k in range(60)), "features"))


def test_frames_that_never_change_are_no_fault() -> None:
    made = fit(CorrespondenceRounds(2, 0, 10), [Document([np.ones((90, 3), np.float32)])])
    assert np.isfinite(made.arrays["projection"]).all()
