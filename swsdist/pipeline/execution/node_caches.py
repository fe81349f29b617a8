"""Which store files are in which node's cache, as far as the driver knows, so that tasks run near their inputs.

A worker reports the content of its node's cache when it starts. Files that its tasks read and write are added since, and the
least recently used are dropped when a cache would be full. This is an estimate, because other runs use the caches too; a wrong
entry costs one transfer.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable

from swsdist.pipeline.execution.policy import NEAREST
from swsdist.pipeline.stage import Context
from swsdist.pipeline.task import Receipt, Task


class NodeCaches:
    """The caches of all nodes; falsy without caches.

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
        """Record that files (SHA-256, bytes) were added to or used from a node's cache."""
        cached = self._nodes.setdefault(node, OrderedDict())
        for name, size in files:
            if size > self._most:
                continue
            if name in cached:
                cached.move_to_end(name)
                continue
            cached[name] = size
            self._bytes[node] += size
            self._holders[name] += 1
            while self._bytes[node] > self._most:
                oldest, its = cached.popitem(last=False)
                self._bytes[node] -= its
                self._holders[oldest] -= 1

    def gone(self, node: str) -> None:
        """Forget a node that left."""
        self._bytes.pop(node, None)
        for name in self._nodes.pop(node, ()):
            self._holders[name] -= 1

    def done(self, node: str, task: Task, receipt: Receipt) -> None:
        """Record the store files that a task read and wrote on a node."""
        if self:
            self.add(node, self._stages[task.stage].reads(task))
            self.add(node, [(part.sha256, part.size) for part in receipt.outputs if task.place])

    def near(self, node: str, task: Task) -> int:
        """Locality of a task on a node.

        Returns:
            `NEAREST` if the node caches at least half of the task's input bytes, or it has none; 1 if no node caches the rest;
            0 if other nodes cache some of it.
        """
        cached, cached_bytes, input_bytes, elsewhere = self._nodes.get(node, OrderedDict()), 0, 0, False
        for name, size in self._stages[task.stage].reads(task):
            input_bytes += size
            if name in cached:
                cached_bytes += size
            else:
                elsewhere = elsewhere or self._holders[name] > 0
        if 2 * cached_bytes >= input_bytes:
            return NEAREST
        return 0 if elsewhere else 1
