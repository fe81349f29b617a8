"""The Dask executor runs tasks in the worker processes of a Dask cluster, here or elsewhere.

Dask places tasks, notices that a worker died, runs its tasks again, and gives up a task whose workers keep dying. In each
worker process a plugin runs one task at a time by `Serial`, which tries transient errors again, and keeps the process's
journal. Dask blames a death on all tasks that the worker had; so workers say which they work on, and a task that Dask gives
up for the deaths of others is sent again.

By default it starts a private cluster on the loopback, encrypted with a key that only its processes have, and ends it. With
an address (config, or DASK_SCHEDULER_ADDRESS) it uses that cluster, and takes only its plugin out again.

Only this file imports dask and distributed.
"""

from __future__ import annotations

import logging
import os
import signal
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any

from dask import config
from distributed import Client, Future, KilledWorker, LocalCluster, Security, get_worker
from distributed.diagnostics.plugin import WorkerPlugin
from distributed.system import MEMORY_LIMIT
from distributed.utils import sync

from swsdist.accounts.hardware import node_versions
from swsdist.accounts.journal import DriverJournal, Journal
from swsdist.config.model import Executor as Settings
from swsdist.core.codes import pipeline as codes
from swsdist.core.errors import StorageError
from swsdist.core.needs import Needs
from swsdist.pipeline.chain import Context
from swsdist.pipeline.execution.executor import KILLED, Outcomes, PartListener, Serial
from swsdist.pipeline.execution.policy import at_least, nothing_fits, version_mismatches, workers_for
from swsdist.pipeline.ledger import written_receipt
from swsdist.pipeline.receipts import Queue
from swsdist.pipeline.task import Failure, Receipt, Task

#: Seconds to wait for a scheduler, and for a worker if there is none.
_ANSWER_WITHIN, _WORKER_WITHIN = 10.0, 300.0


class _Process(WorkerPlugin):  # type: ignore[misc]  # distributed has no types
    """Runs the tasks of a run in a worker process, and keeps its journal.

    Args:
        context: of the tasks.
        settings: section `executor` of the config.
        dedicated: whether the process does nothing else.
    """

    def __init__(self, context: Context, settings: Settings, dedicated: bool) -> None:
        self.name = f"swsdist-{uuid.uuid4().hex[:8]}"
        self._context, self._settings, self._dedicated = context, settings, dedicated
        self._versions = node_versions()
        self._journal: Journal | None = None

    def setup(self, worker: Any) -> None:
        """Dask's: the plugin has come to a worker."""
        self._worker = worker
        if self._dedicated:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal interrupts all; the driver ends this process
        self._thread = ThreadPoolExecutor(1)  # numba limits threads by thread

    def teardown(self, worker: Any) -> None:
        """Dask's: the worker ends, or the plugin is taken out. A running task ends before its journal."""
        if self._journal is not None:
            self._thread.submit(self._journal.close)
        self._thread.shutdown(wait=False)

    def run(self, task: Task, needs: Needs) -> Receipt | Failure:
        """Run a task."""
        return self._thread.submit(self._run, task, needs).result()

    def _run(self, task: Task, needs: Needs) -> Receipt | Failure:
        if self._journal is None:
            if other := version_mismatches(node_versions(), self._versions):
                raise codes.UNUSABLE_WORKERS(where=self._worker.address, reason=f"one has {', '.join(other)}")
            self._journal = Journal(self._context.run, "worker")
            self._serial = Serial(self._context, self._journal, self._settings, dedicated=self._dedicated)
        up = {"host": self._journal.host, "pid": os.getpid(), "journal": self._journal.name, "gpus": needs.gpus}
        begun = {"worker": self._worker.address, "task": task.fingerprint, "up": up}
        # Answered, unlike an event of Dask's stream, which a process that dies at once does not send.
        sync(self._worker.loop, self._worker.scheduler.log_event, topic=self.name, msg=begun)
        ((_, outcome),) = self._serial.run([task], [needs], lambda *_: None)
        return outcome


def _run(name: str, task: Task, needs: Needs) -> Receipt | Failure:
    process: _Process = get_worker().plugins[name]
    return process.run(task, needs)


