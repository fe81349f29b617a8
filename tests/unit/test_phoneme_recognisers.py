"""Phoneme recognisers, with small made-up ones: files, options, the decoder, and what a folder's place does to an identity."""

from __future__ import annotations

import itertools
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from commands import expecting, in_this_process

import swsdist
from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.features.extractors import create
from swsdist.features.interface import columns_of, kind_of
from swsdist.features.phnrec.extractor import Phnrec
from swsdist.features.phnrec.network import Net, fexp, softmax
from swsdist.features.phnrec.transcribe import decode
from swsdist.features.phnrec.weights import Weights, read_recogniser
from swsdist.io.frames.htk import read_mlf
from swsdist.testing.synthesis.recogniser import PHONES, make_recogniser, write_recogniser
from tests.support.coded import raises

command = expecting(in_this_process)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_recogniser(str(tmp_path / "made-up"))
    return tmp_path / "made-up"


def noise(seconds: float = 2.0, rate: int = 8000) -> np.ndarray:
    return np.random.default_rng(3).normal(scale=0.1, size=round(seconds * rate)).astype(np.float32)


def test_hidden_units_use_its_exponential_wherever_it_goes() -> None:
    """Also where its 32 bits run over: there a sigmoid of 1 comes out as 0."""
    known = [0.9710078239440918, 2.769420623779297, 0.3748302459716797, 0.0067521147429943085]
    assert fexp(np.array([0.0, 1.0, -1.0, -5.0])).tolist() == known
    weights = Weights(*(np.array(one, np.float32) for one in ([[1.0]], [[1.0]], [0.0], [0.0], [0.0], [1.0])))
    exponents = np.concatenate([np.linspace(-60, 60, 1001), [-900.0, -100.0, 100.0, 815.0]]).astype(np.float32)
    found = Net(weights).logits(np.stack([exponents, np.ones_like(exponents)], axis=1))[:, 0]
    with np.errstate(over="ignore"):
        wanted = 1 / (1 + fexp(-exponents))
    assert found[:-4] == pytest.approx(wanted[:-4], rel=1e-5, abs=1e-30)
    assert found[-4:] == pytest.approx([1, 0, 1, 0], abs=1e-20)
    small = softmax(np.array([[0.0, -95.0, -300.0]], np.float32))[0]
    assert (small[0], 0 < small[1] < 1e-40, small[2]) == (1, True, 0)


def test_a_folder_is_read_back(folder: Path, tmp_path: Path) -> None:
    one = read_recogniser(str(folder))
    assert (one.phones, one.penalty, one.subtract_mean) == (PHONES, -1.5, True)
    assert one.nets["band0"].first.shape == (13, 66)
    assert one.nets["merger"].second.shape == (21, 13)
    write_recogniser(str(tmp_path / "again"), one, one.nets)
    for path in one.files:
        assert (tmp_path / "again" / path.relative_to(folder)).read_bytes() == path.read_bytes()


def test_text_weights_are_the_same(folder: Path, tmp_path: Path) -> None:
    """QuickNet's text, as it is read where there is no .nbin."""
    other = tmp_path / "text"
    shutil.copytree(folder, other)
    (other / "norms").mkdir()
    for name, net in read_recogniser(str(folder)).nets.items():
        (other / "weights" / f"{name}.nbin").unlink()
        parts = zip(("weigvec", "weigvec", "biasvec", "biasvec"), net[:4], strict=True)
        write_vectors(other / "weights" / f"{name}.weights", parts)
        write_vectors(other / "norms" / f"{name}.norms", zip(("vec", "vec"), net[4:], strict=True))
    frames = [Phnrec(weights=str(place)).extract(noise()) for place in (folder, other)]
    assert np.array_equal(*frames)


def write_vectors(path: Path, parts: zip) -> None:
    text = [f"{word} {array.size}\n" + "".join(f"{float(x)!r}\n" for x in array.ravel()) for word, array in parts]
    path.write_text("".join(text))


def test_options(folder: Path) -> None:
    sound, made = noise(), {}
    several, non_speech = ("phones", "states"), ("keep", "merge", "drop")
    for units, values, quiet in itertools.product(several, ("posteriors", "logits"), non_speech):
        one = Phnrec(weights=str(folder), units=units, values=values, non_speech=quiet)
        made[units, values, quiet] = frames = one.extract(sound)
        assert kind_of(one) == values
        assert frames.shape == (198, one.dimension) == (198, len(columns_of(one)))
    phones, states = made["phones", "posteriors", "keep"], made["states", "posteriors", "keep"]
    assert phones == pytest.approx(states.reshape(198, 6, 3).sum(axis=2), abs=1e-6)
    merged = made["phones", "posteriors", "merge"]
    assert merged[:, -1] == pytest.approx(phones[:, 3] + phones[:, 4], abs=1e-6)
    speech = phones[:, [0, 1, 2, 5]]
    assert made["phones", "posteriors", "drop"] == pytest.approx(speech / speech.sum(axis=1, keepdims=True), abs=1e-5)
    for units, quiet in itertools.product(several, non_speech):
        logarithms = np.log(made[units, "posteriors", quiet])
        centred = logarithms - logarithms.mean(axis=1, keepdims=True)
        # The approximated exponential of posteriors is up to 4 % off.
        assert made[units, "logits", quiet] == pytest.approx(centred, abs=0.1)
    assert columns_of(Phnrec(weights=str(folder))) == ("a", "b", "ts", "e:", "non-speech")
    states = columns_of(Phnrec(weights=str(folder), units="states", non_speech="drop"))
    assert states[:4] == ("a.1", "a.2", "a.3", "b.1")


