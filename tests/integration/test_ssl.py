"""Layers of tiny random models: those of transformers itself, in chunks, in a run; and Whisper base where its weights lie."""

from __future__ import annotations

import json
import shutil
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from commands import Ended, in_this_process

import swsdist
from swsdist.config import config_from_dict, load_config
from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.features.blocks import in_blocks
from swsdist.features.extractors import create, from_recipe, identity, recipe
from swsdist.features.ssl.extractor import Ssl, search_of
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.operation.progress import Progress
from swsdist.pipeline.status import digests
from swsdist.searcher.searcher import setup_of
from swsdist.store.reading import Store
from swsdist.testing.conformance import check_extractor
from swsdist.testing.synthesis.encoder import KINDS, make_encoder
from tests.integration.conftest import SHARED
from tests.support.coded import raises

_LACKING = "the extra `ssl` is not installed: pip install 'swsdist[ssl]'"
torch = pytest.importorskip("torch", reason=_LACKING)
transformers = pytest.importorskip("transformers", reason=_LACKING)
pytestmark = pytest.mark.xdist_group("ssl")
#: Columns of a CTC head, the blank first.
TOKENS = ("<pad>", "<s>", "</s>", "<unk>", "|", "a", "tʃ", "n")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of each kind; to be read only."""
    place = tmp_path_factory.mktemp("models")
    for kind in KINDS:
        make_encoder(str(place / kind), kind)
    return place


def noise(seconds: float, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).normal(scale=0.1, size=round(seconds * 16000)).astype(np.float32)


def reference(folder: Path, samples: np.ndarray) -> list[np.ndarray]:
    """Hidden states as anybody gets them from transformers."""
    model = transformers.AutoModel.from_pretrained(folder).eval()
    front = transformers.AutoFeatureExtractor.from_pretrained(folder)
    encoder, padding = model, {}
    if model.config.is_encoder_decoder:  # of Whisper, on positions up to the end of the samples
        encoder, padding = model.get_encoder(), {"padding": False}
        encoder.config.max_source_positions = count = len(samples) // 320
        encoder.embed_positions = torch.nn.Embedding.from_pretrained(encoder.embed_positions.weight[:count])
    inputs = front(samples, sampling_rate=16000, return_tensors="pt", **padding)
    with torch.inference_mode():
        states = encoder(inputs[encoder.main_input_name], output_hidden_states=True).hidden_states
    return [state[0].numpy() for state in states]


def test_a_gain_is_of_the_samples(models: Path) -> None:
    folder, sound = str(models / "whisper"), noise(1)
    quieter = Ssl(model=folder, layer=1, gain=-3)
    assert (quieter.extract(sound) == Ssl(model=folder, layer=1).extract(sound * np.float32(10**-0.15))).all()
    assert "gain" not in Ssl(model=folder, layer=1).describe()
    assert quieter.describe()["gain"] == -3


@pytest.mark.parametrize("kind", KINDS)
def test_layers_are_those_of_transformers(models: Path, kind: str) -> None:
    sound = noise(1.6)  # whole frames, so that nobody pads
    wanted = reference(models / kind, sound)
    every = Ssl(model=str(models / kind), layers="all").extract(sound)
    count = len(every)
    assert count == {"whisper": 80}.get(kind, 79)
    assert every == pytest.approx(np.concatenate([one[:count] for one in wanted], axis=1), abs=1e-5)
    # Layers above are left out, and no byte differs.
    for layer in range(4):
        alone = Ssl(model=str(models / kind), layer=layer).extract(sound)
        assert alone.tobytes() == every[:, 16 * layer : 16 * layer + 16].tobytes()
    weights = [0.5, 0.0, -0.25, 2.0]
    summed = Ssl(model=str(models / kind), layers="all", weights=weights).extract(sound)
    assert summed == pytest.approx(sum(w * one[:count] for w, one in zip(weights, wanted, strict=True)), abs=1e-5)


def test_a_short_recording_has_silence_behind_it(models: Path) -> None:
    options = {"model": str(models / "whisper"), "layer": 2, "short_seconds": 1, "window_seconds": 4}
    longer = np.concatenate([noise(0.99), np.zeros(48240, np.float32)])
    assert len(longer) == 64080
    found = Ssl(**options).extract(noise(0.99))
    assert len(found) == 49
    assert found.tobytes() == Ssl(**options).extract(longer[:64000])[:49].tobytes()
    assert len(Ssl(**options).extract(noise(1.01))) == 50
    assert found.tobytes() != Ssl(**{**options, "window_seconds": 3}).extract(noise(0.99)).tobytes()
    with pytest.raises(ValueError, match="whisper takes at most 30 s"):
        Ssl(**{**options, "window_seconds": 40})


def test_a_long_recording_in_chunks(models: Path) -> None:
    """Each chunk is what it is by itself; where audio is cut into blocks does not matter."""
    one = Ssl(model=str(models / "wav2vec2"), layer=2, chunk_seconds=2, overlap_seconds=0.4)
    sound = noise(7.3)
    found = np.concatenate(list(in_blocks(one, np.array_split(sound, 13))))
    assert len(found) == 1 + (len(sound) - 400) // 320
    assert found.tobytes() == np.concatenate(list(in_blocks(one, [sound]))).tobytes()
    chunk, step, kept = 100, 80, 90
    for k in range(4):
        alone = one.extract(sound[k * step * 320 : (k * step + chunk - 1) * 320 + 400])
        first = 10 if k else 0
        assert found[k * step + first : k * step + kept].tobytes() == alone[first:kept].tobytes()
    # In the middle of a chunk frames are near those of the whole; at random weights attention is wide.
    whole = Ssl(model=str(models / "wav2vec2"), layer=2).extract(sound)
    assert np.corrcoef(found.ravel(), whole.ravel())[0, 1] > 0.9


def test_what_torch_is_told_elsewhere_does_not_matter_and_stays(models: Path) -> None:
    one = Ssl(model=str(models / "xls-r"), layer=3)
    before, state, frames = torch.get_num_threads(), torch.random.get_rng_state(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            frames.append(one.extract(noise(3)).tobytes())
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert len(set(frames)) == 1
    assert torch.equal(torch.random.get_rng_state(), state)


def test_other_types(models: Path) -> None:
    plain = Ssl(model=str(models / "hubert"), layer=2).extract(noise(1))
    for dtype in ("float16", "bfloat16"):
        half = Ssl(model=str(models / "hubert"), layer=2, dtype=dtype).extract(noise(1))
        assert half.dtype == np.float32
        assert 0.98 < np.corrcoef(half.ravel(), plain.ravel())[0, 1] < 1


def test_an_identity_is_of_what_the_files_hold(models: Path, tmp_path: Path) -> None:
    shutil.copytree(models / "wav2vec2", tmp_path / "moved")
    (tmp_path / "w.json").write_text("[1, 2]")
    (tmp_path / "v.json").write_text("[1, 2]")
    options = {"layers": [1, 2]}
    here, moved = {"model": str(models / "wav2vec2"), **options}, {"model": str(tmp_path / "moved"), **options}
    one = create("ssl", {**here, "weights": str(tmp_path / "w.json")})
    other = create("ssl", {**moved, "weights": str(tmp_path / "v.json")})
    assert identity(one) == identity(other)
    assert str(tmp_path) not in str(identity(other))
    assert from_recipe(recipe(other)).describe() == other.describe()
    make_encoder(str(tmp_path / "moved"), seed=1)
    assert identity(create("ssl", moved)) != identity(create("ssl", here))


def test_weights_that_are_missing_are_not_made_up(models: Path, tmp_path: Path) -> None:
    shutil.copytree(models / "wavlm", tmp_path / "part")
    from safetensors.torch import load_file, save_file

    path = tmp_path / "part" / "model.safetensors"
    weights = load_file(path)
    dropped = next(name for name in weights if "layers.1" in name and name.endswith("weight"))
    save_file({name: value for name, value in weights.items() if name != dropped}, path, {"format": "pt"})
    with raises(codes.INCOMPLETE_WEIGHTS, count=1, first=dropped):
        Ssl(model=str(tmp_path / "part"), layer=2).extract(noise(1))
    path.write_bytes(b"nonsense")
    with raises(families.UNUSABLE_MODEL):
        Ssl(model=str(tmp_path / "part"), layer=2).extract(noise(1))


@pytest.mark.parametrize(("kind", "prefix"), [("wav2vec2", "wav2vec2."), ("hubert", ""), ("whisper", "model.")])
def test_weights_as_published_models_name_them(models: Path, tmp_path: Path, kind: str, prefix: str) -> None:
    """With a head, with the older names of a normalised weight, in half precision."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(models / kind, tmp_path / kind)
    path = tmp_path / kind / "model.safetensors"
    older = {"parametrizations.weight.original0": "weight_g", "parametrizations.weight.original1": "weight_v"}
    named = {}
    for name, value in load_file(path).items():
        for new, old in older.items():
            name = name.replace(new, old)
        named[prefix + name] = value.half()
    named["lm_head.weight"] = torch.ones(3, 3)
    save_file(named, path, {"format": "pt"})
    found = Ssl(model=str(tmp_path / kind), layer=2).extract(noise(1))
    wanted = Ssl(model=str(models / kind), layer=2).extract(noise(1))
    assert np.corrcoef(found.ravel(), wanted.ravel())[0, 1] > 0.999
    assert np.abs(found - np.float16(found)).max() > 0  # computed in float32


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_run_without_a_gpu_ends_before_it_has_done_anything(models: Path, scene: Any) -> None:
    options = {"model": str(models / "hubert"), "layer": 2, "device": "cuda"}
    with raises(codes.NO_TORCH_GPU, where="features.options.device"):
        scene.run("features.name=ssl", f"features.options={json.dumps(options)}", "executor.kind=serial")
    assert scene.all_receipts() == []


