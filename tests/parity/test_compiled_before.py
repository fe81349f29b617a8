"""What is compiled, is compiled in the warm-up: the first run on a machine has the costs of the second."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from swsdist.testing.synthesis import make_corpus

RUN = """
import sys, json
from numba.core import event
from swsdist.pipeline.execution import executor as worker

warming = []
whole = worker.Worker._warm_up

def warm_up(self, stage, task):
    warming.append(stage.name)
    whole(self, stage, task)
    warming.append("")

worker.Worker._warm_up = warm_up

class Listener(event.Listener):
    def on_start(self, event):
        pass

    def on_end(self, event):
        function = event.data["dispatcher"].py_func
        if warming and not warming[-1] and function.__module__.startswith("swsdist."):
            print("late:", function.__module__, function.__qualname__)

event.register("numba:compile", Listener())
import swsdist
swsdist.run(json.loads(sys.argv[1]))
"""

SEARCHES: dict[str, dict[str, Any]] = {
    "plain": {},
    "coarse": {"first_pass": {"name": "coarse"}},
    "quantised": {"first_pass": {"name": "quantised"}},
    "windows": {"method": "windows"},
}


@pytest.mark.compile
@pytest.mark.parametrize("search", SEARCHES)
def test_nothing_is_compiled_in_a_task(tmp_path: Path, search: str) -> None:
    make_corpus(tmp_path / "corpus", documents=3, queries=2, voices=2)
    tables = {"documents": "docs", "queries": "queries", "references": "refs"}
    config = {
        "run": str(tmp_path / "run"),
        "corpus": {name: str(tmp_path / "corpus" / f"{table}.csv") for name, table in tables.items()},
        "search": SEARCHES[search],
        "executor": {"kind": "serial"},
    }
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(config)],
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")},
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("late:")] == []
    assert list((tmp_path / "kernels").rglob("*.nbc"))
