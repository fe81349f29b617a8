"""What a run of many hours costs beside its work: Ray, receipts and journals, reduce, and the memory of workers and driver.

Mboshi dev, 90 times over (TIMES), is indexed and searched with 120 queries by two Ray workers, as `swsdist run` does it.
It is done twice: as it is, and with every recording cut into ten (PARTS), so that there are ten times the documents. CPU s are
those of `nodes.parquet`: what is neither a task nor the start of a worker is planning, receipts, journals and Ray's own
processes. Of a worker the highest PSS counts (sampled once a second); the peak of a task is its VmHWM, in which libraries that
processes share count whole.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.corpora import Corpus, base, in_parts, repeated
from benchmarks.rows import Row, at_most, main, say
from swsdist.accounts.records import records
from swsdist.config import dump_config
from swsdist.io.filesystem import Folder
from swsdist.pipeline.status import load_partial_run

_TIMES = int(os.environ.get("TIMES", "90"))
_PARTS = int(os.environ.get("PARTS", "10"))
_KINDS = ("useful_cpu_s", "repeated_cpu_s", "warm_up_cpu_s", "other_cpu_s")


def measure(scratch: Path) -> list[Row]:
    """Both runs."""
    one = base(scratch)
    rows = []
    for corpus in (one, in_parts(one, _PARTS, scratch)) if _PARTS > 1 else (one,):
        big = repeated(corpus, _TIMES, scratch)
        say(f"big_run: {big.name}")
        rows += _measured(big, scratch / "run")
    return rows


def _measured(corpus: Corpus, run: Path) -> list[Row]:
    config = corpus.config(run, executor={"kind": "ray", "workers": 2}, report={"clips": 0})
    file = run.with_suffix(".yaml")
    file.write_text(dump_config(config), "utf-8")
    subprocess.run([sys.executable, "-m", "swsdist.cli.main", "run", str(file)], check=True, stdout=subprocess.DEVNULL)
    chain_run = load_partial_run(Folder(str(run)))
    receipts = {step.name: chain_run.receipts(step.name) for step in chain_run.chain.steps}
    cpu = {
        name: float(np.sum(some.column("cpu_user").to_numpy() + some.column("cpu_system").to_numpy()))
        for name, some in receipts.items()
    }
    known = [some for name, some in receipts.items() if len(some) and not chain_run.chain.step(name).stage.in_driver]
    nodes = pq.read_table(run / "nodes.parquet")
    nodes = nodes.filter(pc.is_null(nodes["stage"]))
    kinds = {kind: pc.sum(nodes[kind]).as_py() for kind in _KINDS}
    walls = [(pc.min(some.column("started")).as_py(), pc.max(some.column("finished")).as_py()) for some in known]
    rows = [
        Row(f"{corpus.name}: documents", float(sum(1 for _ in corpus.documents.open("rb")) - 1), ""),
        Row(f"{corpus.name}: from the first task to the last", walls[-1][1] - walls[0][0], "s"),
        Row(f"{corpus.name}: CPU", sum(kinds.values()), "s"),
        Row(
            f"{corpus.name}: CPU of Ray, planning, receipts and journals, part of all",
            kinds["other_cpu_s"] / sum(kinds.values()),
            "ratio",
            at_most(0.08),
        ),
        Row(f"{corpus.name}: CPU of reduce to that of search", cpu["reduce"] / cpu["search"], "ratio", at_most(0.10)),
        Row(
            f"{corpus.name}: highest peak of a task",
            max(pc.max(some.column("peak_bytes")).as_py() for some in known) / 1e6,
            "MB",
        ),
    ]
    rows += [Row(f"{corpus.name}: CPU of {name}", spent, "s") for name, spent in cpu.items() if spent >= 0.5]
    rows += [Row(f"{corpus.name}: {kind.removesuffix('_cpu_s')} CPU", spent, "s") for kind, spent in kinds.items()]
    rows += _memory(corpus, run)
    shutil.rmtree(run)
    return rows


def _memory(corpus: Corpus, run: Path) -> list[Row]:
    """Highest PSS of a worker, and of the driver with Ray's own processes."""
    peaks: dict[str, int] = {}
    for table in records(Folder(str(run))):
        role, pss = table["role"][0].as_py(), pc.max(table["pss"]).as_py()
        peaks[role] = max(peaks.get(role, 0), pss or 0)
    return [
        Row(f"{corpus.name}: highest PSS of a worker", peaks["worker"] / 1e6, "MB", at_most(450)),
        Row(f"{corpus.name}: highest PSS of the driver, Ray's own processes included", peaks["driver"] / 1e6, "MB"),
    ]


if __name__ == "__main__":
    main(measure, __doc__)
