"""How fast the search engine is, against the hardware's limit and against other people's code.

The unit is a cell, one query frame against one document frame; speeds are cells per CPU second on one core, for queries of 30
to 120 frames in the real frames of one hour of documents. What is compared takes turns, and the median of five rounds' ratios
counts.

- The limit of an engine that takes its distances from a BLAS: the same distances as float32 matrix products alone, in blocks
  of the width that was fastest here, D = 13 (static coefficients), 39 and 138 (four frames side by side, cut). Our own
  product works on the 16-bit integers that prepared frames are, so it may pass that limit.
- The recurrence alone, on distances that are there.
- The peers, on a small part: `librosa.sequence.dtw(subseq=True)`, `dtaidistance`'s subsequence alignment in C, `dtw-python`
  with open begin and end, each with all that it needs to get from frames to a curve of costs.
"""

from __future__ import annotations

import csv
import importlib.util
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
from dtaidistance.subsequence.dtw import subsequence_alignment
from dtw import asymmetric
from dtw import dtw as dtw_python
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.corpora import base
from benchmarks.rows import Row, at_least, at_most, main, say
from swsdist.config.search import Search
from swsdist.features.librosa import library
from swsdist.features.statistics import Statistics
from swsdist.io.filesystem import Folder
from swsdist.kernels.arithmetic import packing
from swsdist.kernels.distances.interface import create
from swsdist.kernels.recurrences import bounded_slope
from swsdist.kernels.recurrences.interface import create as create_recurrence
from swsdist.kernels.vectors import WIDTH, store
from swsdist.methods.dtw.backends.cuda import Cuda
from swsdist.methods.dtw.backends.interface import Work
from swsdist.methods.dtw.search import Matches, run, search
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.query.example import Example
from swsdist.pipeline.chain_run import StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.operation.progress import Progress
from swsdist.store.reading import Store
from tests.support.journals import read_journals

_ROUNDS = 5
_LENGTHS = range(30, 121, 3)
_WIDTHS = (256, 512, 1024, 2048, 4096)
_DIMENSIONS = (13, 39, 138)
_DIMENSIONS_ON_GPU = (39, 467)  # MFCC alone; several tracks side by side
_UNIT = "Mcell/CPU s"

Frames = NDArray[np.float32]


def measure(scratch: Path) -> list[Row]:
    """One core, where it does not say otherwise: BLAS is held to one thread, and so is the engine."""
    features = _documents(scratch)
    with threadpool_limits(limits=1):
        rows = [row for dimension in _DIMENSIONS for row in _against_the_limit(features, dimension)]
        rows += _against_peers(features)
        rows += _growth(features)
    return [*rows, *_memory(scratch), _second_life(), *_gpu(features)]


def _against_the_limit(features: list[Frames], dimension: int) -> list[Row]:
    documents, queries = _prepared(features, dimension)
    frames = np.concatenate(documents)
    cells = sum(map(len, queries)) * len(frames)
    say(f"engine: D={dimension}, {len(frames)} frames, {cells / 1e6:.0f} million cells a round")
    width = min(_WIDTHS, key=lambda width: _products_cpu(queries, frames, width))
    blocks = _blocks(frames, width)
    _search(queries[:1], documents[:1])  # compiles it
    engine, limit, recurrence = [], [], []
    for _ in range(_ROUNDS):
        engine.append(cells / _cpu(lambda: _search(queries, documents)) / 1e6)
        limit.append(cells / _cpu(lambda: _products(queries, blocks)) / 1e6)
        recurrence.append(_recurrence())
    name = f"engine, D={dimension}"
    rows = [
        Row(f"{name}: speed against the distances alone", _ratio(engine, limit), "ratio", at_least(0.6)),
        Row(name, statistics.median(engine), _UNIT),
        Row(f"distances alone by BLAS, D={dimension}, blocks of {width} frames", statistics.median(limit), _UNIT),
    ]
    if dimension == 13:
        both = [1 / (1 / one + 1 / other) for one, other in zip(limit, recurrence, strict=True)]
        rows[0] = replace(rows[0], goal=None)
        rows.insert(
            0, Row(f"{name}: against 1/(1/distances + 1/recurrence)", _ratio(engine, both), "ratio", at_least(0.8))
        )
        rows.append(Row("recurrence alone, query of 64 frames", statistics.median(recurrence), _UNIT))
    if dimension == 39:
        by_numpy = cells / _cpu(lambda: _search(queries, documents, backend="blas")) / 1e6
        rows.append(Row(f"{name}, search.backend: blas", by_numpy, _UNIT))
    return rows