class DaskExecutor:
    """Worker processes of a private cluster or of another, started with the first task.

    Args:
        context: of the tasks.
        journal: the driver's journal.
        settings: section `executor` of the config.

    Attributes:
        start_seconds: seconds from the first task until the workers are ready.
        stop_seconds: seconds of the shutdown.
    """

    def __init__(self, context: Context, journal: DriverJournal, settings: Settings, *_: Callable[[str], None]) -> None:
        self._context = context
        self._journal = journal
        self._settings = settings
        self._address = None if settings.cluster == "local" else settings.cluster
        self._process = _Process(context, settings, dedicated=self._address is None)
        self._cluster: LocalCluster | None = None
        self._client: Any = None
        self._flying: dict[str, tuple[Future, Task]] = {}  # by Dask's key
        self._news: SimpleQueue[Future | Mapping[str, Any]] = SimpleQueue()  # finished calls, and events
        self._up: dict[str, dict[str, Any]] = {}  # processes by Dask's address
        self._numbers = count()
        self._processes: defaultdict[str, set[int]] = defaultdict(set)  # all of the run, by host
        self._present: dict[str, str] = {}  # fingerprint of the latest task, by address
        self._deaths: Counter[str] = Counter()  # of workers, by fingerprint of the task that they worked on
        self._without_worker_since: float | None = None
        self.start_seconds: float | None = None
        self.stop_seconds: float | None = None

    def _connect(self) -> None:
        """Join the cluster, or start a private one without workers."""
        try:
            if self._address is None:
                scheduler = {"allowed_failures": self._settings.attempts - 1, "dashboard": False}
                with config.set({"distributed.scheduler.http.routes": []}):  # pages with the names of tasks
                    self._cluster = LocalCluster(
                        n_workers=0,
                        threads_per_worker=1,
                        memory_limit=0,  # workers are as many as memory allows; Dask would halt one that keeps memory
                        security=Security.temporary(),
                        dashboard_address="127.0.0.1:0",
                        silence_logs=logging.CRITICAL + 1,
                        scheduler_kwargs=scheduler,
                    )
            self._client = Client(self._cluster or self._address, timeout=_ANSWER_WITHIN, set_as_default=False)
        except (OSError, ValueError) as error:
            raise codes.NO_DASK_CLUSTER(where=f"executor.address: {self._address}", detail=error) from None
        for topic in ("all", self._process.name):
            self._client.subscribe_topic(topic, self._hear)
        try:
            self._client.register_plugin(self._process)
        except ImportError as error:
            raise codes.WORKERS_CANNOT_START(where="executor.address", detail=error) from None

    def _provide(self, alternatives: Sequence[Needs], tasks: int) -> Needs:
        """The first alternative for which there are resources; a private cluster gets workers, at most one for each task."""
        enlarged = [at_least(needs, self._settings.worker) for needs in alternatives]
        if self._cluster is not None:
            cpus = (self._settings.workers or 0) * self._settings.cpus_per_worker or len(os.sched_getaffinity(0))
            nodes = [{"CPU": float(cpus), "memory": MEMORY_LIMIT}]
        else:
            nodes = [
                {
                    "CPU": self._settings.cpus_per_worker,  # Dask knows threads for tasks only
                    "memory": worker["memory_limit"] or float("inf"),
                    "GPU": worker["resources"].get("GPU", 0.0),
                }
                for worker in self._client.scheduler_info(n_workers=-1)["workers"].values()
            ]
            if not nodes:  # the cluster grows when tasks wait
                return min(enlarged, key=lambda needs: needs.gpus)
        chosen = next((needs for needs in enlarged if workers_for(nodes, [needs], None, 1)), None)
        if chosen is None:
            raise nothing_fits(nodes, enlarged[-1])
        if self._cluster is not None:
            present = len(self._cluster.worker_spec)
            room = len(workers_for(nodes, [chosen], self._settings.workers, max(present, tasks)))
            if room != present:
                self._cluster.scale(room)
                self._client.wait_for_workers(room, timeout=_WORKER_WITHIN)
        return chosen

    def _room(self) -> int:
        """How many tasks may be in flight."""
        try:
            workers = len(self._client.nthreads())
        except (OSError, RuntimeError) as error:
            raise codes.NO_DASK_CLUSTER(where="executor.address", detail=error) from None
        if self._cluster is not None and workers < len(self._cluster.worker_spec):
            self._cluster.scale(len(self._cluster.worker_spec))  # LocalCluster gives up what restarts for 15 s
        now = time.monotonic()
        self._without_worker_since = None if workers else self._without_worker_since or now
        if self._without_worker_since is not None and now - self._without_worker_since > _WORKER_WITHIN:
            raise codes.NO_NODE_LEFT(where="executor")
        return self._settings.in_flight * max(1, workers)

    def run(self, tasks: Sequence[Task], needs: Sequence[Needs], on_part: PartListener) -> Outcomes:
        """Run all tasks, the largest first. The finished parts of running tasks are not reported."""
        if not tasks:
            return
        clock = time.perf_counter()
        if self._client is None:
            self._connect()
        chosen = self._provide(needs, len(tasks))
        if self.start_seconds is None:
            self.start_seconds = time.perf_counter() - clock
        queue = Queue(tasks)
        while queue or self._flying:
            for _ in range(min(len(queue), self._room() - len(self._flying))):
                self._submit(queue.popleft(), chosen)
            try:
                news = self._news.get(timeout=1.0)
            except Empty:
                continue
            if isinstance(news, Mapping):
                self._note(news)
            elif news.key in self._flying:
                outcome = self._outcome(news, self._flying[news.key][1])
                _, task = self._flying.pop(news.key)
                if outcome is None:  # it is sent again
                    self._submit(task, chosen)
                else:
                    yield task, outcome

    def _submit(self, task: Task, needs: Needs) -> None:
        key = f"{task.stage}-{self._process.name}-{next(self._numbers)}"
        resources = {"GPU": needs.gpus} if needs.gpus else None
        future = self._client.submit(_run, self._process.name, task, needs, key=key, pure=False, resources=resources)
        self._flying[key] = future, task
        future.add_done_callback(self._news.put)

    def _hear(self, event: tuple[float, Any]) -> None:
        """Dask's: an event of a topic, with its time."""
        if isinstance(event[1], Mapping) and "worker" in event[1]:
            self._news.put(event[1])

    def _note(self, event: Mapping[str, Any]) -> None:
        """Record what a worker does."""
        if "up" in event:
            address, up = event["worker"], event["up"]
            self._present[address] = event["task"]
            if address not in self._up:
                self._up[address] = up
                self._processes[up["host"]].add(up["pid"])
                self._journal.write("up", **up)
                if up["host"] == self._journal.host:
                    self._journal.others.add(up["pid"])
        elif event.get("action") == "remove-worker":
            self._died(event["worker"])

    def _died(self, address: str) -> None:
        """Record the death of a worker, if it is not recorded."""
        if (process := self._up.pop(address, None)) is None:
            return
        task = self._present.pop(address, "")
        lost = [item.fingerprint for _, item in self._flying.values() if item.fingerprint == task]
        self._deaths.update(lost)
        with suppress(StorageError):  # the disk may be full
            self._journal.write(
                "died", pid=process["pid"], journal=process["journal"], lost=lost, message=f"Dask lost {address}"
            )

    def _outcome(self, call: Future, task: Task) -> Receipt | Failure | None:
        """The outcome of a finished call; None if it is sent again."""
        try:
            outcome: Receipt | Failure = call.result(timeout=_ANSWER_WITHIN)
        except TimeoutError:  # its worker died before it was fetched: Dask does it again, but the receipt remains
            receipt = written_receipt(self._context.folder(task), task)
            return receipt if receipt and receipt.pid in self._processes[receipt.host] else None
        except KilledWorker as error:
            self._died(error.last_worker.address)
            times = self._deaths[task.fingerprint]
            return Failure(task, "killed", KILLED.format(times), times) if times >= self._settings.attempts else None
        except CancelledError as error:
            raise codes.NO_DASK_CLUSTER(where="executor.address", detail=error) from None
        return outcome

    def close(self) -> None:
        """Cancel what runs; end a private cluster."""
        clock = time.perf_counter()
        client, self._client = self._client, None
        if client is None:
            return
        with suppress(OSError, RuntimeError, CancelledError):  # the cluster may be gone
            client.cancel([call for call, _ in self._flying.values()], force=True)
            client.unregister_worker_plugin(self._process.name)
        client.close()
        if self._cluster is not None:
            self._cluster.close()
        self.stop_seconds = time.perf_counter() - clock
