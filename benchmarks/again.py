"""What a user waits for when nothing is to be done: `swsdist run` on a finished run, and `swsdist --help`.

Wall seconds of a whole process, median of five. These are the only absolute times among the goals, because the promise is
absolute: a person waits at the terminal.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.corpora import base
from benchmarks.rows import Row, at_most, main, say
from swsdist.config import dump_config

_TIMES = 5
_SWSDIST = [sys.executable, "-m", "swsdist.cli.main"]


def measure(scratch: Path) -> list[Row]:
    """Finish a run on the whole corpus first: planning it again looks at every document."""
    corpus = base(scratch)
    config = scratch / "config.yaml"
    config.write_text(dump_config(corpus.config(scratch / "run")), encoding="utf-8")
    command = [*_SWSDIST, "run", str(config)]
    say(f"again: a first run on {corpus.name}")
    _call(command)
    finished = _call(command)
    if "nothing left to do" not in finished:
        raise RuntimeError(f"the second run found something to do:\n{finished}")
    again, again_cpu = _median(command)
    usage, _ = _median([*_SWSDIST, "--help"])
    return [
        Row("swsdist run again, nothing left to do: wall", again, "s", at_most(2.0)),
        Row("swsdist run again, nothing left to do: CPU", again_cpu, "s"),
        Row("swsdist --help: wall", usage, "s", at_most(0.25)),
    ]


def _median(command: list[str]) -> tuple[float, float]:
    """Median wall and CPU seconds of a command."""
    walls, cpus = [], []
    for _ in range(_TIMES):
        before, clock = os.times(), time.perf_counter()
        _call(command)
        after = os.times()
        walls.append(time.perf_counter() - clock)
        cpus.append(
            after.children_user - before.children_user + after.children_system - before.children_system,
        )
    return statistics.median(walls), statistics.median(cpus)


def _call(command: list[str]) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


if __name__ == "__main__":
    main(measure, __doc__)
