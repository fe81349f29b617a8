"""Models: mixtures, warps and factors of speakers that are fitted, their files, and folders of encoders."""

import hashlib
import io
import json
import sys
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.core.errors import ConfigError
from swsdist.features.blocks import in_blocks
from swsdist.features.extractors import create
from swsdist.features.fitting.files import read_totals, summed, write_totals
from swsdist.features.fitting.interface import Document, Model, fit, load_model
from swsdist.features.fitting.mixture import Mixture, MixtureRounds, split
from swsdist.features.interface import for_speaker
from swsdist.features.mfcc import Mfcc
from swsdist.features.ssl import extractor
from swsdist.features.ssl.extractor import Ssl
from swsdist.features.ssl.folder import read_encoder, read_head
from swsdist.features.transforms.gmm import Gmm
from swsdist.features.transforms.interface import Shape
from swsdist.features.transforms.mean_variance import Warp
from swsdist.features.vtln import Vtln, WarpedMfcc
from swsdist.features.vtln import warped as warped_hertz
from swsdist.io.filesystem import Folder
from swsdist.io.local import folder_of
from swsdist.testing.conformance import check_extractor
from tests.support.coded import raises

RNG = np.random.default_rng(7)
CENTRES = RNG.normal(0, 30, (4, 3)) + 100
DOCUMENTS = [
    Document([(CENTRES[RNG.integers(0, 4, 60 + 31 * k)] + RNG.normal(0, 4 + k, (60 + 31 * k, 3))).astype(np.float32)])
    for k in range(5)
]
FRAMES = np.concatenate([block for document in DOCUMENTS for block in document.blocks]).astype(np.float64)


