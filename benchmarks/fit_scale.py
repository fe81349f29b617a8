"""Fitting thresholds: the driver's peak of memory with counts in memory, as they were, and in files, as they are.

Millions of detections with distinct scores are made part by part, as aligned lists have them, and a threshold is fitted for
each of five folds. Each way runs in a process of its own, and both give the same thresholds.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from benchmarks.rows import Row, at_most, show
from swsdist.score import Counts, total
from swsdist.score.parts.spilled import LIMIT, SpilledCounts, threshold_of
from tests.oracles.thresholds import fit_threshold

FOLDS, TRIALS, BETA = 5, 360_000, 66.66
_PART = 50_000
_LIMIT_MB = 500.0


def parts(detections: int) -> Iterator[tuple[int, Counts]]:
    """Fold and counts of each part; queries have from 1 to 40 true occurrences."""
    for number in range(max(FOLDS, detections // _PART)):
        rng = np.random.default_rng(number)
        true = rng.random(_PART) < 0.01
        score = np.where(true, rng.normal(2, 1, _PART), rng.normal(0, 1, _PART))
        ntrue = rng.integers(1, 41, _PART)
        order = np.lexsort((score, ntrue))
        hits, none = true[order].astype(np.int64), np.zeros(_PART, np.int64)
        classes = np.arange(1, 41)
        yield (
            number % FOLDS,
            Counts(classes, classes * 0 + 3, ntrue[order], score[order], hits, 1 - hits, none, none, none),
        )


def in_memory(detections: int) -> list[float | None]:
    """As it was."""
    counts = {fold: Counts.zero() for fold in range(FOLDS)}
    for fold, one in parts(detections):
        counts[fold] = counts[fold] + one
    return [
        fit_threshold(total(one for k, one in counts.items() if k != fold), trials=TRIALS, beta=BETA)
        for fold in range(FOLDS)
    ]


def in_files(detections: int) -> list[float | None]:
    """As it is."""
    with ExitStack() as held:
        counts = [held.enter_context(SpilledCounts(LIMIT // FOLDS)) for _ in range(FOLDS)]
        for fold, one in parts(detections):
            counts[fold].add(one)
        others = [[one for j, one in enumerate(counts) if j != k] for k in range(FOLDS)]
        return [threshold_of(some, trials=TRIALS, beta=BETA) for some in others]


_Answer = tuple[list[float | None], float, float]


def _measured(way: Callable[[int], list[float | None]], detections: int, queue: multiprocessing.Queue[_Answer]) -> None:
    clock = time.perf_counter()
    found = way(detections)
    queue.put((found, time.perf_counter() - clock, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000))


def measure(detections: int) -> list[Row]:
    """Both ways, one after the other."""
    spawn, rows, answers = multiprocessing.get_context("spawn"), [], []
    for name, way in (("in files", in_files), ("in memory", in_memory)):
        queue = spawn.Queue()
        process = spawn.Process(target=_measured, args=(way, detections, queue))
        process.start()
        found, seconds, peak = queue.get()
        process.join()
        answers.append(found)
        goal = at_most(_LIMIT_MB) if way is in_files else None
        rows.append(Row(f"{detections / 1e6:g} M detections, {name}: peak of the process", peak, "MB", goal))
        rows.append(Row(f"{detections / 1e6:g} M detections, {name}: wall", seconds, "s"))
    if answers[0] != answers[1]:
        raise AssertionError(f"thresholds differ: {answers}")
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fit_scale", description=__doc__)
    parser.add_argument("--detections", type=int, default=6_000_000)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to this file")
    arguments = parser.parse_args()
    rows = measure(arguments.detections)
    show(rows, arguments.json)


if __name__ == "__main__":
    main()