def test_layers_are_tracks_of_a_run(models: Path, scene: Any) -> None:
    """One pass gives both; shards do not matter; queries come through the same code; a store is searched without a run."""
    options = {"model": str(models / "hubert"), "chunk_seconds": 2, "overlap_seconds": 0.5}
    features = f"features={json.dumps({'name': 'ssl', 'options': {**options, 'layers': [1, 3]}})}"
    streams = "search.streams=[{track: layer1}, {track: layer3, weight: 2}]"
    for run, shards in (("one", 1), ("five", 5)):
        scene.run(features, streams, f"index.shards={shards}", run=run, until="search")
    digest = scene.digest("one")
    assert digest == scene.digest("five")
    assert {"features", "features.layer3", "queries"} <= digest.keys()
    store = scene.store("five")
    assert [(track.name, track.dimension) for track in store.manifest.tracks] == [("layer1", 16), ("layer3", 16)]
    assert store.manifest.tick == pytest.approx(0.02)
    assert store.manifest.libraries["transformers"] == (transformers.__version__,)
    alone = f"features={json.dumps({'name': 'ssl', 'options': {**options, 'layer': 3}})}"
    scene.run(alone, run="alone", until="index")
    assert scene.digest("alone")["features"] == digest["features.layer3"]
    query = f"{scene.corpus}/audio/d001.flac:0.5-1.0"
    found = swsdist.search(f"{scene.folder}/five/store", query, options={"streams": [{"track": "layer3"}]})
    best = found.iloc[0]
    assert best["doc_id"] == "d001"
    assert best["start"] == pytest.approx(0.5, abs=0.05)


