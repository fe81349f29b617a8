"""A thousand operating points of KST and STO over a million detections: CPU time, against deciding and counting at each point.

500 points of either method, alpha and beta both moving. The peer is the direct way of the same definitions, thresholds, then
decisions, then counts of the whole list, at a few points, in the same process; its time is scaled to a thousand points. Both
give the same doubles, or the benchmark breaks off.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.rows import Row, at_least, at_most, main, say
from swsdist.calibrate.points.sweep import Sweep
from swsdist.calibrate.thresholding import Method, Thresholding
from swsdist.score import Counts, atwv
from swsdist.types import TRIALS

_DETECTIONS, _TERMS, _TRIALS = 1_000_000, 2_000, 36_000
_POINTS, _DIRECT = 1000, 3


def measure(scratch: Path) -> list[Row]:
    """In this process, which has one thread at work."""
    aligned, true = _list()
    say(f"sweeps: {_DETECTIONS} detections of {_TERMS} terms, {_POINTS} points")
    alphas = np.linspace(1.0, 3.0, _POINTS // 2)
    betas = np.geomspace(10, 2000, _POINTS // 2)
    clock = time.process_time()
    sweep = Sweep.of(aligned)
    read = time.process_time() - clock
    methods: tuple[Method, ...] = ("kst", "sto")
    found = {method: sweep.atwv(method, alphas, betas, trials=_TRIALS) for method in methods}
    ours = time.process_time() - clock
    clock = time.process_time()
    for method in methods:
        for k in np.linspace(0, len(alphas) - 1, _DIRECT).astype(int):
            how = Thresholding(method, _TRIALS, float(betas[k]), float(alphas[k]))
            decided = how.apply(aligned, true=true, scores=False)
            direct = atwv(Counts.of(decided), trials=_TRIALS, beta=how.beta)
            if direct.twv != found[method].twv[k]:
                raise RuntimeError(f"{method} at point {k}: {direct.twv} directly, {found[method].twv[k]} by the sweep")
    peer = (time.process_time() - clock) / (_DIRECT * len(methods)) * _POINTS
    return [
        Row("sweep, 1000 points over 1 million detections: CPU", ours, "s", at_most(60)),
        Row("sweep: times less CPU than deciding and counting at each point", peer / ours, "ratio", at_least(20)),
        Row("sweep: of it, reading and sorting the list once", read, "s"),
        Row("the direct way, scaled to 1000 points: CPU", peer, "s"),
    ]


def _list() -> tuple[pa.Table, dict[str, int]]:
    """An aligned list: probabilities as skewed as those of lattices, right as often as they say, and some misses."""
    rng = np.random.default_rng(14)
    term = np.sort(rng.zipf(1.3, _DETECTIONS) % _TERMS)
    probability = rng.beta(0.08, 1.0, _DETECTIONS)
    hit = rng.random(_DETECTIONS) < probability
    missed = np.arange(_TERMS)  # one miss a term, so that each has references
    rows = _DETECTIONS + _TERMS
    score = np.append(probability, np.zeros(_TERMS))
    is_miss = np.arange(rows) >= _DETECTIONS
    names = pa.array([f"kw{k:05d}" for k in range(_TERMS)])
    all_terms = np.append(term, missed)
    columns = {
        "query_id": names.take(pa.array(all_terms)),
        "doc_id": pa.array(["d"] * rows),
        "channel": pa.array(np.ones(rows, np.int32)),
        "start": pa.nulls(rows, pa.float64()),
        "end": pa.nulls(rows, pa.float64()),
        "score": pa.array(score, mask=is_miss),
        "decision": pa.nulls(rows, pa.bool_()),
        "ref_start": pa.array(np.zeros(rows), mask=~np.append(hit, np.ones(_TERMS, bool))),
        "ref_end": pa.nulls(rows, pa.float64()),
    }
    true = np.bincount(term[hit], minlength=_TERMS) + 1
    return pa.table(columns, schema=TRIALS), dict(zip(names.to_pylist(), true.tolist(), strict=True))


if __name__ == "__main__":
    main(measure, __doc__)
