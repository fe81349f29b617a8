"""Which nodes are used, which tasks go elsewhere, and where files lie."""

import errno
import math
import os
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from swsdist.accounts.hardware import versions
from swsdist.config import config_from_dict
from swsdist.core.codes import storage as codes
from swsdist.core.errors import StorageError
from swsdist.core.needs import Needs
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Context
from swsdist.pipeline.execution import ray_instance
from swsdist.pipeline.execution.policy import (
    NEAREST,
    REST,
    RESULT_LIBRARIES,
    AvoidedHosts,
    FailedStarts,
    Slot,
    fit_on,
    lacking,
    matched,
    usable_slots,
    version_mismatches,
    workers_for,
)
from swsdist.pipeline.execution.ray_executor import NodeCaches, RayExecutor
from swsdist.pipeline.execution.ray_instance import await_nodes
from swsdist.pipeline.ledger import receipt_name
from swsdist.pipeline.task import Cost, Receipt, Task
from swsdist.stages.search import Search, _settings


def slot(host: str) -> Slot:
    return Slot(handle=None, started=0.0, number=1, up=True, host=host)


def full() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/tmp/x")


def test_versions_that_matter_are_compared_and_no_others() -> None:
    here = versions()
    assert set(RESULT_LIBRARIES) <= here.keys()
    assert version_mismatches({**here, "ray": "0.1", "pyarrow": "0.1"}, here) == []
    told = version_mismatches({**here, "libsndfile": "1.0.0"}, here)
    assert told == [f"libsndfile 1.0.0 (driver: {here['libsndfile']})"]
    assert version_mismatches({**here, "numpy": "1.0", "swsdist": "0"}, here)[0].startswith("swsdist 0 (driver: ")
    assert version_mismatches({}, {"numpy": "1.0"}) == ["numpy (none) (driver: 1.0)"]


def test_a_worker_rests_after_two_failures_of_its_disk_in_a_row() -> None:
    one, other = slot("a"), slot("b")
    assert not one.failed(full())
    assert not one.failed(ZeroDivisionError())  # says nothing of the node
    assert not one.failed(full())
    before = time.monotonic()
    assert one.failed(full())
    assert usable_slots([one, other]) == [other]
    assert usable_slots([one]) == [one], "all rest: better there than nowhere"
    assert before + REST <= one.rests <= time.monotonic() + REST
    assert not one.failed(ConnectionResetError(errno.ECONNRESET, "reset")), "a server's failure is not the node's"


def test_what_failed_for_a_full_disk_goes_elsewhere_if_there_is_an_elsewhere() -> None:
    task, one, twin, other = Task("s", "f", "label", 1.0, {}), slot("a"), slot("a"), slot("b")
    avoided = AvoidedHosts()
    avoided.add(task, one, ZeroDivisionError())
    assert avoided.may(task, one, [one, other])
    avoided.add(task, one, full())
    every = [one, twin, other]
    assert [avoided.may(task, each, every) for each in every] == [False, False, True]
    assert avoided.may(task, one, [one, twin]), "there is no other host"
    avoided.add(task, other, full())
    assert avoided.may(task, one, [one, other]), "it failed everywhere"


def test_a_disk_that_became_read_only_sends_tasks_elsewhere_while_there_is_an_elsewhere() -> None:
    task, one, other = Task("s", "f", "label", 1.0, {}), slot("a"), slot("b")
    avoided = AvoidedHosts()
    avoided.add(task, one, OSError(errno.EROFS, os.strerror(errno.EROFS), "/tmp/x"))
    assert avoided.elsewhere(task, [one, other])
    assert not avoided.elsewhere(task, [one])
    other.hold("no disk", 0.0)
    assert (other.up, other.reason_unused, usable_slots([other])) == (False, "no disk", [])
    assert other.again <= time.monotonic()
    assert not avoided.elsewhere(task, [one, other])
    other.up = True
    avoided.add(task, other, codes.READ_ONLY_FILE_SYSTEM(where="x", detail=""))
    assert not avoided.elsewhere(task, [one, other]), "it is read-only everywhere: so says the run"
    assert not avoided.elsewhere(Task("s", "g", "label", 1.0, {}), [one, other])


def test_nodes_without_cpus_are_no_nodes_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the head of a cluster that an autoscaler has just begun to fill."""
    head, node = {"memory": 1e9}, {"CPU": 4.0, "memory": 1e9}
    looks: list[list[dict[str, float]]] = [[head], [head], [head, node]]
    told: list[str] = []
    monkeypatch.setattr(ray_instance, "node_resources", lambda: looks.pop(0))
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    cpus = partial(lacking, needs=Needs(), growing=True)
    assert await_nodes(60.0, told.append, cpus) == [head, node]
    assert told == ["no node has CPUs for workers: waiting 60 s for one"] * 2
    looks += [[head]]
    assert await_nodes(-1.0, told.append, cpus) == [head], "who asks says that nothing fits"
    # A GPU is waited for where somebody was asked for it.
    needs, on_gpu = Needs(gpus=0.5), {"CPU": 1.0, "memory": 1e9, "GPU": 1.0}
    looks += [[node], [node, on_gpu], [node]]
    told.clear()
    assert await_nodes(60.0, told.append, partial(lacking, needs=needs, growing=True)) == [node, on_gpu]
    assert told == ["no node has a GPU for workers: waiting 60 s for one"]
    assert await_nodes(60.0, told.append, partial(lacking, needs=needs, growing=False)) == [node]


def test_starts_are_tried_on_other_nodes_before_they_are_given_up() -> None:
    """Also where some failed earlier in the run, on a node that cannot, while others could."""
    held = slot("bad")
    held.hold("its disk is full", REST)
    for nodes, tries in ((1, 3), (5, 5), (100, 10)):
        starts = FailedStarts()
        for _ in range(tries):
            assert not starts.hopeless([], nodes)
            starts.fail()
        assert starts.spread
        assert [starts.hopeless(some, nodes) for some in ([], [held], [held, slot("good")])] == [True, True, False]


def test_a_storage_that_cannot_say_what_a_dead_worker_left_ends_no_run(tmp_path: Path) -> None:
    """The task is done again; where the storage says it, it is not."""
    task = Task("index", "0" * 32, "", 1.0, {})
    made = Receipt("index", 1, task.fingerprint, "", 1.0, (), {}, [], Cost(0, 0, 0, 0, 0, 0, 0), "a", 7, 1.0, 2.0)
    folder = Folder(str(tmp_path))
    folder.write_bytes(receipt_name("index", task.fingerprint), made.to_json().encode())
    worker = slot("a")
    worker.pid = 7
    quick = {"connect_timeout": 0.1, "read_timeout": 0.1, "retries": {"total_max_attempts": 1}}
    storage = {"endpoint_url": "http://127.0.0.1:9", "key": "k", "secret": "s", "config_kwargs": quick}
    gone = Folder("s3://b/run", storage)
    with pytest.raises(StorageError):
        gone.read_bytes("x")
    for place, found in ((folder, made), (gone, None)):
        executor = SimpleNamespace(_context=SimpleNamespace(folder=lambda _, place=place: place))
        assert RayExecutor._receipt_by(cast(RayExecutor, executor), worker, task) == found


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