def _against_peers(features: list[Frames]) -> list[Row]:
    documents, queries = _prepared(features, 39)
    cells = sum(map(len, queries)) * sum(map(len, documents))
    part = [document for document in documents if len(document) >= 100][:20]
    few = queries[::10]
    part_cells = sum(map(len, few)) * sum(map(len, part))
    peers: dict[str, tuple[float, Callable[[Frames, Frames], Any]]] = {
        "librosa.sequence.dtw": (20, _librosa),
        "dtaidistance, C": (10, _dtaidistance),
        "dtw-python": (20, _dtw_python),
    }
    say(f"engine: peers on {part_cells / 1e6:.1f} million cells a round")
    speeds: dict[str, list[float]] = {name: [] for name in peers}
    engine = []
    for _ in range(_ROUNDS):
        engine.append(cells / _cpu(lambda: _search(queries, documents)) / 1e6)
        for name, (_, call) in peers.items():
            call(few[0][:9], part[0])  # compiles it

            def whole(call: Callable[[Frames, Frames], Any] = call) -> None:
                for query in few:
                    for document in part:
                        call(query, document)

            speeds[name].append(part_cells / _cpu(whole) / 1e6)
    rows = []
    for name, (goal, _) in peers.items():
        rows.append(Row(f"engine, D=39: speed against {name}", _ratio(engine, speeds[name]), "ratio", at_least(goal)))
        rows.append(Row(f"{name}, D=39", statistics.median(speeds[name]), _UNIT))
    return rows


def _growth(features: list[Frames]) -> list[Row]:
    documents, queries = _prepared(features, 39)
    many = [query for query in queries for _ in range(10)]
    say("engine: ten times the documents, ten times the queries, two threads")
    more_documents, more_queries, threads = [], [], []
    for _ in range(3):
        one = _cpu(lambda: _search(queries, documents))
        more_documents.append(_cpu(lambda: _search(queries, documents * 10)) / one)
        more_queries.append(_cpu(lambda: _search(many, documents)) / one)
        threads.append(_wall(lambda: _search(many, documents)) / _wall(lambda: _search(many, documents, threads=2)))
    return [
        Row("lanes that hold frames of documents, the rest is padding", _search(queries[:1], documents).fill, "part"),
        Row("ten times the documents: CPU", statistics.median(more_documents), "ratio", at_most(10.5)),
        Row("ten times the queries: CPU", statistics.median(more_queries), "ratio", at_most(10.5)),
        Row("two threads against one: wall", statistics.median(threads), "ratio", at_least(1.8)),
    ]


def _memory(scratch: Path) -> list[Row]:
    """The highest PSS of a Ray worker that searches 500 queries."""
    corpus = base(scratch)
    with corpus.queries.open(encoding="utf-8", newline="") as file:
        known = [row for row in csv.DictReader(file) if row.get("example", "1") == "1"]
    for row in known:
        for column in ("path",):
            if row.get(column):
                row[column] = str(corpus.queries.parent / row[column])
    table = scratch / "queries500.csv"
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(known[0]))
        writer.writeheader()
        writer.writerows({**known[k % len(known)], "query_id": f"q{k}"} for k in range(500))
    say("engine: memory of a worker with 500 queries")
    run = scratch / "run500"
    config = replace(corpus, queries=table, references=None).config(run, executor={"kind": "ray", "workers": 1})
    outcome = run_stages(config, StepSelection(until="search"), Progress())
    if outcome.failures:
        raise RuntimeError(f"{len(outcome.failures)} tasks failed: {outcome.failures[0].message}")
    workers = [lines for lines in read_journals(Folder(str(run))) if lines[0]["role"] == "worker"]
    peak = max(line["pss"] for lines in workers for line in lines if line["event"] == "sample")
    receipts = outcome.chain_run.outcomes["search"].receipts
    speed = sum(receipt.cost.cells for receipt in receipts) / sum(receipt.cost.cpu for receipt in receipts) / 1e6
    return [
        Row("a worker's peak PSS, 500 queries, Ray included", peak / 1e6, "MB", at_most(400)),
        Row("whole search tasks of that run: reading, preparing, searching, writing", speed, _UNIT),
    ]


