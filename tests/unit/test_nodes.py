"""Which nodes are used, and which tasks go elsewhere; the table of faults."""

from __future__ import annotations

import errno
import os
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from swsdist.accounts.hardware import versions
from swsdist.core.codes import storage as codes
from swsdist.core.errors import StorageError
from swsdist.core.needs import Needs
from swsdist.io.filesystem import Folder
from swsdist.pipeline.execution import ray_instance
from swsdist.pipeline.execution.policy import (
    REST,
    RESULT_LIBRARIES,
    AvoidedHosts,
    FailedStarts,
    Slot,
    lacking,
    usable_slots,
    version_mismatches,
)
from swsdist.pipeline.execution.ray_executor import RayExecutor
from swsdist.pipeline.execution.ray_instance import await_nodes
from swsdist.pipeline.ledger import receipt_name
from swsdist.pipeline.task import Cost, Receipt, Task


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