def logarithms(frames: np.ndarray, weights: np.ndarray, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """The definition: ln of weight times density, (frames, components)."""
    away = frames[:, None, :] - means[None]
    densities = -0.5 * (away**2 / variances + np.log(2 * np.pi * variances)).sum(axis=2)
    return np.log(weights) + densities


def up_or_down(components: int, component: int, column: int) -> int:
    digest = hashlib.blake2b(f"{components}.{component}.{column}".encode(), digest_size=1).digest()
    return 1 if digest[0] % 2 else -1


def plain(frames: np.ndarray, components: int, iterations: int, least: float) -> tuple[list[float], np.ndarray]:
    """The same EM in floating point, in deviations from the mean: likelihoods, and means in units of the frames."""
    mean, deviation = frames.mean(axis=0), frames.std(axis=0)
    x = (frames - mean) / deviation
    weights, means, variances = np.ones(1), np.zeros((1, 3)), np.ones((1, 3))
    likelihoods = []
    while len(weights) < components:
        chosen = np.argsort(-weights, kind="stable")[: components - len(weights)]
        signs = [[up_or_down(len(weights), k, column) for column in range(3)] for k in chosen]
        away = 0.2 * np.array(signs) * np.sqrt(variances[chosen])
        weights[chosen] /= 2
        means = np.concatenate([means, means[chosen] + away])
        means[chosen] -= away
        weights = np.concatenate([weights, weights[chosen]])
        variances = np.concatenate([variances, variances[chosen]])
        for _ in range(2 if len(weights) < components else iterations):
            known = logarithms(x, weights, means, variances)
            total = np.logaddexp.reduce(known, axis=1, keepdims=True)
            likelihoods.append(float(total.mean()))
            posteriors = np.exp(known - total)
            counts = posteriors.sum(axis=0)
            weights, means = counts / len(x), (posteriors.T @ x) / counts[:, None]
            variances = np.maximum((posteriors.T @ x**2) / counts[:, None] - means**2, least)
    return likelihoods, means * deviation + mean


@pytest.mark.parametrize("components", [2, 3, 4, 8])
def test_as_plain_expectation_and_maximisation(components: int) -> None:
    model = fit(MixtureRounds(components, 6, 0.01), DOCUMENTS)
    likelihoods, means = plain(FRAMES, components, 6, 0.01)
    assert model.settings["likelihoods"] == pytest.approx(likelihoods, abs=2e-3)
    found = model.arrays["means"] * model.arrays["deviation"] + model.arrays["mean"]
    assert np.abs(found - means).max() < 0.2
    assert np.all(np.diff(likelihoods[-6:]) >= 0)
    assert model.arrays["weights"].sum() == pytest.approx(1)


@settings(max_examples=15, deadline=None)
@given(st.permutations(range(5)), st.lists(st.integers(1, 150), max_size=6), st.integers(1, 40))
def test_any_cut_gives_the_same_model(order: list[int], borders: list[int], rows: int) -> None:
    """Documents in any order and in tasks of any size, frames in any blocks, totals over files."""
    rounds = MixtureRounds(5, 3, 0.01)
    expected = fit(rounds, DOCUMENTS).fingerprint
    known = None
    for _ in range(100):
        several = []
        for k in order:
            (block,) = DOCUMENTS[k].blocks
            # Sums of the first round are taken by document, so its blocks stay as they are.
            cut = [block[first : first + rows] for first in range(0, len(block), rows)] if known else [block]
            several.append(rounds.totals(known, Document(cut)))
        places = sorted({0, len(several), *(border % 5 for border in borders)})
        parts = [summed(several[first:last]) for first, last in pairwise(places)]
        known, done = rounds.go_on(known, summed(map(through_a_file, parts)))
        if done:
            break
    assert done
    assert known.fingerprint == expected


def through_a_file(totals: dict) -> dict:
    out = io.BytesIO()
    write_totals(out, totals)
    out.seek(0)
    return read_totals(out)


def test_a_frames_posteriors_are_its_own_and_those_of_the_definition(tmp_path: Path) -> None:
    fitted = fit(MixtureRounds(8, 2, 0.01), DOCUMENTS)
    fitted.save(Folder(str(tmp_path)), "m.npz")
    made, frames = partial(Gmm, components=8, model=str(tmp_path / "m.npz")), FRAMES.astype(np.float32)
    whole = made().apply(frames)
    for first, last in ((0, 1), (5, 9), (100, 331)):
        assert made().apply(frames[first:last]).tobytes() == whole[first:last].tobytes()
    model = Mixture.of(fitted)
    known = logarithms((FRAMES - model.mean) / model.deviation, model.weights, model.means, model.variances)
    exact = np.exp(known - np.logaddexp.reduce(known, axis=1, keepdims=True))
    assert np.abs(whole - exact).max() < 0.005
    kept = made(keep=2, floor=0).apply(frames)
    assert ((kept > 0).sum(axis=1) <= 2).all()
    for posteriors in (whole, kept):
        assert posteriors.sum(axis=1) == pytest.approx(np.ones(len(frames)), abs=1e-5)
    logits = made(values="logits").apply(frames)
    assert logits == pytest.approx(np.log(whole) - np.log(whole).mean(axis=1, keepdims=True), abs=1e-3)


@pytest.mark.parametrize("frames", [1, 9, 30, 300])
def test_a_number_that_nobody_chose_is_as_many_as_frames_allow(tmp_path: Path, frames: int) -> None:
    document = Document([FRAMES[:frames].astype(np.float32)])
    made = fit(Gmm(iterations=1).rounds(), [document])
    made.save(Folder(str(tmp_path)), "m.npz")
    count = min(128, max(1, frames // 8))
    held = Gmm(model=str(tmp_path / "m.npz"))
    assert len(held.becomes(Shape(tuple("abc"), "features")).columns) == count
    assert held.apply(document.blocks[0]).shape == (frames, count)
    with raises(families.NOTHING_TO_FIT, components=128):
        fit(Gmm(components=128).rounds(), [document])
    with raises(families.NOTHING_TO_FIT):
        fit(MixtureRounds(5, 2, 0.01), [])
    (tmp_path / "bad.npz").write_bytes(b"no")
    with raises(families.UNUSABLE_MODEL):
        Gmm(model=str(tmp_path / "bad.npz")).becomes(Shape(tuple("abc"), "features"))


def test_one_component_and_splits_of_some() -> None:
    model = fit(MixtureRounds(1, 2, 0.01), DOCUMENTS)
    assert model.arrays["weights"].tolist() == [1.0]
    three = split(split(Mixture.of(model), 2), 3)
    assert three.weights.tolist() == [0.25, 0.5, 0.25]
    assert (three.weights[:, None] * three.means).sum(axis=0) == pytest.approx(np.zeros(3), abs=1e-12)


def model(**changed: object) -> Model:
    values = {"name": "codebook", "version": 1, "settings": {"k": 4}, "arrays": {"means": np.arange(6.0).reshape(2, 3)}}
    return Model(**{**values, **changed})  # type: ignore[arg-type]


def test_what_is_saved_is_read_named_by_all_it_holds_and_never_unpickled(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    model(arrays={"b": np.array([True]), "a": np.arange(3, dtype=">i4")}).save(folder, "models/m.npz")
    found = load_model(folder, "models/m.npz")
    assert (found.name, found.version, found.settings) == ("codebook", 1, {"k": 4})
    assert found.arrays["a"].tolist() == [0, 1, 2]
    assert found.arrays["a"].dtype == np.dtype("<i4")
    first = (tmp_path / "models/m.npz").read_bytes()
    found.save(folder, "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == first
    assert load_model(folder, "again.npz", found.fingerprint).fingerprint == found.fingerprint
    others = [
        model(),
        model(name="x"),
        model(version=2),
        model(settings={"k": 5}),
        model(arrays={"means": np.arange(6.0).reshape(3, 2)}),
        model(arrays={"means": np.arange(6).reshape(2, 3)}),
        model(arrays={"means": np.arange(6.0).reshape(2, 3) + 1e-12}),
        model(arrays={"other": np.arange(6.0).reshape(2, 3)}),
    ]
    assert len({each.fingerprint for each in others}) == len(others)
    turned = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    assert model(arrays={"means": turned}).fingerprint == model().fingerprint
    folder, out = Folder(str(tmp_path)), io.BytesIO()
    np.savez(out, settings=np.frombuffer(b"{}", np.uint8), evil=np.array([{}], dtype=object))
    for data in (b"", b"PK\x03\x04 cut off", b"nonsense", out.getvalue()):
        (tmp_path / "m.npz").write_bytes(data)
        with raises(codes.NOT_A_MODEL):
            load_model(folder, "m.npz")
    with raises(codes.MISSING_MODEL):
        load_model(folder, "no.npz")
    model().save(folder, "m.npz")
    with raises(families.CHANGED_INPUT):
        load_model(folder, "m.npz", "0" * 32)
    with pytest.raises(ValueError, match="use numbers or booleans"):
        model(arrays={"x": np.array(["text"])})


NORMAL = NormalDist()


def fitted(place: Path, mean: list[float], deviation: list[float], **options: Any) -> Warp:
    Model("warp", 1, {"mean": np.array(mean), "deviation": np.array(deviation)}).save(Folder(str(place)), "warp.npz")
    return Warp(model=str(place / "warp.npz"), **options)


def column(warp: Warp, values: list[float]) -> list[float]:
    found: list[float] = warp.apply(np.array(values, np.float32)[:, None])[:, 0].tolist()
    return found


@settings(max_examples=40, deadline=None)
@given(values=st.lists(st.integers(-3, 3), min_size=1, max_size=40), half=st.integers(1, 9))
def test_is_its_definition(tmp_path_factory: pytest.TempPathFactory, values: list[int], half: int) -> None:
    """By ranks in the window (equal ones have their mean), filled up with the corpus where a window lacks frames."""
    warp = fitted(tmp_path_factory.mktemp("warp"), [0.5], [2.0], frames=2 * half + 1)
    expected = []
    for t, x in enumerate(values):
        window = values[max(0, t - half) : t + half + 1]
        below = sum(u < x for u in window) + sum(u == x for u in window) / 2
        corpus = (warp.frames - len(window)) * NORMAL.cdf((x - 0.5) / 2)
        expected.append(NORMAL.inv_cdf((below + corpus) / warp.frames))
    assert column(warp, [float(x) for x in values]) == pytest.approx(expected, abs=1e-5)
    assert np.isfinite(column(warp, [1e30, -1e30])).all()


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    model = fit(Warp().rounds(), [Document([np.array([[-1, 2], [3, 2]], np.float32)])])
    assert {k: model.arrays[k].tolist() for k in ("mean", "deviation")} == {"mean": [1, 2], "deviation": [2, 1]}
    with raises(families.MISMATCH, expected=2, columns=3):
        fitted(tmp_path, [0, 0], [1, 1]).becomes(Shape(("a", "b", "c"), "features"))
    with raises(codes.WRONG_MODEL, wanted="a mean and deviation of columns"):
        fitted(tmp_path, [0, 0], [1, 0]).becomes(Shape(("a", "b"), "features"))
    with raises(families.INVALID_VALUE):
        create("mfcc", {}, transforms=[("warp", {"frames": 300})])


RATE = 16000


def voice(seed: int, factor: float, seconds: float = 6.0) -> np.ndarray:
    """Vowels by three resonances of noise, all frequencies times a factor."""
    from scipy.signal import lfilter

    vowels = [(300, 2300, 3000), (700, 1200, 2600), (350, 800, 2500), (500, 1500, 2500), (450, 1900, 2700)]
    rng, parts = np.random.default_rng(seed), []
    for _ in range(int(seconds / 0.15)):
        sound = rng.normal(size=int(0.15 * RATE))
        for formant in vowels[rng.integers(0, len(vowels))]:
            radius, angle = np.exp(-np.pi * 90 / RATE), 2 * np.pi * formant * factor / RATE
            sound = lfilter([1.0], [1.0, -2 * radius * np.cos(angle), radius**2], sound)
        parts.append(sound / np.abs(sound).max())
    return (0.3 * np.concatenate(parts)).astype(np.float32)


def test_without_a_warp_it_is_mfcc_and_warped_the_ends_stay() -> None:
    samples = voice(1, 1.0, 1.0)
    assert WarpedMfcc().extract(samples) == pytest.approx(Mfcc().extract(samples), abs=1e-3)
    options = {"sample_rate": 8000, "n_fft": 256, "win_length": 200, "hop_length": 80, "n_mels": 20, "fmax": 3800.0}
    assert WarpedMfcc(**options).extract(samples) == pytest.approx(Mfcc(**options).extract(samples), abs=1e-3)
    hertz = np.array([0.0, 1000, 4000, 8000])
    assert warped_hertz(hertz, 1.0, 8000) == pytest.approx(hertz)
    for factor in (0.88, 1.12):
        made = warped_hertz(np.linspace(0, 8000, 801), factor, 8000)
        assert made[[0, 100, -1]] == pytest.approx([0, 1000 * factor, 8000])
        assert (np.diff(made) > 0).all()


@pytest.fixture(scope="module")
def vtln_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Fitted on speakers of three lengths, in the order long, middle, short of their vocal tracts."""
    one = Vtln(components=8)
    learned = create("vtln", one.learns_from())
    lengths = {"long": 0.9, "middle": 1.0, "short": 1.1}
    documents = [
        Document([learned.extract(voice(10 * k + n, lengths[name]))], name)  # type: ignore[union-attr]
        for n, name in enumerate(lengths)
        for k in range(2 if name != "middle" else 4)
    ]
    documents.append(Document([learned.extract(voice(99, 1.0))], None))  # type: ignore[union-attr]
    made = fit(one.rounds(), documents)
    assert fit(one.rounds(), documents[::-1]).fingerprint == made.fingerprint
    place = tmp_path_factory.mktemp("vtln")
    made.save(Folder(str(place)), "m.npz")
    return str(place / "m.npz")


def test_speakers_have_factors(vtln_model: str) -> None:
    made = Vtln(components=8, model=vtln_model)
    _, factors = made._fitted
    assert set(factors) == {"long", "middle", "short"}
    # Low resonances become those of all: times a factor above 1.
    assert factors["long"] > factors["middle"] > factors["short"]
    assert factors["middle"] == pytest.approx(1.0, abs=0.041)
    samples = voice(5, 1.1, 2.0)
    of_short = for_speaker(made, "short").extract(samples)
    assert np.array_equal(of_short, made.under(factors["short"]).extract(samples))
    assert made._bound == []
    behind = create("vtln", {"components": 8, "model": vtln_model}, transforms=[("columns", {"keep": [1, 2]})])
    found = for_speaker(behind, "short").extract(samples)  # type: ignore[arg-type]
    assert np.array_equal(found, of_short[:, 1:3])
    # One who is not known has the factor of the recording.
    assert np.array_equal(for_speaker(made, "who").extract(samples), made.extract(samples))
    assert any(np.array_equal(made.extract(samples), made.under(factor).extract(samples)) for factor in (0.88, 0.92))


def test_a_recording_has_one_factor(vtln_model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that is computed in chunks, whose later ones would have others by themselves: the first tells it."""
    for name, frames in {"whole_frames": 500, "chunk_frames": 500, "overlap_frames": 100}.items():
        monkeypatch.setattr(Vtln, name, frames)
    made = Vtln(components=8, model=vtln_model)
    parts = [voice(5, 0.9, 6.0), voice(6, 1.1, 12.0)]
    first, later = (for_speaker(made, None)._best([one.extract(part) for one in made._all]) for part in parts)  # type: ignore[attr-defined]
    assert first != later
    found = np.concatenate(list(in_blocks(for_speaker(made, None), parts)))
    assert np.array_equal(found, made.under(made.factors[first]).extract(np.concatenate(parts)))
    assert made._bound == []
    known = np.concatenate(list(in_blocks(for_speaker(made, "short"), parts)))
    assert np.array_equal(known, made.under(made._fitted[1]["short"]).extract(np.concatenate(parts)))


@pytest.mark.slow
def test_the_suite_for_extractors(vtln_model: str) -> None:
    options = {"sample_rate": 8000, "n_fft": 256, "win_length": 200, "hop_length": 80, "n_mels": 20}
    check_extractor(Vtln(components=8, model=vtln_model, step=0.12, mfcc=options))


def test_what_cannot_be(vtln_model: str) -> None:
    with raises(codes.MODEL_NOT_FITTED, name="vtln"):
        Vtln().extract(np.zeros(RATE, np.float32))
    with raises(codes.WRONG_MODEL, wanted="a vtln model for these MFCC"):
        Vtln(components=8, model=vtln_model, mfcc={"n_mfcc": 12}).extract(np.zeros(RATE, np.float32))
    with pytest.raises(ConfigError, match="n_fftt"):
        create("vtln", {"mfcc": {"n_fftt": 3}})
    assert Vtln(step=0.02).factors == [round(0.88 + 0.02 * k, 2) for k in range(13)]
    assert Vtln(lowest=1.0, step=0.05).factors == [1.0, 1.05, 1.1]


CONFIG: dict[str, Any] = {"model_type": "wav2vec2", "hidden_size": 16, "num_hidden_layers": 3}
CONFIG |= {"conv_kernel": [10, 3, 3, 3, 3, 2, 2], "conv_stride": [5, 2, 2, 2, 2, 2, 2]}
WHISPER: dict[str, Any] = {"model_type": "whisper", "d_model": 8, "encoder_layers": 2, "max_source_positions": 1500}
WHISPER |= {"num_mel_bins": 80, "encoder_attention_heads": 2, "encoder_ffn_dim": 32}
CTC: dict[str, Any] = {**CONFIG, "architectures": ["Wav2Vec2ForCTC"], "vocab_size": 4}
TOKENS = {"a": 2, "|": 1, "<pad>": 0, "tʃ": 3}
FRONT: dict[str, Any] = {"sampling_rate": 16000, "do_normalize": True}


def write(folder: Path, config: object = CONFIG, front: object = FRONT) -> str:
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "preprocessor_config.json").write_text(json.dumps(front))
    (folder / "model.safetensors").write_bytes(b"123")
    return str(folder)


def test_folders_of_convolutions_and_of_spectra_and_weights_in_several_files(tmp_path: Path) -> None:
    known = {"torch", "transformers"} & sys.modules.keys()
    one = read_encoder(write(tmp_path))
    assert (one.sample_rate, one.frame_length, one.hop) == (16000, 400, 320)
    assert (one.layers, one.width, one.most, one.samples, one.bytes) == (3, 16, None, True, 3)
    assert [path.name for path in one.files] == ["config.json", "preprocessor_config.json", "model.safetensors"]
    assert {"torch", "transformers"} & sys.modules.keys() == known  # who loaded one, it was not this
    one = read_encoder(write(tmp_path, {**WHISPER, "is_encoder_decoder": True}, {**FRONT, "hop_length": 160}))
    assert (one.frame_length, one.hop, one.layers, one.width, one.most) == (320, 320, 2, 8, 1500)
    assert (one.mels, one.heads, one.inner) == (80, 2, 32)
    one = read_encoder(write(tmp_path, {**CONFIG, "model_type": "wav2vec2-bert"}, {**FRONT, "stride": 2}))
    assert (one.frame_length, one.hop, one.most, one.samples) == (560, 320, None, False)
    folder = write(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "model-00001-of-00002.safetensors")
    (tmp_path / "model-00002-of-00002.safetensors").write_bytes(b"12345")
    named = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": named}))
    one = read_encoder(folder)
    assert one.bytes == 3 + 5
    assert [path.name for path in one.files[2:]] == ["model.safetensors.index.json", *named.values()]
    (tmp_path / named["b"]).unlink()
    with raises(codes.MODEL_FILE_MISSING, file="model-00002-of-00002.safetensors"):
        read_encoder(folder)


def test_folders_that_lack_something_or_are_of_something_else(tmp_path: Path) -> None:
    for model in ("facebook/nothing", "/no/such"):
        with raises(codes.NO_MODEL_FOLDER):
            read_encoder(model)
    with raises(codes.MODEL_FILE_MISSING, file="config.json"):
        read_encoder(str(tmp_path))
    folder = write(tmp_path)
    (tmp_path / "preprocessor_config.json").unlink()
    with raises(codes.MODEL_FILE_MISSING, file="preprocessor_config.json"):
        read_encoder(folder)
    # What makes the input may stand beside a tokenizer.
    (tmp_path / "processor_config.json").write_text(json.dumps({"feature_extractor": {**FRONT, "sampling_rate": 8000}}))
    one = read_encoder(folder)
    assert (one.sample_rate, one.files[1].name) == (8000, "processor_config.json")
    (tmp_path / "processor_config.json").write_text("{}")
    with raises(codes.MODEL_FILE_MISSING, file="preprocessor_config.json"):
        read_encoder(folder)
    write(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with raises(codes.MODEL_FILE_NOT_JSON):
        read_encoder(folder)
    wrong = families.UNUSABLE_MODEL
    cases: list[tuple[object, object, Any, dict[str, object]]] = [
        ({**CONFIG, "model_type": "bert", "conv_kernel": None}, FRONT, wrong, {"keys": "conv_kernel"}),
        ({"model_type": "bert", "hidden_size": 3}, FRONT, wrong, {"kind": "bert"}),
        ({**CONFIG, "model_type": "sew", "squeeze_factor": 2}, FRONT, wrong, {"kind": "sew"}),
        ({**CONFIG, "model_type": "speecht5", "is_encoder_decoder": True}, FRONT, wrong, {"kind": "speecht5"}),
        ({**CONFIG, "num_hidden_layers": "3"}, FRONT, wrong, {"keys": "num_hidden_layers or encoder_layers"}),
        (CONFIG, {}, wrong, {"keys": "sampling_rate"}),
        ([], FRONT, codes.MODEL_FILE_NOT_JSON, {}),
    ]
    for config, front, code, values in cases:
        with raises(code, where=".json", **values):
            read_encoder(write(tmp_path, config, front))


def test_pickled_weights_are_not_read(tmp_path: Path) -> None:
    folder = write(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with raises(codes.MODEL_FILE_MISSING, file="model.safetensors"):
        read_encoder(folder)
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with raises(families.UNUSABLE_MODEL, file="pytorch_model.bin"):
        read_encoder(folder)
    write(tmp_path, CTC)
    (tmp_path / "model.safetensors").unlink()
    with raises(families.UNUSABLE_MODEL, auto="AutoModelForCTC"):  # AutoModel would lose the head
        read_encoder(folder)


def test_options_and_those_that_do_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path)
    monkeypatch.setattr(extractor, "find_spec", lambda name: None)
    with raises(codes.SSL_NOT_INSTALLED, library="torch"):
        Ssl(model=folder, layer=1)
    monkeypatch.setattr(extractor, "find_spec", lambda name: True)
    one = Ssl(model=folder, layers="all")
    assert one.tracks == tuple((f"layer{k}", 16) for k in range(4))
    assert one.dimension == 64
    assert (one.whole_frames, one.chunk_frames, one.overlap_frames) == (1500, 1500, 200)
    assert Ssl(model=folder, layers=[3, 1]).tracks == (("layer3", 16), ("layer1", 16))
    assert Ssl(model=folder, layer=0).tracks == (("ssl", 16),)
    (tmp_path / "w.json").write_text("[0.5, 0.25, 0, 0.25]")
    summed = Ssl(model=folder, layers="all", weights=str(tmp_path / "w.json"))
    assert (summed.tracks, summed.dimension) == ((("ssl", 16),), 16)
    assert summed.files()[-1] == tmp_path / "w.json"
    assert Ssl(model=folder, layer=1, device="cuda").needs[0].gpus == 1
    assert one.needs[0].gpus == 0
    monkeypatch.setattr(extractor, "find_spec", lambda name: True)
    folder = write(tmp_path)
    cases: list[tuple[dict[str, Any], str]] = [
        *((given, "exactly one of layer, layers and head") for given in ({}, {"layer": 1, "layers": [2]})),
        ({"layer": 1, "head": "logits"}, "exactly one of layer, layers and head"),
        ({"layer": 1, "language": "ces"}, codes.LANGUAGE_WITHOUT_CHOICE.name),
        ({"head": "logits"}, codes.NO_CTC_HEAD.name),
        *((given, "no layer 4") for given in ({"layer": 4}, {"layers": [1, 4]})),
        ({"layers": [1, 1]}, codes.DUPLICATE_LAYER.name),
        ({"layers": [1, 2], "weights": [1.0]}, "1 weights for 2 layers"),
        ({"layer": 1, "chunk_seconds": 2, "overlap_seconds": 1}, codes.OVERLAP_TOO_LONG.name),
        ({"layer": 1, "short_seconds": 11}, codes.SHORT_TOO_LONG.name),
        ({"layer": 1, "weights": "no.json"}, codes.UNREADABLE_LAYER_WEIGHTS.name),
        ({"layer": 1, "dtype": "float64"}, "dtype"),
    ]
    for options, complaint in cases:
        with pytest.raises((ConfigError, ValueError), match=complaint):
            Ssl(model=folder, **options)


def write_head(folder: Path, tokens: object = TOKENS, added: object = None, **config: object) -> str:
    (folder / "vocab.json").write_text(json.dumps(tokens))
    if added is not None:
        (folder / "added_tokens.json").write_text(json.dumps(added))
    return write(folder, {**CTC, **config})


def write_adapter(folder: Path, language: str, columns: int) -> None:
    """Only the header: nothing else of it is read without transformers."""
    header = json.dumps({"lm_head.weight": {"dtype": "F32", "shape": [columns, 16], "data_offsets": [0, 0]}}).encode()
    (folder / f"adapter.{language}.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)


def test_columns_and_options_of_a_head_and_vocabularies_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = read_head(write_head(tmp_path), None)
    assert head.columns == ("<pad>", "|", "a", "tʃ")
    assert (head.stride, head.adapted, [path.name for path in head.files]) == (1, False, ["vocab.json"])
    # Tokens that the tokenizer adds: with a column of the head, and beyond it.
    added = {"<s>": 4, "</s>": 5}
    head = read_head(write_head(tmp_path, added=added, vocab_size=5), None)
    assert head.columns == ("<pad>", "|", "a", "tʃ", "<s>")
    assert [path.name for path in head.files] == ["vocab.json", "added_tokens.json"]
    assert read_head(write_head(tmp_path, added={"tʃ": 3}), None).columns == ("<pad>", "|", "a", "tʃ")
    (tmp_path / "added_tokens.json").unlink()
    monkeypatch.setattr(extractor, "find_spec", lambda name: True)
    made = Ssl(model=write_head(tmp_path), head="posteriors")
    assert (made.kind, made.columns, made.tracks) == ("posteriors", ("<pad>", "|", "a", "tʃ"), (("ssl", 4),))
    assert made.files()[-1] == tmp_path / "vocab.json"
    assert {"head": "posteriors", "language": None}.items() <= made.describe().items()
    with pytest.raises(ValueError, match=codes.LAYER_WEIGHTS_MISMATCH.text(weights=1, layers="no")[0]):
        Ssl(model=str(tmp_path), head="logits", weights=[1.0])
    # Layers are described as before there were heads and gains: they are not computed again.
    layer = Ssl(model=str(tmp_path), layer=1)
    assert (layer.kind, layer.columns, layer.ctc) == ("features", None, None)
    later = {"head", "language", "gain", "short_seconds", "window_seconds"}
    assert set(layer.describe()) == set(Ssl.model_fields) - later
    assert tmp_path / "vocab.json" not in layer.files()
    least = {"<pad>": 0, "|": 1}
    cases: list[tuple[dict[str, object], object, str]] = [
        *(({**TOKENS, "x": column}, None, f"'x' is column {column!r}") for column in (4, -1, "3")),
        ({**TOKENS, "x": 3}, None, "'tʃ' and 'x' are both column 3"),
        ({**least, "a": 2}, None, "column 3 has no name"),
        ({}, None, "column 0 has no name"),
        ({**least, "": 2, "b": 3}, None, "column 2 has no name"),
        ({**least, "a": 2}, {"a": 3}, "columns 2 and 3 are both 'a'"),
        ({**least, "a": 2}, {"x": None}, "'x' is column None"),
    ]
    for tokens, added, problem in cases:
        (tmp_path / "added_tokens.json").unlink(missing_ok=True)
        with raises(families.UNUSABLE_MODEL, where=str(tmp_path), columns=4, problem=problem):
            read_head(write_head(tmp_path, tokens, added), None)


def test_heads_that_are_not_there_and_one_for_each_language(tmp_path: Path) -> None:
    for architectures in (None, ["Wav2Vec2Model"]):
        with raises(codes.NO_CTC_HEAD, where="config.json", architectures=architectures):
            read_head(write_head(tmp_path, architectures=architectures), None)
    folder = write_head(tmp_path)
    with raises(codes.LANGUAGE_WITHOUT_CHOICE, where="vocab.json", language="ces"):
        read_head(folder, "ces")
    (tmp_path / "vocab.json").unlink()
    with raises(codes.MODEL_FILE_MISSING, file="vocab.json"):
        read_head(folder, None)
    with raises(families.UNUSABLE_MODEL, where="config.json", keys="vocab_size"):
        read_head(write_head(tmp_path, vocab_size=None), None)
    languages = {"ces": TOKENS, "hun": {"<pad>": 0, "ö": 1}}
    folder = write_head(tmp_path, languages, adapter_attn_dim=16)
    for language, said in ((None, "not set"), ("rus", "rus")):
        with raises(families.UNKNOWN_NAME, language=said, count=2, languages="ces, hun"):
            read_head(folder, language)
    with raises(codes.MODEL_FILE_MISSING, file="adapter.hun.safetensors"):
        read_head(folder, "hun")
    write_adapter(tmp_path, "hun", 2)
    head = read_head(folder, "hun")
    assert (head.columns, head.adapted) == (("<pad>", "ö"), True)
    assert [path.name for path in head.files] == ["vocab.json", "adapter.hun.safetensors"]
    write_adapter(tmp_path, "hun", 3)
    with raises(families.UNUSABLE_MODEL, columns=3, problem="column 2 has no name"):
        read_head(folder, "hun")
    for damaged in (b"", b"\xff" * 20, (2).to_bytes(8, "little") + b"{}"):
        (tmp_path / "adapter.hun.safetensors").write_bytes(damaged)
        with raises(codes.MODEL_FILE_UNREADABLE, where="adapter.hun.safetensors"):
            read_head(folder, "hun")
    # Without adapters the weights have one head, of the language whose columns it has.
    head = read_head(write_head(tmp_path, languages), "ces")
    assert (head.columns, head.adapted) == (("<pad>", "|", "a", "tʃ"), False)


def test_a_name_is_of_a_model_in_the_cache_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    asked = str(tmp_path / "configs" / "somebody" / "model")
    assert folder_of(asked) == asked
    repository = tmp_path / "models--somebody--model"
    folder = repository / "snapshots" / "abc"
    for place in (folder, repository / "refs"):
        place.mkdir(parents=True)
    (repository / "refs" / "main").write_text("abc")
    assert folder_of(asked) == str(folder)
    write(folder, WHISPER, {**FRONT, "hop_length": 160})
    assert Ssl(model=asked, layer=1).describe()["model"] == str(folder)
    Path(asked).mkdir(parents=True)
    assert folder_of(asked) == asked, "a folder comes before a name"
