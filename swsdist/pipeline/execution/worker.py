"""A worker does a task in the same way in this process, in an actor here, or on another host."""

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
from swsdist.store.cache import Cache, use

#: Is told a task, and how much of it is done, 0 to 1.
Parts = Callable[[Task, float], None]

#: Seconds between two parts of a task that are told.
TOLD_EVERY = 0.2


class Worker:
    """A worker does tasks one after the other and keeps account of them.

    Args:
        context: config and folders.
        journal: of this process.
        threads: that numeric libraries may use.
        alone: nothing else is done in this process: it may give memory back as it sees fit.

    Attributes:
        told: is told of parts of the present task, a few times a second at most; None: nobody is.
    """

    def __init__(self, context: Context, journal: Journal, threads: int, alone: bool = False) -> None:
        self._context = context
        self._alone = alone
        self._journal = journal
        self.told: Parts | None = None
        self._warm: set[str] = set()
        limit_threads(threads)
        if alone:
            use_system_memory()
        use(None if context.cache is None else Cache(*context.cache))

    def run(self, task: Task) -> Receipt:
        """Do a task, and write its receipt last."""
        context, stage = self._context, self._context.stages[task.stage]
        self._warm_up(stage, task)
        if self._alone:
            release_memory()
        reset_peak()
        started, clock, cpu, read = time.time(), time.perf_counter(), cpu_seconds(), bytes_read()
        self._journal.write("begin", stage=task.stage, phase=stage.phase, fingerprint=task.fingerprint)
        context.listener = self._listener(task)
        with self._journal.phase(stage.phase):
            try:
                done = stage.run(task, context)
            except BaseException as error:
                self._journal.write("failed", stage=task.stage, fingerprint=task.fingerprint, error=repr(error))
                raise
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
        )
        context.folder(task).write_bytes(receipt_name(task.stage, task.fingerprint), receipt.to_json().encode())
        self._journal.write("end", stage=task.stage, fingerprint=task.fingerprint)
        return receipt

    def _listener(self, task: Task) -> Callable[[float], None]:
        """The journal's next sample will say it; who asked to be told is told."""
        said = 0.0

        def listen(part: float) -> None:
            nonlocal said
            self._journal.part = task.fingerprint, part
            if self.told is not None and (now := time.monotonic()) - said >= TOLD_EVERY:
                said = now
                self.told(task, part)

        return listen

    def _warm_up(self, stage: Stage, task: Task) -> None:
        """Before the first task of a stage: what it loads is accounted for apart."""
        if stage.name in self._warm:
            return
        before = sum(cpu_seconds())
        stage.warm(task, self._context)
        self._warm.add(stage.name)
        if self._alone:
            # Modules and compiled code stay: no collection need look at them, and so it takes a millisecond.
            gc.collect()
            gc.freeze()
        self._journal.write("warm", stage=stage.name, spent=round(sum(cpu_seconds()) - before, 4))


def use_system_memory() -> None:
    """Let Arrow allocate by the C library: its own allocators keep what is freed, some 100 MB after a while."""
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())


def release_memory() -> None:
    """Give back what the task before held: objects in cycles, and what the allocators keep of freed ones."""
    import pyarrow as pa

    gc.collect()
    pa.default_memory_pool().release_unused()


def limit_threads(threads: int) -> Any:
    """Let BLAS, numba and arrow use so many threads: in an actor numba would take all cores of the node."""
    import numba
    import pyarrow as pa
    from threadpoolctl import threadpool_limits

    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    pa.set_cpu_count(threads)
    pa.set_io_thread_count(max(2, threads))
    return threadpool_limits(limits=threads)
