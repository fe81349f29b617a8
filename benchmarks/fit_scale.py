"""Fitting a long list in parts: what coarse rows change, and how long its longest tasks take.

Millions of detections with distinct scores are made part by part, as aligned lists have them. The step llr is fitted on all of
them and on coarse rows, by folds, with one column (the score) and with three.. Thresholds are exact.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.rows import Row, at_most, show
from swsdist.calibrate.procedure import (
    Examples,
    Procedure,
    count,
    counted_for,
    decide,
    finished,
    gather,
    make_steps,
    threshold_of,
    with_models,
)
from swsdist.calibrate.steps.interface import TwvParameters
from swsdist.core.types import TRIALS
from swsdist.kernels.regression import BITS, MOST
from swsdist.score.events import Source, of_table
from swsdist.score.measures.cnxe import Trials, cnxe
from swsdist.score.measures.curve import Counts, total
from swsdist.score.measures.protocol import prior_of_beta
from swsdist.score.measures.twv import atwv

FOLDS, POINT = 5, TwvParameters(1_080_000, 66.66)
_QUERIES, _ROWS, _TRUE = 2, 100_000, 0.003
#: Covariates of llr that a list alone gives.
SYSTEMS: dict[str, dict[str, Any]] = {"score": {}, "score, best and gap": {"covariates": ["best", "gap"]}}


def parts(detections: int) -> Iterator[pa.Table]:
    """Aligned lists, of a few queries each; hits score higher by two, and queries differ."""
    for number in range(max(FOLDS, round(detections / (_QUERIES * _ROWS)))):
        rng, size = np.random.default_rng(number), _QUERIES * _ROWS
        query = np.repeat(np.arange(_QUERIES), _ROWS)
        true = rng.random(size) < _TRUE * rng.uniform(0.3, 3, _QUERIES)[query]
        score = rng.normal(0, 1, size) + 2.0 * true + rng.normal(0, 0.3, _QUERIES)[query]
        columns = {field.name: pa.nulls(size, field.type) for field in TRIALS}
        names = pa.DictionaryArray.from_arrays(query, [f"q{number}-{k}" for k in range(_QUERIES)]).cast(pa.string())
        places = {"query_id": names, "doc_id": pa.array(["d"] * size), "channel": pa.array(np.ones(size, np.int32))}
        times = {name: pa.array(np.zeros(size)) for name in ("start", "end")}
        found = {"score": pa.array(score), "ref_start": pa.array(np.zeros(size), mask=~true)}
        yield pa.table({**columns, **places, **times, **found}).select(TRIALS.names).cast(TRIALS)


def fitted(detections: int, steps: Procedure, *, coarse: bool) -> tuple[Procedure, float, int]:
    """The fitted step, CPU seconds of adding up and fitting, and rows of the longest sum."""
    gathered: list[Examples] = [gather(one, steps, 0, FOLDS, coarse=coarse) for one in parts(detections)]
    clock = time.process_time()
    models = with_models(steps, 0, gathered, FOLDS)
    cpu = time.process_time() - clock
    whole = [one for some in gathered for (_, fold), one in some.items() if fold]
    rows = sum(whole[1:], whole[0])
    return finished(models, FOLDS, {}), cpu, len(rows.columns)


def judged(detections: int, procedure: Procedure) -> tuple[float, float]:
    """ATWV at the step's own threshold, and Cnxe."""
    counts, trials = [], []
    for table in parts(detections):
        scored = procedure.scores(table)
        counts.append(Counts.of(decide(scored, [procedure.own_threshold])))
        true = table["ref_start"].is_valid().to_numpy()
        score, hit = scored["score"].to_numpy(), true.astype(np.int64)
        order = np.argsort(score)
        whole = int(hit.sum()), _QUERIES * POINT.trials - int(hit.sum())
        trials.append(Trials(score[order], hit[order], 1 - hit[order], *whole))
    whole = total(counts)
    return atwv(whole, trials=POINT.trials, beta=POINT.beta).twv, cnxe(_added(trials), prior_of_beta(POINT.beta))


def _added(trials: list[Trials]) -> Trials:
    while len(trials) > 1:
        trials = [sum(trials[k + 1 : k + 2], trials[k]) for k in range(0, len(trials), 2)]
    return trials[0]


def measure(detections: int) -> list[Row]:
    """The step fitted on all and on coarse rows, and a threshold."""
    millions, rows = f"{detections / 1e6:g} M detections", []
    for name, options in SYSTEMS.items():
        steps = replace(Procedure(make_steps(["llr"], {"llr": options})), point=POINT)
        exact, cpu, _ = fitted(detections, steps, coarse=False)
        coarse, coarse_cpu, points = fitted(detections, steps, coarse=True)
        pairs = [
            (a[key], b[key])
            for a, b in zip(exact.models[0], coarse.models[0], strict=True)
            for key in a
            if isinstance(a[key], float)
        ]
        difference = max(abs(a - b) / max(abs(a), 1e-3) for a, b in pairs)  # type: ignore[operator,arg-type]
        (atwv_all, cnxe_all), (atwv_coarse, cnxe_coarse) = (judged(detections, one) for one in (exact, coarse))
        what = f"{millions}, llr of {name}"
        rows += [
            Row(f"{what}: rows of the largest sum, from {BITS} bits, at most {MOST}", points, ""),
            Row(f"{what}: adding up and fitting {FOLDS} folds, on all", cpu, "CPU s"),
            Row(f"{what}: adding up and fitting {FOLDS} folds, on coarse rows", coarse_cpu, "CPU s", at_most(15)),
            Row(f"{what}: greatest relative difference of a parameter", difference, ""),
            Row(f"{what}: difference of ATWV", abs(atwv_all - atwv_coarse), "", at_most(1e-3)),
            Row(f"{what}: difference of Cnxe", abs(cnxe_all - cnxe_coarse), "", at_most(1e-3)),
        ]
    none = Procedure(())
    counted = [count(table, none, FOLDS) for table in parts(detections)]
    clock = time.process_time()
    chosen = counted_for(none, FOLDS)[0]
    events, classes = (_sources(counted, chosen, place) for place in (0, 1))
    threshold_of(events, classes, POINT)
    rows.append(Row(f"{millions}: threshold of a fold", time.process_time() - clock, "CPU s", at_most(15)))
    rows.append(Row("peak of the process", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000, "MB"))
    return rows


def _sources(counted: list[Any], chosen: list[int], place: int) -> list[Source]:
    return [of_table(one.counts[k][place]) for one in counted for k in chosen]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fit_scale", description=__doc__)
    parser.add_argument("--detections", type=int, default=4_000_000)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to this file")
    arguments = parser.parse_args()
    rows = measure(arguments.detections)
    show(rows, arguments.json)


if __name__ == "__main__":
    main()
