"""What the extractor `ssl` costs beside torch's own forward pass, what long recordings take of memory, what threads change.

A random model of wav2vec 2.0's base size (95 million weights), its sixth layer, and noise; on one core, in one process.
Needs the extra `ssl`.
"""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.rows import Row, at_most, main, say
from swsdist.features.blocks import in_blocks
from swsdist.features.ssl.extractor import Ssl

_RATE, _LAYER, _SHORT, _LONG = 16000, 6, 2, 6


def measure(scratch: Path) -> list[Row]:
    """The model is made here: 380 MB."""
    if not all(map(find_spec, ("torch", "transformers"))):
        return [Row("the extra ssl is not installed", None, "")]
    import torch
    import transformers

    torch.manual_seed(0)
    transformers.AutoModel.from_config(transformers.Wav2Vec2Config(vocab_size=8)).save_pretrained(scratch)
    transformers.Wav2Vec2FeatureExtractor().save_pretrained(scratch)
    extractor = Ssl(model=str(scratch), layer=_LAYER)
    say(f"{_SHORT} minutes ...")
    frames = extractor.extract(_noise(10))
    _frames(extractor, _SHORT)
    short = _peak()
    say(f"{_LONG} minutes ...")
    begin = time.process_time()
    _frames(extractor, _LONG)
    spent, long = time.process_time() - begin, _peak()
    say("torch alone ...")
    model = transformers.AutoModel.from_pretrained(scratch).eval()
    model.encoder.layers = model.encoder.layers[: _LAYER + 1]
    chunk, overlap = extractor.chunk_frames, extractor.overlap_frames
    samples = torch.from_numpy(_noise(((chunk - 1) * extractor.hop + extractor.frame_length) / _RATE))[None]
    chunks = math.ceil((_LONG * 60 * _RATE / extractor.hop - overlap) / (chunk - overlap))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    begin = time.process_time()
    with torch.inference_mode():
        for _ in range(chunks):
            model(samples, output_hidden_states=True)
    bare = time.process_time() - begin
    torch.set_num_threads(2)
    normed = transformers.AutoFeatureExtractor.from_pretrained(scratch)(
        _noise(10), sampling_rate=_RATE, return_tensors="pt"
    )
    with torch.inference_mode():
        other = model(normed.input_values, output_hidden_states=True).hidden_states[_LAYER][0].numpy()
    torch.set_num_threads(threads)
    return [
        Row("CPU / that of torch's forward pass over the same chunks", spent / bare, "", at_most(1.2)),
        Row("an hour of audio", spent / _LONG * 60, "CPU s"),
        Row(f"peak memory, {_LONG} minutes", long, "GB"),
        Row(f"peak memory, {_LONG} / {_SHORT} minutes", long / short, "", at_most(1.1)),
        Row(
            "two threads: largest difference / standard deviation",
            float(np.abs(other - frames).max() / frames.std()),
            "",
        ),
    ]


def _noise(seconds: float) -> np.ndarray:
    return np.random.default_rng(0).normal(scale=0.1, size=round(seconds * _RATE)).astype(np.float32)


def _frames(extractor: Ssl, minutes: int) -> None:
    def audio() -> Iterator[np.ndarray]:
        block = _noise(20)
        for k in range(3 * minutes):
            yield np.roll(block, 977 * k)

    for _ in in_blocks(extractor, audio()):
        pass


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


if __name__ == "__main__":
    main(measure, __doc__)
