"""A run is cancelled by a file in its folder, from any host; its driver looks for it every few seconds.

The request names the lock of the driver that is meant, so one that comes late ends no later run.
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
    """Ask who works in a run folder to end; gives the token of its lock.

    Raises:
        StoreError: it is not a run folder.
        UserError: nobody works there.
    """
    load_plans(run)
    holder = lock.read(run)
    if holder is None:
        raise codes.NO_RUNNING_PROCESS(where=run.path())
    if not lock.lives(run, holder):
        raise codes.DEAD_PROCESS(where=run.path(), pid=holder["pid"], host=holder["host"])
    asked = {"token": holder["token"], "t": time.time(), "host": socket.gethostname(), "pid": os.getpid()}
    run.write_bytes(NAME, json.dumps(asked).encode())
    return str(holder["token"])


def requested(run: Folder, token: str) -> str | None:
    """Who asked for the end of the driver that holds this lock: its host; None: nobody did."""
    try:
        asked = json.loads(run.read_bytes(NAME))
        return str(asked["host"]) if asked["token"] == token else None
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def wait(run: Folder, token: str, seconds: float) -> str:
    """Wait until the driver that holds this lock has ended; gives the state that it ended in.

    Raises:
        IncompleteError: it works on.
    """
    deadline = time.monotonic() + seconds
    while True:
        holder = lock.read(run)
        if holder is None or holder["token"] != token or not lock.lives(run, holder):
            found = run_status.read(run)
            return found.state if found is not None and found.token == token else "ended"
        if time.monotonic() > deadline:
            raise codes.STILL_RUNNING(where=run.path(), pid=holder["pid"], host=holder["host"])
        time.sleep(0.5)
