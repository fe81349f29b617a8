"""Cancelling: a request file in the run folder, which can be written from any host; the driver checks for it every few seconds.

The request names the lock of one driver, so a stale request cannot cancel a later run.
"""

from __future__ import annotations

import json
import os
import socket
import time

from swsdist.core.codes import pipeline as codes
from swsdist.io.filesystem import Folder
from swsdist.pipeline import lock
from swsdist.pipeline.operation import run_status
from swsdist.pipeline.plan import load_plans

NAME = "cancel.json"


def request(run: Folder) -> str:
    """Ask the driver of a run to stop; returns the token of its lock.

    Raises:
        StoreError: not a run folder.
        UserError: no process works there.
    """
    load_plans(run)
    holder = lock.read(run)
    if holder is None:
        raise codes.NO_RUNNING_PROCESS(where=run.path())
    if not lock.lives(run, holder):
        raise codes.DEAD_PROCESS(where=run.path(), pid=holder["pid"], host=holder["host"])
    cancellation = {"token": holder["token"], "t": time.time(), "host": socket.gethostname(), "pid": os.getpid()}
    run.write_bytes(NAME, json.dumps(cancellation).encode())
    return str(holder["token"])


def requested(run: Folder, token: str) -> str | None:
    """Host that requested the cancellation of the driver with this lock; None: no request."""
    try:
        cancellation = json.loads(run.read_bytes(NAME))
        return str(cancellation["host"]) if cancellation["token"] == token else None
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def wait(run: Folder, token: str, seconds: float) -> str:
    """Wait until the driver with this lock has ended; returns its final state.

    Raises:
        IncompleteError: it still runs after `seconds`.
    """
    deadline = time.monotonic() + seconds
    while True:
        holder = lock.read(run)
        if holder is None or holder["token"] != token or not lock.lives(run, holder):
            driver_status = run_status.read(run)
            return driver_status.state if driver_status is not None and driver_status.token == token else "ended"
        if time.monotonic() > deadline:
            raise codes.STILL_RUNNING(where=run.path(), pid=holder["pid"], host=holder["host"])
        time.sleep(0.5)