def head_reference(folder: Path, samples: np.ndarray, language: str | None = None) -> np.ndarray:
    """Logarithms of posteriors as anybody gets them from transformers."""
    wanted = {} if language is None else {"target_lang": language, "ignore_mismatched_sizes": True}
    model = transformers.AutoModelForCTC.from_pretrained(folder, **wanted).eval()
    front = transformers.AutoFeatureExtractor.from_pretrained(folder)
    inputs = front(samples, sampling_rate=16000, return_tensors="pt")
    with torch.inference_mode():
        logits = model(inputs[model.main_input_name]).logits[0].double()
    return torch.log_softmax(logits, dim=-1).numpy()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "whisper"])
def test_heads_are_those_of_transformers(tmp_path: Path, kind: str) -> None:
    folder, sound = str(tmp_path), noise(1.6)
    make_encoder(folder, kind, tokens=TOKENS)
    wanted = head_reference(tmp_path, sound)[:79]
    posteriors, logits = (Ssl(model=folder, head=head).extract(sound) for head in ("posteriors", "logits"))
    assert posteriors.shape == (79, 8)
    assert posteriors == pytest.approx(np.exp(wanted), abs=1e-5)
    assert logits == pytest.approx(wanted - wanted.mean(axis=1, keepdims=True), abs=1e-4)
    exponentials = np.exp(logits.astype(np.float64))
    assert exponentials / exponentials.sum(axis=1, keepdims=True) == pytest.approx(posteriors, abs=1e-6)
    # A model with a head has layers, too.
    layers = Ssl(model=folder, layers="all").extract(sound)
    assert layers == pytest.approx(np.concatenate([one[:79] for one in reference(tmp_path, sound)], axis=1), abs=1e-5)


