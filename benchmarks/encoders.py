"""What of an encoder finds queries: layers, silence behind queries and documents, components, positions; and what each costs.

`configs/systems/best-encoder.yaml` on Mboshi dev with one thing changed at a time, with the first and with all examples of each
query: MTWV, least Cnxe and costs, as tables. Runs that are in the folder are taken as they are. Then the encoder alone, on
sentences and on windows of 30 s, beside torch's products of the same weights.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import soundfile

from benchmarks.corpora import ROOT, mboshi
from benchmarks.rows import Row, at_most, say, show
from benchmarks.systems import EXAMPLES, report_in, row, run_of
from swsdist.features.interface import one_thread
from swsdist.features.ssl.extractor import Ssl
from swsdist.features.ssl.folder import read_encoder
from swsdist.features.ssl.whisper import Whisper, of_torch

MODEL = ROOT.parent / "shared" / "models" / "whisper-base" / "encoder"
_OPTIONS, _RATE = "features.options", 16000


def _whitened(columns: int = 200, positions: int = 32) -> str:
    return f"features.transforms=[{{name: pca, options: {{columns: {columns}, positions: {positions}}}}}]"


#: What is set, by what is changed.
VARIANTS: dict[str, tuple[str, ...]] = {
    "nothing": (),
    **{f"layer {k}": (f"{_OPTIONS}.layer={k}",) for k in (2, 3, 5, 6)},
    "layer 3, 64 positions": (f"{_OPTIONS}.layer=3", _whitened(positions=64)),
    "queries alone": (f"{_OPTIONS}.short_seconds=0",),
    **{f"queries in {k} s": (f"{_OPTIONS}.window_seconds={k}",) for k in (3, 5, 30)},
    "queries and documents in 30 s": (f"{_OPTIONS}.short_seconds=30", f"{_OPTIONS}.window_seconds=30"),
    **{f"{k} positions": (_whitened(positions=k),) for k in (0, 16)},
    **{f"{k} components": (_whitened(k),) for k in (50, 100, 150, 300)},
}


def tables(folder: Path, names: list[str], which: list[str]) -> str:
    """A table for each way with examples, as Markdown."""
    lines = []
    for examples in which:
        lines += [f"{examples}:", "", row("changed", "MTWV", "ATWV", "min Cnxe", "ISF", "SSF"), "|---" * 6 + "|"]
        for name in names:
            say(f"encoders: {name}, {examples}")
            run = run_of("systems/best-encoder", examples, folder / name.replace(" ", "-"), list(VARIANTS[name]))
            report = report_in(run)
            measures = report["measures"]
            figures = (measures["mtwv"], measures["atwv"], measures["further"]["cnxe_min"])
            lines.append(row(name, *(f"{x:.3f}" for x in figures), f"{report['isf']:.4f}", f"{report['ssf']:.2e}"))
        lines.append("")
    return "\n".join(lines)


def costs() -> list[Row]:
    """CPU seconds of layer 4 for an hour of sentences and of windows of 30 s, and for a query of half a second."""
    corpus = mboshi()
    assert corpus is not None
    sentences = [soundfile.read(one["path"], dtype="float32")[0] for one in corpus.rows()[:60]]
    windows = [np.concatenate(sentences)[k : k + 30 * _RATE] for k in range(0, 90 * _RATE, 30 * _RATE)]
    query = sentences[0][: _RATE // 2]
    extractor = Ssl(model=str(MODEL), layer=4)
    extractor.extract(query)
    rows = []
    for name, sounds in (("sentences", sentences), ("windows of 30 s", windows)):
        begin = time.process_time()
        for sound in sounds:
            extractor.extract(sound)
        isf = (time.process_time() - begin) / sum(map(len, sounds)) * _RATE
        theirs = _of_torch(sounds)
        rows.append(Row(f"layer 4, {name}: CPU seconds a second", isf, "", at_most(0.03)))
        rows.append(Row(f"layer 4, {name}: CPU / that of torch's products", theirs and isf / theirs, ""))
    begin = time.process_time()
    for _ in range(5):
        extractor.extract(query)
    return [*rows, Row("a query", (time.process_time() - begin) / 5, "CPU s", at_most(0.7))]


def _of_torch(sounds: list[np.ndarray]) -> float | None:
    """CPU seconds a second of the same network by torch, in one thread; None without torch."""
    if find_spec("torch") is None:
        return None
    import torch

    torch.set_num_threads(1)
    network = Whisper(str(MODEL), read_encoder(str(MODEL)), (4,), of_torch("cpu", "float32"))
    with one_thread(), torch.inference_mode():
        network.outputs(sounds[0], 1)
        begin = time.process_time()
        for sound in sounds:
            network.outputs(sound, len(sound) // 320)
        return (time.process_time() - begin) / sum(map(len, sounds)) * _RATE


def main() -> None:
    """Print the tables, and the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to this file")
    parser.add_argument("--runs", type=Path, help="folder of the runs; by default one that is thrown away")
    parser.add_argument(
        "--variants", nargs="*", choices=VARIANTS, default=list(VARIANTS), metavar="NAME", help="only these"
    )
    parser.add_argument(
        "--examples", nargs="+", choices=EXAMPLES, default=list(EXAMPLES), metavar="WHICH", help="only these"
    )
    given = parser.parse_args()
    if mboshi() is None or not MODEL.is_dir():
        show([Row("encoders (Mboshi dev or Whisper base is not beside the checkout)", None, "")], given.json)
        return
    with tempfile.TemporaryDirectory(prefix="swsdist-bench-") as scratch:
        print(tables(given.runs or Path(scratch), given.variants, given.examples))
    show(costs(), given.json)


if __name__ == "__main__":
    main()
