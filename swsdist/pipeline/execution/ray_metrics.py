"""Metrics of workers, which Ray exports for Prometheus on each node, if its extra `default` is installed.

Ray prefixes each name with `ray_`, and adds labels (node, worker) to `stage`.
"""

from __future__ import annotations

from ray.util.metrics import Counter

from swsdist.pipeline.task import Receipt


class Metrics:
    """The metrics of one worker."""

    def __init__(self) -> None:
        def counter(name: str, text: str) -> Counter:
            return Counter(f"swsdist_{name}", description=text, tag_keys=("stage",))

        self._tasks = counter("tasks_total", "Tasks that are done.")
        self._cpu = counter("cpu_seconds_total", "CPU seconds of tasks that are done.")
        self._work = counter("work_total", "Work that is done, in the stage's unit: seconds of audio of index.")
        self._cells = counter("cells_total", "Query frames times document frames that were searched.")
        self._read = counter("read_bytes_total", "Bytes that tasks read of files and objects.")
        self._written = counter("written_bytes_total", "Bytes of outputs that tasks wrote.")

    def count(self, receipt: Receipt) -> None:
        """Count a finished task."""
        tags = {"stage": receipt.stage}
        cost = receipt.cost
        for metric, value in (
            (self._tasks, 1),
            (self._cpu, cost.cpu),
            (self._work, receipt.work),
            (self._cells, cost.cells),
            (self._read, cost.bytes_read),
            (self._written, cost.bytes_written),
        ):
            if value > 0:  # Ray refuses an increment of 0
                metric.inc(value, tags=tags)