@pytest.mark.parametrize("kind", ["xls-r", "wav2vec2-bert"])
def test_heads_behind_convolutions(tmp_path: Path, kind: str) -> None:
    """Frames of 40 ms; however long a recording is, there are as many as its length promises."""
    settings = {"add_adapter": True, "num_adapter_layers": 1, "output_hidden_size": 16}
    make_encoder(str(tmp_path), kind, tokens=TOKENS, **settings)
    made = Ssl(model=str(tmp_path), head="posteriors", chunk_seconds=2, overlap_seconds=0.4)
    assert made.hop == 640
    check_extractor(made)
    sound = noise(1.6)
    found = made.extract(sound)
    assert found == pytest.approx(np.exp(head_reference(tmp_path, sound)[: len(found)]), abs=1e-5)


def test_a_head_of_a_language(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    make_encoder(str(tmp_path), "xls-r", tokens=TOKENS, adapter_attn_dim=4)
    languages = {"ces": dict(zip(TOKENS, range(8), strict=True)), "hun": {"<pad>": 0, "ö": 1, "|": 2}}
    (tmp_path / "vocab.json").write_text(json.dumps(languages))
    for language, tokens in languages.items():
        model = transformers.AutoModelForCTC.from_pretrained(tmp_path)
        model.lm_head = torch.nn.Linear(16, len(tokens))
        generator = torch.Generator().manual_seed(len(tokens))
        weights = {name: torch.randn(value.shape, generator=generator) for name, value in model._get_adapters().items()}
        save_file(weights, tmp_path / f"adapter.{language}.safetensors", {"format": "pt"})
    found = {}
    for language, tokens in languages.items():
        made = Ssl(model=str(tmp_path), head="posteriors", language=language)
        assert made.columns == tuple(tokens)
        found[language] = made.extract(noise(1))
        assert found[language] == pytest.approx(np.exp(head_reference(tmp_path, noise(1), language)), abs=1e-5)
        assert identity(made)["options"]["language"] == language  # type: ignore[index]
    # An adapter of other weights is another extractor, and one that lacks some is refused.
    before = identity(create("ssl", {"model": str(tmp_path), "head": "logits", "language": "hun"}))
    weights.pop(next(name for name in weights if not name.startswith("lm_head")))
    save_file(weights, tmp_path / "adapter.hun.safetensors", {"format": "pt"})
    assert identity(create("ssl", {"model": str(tmp_path), "head": "logits", "language": "hun"})) != before
    with raises(families.UNUSABLE_MODEL):
        Ssl(model=str(tmp_path), head="logits", language="hun").extract(noise(1))


def test_labels_of_a_head_are_decoded(tmp_path: Path, small_corpus: Path) -> None:
    """Lattices of frames: strings are what CTC makes of the frames, and whatever the cut, places of them are found."""
    make_encoder(str(tmp_path / "model"), "hubert", tokens=TOKENS)
    options = {"model": str(tmp_path / "model"), "head": "logits"}
    runs = []
    for shards in (1, 3):
        values = {
            "chain": "lattices",
            "run": str(tmp_path / str(shards)),
            "corpus": {"documents": "docs.csv", "queries": "queries.csv"},
            "features": {"name": "ssl", "options": options},
            "options": {"source": "frames", "decoding": {"topology": "ctc", "scale": 8.0, "least": 0.02}},
            "queries": {"trim": "none"},
            "search": {"method": "lattice"},
            "index": {"shards": shards},
            "executor": {"kind": "serial"},
        }
        outcome = run_stages(config_from_dict(values, small_corpus), StepSelection(until="reduce"), Progress())
        assert not outcome.failures
        runs.append(outcome.chain_run)
    one, three = runs
    assert digests(one) == digests(three)
    rows = [row for part in one.read("groups") for row in part.to_pylist()]
    strings = {row["query_id"]: row["labels"] for row in rows}
    extractor = Ssl(**options)
    for query in one.chain.inputs.corpus.queries.to_pylist():
        samples, _ = soundfile.read(query["path"], dtype="float32")
        best = [TOKENS[k] for k, _ in groupby(extractor.extract(samples).argmax(axis=1))]
        assert strings[query["query_id"]] == [label for label in best if label in ("a", "tʃ", "n")]
    found = [row for part in one.read("detections") for row in part.to_pylist()]
    assert {row["query_id"] for row in found} <= set(strings)
    assert found
    assert all(0 < row["score"] <= 1 for row in found)


@pytest.mark.slow
def test_a_folder_by_a_model(models: Path, tmp_path: Path) -> None:
    """Indexed by one, then by another, too; searched, indexed and discovered in again without naming them."""

    def swsdist_says(*words: str) -> Ended:
        return in_this_process(*words, cwd=tmp_path, HF_HUB_CACHE=str(tmp_path / "hub"))

    snapshot = tmp_path / "hub" / "models--somebody--whisper" / "snapshots" / "abc"
    shutil.copytree(models / "whisper", snapshot)
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text("abc")
    (tmp_path / "tapes").mkdir()
    for k in range(3):
        soundfile.write(tmp_path / "tapes" / f"{k}.wav", noise(4, k), 16000)
    run, frames = "run", []
    index = ["index", "tapes", "--run", run, "--set", "executor.kind=serial"]
    for models_named in (["somebody/whisper"], [str(models / "hubert"), "somebody/whisper"]):
        said = swsdist_says(*index, *(word for name in models_named for word in ("--model", name)))
        assert said.code == 0, said.err
        assert "nothing to do" in swsdist_says(*index).out
        for place in (run, f"{run}/store"):
            answer = swsdist_says("search", place, "--query", "tapes/1.wav:1-2", "--no-trim", "--top", "1", "--csv")
            assert "1,1.0" in answer.out, answer.err
        frames.append([shard.files["whisper"] for shard in Store(Folder(f"{tmp_path}/{run}/store")).manifest.shards])
    assert frames[0] == frames[1]
    discover = ["discover", "tapes", "--run", "found", "--set", "executor.kind=serial"]
    said = swsdist_says(*discover, "--model", "somebody/whisper")
    assert said.code == 0, said.err
    assert "nothing to do" in swsdist_says(*discover).out
    beside_loudness = search_of(["whisper"], alone=False)
    assert setup_of(str(tmp_path / "found" / "store")).options == beside_loudness
    missing = swsdist_says("index", "tapes", "--run", "other", "--model", "somebody/other")
    assert "hf download somebody/other" in missing.err
    assert "somebody/whisper" in swsdist_says("doctor", "--no-executors").out
    for words, code in (
        (["run/config.yaml", "--model", "x"], "conflicting-options"),
        (["tapes", "--text", "--model", "somebody/whisper"], "wrong-kind"),
        (["tapes", "--model", "somebody/whisper", "--model", str(models / "whisper")], "duplicate-name"),
    ):
        assert f"[{code}]" in swsdist_says("index", *words).err


ROOT = Path(__file__).resolve().parents[2]
MODEL = SHARED / "models" / "whisper-base" / "encoder"


@pytest.mark.skipif(not MODEL.is_dir(), reason="needs ../shared beside the checkout, with Whisper base")
@pytest.mark.slow
def test_the_best_system_finds_more_than_mfcc(tiny: Path, tmp_path: Path) -> None:
    found = {}
    for name in ("mboshi-tiny", "systems/best-encoder"):
        config = load_config(
            ROOT / "configs" / f"{name}.yaml",
            ["executor.kind=serial", "report.exports=[]", "index.shard_hours=1"],
            corpus=str(ROOT / "configs" / "corpora" / "mboshi-tiny.yaml"),
            run=str(tmp_path / Path(name).name),
        )
        found[name] = swsdist.run(config).measures()["mtwv"]
    assert found["systems/best-encoder"] > found["mboshi-tiny"] + 0.1
