"""Workers of several kinds side by side, counted node by node."""

from __future__ import annotations

import math
from pathlib import Path

from swsdist.config import config_from_dict
from swsdist.core.needs import Needs
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Context
from swsdist.pipeline.execution.policy import fit_on, matched, workers_for
from swsdist.stages.search import Search, _settings

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
    assert fit_on(_node(4, math.inf), Needs(1, 1.0)) == 4


def test_workers_that_are_there_are_matched_with_those_that_are_wanted() -> None:
    small = Needs(1, 1.0)
    assert matched([CPU, GPU], [GPU, CPU, CPU]) == ([0, 1], [CPU])
    assert matched([CPU, CPU], [small]) == ([0], [])
    assert matched([small], [CPU]) == ([], [CPU])
    assert matched([GPU], [CPU]) == ([], [CPU]), "a GPU is not held for what needs none"


def test_a_search_on_either_device_asks_for_both_and_takes_what_it_is_given(tmp_path: Path) -> None:
    stage = Search()
    config = {"run": str(tmp_path), "corpus": {"documents": "d.csv", "queries": "q.csv"}}
    for device, gpus in (("cpu", [0]), ("cuda", [1]), ("auto", [1, 0])):
        made = config_from_dict({**config, "search": {"backend": device}})
        assert [one.gpus for one in stage.needs(made)] == gpus
    for granted, device in ((Needs(gpus=0.5), "cuda"), (Needs(), "cpu")):
        assert _settings(made.search, Context(Folder(str(tmp_path)), {}, granted=granted)).backend == device
