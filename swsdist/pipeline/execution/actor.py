"""An actor is a worker in a process of Ray's, somewhere on the cluster."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from swsdist.accounts.hardware import versions
from swsdist.accounts.journal import Journal
from swsdist.pipeline.execution.ray_instance import node_name, node_number
from swsdist.pipeline.stage import Context
from swsdist.pipeline.task import Receipt, Task


class Ready(NamedTuple):
    """What an actor tells when it is ready: node by name, process, journal, node by Ray's number, versions, what lies in its
    node's cache (SHA-256 and bytes of files).
    """

    host: str
    pid: int
    journal: str
    node: str
    versions: dict[str, str]
    # An older swsdist tells nothing of it: its node is then not used, by its version, and not taken for one that crashed.
    cached: Sequence[tuple[str, int]] = ()


class Actor:
    """Runs in its own process, for the whole run."""

    def __init__(self, context: Context, threads: int) -> None:
        self._context = context
        self._threads = threads

    def ready(self) -> Ready:
        """Get ready, and tell who and where it is.

        Not done in `__init__`: what an actor's constructor raises reaches the driver as text only.
        """
        from swsdist.pipeline.execution.ray_metrics import Metrics
        from swsdist.pipeline.execution.worker import Worker
        from swsdist.store.cache import cached_files

        self._metrics = Metrics()
        self._journal = Journal(self._context.run, "worker", node_name())
        self._worker = Worker(self._context, self._journal, self._threads, alone=True)
        node = node_number()
        return Ready(self._journal.host, os.getpid(), self._journal.name, node, versions(), cached_files())

    def run(self, task: Task) -> Receipt:
        """Do a task."""
        receipt = self._worker.run(task)
        self._metrics.count(receipt)
        return receipt

    def close(self) -> None:
        """End the journal."""
        self._journal.close()
