"""Which files of stores lie in which node's cache, as far as the driver knows, so that tasks go where they lie.

A worker tells what is in its node's cache when it starts. What its tasks read and wrote since is added, and the least recently
used is forgotten where a cache would be full. That is a guess, for other runs use the cache, too: a wrong one costs a fetch.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable

from swsdist.pipeline.execution.policy import NEAREST
from swsdist.pipeline.stage import Context
from swsdist.pipeline.task import Receipt, Task


class NodeCaches:
    """The caches of all nodes; false where there are none.

    Args:
        context: of the tasks.
    """

    def __init__(self, context: Context) -> None:
        self._stages = context.stages
        self._most = 0 if context.cache is None else context.cache[1]
        self._nodes: dict[str, OrderedDict[str, int]] = {}
        self._bytes: Counter[str] = Counter()  # by node
        self._holders: Counter[str] = Counter()  # nodes, by file

    def __bool__(self) -> bool:
        return self._most > 0

    def add(self, node: str, files: Iterable[tuple[str, int]]) -> None:
        """Files, by SHA-256 and bytes, lie on a node since now, or were used there."""
        held = self._nodes.setdefault(node, OrderedDict())
        for name, size in files:
            if size > self._most:
                continue
            if name in held:
                held.move_to_end(name)
                continue
            held[name] = size
            self._bytes[node] += size
            self._holders[name] += 1
            while self._bytes[node] > self._most:
                oldest, its = held.popitem(last=False)
                self._bytes[node] -= its
                self._holders[oldest] -= 1

    def gone(self, node: str) -> None:
        """A node left, with its disk."""
        self._bytes.pop(node, None)
        for name in self._nodes.pop(node, ()):
            self._holders[name] -= 1

    def done(self, node: str, task: Task, receipt: Receipt) -> None:
        """A task was done on a node: what it read is there, and what it wrote to a store."""
        if self:
            self.add(node, self._stages[task.stage].reads(task))
            self.add(node, [(part.sha256, part.size) for part in receipt.outputs if task.place])

    def near(self, node: str, task: Task) -> int:
        """`NEAREST` if a node holds most of what a task reads, or it reads nothing; 1 if it is for anybody to fetch; 0 if other
        nodes hold some.
        """
        held, here, whole, elsewhere = self._nodes.get(node, OrderedDict()), 0, 0, False
        for name, size in self._stages[task.stage].reads(task):
            whole += size
            if name in held:
                here += size
            else:
                elsewhere = elsewhere or self._holders[name] > 0
        if 2 * here >= whole:
            return NEAREST
        return 0 if elsewhere else 1
