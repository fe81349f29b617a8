"""Workers run tasks, in this process, in an actor, or on another host."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from typing import Any

from swsdist.accounts.journal import Journal, cpu_seconds, peak_bytes, reset_peak
from swsdist.io.byte_count import bytes_read
from swsdist.pipeline.ledger import receipt_name
from swsdist.pipeline.stage import Context, Stage
from swsdist.pipeline.task import Cost, Receipt, Task
from swsdist.store.memory import Cache, use

#: Called with a running task and its finished part, 0 to 1.
PartListener = Callable[[Task, float], None]

#: Least seconds between two reports of a running task.
REPORT_INTERVAL = 0.2


class Worker:
    """Runs tasks one after the other, and accounts for their cost.

    Args:
        context: config and folders.
        journal: journal of this process.
        threads: threads of the numeric libraries.
        dedicated: whether the process does nothing else, so that the worker may release memory.

    Attributes:
        on_part: called with the finished part of the present task, a few times a second at most; None: not called.
    """

    def __init__(self, context: Context, journal: Journal, threads: int, dedicated: bool = False) -> None:
        self._context = context
        self._dedicated = dedicated
        self._journal = journal
        self.on_part: PartListener | None = None
        self._warm: set[str] = set()
        limit_threads(threads)
        if dedicated:
            use_system_memory()
        use(None if context.cache is None else Cache(*context.cache))

    def run(self, task: Task) -> Receipt:
        """Run a task; the receipt is written last."""
        stage = self._context.stages[task.stage]
        self._warm_up(stage, task)
        if self._dedicated:
            release_memory()
        self._journal.write("begin", stage=task.stage, phase=stage.phase, fingerprint=task.fingerprint)
        try:
            receipt = self._attempt(task, stage)
        except BaseException as error:
            self._journal.write("failed", stage=task.stage, fingerprint=task.fingerprint, error=repr(error))
            raise
        self._journal.write("end", stage=task.stage, fingerprint=task.fingerprint)
        return receipt

    def _attempt(self, task: Task, stage: Stage) -> Receipt:
        context = self._context
        reset_peak()
        started, clock, cpu, read = time.time(), time.perf_counter(), cpu_seconds(), bytes_read()
        context.listener = self._listener(task)
        with self._journal.phase(stage.phase):
            try:
                done = stage.run(task, context)
            finally:
                context.listener, self._journal.part = None, None
        user, system = (after - before for after, before in zip(cpu_seconds(), cpu, strict=True))
        wall = time.perf_counter() - clock
        cost = Cost(
            cpu_user=round(user, 6),
            cpu_system=round(system, 6),
            wall=round(wall, 6),
            peak_bytes=peak_bytes(),
            bytes_read=bytes_read() - read,
            bytes_written=sum(output.size for output in done.outputs),
            cells=done.cells,
            gpu_s=round(wall * context.granted.gpus, 6),
        )
        receipt = Receipt(
            stage=task.stage,
            version=stage.version,
            fingerprint=task.fingerprint,
            label=task.label,
            work=task.work,
            outputs=done.outputs,
            result={} if done.result is None else done.result._asdict(),
            rejected=done.rejected,
            cost=cost,
            host=self._journal.host,
            pid=os.getpid(),
            started=started,
            finished=time.time(),
            round=task.round,
        )
        context.folder(task).write_bytes(receipt_name(task.stage, task.fingerprint), receipt.to_json().encode())
        return receipt

    def _listener(self, task: Task) -> Callable[[float], None]:
        """Pass the finished part to the journal's next sample and to `on_part`."""
        reported = 0.0

        def listen(part: float) -> None:
            nonlocal reported
            self._journal.part = task.fingerprint, part
            if self.on_part is not None and (now := time.monotonic()) - reported >= REPORT_INTERVAL:
                reported = now
                self.on_part(task, part)

        return listen

    def _warm_up(self, stage: Stage, task: Task) -> None:
        """Load what a stage needs before its first task; the cost is recorded as warm-up."""
        if stage.name in self._warm:
            return
        before = sum(cpu_seconds())
        stage.warm(task, self._context)
        self._warm.add(stage.name)
        if self._dedicated:
            # Modules and compiled code stay: frozen, they do not slow down later collections.
            gc.collect()
            gc.freeze()
        self._journal.write("warm", stage=stage.name, spent=round(sum(cpu_seconds()) - before, 4))


def use_system_memory() -> None:
    """Let Arrow use the C library's allocator: its own allocators keep about 100 MB of freed memory."""
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())


def release_memory() -> None:
    """Release the memory of the previous task: reference cycles, and freed memory that allocators keep."""
    import pyarrow as pa

    gc.collect()
    pa.default_memory_pool().release_unused()


def limit_threads(threads: int) -> Any:
    """Limit the threads of BLAS, numba and Arrow; without it numba uses all cores of the node in an actor."""
    import numba
    import pyarrow as pa
    from threadpoolctl import threadpool_limits

    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    pa.set_cpu_count(threads)
    pa.set_io_thread_count(max(2, threads))
    return threadpool_limits(limits=threads)
