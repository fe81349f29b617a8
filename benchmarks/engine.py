"""How fast the search engine is, against the hardware's limit and against other people's code.

The unit is a cell, one query frame against one document frame; speeds are cells per CPU second on one core, D = 39, for queries
of 30 to 120 frames in the real frames of one hour of documents. The limit is the same distances as float32 matrix products
alone, in blocks of the width that was fastest here: no exact search can do without those numbers. The peer is
`librosa.sequence.dtw(subseq=True)` on a small part. The three take turns, and the median of five rounds' ratios counts.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from librosa.sequence import dtw
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.corpora import base
from benchmarks.rows import Row, at_least, main, say
from swsdist.config.model import Search
from swsdist.features.statistics import Statistics
from swsdist.io.filesystem import Folder
from swsdist.kernels.fixed_point import prepare
from swsdist.run.pipeline import Choice, Progress, run_stages
from swsdist.search.engine import Settings, search
from swsdist.search.example import Example
from swsdist.store.reading import Store

_ROUNDS = 5
_LENGTHS = range(30, 121, 3)
_WIDTHS = (256, 512, 1024, 2048, 4096)

Frames = NDArray[np.float32]


def measure(scratch: Path) -> list[Row]:
    """One core: this process's BLAS is held to one thread, and the engine has none of its own."""
    documents = _documents(scratch)
    queries = [np.ascontiguousarray(_cut(documents, length)) for length in _LENGTHS]
    frames = np.concatenate(documents)
    cells = sum(map(len, queries)) * len(frames)
    say(f"engine: {len(documents)} documents, {len(frames)} frames, {cells / 1e6:.0f} million cells a round")
    part = [document for document in documents if len(document) >= 100][:20]
    few = queries[::10]
    part_cells = sum(map(len, few)) * sum(map(len, part))
    with threadpool_limits(limits=1):
        width = min(_WIDTHS, key=lambda width: _products_cpu(queries, frames, width))
        blocks = _blocks(frames, width)
        _librosa(few[:1], part[:1])  # compiles it
        engine, limit, peer = [], [], []
        for _ in range(_ROUNDS):
            engine.append(cells / _cpu(lambda: _search(queries, documents)) / 1e6)
            limit.append(cells / _cpu(lambda: _products(queries, blocks)) / 1e6)
            peer.append(part_cells / _cpu(lambda: _librosa(few, part)) / 1e6)
    unit = "Mcell/CPU s"
    return [
        Row("engine, D=39: speed against the distances alone", _ratio(engine, limit), "ratio", at_least(0.6)),
        Row("engine, D=39: speed against librosa", _ratio(engine, peer), "ratio", at_least(20)),
        Row("engine, D=39", statistics.median(engine), unit),
        Row(f"distances alone, D=39, blocks of {width} frames", statistics.median(limit), unit),
        Row("librosa.sequence.dtw, D=39", statistics.median(peer), unit),
    ]


def _ratio(some: list[float], others: list[float]) -> float:
    return statistics.median(one / other for one, other in zip(some, others, strict=True))


def _cpu(work: Callable[[], None]) -> float:
    """CPU seconds of all of this process's threads."""
    clock = time.process_time()
    work()
    return time.process_time() - clock


def _documents(scratch: Path) -> list[Frames]:
    """Prepared frames of the documents of a store, about an hour."""
    corpus = base(scratch)
    outcome = run_stages(corpus.config(scratch / "run", executor={"kind": "serial"}), Choice(until="index"), Progress())
    store = Store(Folder(outcome.state.store.root))
    known = {
        (row["doc_id"], row["channel"]): Statistics.from_variance(row["frames"], row["mean"], row["variance"])
        for row in store.documents().to_pylist()
    }
    found: dict[tuple[str, int], list[Frames]] = {}
    for shard in store.manifest.shards:
        for block in store.blocks(shard.name):
            key = block.doc_id, block.channel
            found.setdefault(key, []).append(prepare(block.features, *known[key].offset_and_scale("mean-variance")))
    return [np.concatenate(blocks) for blocks in found.values()]


def _cut(documents: list[Frames], length: int) -> Frames:
    """A query of so many frames: from the middle of the first document that is twice as long, past the ones before."""
    long = [document for document in documents if len(document) >= 2 * length]
    document = long[length % len(long)]
    middle = (len(document) - length) // 2
    return document[middle : middle + length]


def _search(queries: list[Frames], documents: list[Frames]) -> None:
    """The whole search with candidates, as a task does it once frames are prepared."""
    defaults, shift = Search(), 0.01
    candidates = defaults.candidates
    most = np.array([max(candidates.least, int(candidates.per_second * shift * len(d))) for d in documents], np.int64)
    settings = Settings(
        defaults.distance, defaults.candidate_window, defaults.lanes, round(defaults.piece_seconds / shift)
    )
    examples = [Example(f"q{k}", 1, query) for k, query in enumerate(queries)]
    search(examples, ((k, [document]) for k, document in enumerate(documents)), most, settings)


def _blocks(frames: Frames, width: int) -> list[Frames]:
    """Document frames as right-hand sides (dimension, width); the last one is narrower."""
    return [np.ascontiguousarray(frames[k : k + width].T) for k in range(0, len(frames), width)]


def _products(queries: list[Frames], blocks: list[Frames]) -> None:
    """Every query frame times every document frame, a block of documents at a time."""
    for query in queries:
        out = np.empty((len(query), blocks[0].shape[1]), np.float32)
        for block in blocks[:-1]:
            np.matmul(query, block, out=out)
        np.matmul(query, blocks[-1])


def _products_cpu(queries: list[Frames], frames: Frames, width: int) -> float:
    blocks = _blocks(frames, width)
    return _cpu(lambda: _products(queries, blocks))


def _librosa(queries: list[Frames], documents: list[Frames]) -> None:
    for query in queries:
        for document in documents:
            dtw(query.T, document.T, metric="cosine", subseq=True, backtrack=False)


if __name__ == "__main__":
    main(measure, __doc__)
