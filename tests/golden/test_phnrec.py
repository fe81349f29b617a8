"""Mel energies, posteriors and strings of phones are those of BUT's phnrec, on all its golden data."""

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

from swsdist.features.phnrec.extractor import Phnrec
from swsdist.features.phnrec.network import REACH, Networks, filters, log_energies, log_softmax, softmax
from swsdist.features.phnrec.transcribe import Label, decode, transcribe, transcriber
from swsdist.features.phnrec.weights import Recogniser, read_recogniser
from swsdist.io.frames.htk import FBANK, TimedLabel, decoded, header, label_lines, read_mlf, write_mlf, write_parameters

SHARED = Path(__file__).resolve().parents[3] / "shared"
GOLDEN, MODELS = SHARED / "golden/phnrec", SHARED / "models/phnrec"

pytestmark = pytest.mark.skipif(
    not (GOLDEN.is_dir() and MODELS.is_dir()),
    reason="needs ../shared beside the checkout, with the recognisers and their golden data",
)

NAMES = ("utt1", "utt2", "utt3", "utt4", "edge_1frame", "edge_12frames", "edge_zeros")
CASES = [(name, model) for name in NAMES for model in ("CZ", "HU", "RU", "EN")]


def samples_of(name: str, recogniser: Recogniser) -> NDArray[np.float32]:
    """In the range of 16 bits; what is shorter than a frame is filled up with zeros, which an extractor refuses to do."""
    index = json.loads((GOLDEN / "index.json").read_text())
    given = index[name]["inputs"][f"{recogniser.banks.rate // 1000}k"]
    samples, rate = soundfile.read(GOLDEN / given["file"], dtype="int16")
    assert (rate, len(samples)) == (recogniser.banks.rate, given["samples"])
    return np.pad(samples.astype(np.float32), (0, max(0, recogniser.banks.frame_length - len(samples))))


def recorded(path: Path) -> list[tuple[int, int, str, float]]:
    """Lines of a .rec: 100 ns, 100 ns, phone, score."""
    rows = [line.split() for line in path.read_text().splitlines()]
    return [(int(start), int(end), phone, float(score)) for start, end, phone, score in rows]


def same(found: list[Label], wanted: list[tuple[int, int, str, float]], tolerance: float = 0.01) -> None:
    assert [(one.first * 100_000, one.stop * 100_000, one.phone) for one in found] == [row[:3] for row in wanted]
    assert [one.score for one in found] == pytest.approx([row[3] for row in wanted], abs=tolerance)


@pytest.mark.parametrize(("name", "model"), CASES)
def test_energies_posteriors_and_labels(name: str, model: str) -> None:
    recogniser, known = read_recogniser(str(MODELS / model)), np.load(GOLDEN / f"{name}_{model}.npz")
    energies = log_energies(samples_of(name, recogniser), recogniser.banks)
    assert np.abs(energies - known["mel"]).max() < 1e-3
    posteriors = softmax(Networks(recogniser).logits(energies))
    assert posteriors.shape == known["post"].shape
    assert np.abs(posteriors - known["post"]).max() < 1e-4
    if name == "edge_1frame":
        assert decode([posteriors], recogniser.phones, recogniser.penalty) == []
        return
    wanted = recorded(GOLDEN / f"{name}_{model}.rec")
    if len(posteriors) < 40:  # the first score is 1 too high there
        wanted[0] = (*wanted[0][:3], wanted[0][3] - 1.0)
    same(decode([known["post"]], recogniser.phones, recogniser.penalty), wanted)
    same(decode([posteriors], recogniser.phones, recogniser.penalty), wanted, 0.02)


@pytest.mark.parametrize("model", ["CZ", "EN"])
def test_other_penalties(model: str) -> None:
    known, phones = np.load(GOLDEN / f"utt1_{model}.npz")["post"], read_recogniser(str(MODELS / model)).phones
    for penalty in (0.0, -12.0):  # in any blocks
        found = decode([known[:17], known[17:17], known[17:]], phones, penalty)
        same(found, recorded(GOLDEN / f"utt1_{model}_penalty{penalty}.rec"))


@pytest.mark.parametrize("model", ["CZ", "EN"])
def test_what_lies_between(model: str) -> None:
    recogniser, known = read_recogniser(str(MODELS / model)), np.load(GOLDEN / f"stages_utt4_{model}.npz")
    networks = Networks(recogniser)
    matrix = filters(recogniser.banks)
    assert np.abs(matrix.T - known["filterbank"]).max() < 1e-6
    energies = log_energies(samples_of("utt4", recogniser), recogniser.banks)
    if recogniser.subtract_mean:
        energies = energies - energies.mean(axis=0)
    padded = np.pad(energies, ((REACH, REACH), (0, 0)), mode="edge").astype(np.float32)
    left, right = networks.inputs(np.lib.stride_tricks.sliding_window_view(padded, 2 * REACH + 1, axis=0))
    assert np.abs(left[:, :-1] - known["left_in"]).max() < 1e-3
    assert np.abs(right[:, :-1] - known["right_in"]).max() < 1e-3
    for net, given, name in ((networks.left, left, "left_out"), (networks.right, right, "right_out")):
        assert np.abs(np.exp(log_softmax(net.logits(given))) - known[name]).max() < 1e-4


@pytest.mark.parametrize("model", ["CZ", "EN"])
def test_the_extractor_gives_the_same(model: str) -> None:
    recogniser, known = read_recogniser(str(MODELS / model)), np.load(GOLDEN / f"utt2_{model}.npz")["post"]
    frames = Phnrec(weights=str(MODELS / model), non_speech="keep").extract(samples_of("utt2", recogniser) / 32768)
    assert frames.shape == (len(known), len(recogniser.phones))
    phones = known[:, :-3].reshape(len(known), -1, 3).sum(axis=2)
    assert np.abs(frames - phones / phones.sum(axis=1, keepdims=True)).max() < 1e-4
    merged = Phnrec(weights=str(MODELS / model))
    quiet = [k for k, phone in enumerate(recogniser.phones) if phone in ("int", "pau", "spk")]
    made = merged.extract(samples_of("utt2", recogniser) / 32768)
    assert merged.dimension == {"CZ": 43, "EN": 39}[model]
    assert np.abs(made[:, -1] - frames[:, quiet].sum(axis=1)).max() < 1e-6


def test_files_of_htk(tmp_path: Path) -> None:
    data = (GOLDEN / "edge_12frames_CZ.htk").read_bytes()
    known, frames = header("x", data), decoded("x", data)
    assert (known.shift, known.kind) == (0.01, FBANK)
    assert np.array_equal(frames, np.load(GOLDEN / "edge_12frames_CZ.npz")["post"])
    write_parameters(frames, known.shift, tmp_path / "same.htk", FBANK)
    assert (tmp_path / "same.htk").read_bytes() == data
    mlf = read_mlf(GOLDEN / "utt1_utt4_CZ.mlf")
    write_mlf(mlf, tmp_path / "same.mlf")
    assert (tmp_path / "same.mlf").read_text() == (GOLDEN / "utt1_utt4_CZ.mlf").read_text()
    by = transcriber(str(MODELS / "CZ"))
    for name, labels in mlf.items():
        path = GOLDEN / "input" / f"{Path(name).stem}.flac"
        found = [TimedLabel(*one) for one in transcribe(str(path), by)]
        assert [line.split()[:3] for line in label_lines(found)] == [line.split()[:3] for line in label_lines(labels)]
