"""A guard ends a private Ray instance, even if the driver is killed.

The guard is a process that starts before the instance. It waits for the end of its standard input, which comes when the driver
closes it or dies. Then the guard kills every process that has a file in the instance's folder open, and removes the folder.
Some of Ray's processes die with the driver; others (its agents) live on for a minute or more.

The guard is a script that uses the standard library alone, so that it is small and starts quickly.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

_PATIENCE = 10.0


def start(folder: str) -> subprocess.Popen[bytes]:
    """Guard a folder; close the process's standard input to end the instance."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, folder, str(os.getpid())],
        stdin=subprocess.PIPE,
        start_new_session=True,  # a terminal's Ctrl-C is for the driver
    )


def end(folder: str, driver: int) -> None:
    """Kill the instance's processes but the driver, and remove its folder."""
    deadline = time.monotonic() + _PATIENCE
    while (left := list(_holders(folder, {driver, os.getpid()}))) and time.monotonic() < deadline:
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.05)
    shutil.rmtree(folder, ignore_errors=True)


def _holders(folder: str, spared: set[int]) -> Iterator[int]:
    """Processes with an open file below a folder: every one of Ray's has its log there."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) in spared:
            continue
        try:
            if any(str(file.readlink()).startswith(f"{folder}/") for file in (entry / "fd").iterdir()):
                yield int(entry.name)
        except OSError:
            continue  # gone, or another user's


if __name__ == "__main__":
    sys.stdin.buffer.read()
    end(sys.argv[1], int(sys.argv[2]))
