"""Whether forecasts can be trusted: what the simulator says of other numbers of workers and sizes, against what is measured.

Mboshi dev, several times over, is run from start to report by one and by two workers, in random order. From the receipts of
the runs with one worker and the least data the simulator foresees all; of each the median over the runs counts. Workers have a
CPU each, so the machine needs two that nothing else uses: a run that others slow down says nothing of the simulator. The part
of its CPUs that each run's tasks got is told beside it.

The same is done on four hosts of their own (network namespaces, which need root), of which one, two and four work. The kernel
gives each host two fifths of a CPU and no more, wherever it runs, so that four are as fast as they should be on a machine of
two cores, beside the driver. They share the machine's disk, and what lies on it: transfers are no part of this.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

from benchmarks.corpora import Corpus, base
from benchmarks.rows import Row, at_least, at_most, main, say
from swsdist.bench.results import Plan, Results, run_benchmark, strong_scaling
from swsdist.core.errors import UserError
from tests.support.cluster.hosts import Cluster, cluster
from tests.support.cluster.network import Host, run

#: How far a forecast may be from what is measured.
_WITHIN = 0.1
_REPEATS = int(os.environ.get("REPEATS", "3"))
_TIMES = [int(text) for text in os.environ.get("TIMES", "5,15").split(",")]
#: Workers, and of them those that have hosts of their own.
_WORKERS, _HOSTS = [1, 2], [1, 2, 4]
#: Microseconds of CPU that a host gets in so many.
_QUOTA, _PERIOD = 40_000, 100_000


def measure(scratch: Path) -> list[Row]:
    """Foreseen over measured: whole runs by workers of this machine, and by hosts."""
    corpus = base(scratch)
    config = corpus.config(scratch / "run", index={"shard_hours": 0.25}, executor={"kind": "ray", "cpus_per_worker": 1})
    plan = Plan(_WORKERS, _TIMES, _REPEATS)
    rows = _rows(run_benchmark(config, scratch / "bench", plan, say), corpus, "worker(s)", 1)
    try:
        return rows + _on_hosts(corpus, scratch)
    except (UserError, OSError, subprocess.TimeoutExpired) as error:
        return [*rows, Row(f"hosts: {str(error).splitlines()[0]}", None, "ratio", at_most(1 + _WITHIN))]


def _rows(results: Results, corpus: Corpus, what: str, part: float) -> list[Row]:
    """Of some numbers of workers, which have a part of a CPU each."""
    walls, foreseen, busy = results.values("wall_s"), results.forecasts(), results.values("busy")
    rows = []
    for key in sorted(walls):
        found, told = statistics.median(walls[key]), statistics.median(foreseen[key])
        name = f"{corpus.name} x {key[1]}, {key[0]} {what}"
        rows += [
            Row(f"{name}: foreseen over measured", told / found, "ratio", at_most(1 + _WITHIN)),
            Row(f"{name}: the same", told / found, "ratio", at_least(1 - _WITHIN)),
            Row(f"{name}: foreseen", told, "s"),
            Row(f"{name}: measured", found, "s"),
            Row(f"{name}: least and greatest run, ratio", max(walls[key]) / min(walls[key]), "ratio"),
            Row(f"{name}: part of its CPUs that the tasks got", statistics.median(busy[key]) / part, ""),
            Row(f"{name}: efficiency", statistics.median(results.values("efficiency")[key]), ""),
        ]
    for item in strong_scaling(walls):
        text = f"{corpus.name} x {item.times}: {item.workers} {what} against {min(w for w, _ in walls)}"
        rows.append(Row(text, item.speedup.value, "ratio"))
    return rows


def _on_hosts(corpus: Corpus, scratch: Path) -> list[Row]:
    """The same on hosts."""
    with ExitStack() as stack:
        limit = stack.enter_context(_Limits())
        short = stack.enter_context(tempfile.TemporaryDirectory(prefix="x-", dir="/tmp", ignore_cleanup_errors=True))
        made = stack.enter_context(cluster(max(_HOSTS), Path(short)))
        for host in made.workers:
            limit.set(host)
        executor = {"kind": "ray", "cpus_per_worker": 1, "address": made.address}
        config = corpus.config(scratch / "hosts-run", index={"shard_hours": 0.25}, executor=executor)
        runs: Callable[[Path], None] = partial(_on_head, made)
        results = run_benchmark(config, scratch / "hosts", Plan(_HOSTS, _TIMES, _REPEATS), say, runs)
    return _rows(results, corpus, f"host(s) of {_QUOTA / _PERIOD:g} CPU", _QUOTA / _PERIOD)


def _on_head(made: Cluster, path: Path) -> None:
    run(made.head, [sys.executable, "-m", "swsdist.cli.main", "run", str(path)], made.env, seconds=1800)


class _Limits:
    """Control groups (version 1 or 2) that limit the CPU of hosts; they are removed when the hosts have ended."""

    def __init__(self) -> None:
        self._places: list[Path] = []

    def __enter__(self) -> _Limits:
        return self

    def __exit__(self, *_: object) -> None:
        for place in self._places:
            for _ in range(50):  # processes that were killed go a little later
                with suppress(OSError):
                    place.rmdir()
                    break
                time.sleep(0.1)

    def set(self, host: Host) -> None:
        """Limit a host, and what its processes start from now on."""
        old = Path("/sys/fs/cgroup/cpu")
        place = (old if old.is_dir() else old.parent) / f"swsdist-{host.name}"
        place.mkdir()
        self._places.append(place)
        if old.is_dir():
            (place / "cpu.cfs_period_us").write_text(str(_PERIOD))
            (place / "cpu.cfs_quota_us").write_text(str(_QUOTA))
        else:
            (place / "cpu.max").write_text(f"{_QUOTA} {_PERIOD}")
        for pid in host.processes():
            with suppress(ProcessLookupError):  # it ended just now
                (place / "cgroup.procs").write_text(str(pid))


if __name__ == "__main__":
    main(measure, __doc__)
