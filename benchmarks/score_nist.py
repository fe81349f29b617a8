"""Scoring against the NIST programs: CPU of `swsdist score`, XML in, JSON out, Python's start included.

The case is ../shared/golden/scoring/big_500x300k: 500 terms, 20 h, 300 000 detections. What the programs took for it was
measured once, on a machine that took 0.49 CPU seconds for `sum(i * i for i in range(10**7))`; that loop is timed here
between the runs, and the figures are scaled by it. Median of five.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.rows import Row, at_least, at_most, main, say
from swsdist.io.nist.systemlist import read_systemlist, stdlist

CASE = Path(__file__).resolve().parents[1].parent / "shared" / "golden" / "scoring" / "big_500x300k"

_TIMES = 5
_LOOP = 0.49
#: CPU seconds, user and system, of the originals there (facts on the scorers, section 13), and how many times less is wanted.
_ORIGINALS = {
    "STDEval -A -o -d": (78.91 + 1.52, 50.0),
    "STDEval -A -o": (34.08 + 0.58, 25.0),
    "KWSEval -o -b": (42.93 + 1.14, 25.0),
}
_SCORE = [sys.executable, "-m", "swsdist.cli.main", "score", "-r", "ref.rttm"]
_STDEVAL = [*_SCORE, "-e", "ecf.xml", "-t", "tlist.xml", "-s", "stdlist.xml"]
_KWSEVAL = [*_SCORE, "-e", "ecf_kws.xml", "-t", "kwlist.xml", "-s", "kwslist.xml", "--json"]


def measure(scratch: Path) -> list[Row]:
    """All rows, or none with a value where the case is not there."""
    ratios = [f"{name}: CPU of the original / ours" for name in _ORIGINALS]
    if not CASE.is_dir():
        absent = [Row(f"{name} (no {CASE.name} beside the checkout)", None, "") for name in ratios]
        return [*absent, Row("10 times the detections: CPU", None, "")]
    with tarfile.open(CASE / "inputs.tar.xz") as archive:
        archive.extractall(scratch, filter="data")
    commands = {
        "STDEval -A -o -d": [*_STDEVAL, "--json", "--det", str(scratch / "det.csv")],
        "STDEval -A -o": [*_STDEVAL, "-A"],
        "KWSEval -o -b": _KWSEVAL,
    }
    rows = []
    ours: dict[str, float] = {}
    for name, command in commands.items():
        say(f"score_nist: {name}")
        cpu, loop, peak = _median(command, scratch)
        ours[name] = cpu
        seconds, wanted = _ORIGINALS[name]
        rows.append(Row(f"{name}: CPU of the original / ours", seconds * loop / _LOOP / cpu, "times", at_least(wanted)))
        rows.append(Row(f"{name}: our CPU", cpu, "s"))
        rows.append(Row(f"{name}: our peak RSS", peak / 1e6, "MB", at_most(300)))
    say("score_nist: 10 times the detections")
    _ten_times(scratch / "stdlist.xml")
    cpu, _, peak = _median([*_STDEVAL, "--json"], scratch)
    once, _, _ = _median([*_STDEVAL[:-1], "once.xml", "--json"], scratch)
    rows.append(Row("10 times the detections: CPU", cpu / once, "times", at_most(11)))
    rows.append(Row("10 times the detections: peak RSS", peak / 1e6, "MB"))
    return rows


def _ten_times(path: Path) -> None:
    """The list with each detection ten times, 0.37 s apart; the old one is kept as once.xml."""
    found = read_systemlist(str(path))
    table = found.detections
    for name in ("query_id", "doc_id"):
        table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(pa.string()))
    path.rename(path.with_name("once.xml"))
    shifts = np.repeat(np.arange(10) * 0.37, table.num_rows)
    many = pa.concat_tables([table] * 10)
    for name in ("start", "end"):
        shifted = np.round(many[name].to_numpy() + shifts, 2)
        many = many.set_column(many.schema.get_field_index(name), name, pa.array(shifted))
    ordered = many.sort_by([("query_id", "ascending"), ("start", "ascending")])
    stdlist(str(path)).write(ordered.to_batches(), sorted(found.queries), path)


def _median(command: list[str], folder: Path) -> tuple[float, float, float]:
    """CPU seconds of a command and of the loop, each between the other's rounds; and the command's peak RSS, bytes."""
    cpus, loops = [], []
    peak = 0
    for _ in range(_TIMES):
        loops.append(_cpu(lambda: sum(i * i for i in range(10**7))))
        before = os.times()
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            raise RuntimeError(f"{command} ended with {status}")
        after = os.times()
        cpus.append(after.children_user - before.children_user + after.children_system - before.children_system)
        peak = max(peak, usage.ru_maxrss * 1024)
    return statistics.median(cpus), statistics.median(loops), peak


def _cpu(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


if __name__ == "__main__":
    main(measure, __doc__)
