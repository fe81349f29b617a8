"""A thousand points of KST and STO over a million detections, and over ten million: CPU time and peak memory.

The detections are made up, of a fixed seed, and lie in buckets of queries as a run's aligned lists do. What is timed is what
the chain `sweep` does with them: read, sort and count once, then score 500 points of either method, alpha and beta both moving,
and pair anew, at each, what the alignment could pair otherwise. Peers, in the same process: reading the same files and sorting
their scores, which no sweep can do without; and the direct way of the same definitions, thresholds, decisions, alignment and
counts of the whole list, at a few points, scaled to a thousand. Both ways give the same doubles, or it breaks off.
"""

from __future__ import annotations

import resource
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.rows import Row, at_most, main, say
from swsdist.calibrate.rescoring import Rescoring, compact_list, rescore_fitted
from swsdist.calibrate.steps.by_term import Method, Thresholding
from swsdist.core.types import TRIALS
from swsdist.score.align import align, score_limits
from swsdist.score.measures.curve import Counts
from swsdist.score.measures.twv import atwv

Floats = NDArray[np.float64]

_BUCKETS, _PER_TERM, _DOCUMENTS, _TRIALS = 16, 500, 100, 36_000
_SECONDS = _TRIALS / _DOCUMENTS
_POINTS, _AT_ONCE = 1000, 64
_TOLERANCE, _RULES = 0.5, "stdeval"
#: Detections, CPU seconds.
_GOALS = ((1_000_000, 3.0), (10_000_000, 40.0))


def measure(scratch: Path) -> list[Row]:
    """In this process, which has one thread at work."""
    pa.set_cpu_count(1)
    rows = []
    for number, seconds in _GOALS:
        say(f"sweeps: {number} detections, {_POINTS} points")
        rows += _sweep(scratch, number, seconds)
    return rows


def _sweep(scratch: Path, number: int, goal: float) -> list[Row]:
    files = _write(scratch, number)
    clock = time.process_time()
    for file in files:
        table = pq.read_table(file, columns=["query_id", "score", "ref_start"], use_threads=False)
        score = np.nan_to_num(table["score"].to_numpy())
        np.argsort(score, kind="stable")
    least = time.process_time() - clock
    clock = time.process_time()
    parts = []
    for file in files:
        parts.append(compact_list(pq.read_table(file, use_threads=False), tolerance=_TOLERANCE, conventions=_RULES))
    whole = Rescoring.of(parts, tolerance=_TOLERANCE, conventions=_RULES)
    read = time.process_time() - clock
    alphas, betas = np.linspace(1.0, 3.0, _POINTS // 2), np.geomspace(10, 2000, _POINTS // 2)
    methods: tuple[Method, ...] = ("kst", "sto")
    found = {}
    for method in methods:
        pieces = [
            whole.at(method, alphas[k : k + _AT_ONCE], betas[k : k + _AT_ONCE], trials=_TRIALS).points.twv
            for k in range(0, len(alphas), _AT_ONCE)
        ]
        found[method] = np.concatenate(pieces)
    ours = time.process_time() - clock
    clock = time.process_time()
    rescore_fitted(whole, 5, np.geomspace(1, 2000, _POINTS), trials=_TRIALS, rejects_all=True)
    twv = time.process_time() - clock
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    name = f"sweep, {number // 1_000_000} million detections"
    rows = [
        Row(f"{name}, {_POINTS} points: CPU", ours, "s", at_most(goal)),
        Row(f"{name}, {_POINTS} betas: CPU of MTWV, and of ATWV by five folds, besides reading", twv, "s"),
        Row(f"{name}: of it, reading and sorting once", read, "s"),
        Row(f"{name}: times the CPU of reading the files and sorting their scores", ours / least, "ratio"),
        Row(f"{name}: peak memory of the process", peak, "MB"),
        Row(f"{name}: part of the detections that is contested", len(whole.probability) / number, ""),
    ]
    if number == _GOALS[0][0]:
        peer = _directly(files, found, alphas, betas) * _POINTS
        rows.append(
            Row(f"{name}: times less CPU than deciding, aligning and counting at each point", peer / ours, "ratio")
        )
    return rows


def _directly(files: list[Path], found: dict[Method, Floats], alphas: Floats, betas: Floats) -> float:
    """CPU seconds a point of the direct way, which must give the same values."""
    table = pa.concat_tables([pq.read_table(file) for file in files])
    detections = table.filter(table["score"].is_valid()).drop_columns(["ref_start", "ref_end"])
    references = table.filter(table["ref_start"].is_valid()).select(
        ["query_id", "doc_id", "channel", "ref_start", "ref_end"]
    )
    references = references.rename_columns(["query_id", "doc_id", "channel", "start", "end"])
    clock, done = time.process_time(), 0
    for method, values in found.items():
        for k in (0, len(alphas) // 2):
            how = Thresholding(method, _TRIALS, float(betas[k]), float(alphas[k]))
            decided = how.apply(detections)
            low, high = score_limits(decided["score"].to_numpy())
            aligned = align(decided, references, tolerance=_TOLERANCE, low=low, high=high, conventions=_RULES)
            direct = atwv(Counts.of(aligned), trials=_TRIALS, beta=how.beta)
            if direct.twv != values[k]:
                raise RuntimeError(f"{method} at point {k}: {direct.twv} directly, {values[k]} by the sweep")
            done += 1
    return (time.process_time() - clock) / done


def _write(scratch: Path, number: int) -> list[Path]:
    """Aligned lists, a file a bucket: probabilities as skewed as those of lattices, right as often as they say; a miss each."""
    files = []
    size = number // _BUCKETS
    for bucket in range(_BUCKETS):
        rng = np.random.default_rng([14, bucket])
        terms = size // _PER_TERM
        term = np.sort(rng.integers(0, terms, size))
        p = rng.beta(0.08, 1.0, size)
        hit = rng.random(size) < p
        start = np.round(rng.random(size) * (_SECONDS - 1), 2)
        document = rng.integers(0, _DOCUMENTS, size)
        rows = size + terms  # and a missed occurrence a term
        names = pa.array([f"kw{bucket:02d}-{k:05d}" for k in range(terms)])
        places = pa.array([f"talk{k:03d}" for k in range(_DOCUMENTS)])
        missing, away = np.arange(rows) >= size, np.full(terms, _SECONDS + 10.0)
        begin = np.append(start, away)
        unpaired = ~np.append(hit, np.ones(terms, bool))
        columns = {
            "query_id": names.take(pa.array(np.append(term, np.arange(terms)))),
            "doc_id": places.take(pa.array(np.append(document, np.zeros(terms, np.int64)))),
            "channel": pa.array(np.ones(rows, np.int32)),
            "start": pa.array(begin, mask=missing),
            "end": pa.array(begin + 0.4, mask=missing),
            "score": pa.array(np.append(p, np.zeros(terms)), mask=missing),
            "decision": pa.nulls(rows, pa.bool_()),
            "ref_start": pa.array(np.round(begin + 0.05, 2), mask=unpaired),
            "ref_end": pa.array(np.round(begin + 0.35, 2), mask=unpaired),
        }
        path = scratch / f"{number}-{bucket}.parquet"
        pq.write_table(pa.table(columns, schema=TRIALS), path)
        files.append(path)
    return files


if __name__ == "__main__":
    main(measure, __doc__)
