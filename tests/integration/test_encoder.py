"""Whisper base itself, and the best system with it, where its weights lie beside the checkout."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

import swsdist
from swsdist.config import load_config
from swsdist.features.ssl.extractor import Ssl
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