def _second_life() -> Row:
    """Wall seconds in which a process that has Python's and Ray's own modules gets ready to search; kernels are on disk."""
    code = """
import time
import numpy, pyarrow, ray
clock = time.perf_counter()
from swsdist.pipeline.execution.executor import limit_threads
limit_threads(1)
from swsdist.methods.dtw import search as engine
engine.warm()
print(time.perf_counter() - clock)
"""
    times = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(_ROUNDS + 1)
    ]
    return Row("a worker gets ready, from its second life on", statistics.median(times[1:]), "s", at_most(1))


def _usable() -> bool:
    """Whether there is a GPU, and not only numba's simulator of one."""
    if importlib.util.find_spec("numba_cuda") is None:
        return False
    from numba import cuda

    from swsdist.kernels.cuda.launch import SIMULATED

    return bool(cuda.is_available()) and not SIMULATED


def _gpu(features: list[Frames]) -> list[Row]:
    """Where there is no GPU, the rows say so."""
    if not _usable():
        name = "a GPU against one core, D={} (no GPU here)"
        return [Row(name.format(dimension), None, "ratio", at_least(100)) for dimension in _DIMENSIONS_ON_GPU]
    return [row for dimension in _DIMENSIONS_ON_GPU for row in _on_gpu(features, dimension)]


def _on_gpu(features: list[Frames], dimension: int) -> list[Row]:
    """The whole search on a GPU, ten times the queries, so that it has enough to do: by the clock, against CPU seconds."""
    documents, queries = _prepared(features, dimension)
    many = queries * 10
    frames = sum(map(len, documents))
    say(f"engine: on the GPU, D={dimension}")
    _search(many, documents, backend="cuda")  # compiles it
    one, other = [], []
    for _ in range(_ROUNDS):
        one.append(sum(map(len, queries)) * frames / _cpu(lambda: _search(queries, documents)) / 1e6)
        other.append(sum(map(len, many)) * frames / _wall(lambda: _search(many, documents, backend="cuda")) / 1e6)
    examples, of_all, most, settings = _arguments(many, documents)
    work = Work(examples, create_recurrence(settings.recurrence), most, settings)
    gpu = Cuda(work)
    run(gpu, of_all, work)
    account = gpu.account()
    return [
        Row(f"a GPU against one core, D={dimension}", _ratio(other, one), "ratio", at_least(100)),
        Row(f"the engine on the GPU, D={dimension}", statistics.median(other), "Mcell/s"),
        Row(f"memory of the GPU in use, D={dimension}", account.used / 1e6, "MB", at_most(account.budget / 1e6)),
    ]


