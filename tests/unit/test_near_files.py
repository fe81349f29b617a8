"""Where files lie, as far as the driver knows: what workers find, read and write, within what a cache may hold."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Context
from swsdist.pipeline.execution.policy import NEAREST
from swsdist.pipeline.execution.ray_executor import NodeCaches
from swsdist.pipeline.task import Task


def held(most: int = 100) -> NodeCaches:
    stage: Any = SimpleNamespace(reads=lambda task: task.payload["files"])
    return NodeCaches(Context(Folder("run"), {"s": stage}, cache=("cache", most) if most else None))


def task(*files: tuple[str, int], place: str = "") -> Task:
    return Task("s", "x", "x", 1.0, {"files": files}, place=place)


def done(*outputs: tuple[str, int]) -> Any:
    return SimpleNamespace(outputs=[SimpleNamespace(sha256=name, size=size) for name, size in outputs])


def test_near_elsewhere_or_for_anybody() -> None:
    mine = held()
    mine.add("n1", [("a", 10)])
    assert mine.near("n1", task(("a", 10))) == NEAREST
    assert mine.near("n2", task(("a", 10))) == 0
    assert mine.near("n2", task(("b", 10))) == 1
    mine.done("n2", task(("a", 10)), done())
    assert mine.near("n2", task(("a", 10))) == NEAREST, "it was read there"
    mine.done("n3", task(place="s3://store"), done(("c", 10)))
    assert mine.near("n3", task(("c", 10))) == NEAREST, "it was written there"
    mine.done("n3", task(), done(("d", 10)))
    assert mine.near("n1", task(("d", 10))) == 1, "what goes into the run folder is in no cache"
    assert mine.near("n1", task()) == NEAREST, "what reads nothing goes to anybody"


def test_most_of_the_bytes_count_and_a_node_takes_its_files_along() -> None:
    mine = held()
    mine.add("n1", [("a", 10)])
    mine.add("n2", [("b", 60)])
    two = task(("a", 10), ("b", 60))
    assert [mine.near(node, two) for node in ("n1", "n2", "n3")] == [0, NEAREST, 0]
    mine.gone("n2")
    assert [mine.near(node, two) for node in ("n1", "n2", "n3")] == [1, 0, 0]
    mine.gone("n4")
    without = held(0)
    assert not without
    without.add("n", [("a", 10)])
    without.done("n", task(("a", 10)), done())
    assert without.near("n", task(("a", 10))) == 1


def test_the_least_recently_used_is_forgotten() -> None:
    mine = held(25)
    mine.add("n", [("a", 10), ("b", 10), ("a", 10), ("c", 10), ("d", 26)])
    assert [mine.near("n", task((name, 10))) for name in "abcd"] == [NEAREST, 1, NEAREST, 1]
