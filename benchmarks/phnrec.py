"""What a phoneme recogniser costs beside its matrix products: CPU of samples to posteriors, as a part of the products' alone.

A minute of noise, cut like utterances of three seconds; products of the same shapes in the same run, on one core. With BUT's
recognisers beside the checkout (`../shared/models/phnrec`) these, else a made-up one of CZ's size.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.rows import Row, at_most, main, say
from swsdist.features.phnrec.extractor import Phnrec
from swsdist.features.phnrec.network import Net, Networks
from swsdist.testing.synthesis.recogniser import make_recogniser

_MODELS = Path(__file__).resolve().parents[2] / "shared/models/phnrec"
_SECONDS, _UTTERANCE, _ROUNDS = 60, 3, 5
_GOAL = 1.6


def measure(scratch: Path) -> list[Row]:
    """Each recogniser that is there."""
    places = {path.name: path for path in sorted(_MODELS.iterdir())} if _MODELS.is_dir() else {}
    places = {name: path for name, path in places.items() if (path / "config").is_file()}
    if not places:
        make_recogniser(str(scratch / "made-up"), hidden=1500)
        places = {"made-up": scratch / "made-up"}
    rows = []
    with threadpool_limits(limits=1, user_api="blas"):
        for name, place in places.items():
            say(f"{name} ...")
            rows += _of(name, Phnrec(weights=str(place)))
    return rows


def _of(name: str, extractor: Phnrec) -> list[Row]:
    rate = extractor.sample_rate
    rng = np.random.default_rng(0)
    utterances = [
        rng.normal(scale=0.05, size=_UTTERANCE * rate).astype(np.float32) for _ in range(_SECONDS // _UTTERANCE)
    ]
    frames = len(extractor.extract(utterances[0]))
    networks = Networks(extractor.recogniser)
    buffers = [_buffers(net, frames) for net in (networks.left, networks.right, networks.merger)]

    def products() -> None:
        for _ in utterances:
            for first, steps, inputs, hidden, second, outputs in buffers:
                np.matmul(inputs, first, out=steps)
                np.matmul(hidden, second, out=outputs)

    def whole() -> None:
        for samples in utterances:
            extractor.extract(samples)

    ratios, seconds = [], []
    for _ in range(_ROUNDS):
        spent = _cpu(whole)
        ratios.append(spent / _cpu(products))
        seconds.append(spent)
    return [
        Row(f"{name}: CPU / that of its products", statistics.median(ratios), "", at_most(_GOAL)),
        Row(f"{name}: an hour of audio", statistics.median(seconds) / _SECONDS * 3600, "CPU s"),
    ]


def _buffers(net: Net, frames: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(1)
    (inputs, hidden), outputs = net.first.shape, net.second.shape[1]
    given = rng.normal(size=(frames, inputs)).astype(np.float32)
    middle = rng.random(size=(frames, hidden), dtype=np.float32)
    made = (np.empty((frames, size), np.float32) for size in (hidden, outputs))
    return net.first, next(made), given, middle, net.second, next(made)


def _cpu(work: Callable[[], None]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


if __name__ == "__main__":
    main(measure, __doc__)
