"""Which workers are made where, and which tasks get a second attempt.

**Kinds of workers.** A stage names alternatives of what a worker must have, the best first. Where its bytes are the same with
all (`Stage.mixed`), each node takes the first that fits it: GPU workers stand on nodes with a GPU, CPU workers on the others,
side by side. What fits is counted node by node: two nodes with 3 GB each hold no worker of 4 GB.

**Stragglers.** When nothing is left to hand out, a worker that has nothing to do gets a second attempt at a task that takes
much longer than its work lets expect, the longest first. The first answer counts, the other is not waited for. Both write the
same bytes under the same names, so neither does harm; accounts count the second attempt as repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from swsdist.needs import Needs
from swsdist.pipeline.task import Task

#: A task is a straggler when it took so many times what its work lets expect, and so many seconds at least.
_TIMES, _LEAST = 2.0, 5.0
#: Tasks that must have ended before anything is expected.
_KNOWN = 3


def fit_on(node: Mapping[str, float], needs: Needs) -> int:
    """How many workers fit on a node.

    Args:
        node: its resources, as Ray names them: CPU, memory in bytes, GPU.
        needs: of each worker.
    """
    fit = min(int(node.get("CPU", 0) // needs.cpus), int(node.get("memory", 0) // (needs.memory_gb * 1e9)))
    return min(fit, int(node.get("GPU", 0) / needs.gpus + 1e-9)) if needs.gpus else fit


def workers_for(
    nodes: Iterable[Mapping[str, float]], alternatives: Sequence[Needs], most: int | None, tasks: int
) -> list[Needs]:
    """What each worker of a stage is to have, the best kinds first; empty if none fits on any node.

    Args:
        nodes: resources of each node.
        alternatives: what a worker must have, the best first.
        most: workers that are wanted; None: all that fit.
        tasks: of the stage; there are no more workers than that.
    """
    found: dict[int, int] = {}
    for node in nodes:
        for k, needs in enumerate(alternatives):
            if (count := fit_on(node, needs)) > 0:
                found[k] = found.get(k, 0) + count
                break
    every = [alternatives[k] for k in sorted(found) for _ in range(found[k])]
    return every[: min(len(every) if most is None else most, tasks)]


class Running(NamedTuple):
    """A task that was handed to a worker: when, in s, and how many were before it there."""

    task: Task
    since: float
    before: int


@dataclass
class Stragglers:
    """Second attempts of one stage.

    Attributes:
        pace: s a unit of work, of tasks that ended.
        again: fingerprints of tasks that were handed out twice.
    """

    pace: list[float] = field(default_factory=list)
    again: set[str] = field(default_factory=set)

    def ended(self, task: Task, seconds: float) -> None:
        """A task took so long."""
        self.pace.append(seconds / max(task.work, 1e-9))

    def next(self, running: Iterable[Running], now: float) -> Task | None:
        """The task that a worker without work is to try as well; None if all are as fast as can be expected.

        Args:
            running: tasks in the hands of other workers.
            now: s.
        """
        if len(self.pace) < _KNOWN:
            return None
        usual = median(self.pace)
        late = [
            (now - one.since, one.task)
            for one in running
            if one.task.fingerprint not in self.again
            and now - one.since > max(_LEAST, _TIMES * (1 + one.before) * usual * one.task.work)
        ]
        if not late:
            return None
        _, task = max(late, key=lambda one: (one[0], one[1].fingerprint))
        self.again.add(task.fingerprint)
        return task
