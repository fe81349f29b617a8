"""Workers of several kinds side by side, counted node by node; second attempts at what takes too long."""

from __future__ import annotations

from pathlib import Path

from swsdist.chains.search.search import Search, _settings
from swsdist.config import config_from_dict
from swsdist.io.filesystem import Folder
from swsdist.needs import Needs
from swsdist.pipeline.execution.placement import Running, Stragglers, fit_on, workers_for
from swsdist.pipeline.stage import Context
from swsdist.pipeline.task import Task

GPU, CPU = Needs(1, 2.0, 1.0), Needs(1, 2.0)


def _node(cpus: float, gb: float, gpus: float = 0.0) -> dict[str, float]:
    return {"CPU": cpus, "memory": gb * 1e9, "GPU": gpus} if gpus else {"CPU": cpus, "memory": gb * 1e9}


def test_each_node_takes_the_best_that_fits_it() -> None:
    nodes = [_node(4, 16), _node(8, 64, 2), _node(1, 1)]
    assert workers_for(nodes, [GPU, CPU], None, 100) == [GPU, GPU, CPU, CPU, CPU, CPU]
    assert workers_for(nodes, [GPU, CPU], 3, 100) == [GPU, GPU, CPU]
    assert workers_for(nodes, [GPU, CPU], None, 1) == [GPU]
    assert workers_for(nodes, [GPU], None, 100) == [GPU, GPU]
    assert workers_for(nodes[:1], [GPU, CPU], None, 100) == [CPU] * 4


def test_memory_counts_by_node_and_not_in_sum() -> None:
    nodes = [_node(4, 3), _node(4, 3)]
    assert workers_for(nodes, [Needs(1, 4.0)], None, 100) == []
    assert workers_for(nodes, [Needs(1, 2.0)], None, 100) == [Needs(1, 2.0)] * 2
    assert fit_on({"CPU": 4.0}, Needs(1, 1.0)) == 0, "a node that tells no memory has none to give"
    assert fit_on(_node(4, 100, 1), Needs(1, 1.0, 0.25)) == 4


def _task(name: str, work: float) -> Task:
    return Task("search", name, name, work, {})


def test_what_takes_much_longer_than_its_work_is_tried_again_once() -> None:
    late = Stragglers()
    slow, large, queued = _task("slow", 1.0), _task("large", 10.0), _task("queued", 1.0)
    running = [Running(slow, 0.0, 0), Running(large, 0.0, 0), Running(queued, 0.0, 1)]
    assert late.next(running, 1000.0) is None, "nothing has ended: nothing is expected"
    for _ in range(3):
        late.ended(_task("x", 2.0), 8.0)  # 4 s a unit
    assert late.next(running, 7.0) is None
    assert late.next(running, 9.0) == slow
    assert late.next(running, 9.0) is None, "once"
    assert late.next(running, 17.0) == queued, "it had to wait for the one before it"
    assert late.next(running, 79.0) is None
    assert late.next(running, 81.0) == large


def test_short_tasks_are_left_alone() -> None:
    late = Stragglers(pace=[0.01] * 9)
    assert late.next([Running(_task("a", 1.0), 0.0, 0)], 4.9) is None
    assert late.next([Running(_task("a", 1.0), 0.0, 0)], 5.1) is not None


def test_a_search_on_either_device_asks_for_both_and_takes_what_it_is_given(tmp_path: Path) -> None:
    stage = Search()
    config = {"run": str(tmp_path), "corpus": {"documents": "d.csv", "queries": "q.csv"}}
    for device, gpus in (("cpu", [0]), ("cuda", [1]), ("auto", [1, 0])):
        made = config_from_dict({**config, "search": {"device": device}})
        assert [one.gpus for one in stage.needs(made)] == gpus
    task = Task("search", "x", "x", 1.0, {"search": made.search.model_dump(mode="json")})
    for granted, device in ((Needs(gpus=0.5), "cuda"), (Needs(), "cpu")):
        assert _settings(task, Context(Folder(str(tmp_path)), {}, granted=granted)).device == device
