"""Labels of frames, by a CTM or a master label file; and phones by the components of a mixture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.features.fitting.files import identity_of, read_labels
from swsdist.features.fitting.interface import Document, fit
from swsdist.features.fitting.mixture import Mixture, MixtureRounds, PhoneRounds
from swsdist.features.mfcc import Mfcc
from swsdist.features.transforms.gmm import Phones
from swsdist.features.transforms.interface import Shape
from swsdist.io.filesystem import Folder
from tests.support.coded import raises

RNG = np.random.default_rng(3)


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


CENTRES = np.array([[0.0, 0], [10, 0], [0, 10]])
SAID = [RNG.integers(0, 3, 400) for _ in range(3)]
DOCUMENTS = [
    Document([(CENTRES[said] + RNG.normal(0, 1.5, (400, 2))).astype(np.float32)], None, said.astype(np.int64))
    for said in SAID
]


def test_phones_given_components(tmp_path: Path) -> None:
    rounds = PhoneRounds(MixtureRounds(6, 5, 0.01, speech=False), ("x", "y", "z", "never"), 1.0)
    model = fit(rounds, DOCUMENTS)
    assert model.settings["labels"] == ["x", "y", "z"]
    # By the definition, in floating point.
    mixture = Mixture.of(model)
    frames, said = np.concatenate([d.blocks[0] for d in DOCUMENTS]), np.concatenate(SAID)
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
    assert fit(rounds, DOCUMENTS[::-1]).fingerprint == model.fingerprint


def test_what_cannot_be(tmp_path: Path) -> None:
    rounds = PhoneRounds(MixtureRounds(2, 1, 0.01), ("x",), 1.0)
    with raises(families.NOTHING_TO_FIT):
        fit(rounds, [each._replace(labels=np.full(400, -1)) for each in DOCUMENTS])
    with raises(codes.MODEL_NOT_FITTED, name="the transform phones"):
        Phones().apply(np.zeros((1, 2), np.float32))
    fit(MixtureRounds(2, 1, 0.01), DOCUMENTS).save(Folder(str(tmp_path)), "gmm.npz")
    with raises(codes.WRONG_MODEL, name="gmm", wanted="an estimator of phones"):
        Phones(model=str(tmp_path / "gmm.npz")).becomes(Shape(("a", "b"), "features"))
