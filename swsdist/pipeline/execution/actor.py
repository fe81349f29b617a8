"""Actors: workers in processes of Ray, on any node."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from swsdist.accounts.hardware import versions
from swsdist.accounts.journal import Journal
from swsdist.pipeline.execution.ray_instance import node_name, node_number
from swsdist.pipeline.stage import Context
from swsdist.pipeline.task import Receipt, Task

#: What workers count of finished tasks, by stage. Ray adds `ray_` to each name, and labels of node and worker.
_METRICS: dict[str, tuple[str, Callable[[Receipt], float]]] = {
    "tasks_total": ("Tasks that are done.", lambda receipt: 1),
    "cpu_seconds_total": ("CPU seconds of tasks that are done.", lambda receipt: receipt.cost.cpu),
    "work_total": ("Work that is done, in the stage's unit: seconds of audio of index.", lambda receipt: receipt.work),
    "cells_total": ("Query frames times document frames that were searched.", lambda receipt: receipt.cost.cells),
    "read_bytes_total": ("Bytes that tasks read of files and objects.", lambda receipt: receipt.cost.bytes_read),
    "written_bytes_total": ("Bytes of outputs that tasks wrote.", lambda receipt: receipt.cost.bytes_written),
}


class Ready(NamedTuple):
    """The first answer of an actor.

    Attributes:
        host: name of its node.
        pid: its process.
        journal: name of its journal.
        node: Ray's id of the node.
        versions: versions of libraries.
        cached: files in the node's cache, SHA-256 and bytes.
    """

    host: str
    pid: int
    journal: str
    node: str
    versions: dict[str, str]
    # An older swsdist has no such field: the node is refused by its version, not taken for a crash.
    cached: Sequence[tuple[str, int]] = ()


class Actor:
    """A worker in its own process, for the whole run.

    Ray exports its metrics for Prometheus on each node, if Ray's extra `default` is installed.
    """

    def __init__(self, context: Context, threads: int) -> None:
        self._context = context
        self._threads = threads

    def ready(self) -> Ready:
        """Start the worker, and describe it.

        Not in `__init__`: errors of an actor's constructor reach the driver as text only.
        """
        from ray.util.metrics import Counter

        from swsdist.pipeline.execution.worker import Worker
        from swsdist.store.cache import cached_files

        self._counters = {
            name: Counter(f"swsdist_{name}", description=text, tag_keys=("stage",))
            for name, (text, _) in _METRICS.items()
        }
        self._journal = Journal(self._context.run, "worker", node_name())
        self._worker = Worker(self._context, self._journal, self._threads, dedicated=True)
        return Ready(self._journal.host, os.getpid(), self._journal.name, node_number(), versions(), cached_files())

    def run(self, task: Task) -> Receipt:
        """Run a task."""
        receipt = self._worker.run(task)
        for name, (_, amount) in _METRICS.items():
            if (value := amount(receipt)) > 0:  # Ray refuses an increment of 0
                self._counters[name].inc(value, tags={"stage": receipt.stage})
        return receipt

    def close(self) -> None:
        """Close the journal."""
        self._journal.close()
