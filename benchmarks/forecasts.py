"""Whether forecasts can be trusted: what the simulator says of other numbers of workers, against what is measured.

Mboshi dev, several times over, is indexed and searched by one and by two workers, in random order. From the receipts of the
runs with one worker the simulator foresees both; of each the median over the runs counts, from the first task to the last.
Workers have a CPU each, so the machine needs two that nothing else uses: a run that others slow down says nothing of the
simulator. The part of its CPUs that each run's tasks got is told beside it.
"""

from __future__ import annotations

import os
import statistics
from pathlib import Path

from benchmarks.corpora import base
from benchmarks.rows import Row, at_least, at_most, main, say
from swsdist.bench.results import Plan, go

#: How far a forecast may be from what is measured.
_WITHIN = 0.15
_REPEATS = int(os.environ.get("REPEATS", "5"))
_TIMES = int(os.environ.get("TIMES", "4"))


def measure(scratch: Path) -> list[Row]:
    """Foreseen over measured, at one and at two workers."""
    corpus = base(scratch)
    config = corpus.config(scratch / "run", index={"shard_hours": 0.25}, executor={"kind": "ray", "cpus_per_worker": 1})
    results = go(config, scratch / "bench", Plan([1, 2], [_TIMES], _REPEATS), say)
    walls, foreseen, busy = results.values("wall_s"), results.forecasts(), results.values("busy")
    rows = []
    for key in sorted(walls):
        found, told = statistics.median(walls[key]), statistics.median(foreseen[key])
        name = f"{corpus.name} x {key[1]}, {key[0]} worker(s)"
        rows += [
            Row(f"{name}: foreseen over measured", told / found, "ratio", at_most(1 + _WITHIN)),
            Row(f"{name}: the same", told / found, "ratio", at_least(1 - _WITHIN)),
            Row(f"{name}: measured", found, "s"),
            Row(f"{name}: least and greatest run, ratio", max(walls[key]) / min(walls[key]), "ratio"),
            Row(f"{name}: part of its CPUs that the tasks got", statistics.median(busy[key]), ""),
        ]
    first, second = (statistics.median(walls[key]) for key in sorted(walls))
    rows.append(Row(f"{corpus.name} x {_TIMES}: two workers against one", first / second, "ratio"))
    return rows


if __name__ == "__main__":
    main(measure, __doc__)