def _prepared(features: list[Frames], dimension: int) -> tuple[list[Frames], list[Frames]]:
    """Documents and queries in fixed point."""
    if dimension <= features[0].shape[1]:
        chosen = [one[:, :dimension] for one in features]
    else:
        times = -(-dimension // features[0].shape[1])
        chosen = [np.concatenate([np.roll(one, k, 0) for k in range(times)], 1)[:, :dimension] for one in features]
    distance = create("cosine", dimension)
    offset, scale = np.zeros(dimension), np.ones(dimension)
    documents = [distance.prepare(np.ascontiguousarray(one), offset, scale, "document").frames for one in chosen]
    return documents, [np.ascontiguousarray(_cut(documents, length)) for length in _LENGTHS]


def _ratio(some: list[float], others: list[float]) -> float:
    return statistics.median(one / other for one, other in zip(some, others, strict=True))


def _cpu(work: Callable[[], Any]) -> float:
    """CPU seconds of all of this process's threads."""
    clock = time.process_time()
    work()
    return time.process_time() - clock


def _wall(work: Callable[[], Any]) -> float:
    clock = time.perf_counter()
    work()
    return time.perf_counter() - clock


def _documents(scratch: Path) -> list[Frames]:
    """Normalised features of the documents of a store, about an hour."""
    corpus = base(scratch)
    outcome = run_stages(
        corpus.config(scratch / "run", executor={"kind": "serial"}), StepSelection(until="index"), Progress()
    )
    store = Store(Folder(outcome.chain_run.chain.inputs.store.folder.root))
    known = {
        (row["doc_id"], row["channel"]): Statistics.from_variance(row["frames"], row["mean"], row["variance"])
        for row in store.documents().to_pylist()
    }
    found: dict[tuple[str, int], list[Frames]] = {}
    for shard in store.manifest.shards:
        for block in store.blocks(shard.name):
            key = block.doc_id, block.channel
            offset, scale = known[key].offset_and_scale("mean-variance")
            found.setdefault(key, []).append(((block.features - offset) / scale).astype(np.float32))
    return [np.concatenate(blocks) for blocks in found.values()]


def _cut(documents: list[Frames], length: int) -> Frames:
    """A query of so many frames: from the middle of the first document that is twice as long, past the ones before."""
    long = [document for document in documents if len(document) >= 2 * length]
    document = long[length % len(long)]
    middle = (len(document) - length) // 2
    return document[middle : middle + length]


def _search(queries: list[Frames], documents: list[Frames], threads: int = 1, backend: str = "cpu") -> Matches:
    """The whole search with candidates, as a task does it once frames are prepared."""
    return search(*_arguments(queries, documents, threads, backend))


def _arguments(queries: list[Frames], documents: list[Frames], threads: int = 1, backend: str = "cpu") -> Any:
    """What a search takes."""
    defaults, shift = Search(), 0.01
    most = np.array([defaults.candidates.count(shift * len(document)) for document in documents], np.int64)
    settings = Settings(
        create("cosine", queries[0].shape[1]),
        defaults.candidate_window,
        defaults.lanes,
        round(defaults.piece_seconds / shift),
        threads=threads,
        backend=backend,
    )
    examples = [Example(f"q{k}", 1, query) for k, query in enumerate(queries)]
    return examples, ((k, [document]) for k, document in enumerate(documents)), most, settings


@numba.njit
def _advance(
    distances: Any, n: int, frames: int, columns: Any, bits: int, infinity: int, curve: Any, times: int
) -> None:
    bounded_slope.restart(columns, 0, n, infinity, 0)
    for _ in range(times):
        for t in range(frames):
            ended = bounded_slope.advance(distances, t * n * WIDTH, n, t, columns, 0, bits, 0)
            store(curve, t * WIDTH, ended)


def _recurrence() -> float:
    """Mcell/CPU s of the recurrence alone: 64 query frames, 8 document frames a turn."""
    n, frames, times = 64, 8, 2000
    for function in (bounded_slope.advance, bounded_slope.restart):
        numba.extending.register_jitable(function)
    packed = packing(n)
    distances = np.random.default_rng(0).integers(0, 4096, frames * n * WIDTH).astype(np.int16)
    columns = np.empty(3 * (n + 2) * WIDTH, packed.dtype)
    curve = np.empty(frames * WIDTH, packed.dtype)
    rest = (n, frames, columns, packed.frame_bits, packed.infinity, curve)
    _advance(distances, *rest, 1)
    return n * frames * WIDTH * times / _cpu(lambda: _advance(distances, *rest, times)) / 1e6


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


def _librosa(query: Frames, document: Frames) -> None:
    library().sequence.dtw(query.T, document.T, metric="cosine", subseq=True, backtrack=False)


def _dtaidistance(query: Frames, document: Frames) -> None:
    alignment = subsequence_alignment(query.astype(np.float64), document.astype(np.float64), use_c=True)
    alignment.matching_function()


def _dtw_python(query: Frames, document: Frames) -> None:
    left, right = (one / np.linalg.norm(one, axis=1, keepdims=True).clip(1e-9) for one in (query, document))
    dtw_python(
        (1 - left @ right.T).astype(np.float64),
        step_pattern=asymmetric,
        open_begin=True,
        open_end=True,
        distance_only=True,
    )


if __name__ == "__main__":
    main(measure, __doc__)