def test_damaged_folders(tmp_path: Path) -> None:
    wrong = families.UNUSABLE_MODEL
    cases: list[tuple[str, str | None, Any, dict[str, Any]]] = [
        ("config", None, codes.RECOGNISER_FILE_UNREADABLE, {}),
        ("config", "[melbanks]\nnbanks=15\n", codes.BAD_RECOGNISER_CONFIG, {}),
        ("config", "[posteriors]\nsystem=FCRC\n", codes.OTHER_RECOGNISER, {"value": "FCRC", "supported": "LCRC"}),
        ("dicts/phonemes", "a\na\n", wrong, {"count": 2, "distinct": 1}),
        ("dicts/phonemes", "a\nb\npau\n", wrong, {"inputs": 66, "outputs": 21, "phones": 3, "expected_outputs": 12}),
        ("weights/merger.nbin", None, codes.RECOGNISER_FILE_MISSING, {}),
        ("weights/band1.nbin", "short", wrong, {"detail": "5 bytes"}),
        ("windows/band0.window", "1 2 3", wrong, {"detail": "3 numbers, not 16"}),
    ]
    for k, (name, content, code, values) in enumerate(cases):
        folder = tmp_path / str(k)
        make_recogniser(str(folder))
        (folder / name).unlink() if content is None else (folder / name).write_text(content)
        with raises(code, where=str(folder), **values):
            create("phnrec", {"weights": str(folder)}).extract(noise())
    make_recogniser(str(tmp_path / "whole"))
    options = {"weights": str(tmp_path / "whole"), "non_speech_phones": ["sil"]}
    with raises(wrong, phones="none"):
        create("phnrec", options)
    create("phnrec", {**options, "non_speech": "keep"})


def best_by_trying(posteriors: np.ndarray, phones: int, penalty: float) -> float:
    """The score of the best path, of all cuts into phones and of phones into states."""
    frames = len(posteriors)
    logs = np.log(posteriors) + math.log(0.5)
    best = [0.0] + [-math.inf] * frames
    for stop in range(3, frames + 1):
        for first in range(stop - 2):
            for phone in range(phones):
                for a, b in itertools.combinations(range(first + 1, stop), 2):
                    parts = [logs[first:a, 3 * phone], logs[a:b, 3 * phone + 1], logs[b:stop, 3 * phone + 2]]
                    score = best[first] + penalty + sum(float(part.sum()) for part in parts)
                    best[stop] = max(best[stop], score)
    return best[frames]


@pytest.mark.parametrize("seed", range(6))
def test_the_path_is_the_best_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    posteriors = rng.dirichlet(np.full(9, 0.3), size=11)
    penalty = -rng.uniform(0, 3)
    found = decode([posteriors[:4], posteriors[4:]], ("a", "b", "c"), penalty)
    assert sum(one.score for one in found) == pytest.approx(best_by_trying(posteriors, 3, penalty))
    assert [one.first for one in found[1:]] == [one.stop for one in found[:-1]]
    assert (found[0].first, found[-1].stop) == (0, 11)
    assert decode([posteriors[:2]], ("a", "b", "c"), 0.0) == decode([], ("a", "b"), 0.0) == [], "too short for a phone"


def test_strings_in_python_and_as_files(folder: Path, tmp_path: Path) -> None:
    speech = tmp_path / "speech"
    speech.mkdir()
    soundfile.write(speech / "one.wav", noise(1.5), 8000)
    soundfile.write(speech / "two.wav", noise(0.7, 16000), 16000)
    table = swsdist.phones(str(folder), str(speech))
    assert set(table["doc_id"]) == {"one", "two"}
    assert set(table["phone"]) <= set(PHONES)
    assert table.groupby("doc_id")["end"].max().to_dict() == pytest.approx({"one": 1.48, "two": 0.68})
    command("phones", folder, speech, "--out", tmp_path / "phones.mlf")
    lines = read_mlf(tmp_path / "phones.mlf")
    assert list(lines) == ["*/one.rec", "*/two.rec"]
    assert [one.label for one in lines["*/one.rec"]] == table[table["doc_id"] == "one"]["phone"].tolist()
    command("phones", folder, speech, "--out", tmp_path / "phones.ctm", "--penalty", "20")
    more = (tmp_path / "phones.ctm").read_text().splitlines()
    assert len(more) > len(table) > 0
    (speech / "three.wav").write_text("no sound")
    told = command("phones", folder, speech, "--out", tmp_path / "rest.ctm", code=4)
    assert "three" in told.err
    assert "of 2 of 3 documents" in told.out
