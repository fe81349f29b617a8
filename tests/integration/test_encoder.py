"""Whisper base itself, and the best system with it, where its weights lie beside the checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

import swsdist
from swsdist.cli.options import DISCOVER_CONFIG
from swsdist.config import load_config
from swsdist.features.blocks import in_blocks
from swsdist.features.ssl.extractor import Ssl, settings_of
from tests.integration.conftest import SHARED

ROOT = Path(__file__).resolve().parents[2]
MODEL = SHARED / "models" / "whisper-base" / "encoder"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not MODEL.is_dir(), reason="needs ../shared beside the checkout, with Whisper base"),
]


@pytest.fixture(scope="module")
def sentence(tiny: Path) -> np.ndarray:
    return soundfile.read(sorted((tiny / "audio").iterdir())[0], dtype="float32")[0]


def test_layers_are_those_of_transformers(sentence: np.ndarray) -> None:
    torch = pytest.importorskip("torch", reason="the extra `ssl` is not installed: pip install 'swsdist[ssl]'")
    transformers = pytest.importorskip(
        "transformers", reason="the extra `ssl` is not installed: pip install 'swsdist[ssl]'"
    )
    model = transformers.AutoModel.from_pretrained(MODEL).float().eval().get_encoder()
    front = transformers.AutoFeatureExtractor.from_pretrained(MODEL)
    spectrum = front(sentence, sampling_rate=16000, return_tensors="pt").input_features
    with torch.inference_mode():
        states = model(spectrum, output_hidden_states=True).hidden_states
    window = Ssl(model=str(MODEL), layers="all", short_seconds=30, window_seconds=30).extract(sentence)
    for layer, state in enumerate(states):
        ours = window[:, 512 * layer : 512 * (layer + 1)]
        wanted = state[0, : len(ours)].numpy()
        assert np.abs(ours - wanted).max() < 1e-4 * np.abs(wanted).max()


def test_a_long_recording_is_a_short_one_in_each_stretch(sentence: np.ndarray) -> None:
    """The first stretch is what it is alone, and another after it."""
    extractor = Ssl(model=str(MODEL), layer=4, chunk_seconds=4, overlap_seconds=1)
    frames = 4 * 50
    alone = extractor.extract(np.resize(sentence, frames * 320))
    whole = np.concatenate(list(in_blocks(extractor, [np.resize(sentence, 3 * frames * 320)])))
    assert whole[: frames - 25].tobytes() == alone[: frames - 25].tobytes()
    assert len(whole) == 3 * frames


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


def test_discovery_by_a_model_is_the_systems() -> None:
    """Apart from what a folder's run has of its own: frames as float16, and a track of the model's name."""
    given: dict[str, Any] = {"corpus": {"documents": "tapes.csv"}, "run": "found"}
    system = load_config(ROOT / "configs" / "systems" / "discover-encoder.yaml", **given)
    folder = load_config(DISCOVER_CONFIG, settings_of([str(MODEL)], search=False), **given)
    assert [stream.track for stream in folder.search.streams] == [MODEL.name]
    search = folder.search.model_copy(update={"streams": system.search.streams})
    assert (search, folder.options) == (system.search, system.options)
    for ours, wanted in zip(folder.features, system.features, strict=True):
        assert ours.model_copy(update={"dtype": wanted.dtype, "track": wanted.track}) == wanted
