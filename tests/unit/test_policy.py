"""The policy of handing out, the same for Ray's executor and for the simulator; which nodes are used, and where files lie."""

import errno
import math
import os
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from swsdist.accounts.hardware import node_versions, versions
from swsdist.config import config_from_dict
from swsdist.config.model import Executor as Settings
from swsdist.core.codes import storage as codes
from swsdist.core.errors import StorageError
from swsdist.core.needs import LEAST, Needs
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Context
from swsdist.pipeline.execution import ray_executor, ray_instance
from swsdist.pipeline.execution.policy import (
    NEAREST,
    REST,
    RESULT_LIBRARIES,
    AvoidedHosts,
    FailedStarts,
    Policy,
    Slot,
    at_least,
    fit_on,
    lacking,
    matched,
    usable_slots,
    version_mismatches,
    workers_for,
)
from swsdist.pipeline.execution.ray_executor import NodeCaches, RayExecutor
from swsdist.pipeline.execution.ray_instance import Ready, await_nodes
from swsdist.pipeline.forecast.costs import Cluster, Job, Kind, Load
from swsdist.pipeline.forecast.forecast import Simulator
from swsdist.pipeline.ledger import receipt_name
from swsdist.pipeline.task import Cost, Receipt, Task
from swsdist.stages.search import Search, _settings


def task(name: str, work: float = 1.0) -> Task:
    return Task("s", name, name, work, {})


def names(given: list[tuple[int, Task]]) -> list[tuple[int, str]]:
    return [(worker, one.fingerprint) for worker, one in given]


def policy(workers: int = 2, in_flight: int = 2, attempts: int = 3, restarts: int = 20) -> Policy[Task]:
    found: Policy[Task] = Policy(in_flight, attempts, restarts)
    for number in range(1, workers + 1):
        found.add(number)
        found.ready(number)
    return found


def test_the_largest_first_and_what_fails_is_tried_again() -> None:
    mine = policy()
    mine.begin([task(name, work) for name, work in (("a", 1), ("b", 5), ("c", 3), ("d", 2), ("e", 4))])
    assert names(mine.hand_out(0.0)) == [(1, "b"), (2, "e"), (1, "c"), (2, "d")]
    mine.done(2, task("e"), 1.0, 1.0)
    assert names(mine.hand_out(0.0)) == [(2, "a")]
    assert mine.left == 4
    assert mine.hand_out(0.0) == []
    later = policy(workers=1, in_flight=1)
    later.add(2)
    later.begin([task("a", 2), task("b", 1)])
    assert names(later.hand_out(0.0)) == [(1, "a")]
    later.ready(2)
    assert names(later.hand_out(0.0)) == [(2, "b")]
    mine = policy(workers=1, attempts=2)
    mine.begin([task("a")])
    mine.hand_out(0.0)
    assert mine.raised(1, task("a"), True, 10.0) is None
    assert mine.hand_out(10.4) == []
    assert names(mine.hand_out(10.5)) == [(1, "a")]
    assert mine.raised(1, task("a"), True, 11.0) == 2
    assert mine.left == 0
    mine = policy(workers=1)
    mine.begin([task("a", 3), task("b", 2), task("c", 1)])
    mine.hand_out(0.0)
    death = mine.died(1)
    assert [one.fingerprint for one in death.lost] == ["a", "b"]
    assert (death.replace, death.failed) == (True, [])
    mine.add(2)
    mine.ready(2)
    assert names(mine.hand_out(0.0)) == [(2, "a")]  # nothing beside it
    mine.done(2, task("a"), 1.0, 1.0)
    assert names(mine.hand_out(0.0)) == [(2, "b"), (2, "c")]  # at the front, in its order
    assert [one.fingerprint for one in mine.died(2, {"b"}).lost] == ["c"], "the receipt of b is there"


def test_a_task_that_kills_fails_and_without_a_worker_all_that_waits_does() -> None:
    mine = policy(workers=1, attempts=2)
    mine.begin([task("a")])
    for number in (1, 2):
        if number > 1:
            mine.add(number)
            mine.ready(number)
        mine.hand_out(0.0)
        death = mine.died(number)
    assert [(one.fingerprint, tried) for one, tried in death.failed] == [("a", 2)]
    assert death.poisoned
    assert mine.left == 0
    mine = policy(workers=1, restarts=0)
    mine.begin([task("a", 2), task("b", 1), task("c", 0.5)])
    mine.hand_out(0.0)
    death = mine.died(1)
    assert not death.replace
    assert not death.poisoned
    assert [(one.fingerprint, tried) for one, tried in death.failed] == [("a", 1), ("b", 0), ("c", 0)]
    assert mine.left == 0


def in_the_tail(*seconds: float, workers: int = 3) -> Policy[Task]:
    """Three tasks of work 2 have ended in 8 s each, 4 s a unit; workers 1, 2, ... hold one of these works each since 100 s."""
    mine = policy(workers, in_flight=2)
    mine.begin([task(f"known{k}", 2.0) for k in range(3)] + [task(f"t{k}", some) for k, some in enumerate(seconds)])
    for _ in range(3 + len(seconds)):
        for worker, one in mine.hand_out(100.0):
            if one.fingerprint.startswith("known"):
                assert mine.done(worker, one, 100.0, 8.0)
    return mine


def test_what_takes_much_longer_than_its_work_is_tried_again_with_what_waits_behind_it() -> None:
    mine = in_the_tail(1.5, 1.0)
    assert mine.left == 2
    assert mine.hand_out(107.9) == []
    assert mine.look_at == 108.0, "twice the 4 s that t1 should take"
    ((third, first),) = mine.hand_out(108.1)
    assert first.fingerprint == "t1"
    assert mine.hand_out(200.0) == [], "nobody has nothing to do"
    assert mine.done(third, first, 112.0, 3.9)
    other = next(worker for worker in (1, 2, 3) if mine.lagging(worker))
    assert names(mine.hand_out(112.1)) == [(third, "t0")], "the worker that lags gets nothing"
    assert not mine.done(other, first, 113.0, 13.0), "it has come to its end before"
    assert not mine.lagging(other)
    assert mine.hand_out(300.0) == [], "once"
    assert mine.left == 1
    mine = in_the_tail(2.0, 1.9, 1.0, workers=2)
    (holds,) = (worker for worker in (1, 2) if len(mine._flying[worker]) == 2)
    other = 3 - holds
    assert mine.done(other, task("t0", 2.0), 101.0, 8.0)
    assert mine.hand_out(115.1) == []
    assert names(mine.hand_out(124.0)) == [(other, "t1")], "4 s a unit, twice: 15.2 s; with the one behind it 23.2 s"
    assert mine.done(other, task("t1", 1.9), 125.0, 1.0)
    assert names(mine.hand_out(125.0)) == [(other, "t2")]
    assert mine.lagging(holds)
    short = in_the_tail(0.001, workers=2)
    assert short.hand_out(104.9) == [], "short tasks are left alone"
    assert len(short.hand_out(105.1)) == 1


def test_what_a_worker_loads_before_its_first_task_is_not_late() -> None:
    """A model, or compiled code, say: it is in no task's seconds, but in the time until an answer."""
    mine: Policy[Task] = Policy(1, 3, 5)
    for worker in (1, 2, 3):
        mine.add(worker)
        mine.ready(worker)
    mine.begin([task(f"t{k}", 10.0) for k in range(4)])
    assert len(mine.hand_out(0.0)) == 3
    mine.done(1, task("t0", 10.0), 31.0, 1.0)  # of 31 s it loaded 30
    assert names(mine.hand_out(31.0)) == [(1, "t3")]
    mine.done(2, task("t1", 10.0), 31.0, 1.0)
    mine.done(1, task("t3", 10.0), 32.0, 1.0)
    assert mine.hand_out(34.0) == [], "the third may still load"
    assert names(mine.hand_out(36.0)) == [(1, "t2")]


def test_of_two_attempts_one_may_fail_and_who_lags_gets_nothing_of_the_next_stage() -> None:
    """Neither is an attempt in vain as long as the other may do it."""
    for dies in (True, False):
        mine = in_the_tail(1.0, workers=2)
        ((second, late),) = mine.hand_out(108.1)
        first = 3 - second
        assert mine.elsewhere(first, late)
        if dies:
            assert not mine.died(first).lost
        else:
            mine.drop(first, late, 109.0)
        assert not mine.elsewhere(second, late)
        assert mine.tried(late) == 0
        assert mine.left == 1
        assert mine.raised(second, late, False, 110.0) == 1
        assert mine.left == 0
    mine = in_the_tail(1.0, workers=2)
    ((second, late),) = mine.hand_out(108.1)
    mine.done(second, late, 109.0, 1.0)
    assert mine.left == 0
    mine.begin([task("a", 2), task("b", 1), task("c", 0.5)])
    assert mine.lagging(3 - second)
    assert names(mine.hand_out(110.0)) == [(second, "a"), (second, "b")]
    mine.end(3 - second)
    assert mine.left == 3


class FakeRay:
    """What the executor needs of Ray, on a clock of its own: each actor works through its calls, one after the other."""

    def __init__(self, workers: int, seconds: dict[str, float]) -> None:
        self.cpus, self.seconds, self.now, self.actors, self.calls = workers, seconds, 0.0, 0, 0
        self.ends: dict[int, tuple[float, Any]] = {}
        self.begun: list[tuple[int, str]] = []

    def remote(self, kind: Any) -> Any:
        return self

    def options(self, **asked: Any) -> Any:
        return SimpleNamespace(remote=self.made)

    def made(self, *arguments: Any) -> Any:
        self.actors += 1
        number = self.actors
        actor = SimpleNamespace(free=0.0)
        up = Ready(f"node-{number}", number, "", "1", versions(), [])
        actor.ready = SimpleNamespace(remote=lambda: self.call(actor, 0.0, up))
        actor.run = SimpleNamespace(remote=lambda one: self.work(actor, number, one))
        return actor

    def work(self, actor: Any, number: int, one: Task) -> int:
        self.begun.append((number, one.fingerprint))
        seconds = self.seconds[one.fingerprint]
        return self.call(actor, seconds, SimpleNamespace(cost=SimpleNamespace(wall=seconds)))

    def call(self, actor: Any, seconds: float, answer: Any) -> int:
        actor.free = max(actor.free, self.now) + seconds
        self.calls += 1
        self.ends[self.calls] = actor.free, answer
        return self.calls

    def node_resources(self) -> list[dict[str, float]]:
        return [{"CPU": self.cpus, "memory": 1e12}]

    def monotonic(self) -> float:
        return self.now

    perf_counter = monotonic

    def wait(self, refs: list[int], num_returns: int, timeout: float) -> tuple[list[int], list[int]]:
        """One answer, also where more are asked for: no two come at one moment.

        Where a second attempt ends at the moment when the next task is late, time passes first, as in the simulator.
        """
        first = min(refs, key=lambda ref: (self.ends[ref][0], ref))
        if self.ends[first][0] >= self.now + timeout > self.now:
            self.now += timeout
            return [], refs
        self.now = max(self.now, self.ends[first][0])
        return [first], [ref for ref in refs if ref != first]

    def get(self, ref: int, timeout: float) -> Any:
        return self.ends[ref][1]


@settings(max_examples=60, deadline=None)
@example([(1, 4), (1, 1), (1, 5), (1, 1), (1, 1), (1, 5), (2, 1), (2, 1), (2, 1)], 3, 2)
@given(
    st.lists(st.tuples(st.integers(1, 50), st.sampled_from([1, 2, 3, 4, 5, 90])), min_size=1, max_size=30),
    st.integers(1, 4),
    st.integers(1, 3),
)
def test_ray_and_the_simulator_hand_out_alike(works: list[tuple[int, int]], workers: int, in_flight: int) -> None:
    """The same tasks, of the same seconds: each goes to the same worker, in the same order.

    Seconds are made to differ by powers of two, so that no two tasks end at one moment.
    """
    seconds = {f"t{k}": length + 2.0 ** -(k + 5) for k, (_, length) in enumerate(works)}
    tasks = [task(f"t{k}", float(work)) for k, (work, _) in enumerate(works)]
    fake = FakeRay(workers, seconds)
    executor = ray_executor.RayExecutor(
        Context(Folder("/nowhere"), {"s": SimpleNamespace(any_device=False)}),  # type: ignore[dict-item]
        _JOURNAL,  # type: ignore[arg-type]
        Settings(in_flight=in_flight, memory_per_worker_gb=0.001),
        lambda said: None,
    )
    executor._instance = SimpleNamespace(guard=object())  # type: ignore[assignment]  # its own, of one machine
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ray_executor, "ray", fake)
        patch.setattr(ray_executor, "time", fake)
        patch.setattr(ray_instance, "ray", fake)
        for module in (ray_executor, ray_instance):
            patch.setattr(module, "node_resources", fake.node_resources)
        done = [one.fingerprint for one, _ in executor.run(tasks, LEAST, lambda *told: None)]

    sent: list[tuple[int, str]] = []
    simulator = Simulator(Cluster((Kind(cpus=workers),), start_s=0.0), Settings(in_flight=in_flight))
    hand_out = simulator._policy.hand_out

    def noted(now: float) -> Any:
        given = hand_out(now)
        sent.extend((number, one.fingerprint) for number, one in given)
        return given

    simulator._policy.hand_out = noted  # type: ignore[method-assign]
    found = simulator.run([Load("s", [Job(one.fingerprint, one.work, seconds[one.fingerprint]) for one in tasks])])
    assert [(number + 1, name) for number, name in sent] == fake.begun
    assert sorted(done) == sorted(seconds)
    assert found.wall == pytest.approx(fake.now)


_JOURNAL = SimpleNamespace(host="here", others=set(), write=lambda *given, **values: None)


def test_what_lies_near_is_looked_for_where_most_of_the_bytes_lie() -> None:
    mine = policy(workers=2, in_flight=1)
    mine.begin([task("a", 10), task("b", 9), task("c", 8), task("d", 4.9)])
    lies = {"a": 2, "c": 1, "d": 1}

    def near(worker: int, one: Task) -> int:
        at = lies.get(one.fingerprint)
        return 1 if at is None else NEAREST if at == worker else 0

    # d lies near worker 1, too, but is much smaller than what is at the head of the queue.
    assert names(mine.hand_out(0.0, near=near)) == [(1, "c"), (2, "a")]
    mine.done(2, task("a"), 1.0, 1.0)
    assert names(mine.hand_out(1.0, near=near)) == [(2, "b")]  # nobody has it
    mine.done(2, task("b"), 2.0, 1.0)
    assert names(mine.hand_out(2.0, near=near)) == [(2, "d")]  # it lies elsewhere; nobody waits
    assert mine.left == 2
    # What a worker may not have stays for others, however near.
    mine = policy(workers=2, in_flight=1)
    mine.begin([task("a", 2), task("b", 2)])
    given = mine.hand_out(0.0, may=lambda worker, one: (worker, one.fingerprint) != (1, "a"), near=lambda *_: NEAREST)
    assert names(given) == [(1, "b"), (2, "a")]
    mine = policy(workers=1, in_flight=1)
    mine.begin([task(f"t{k:04d}") for k in range(1000)])
    looked: list[str] = []

    def near(_: int, one: Task) -> int:
        looked.append(one.fingerprint)
        return 1

    assert names(mine.hand_out(0.0, near=near)) == [(1, "t0000")]
    assert len(looked) == 256
    mine.done(1, task("t0000"), 1.0, 1.0)
    assert names(mine.hand_out(1.0, near=near)) == [(1, "t0001")], "what was looked at keeps its order"
    mine = held()
    mine.add("n1", [("a", 10)])
    assert mine.near("n1", reading(("a", 10))) == NEAREST
    assert mine.near("n2", reading(("a", 10))) == 0
    assert mine.near("n2", reading(("b", 10))) == 1
    mine.done("n2", reading(("a", 10)), done())
    assert mine.near("n2", reading(("a", 10))) == NEAREST, "it was read there"
    mine.done("n3", reading(place="s3://store"), done(("c", 10)))
    assert mine.near("n3", reading(("c", 10))) == NEAREST, "it was written there"
    mine.done("n3", reading(), done(("d", 10)))
    assert mine.near("n1", reading(("d", 10))) == 1, "what goes into the run folder is in no cache"
    assert mine.near("n1", reading()) == NEAREST, "what reads nothing goes to anybody"
    mine = held()
    mine.add("n1", [("a", 10)])
    mine.add("n2", [("b", 60)])
    two = reading(("a", 10), ("b", 60))
    assert [mine.near(node, two) for node in ("n1", "n2", "n3")] == [0, NEAREST, 0]
    mine.gone("n2")
    assert [mine.near(node, two) for node in ("n1", "n2", "n3")] == [1, 0, 0]
    mine.gone("n4")
    without = held(0)
    assert not without
    without.add("n", [("a", 10)])
    without.done("n", reading(("a", 10)), done())
    assert without.near("n", reading(("a", 10))) == 1
    mine = held(25)
    mine.add("n", [("a", 10), ("b", 10), ("a", 10), ("c", 10), ("d", 26)])
    assert [mine.near("n", reading((name, 10))) for name in "abcd"] == [NEAREST, 1, NEAREST, 1]


def slot(host: str) -> Slot:
    return Slot(handle=None, started=0.0, number=1, up=True, host=host)


def full() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/tmp/x")


def test_versions_that_matter_are_compared_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = versions()
    assert set(RESULT_LIBRARIES) <= here.keys()
    assert version_mismatches({**here, "ray": "0.1", "pyarrow": "0.1"}, here) == []
    told = version_mismatches({**here, "libsndfile": "1.0.0"}, here)
    assert told == [f"libsndfile 1.0.0 (driver: {here['libsndfile']})"]
    assert version_mismatches({**here, "numpy": "1.0", "swsdist": "0"}, here)[0].startswith("swsdist 0 (driver: ")
    assert version_mismatches({}, {"numpy": "1.0"}) == ["numpy (none) (driver: 1.0)"]
    mine = {**here, "plug-in mine": "0.2"}
    assert version_mismatches({**here, "plug-in mine": "0.1"}, mine) == ["plug-in mine 0.1 (driver: 0.2)"]
    assert version_mismatches(here, mine) == version_mismatches(mine, here) == [], "the run may not need it"
    assert "plug-in swsdist" not in node_versions()
    package = tmp_path / "mine-0.2.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Name: mine\nVersion: 0.2\n")
    (package / "entry_points.txt").write_text("[swsdist.methods]\nmine = mine:ENTRY\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert node_versions.__wrapped__()["plug-in mine"] == "0.2"


def test_a_worker_may_have_less_than_a_gigabyte() -> None:
    wanted = at_least(Needs(), Needs(1, 0.25))
    assert wanted == Needs(1, 0.25)
    assert fit_on(_node(8, 1), wanted) == 4
    assert at_least(Needs(memory_gb=2.0), Needs(1, 0.25)).memory_gb == 2.0
    assert fit_on(_node(8, 1), Needs()) == 8, "it states none"


def test_a_worker_rests_after_two_failures_of_its_disk_and_its_tasks_go_elsewhere() -> None:
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


def reading(*files: tuple[str, int], place: str = "") -> Task:
    return Task("s", "x", "x", 1.0, {"files": files}, place=place)


def done(*outputs: tuple[str, int]) -> Any:
    return SimpleNamespace(outputs=[SimpleNamespace(sha256=name, size=size) for name, size in outputs])


GPU, CPU = Needs(1, 2.0, 1.0), Needs(1, 2.0)


def _node(cpus: float, gb: float, gpus: float = 0.0) -> dict[str, float]:
    return {"CPU": cpus, "memory": gb * 1e9, "GPU": gpus} if gpus else {"CPU": cpus, "memory": gb * 1e9}


def test_each_node_takes_the_best_that_fits_it_by_its_own_memory() -> None:
    nodes = [_node(4, 16), _node(8, 64, 2), _node(1, 1)]
    assert workers_for(nodes, [GPU, CPU], None, 100) == [GPU, GPU, CPU, CPU, CPU, CPU]
    assert workers_for(nodes, [GPU, CPU], 3, 100) == [GPU, GPU, CPU]
    assert workers_for(nodes, [GPU, CPU], None, 1) == [GPU]
    assert workers_for(nodes, [GPU], None, 100) == [GPU, GPU]
    assert workers_for(nodes[:1], [GPU, CPU], None, 100) == [CPU] * 4
    nodes = [_node(4, 3), _node(4, 3)]
    assert workers_for(nodes, [Needs(1, 4.0)], None, 100) == []
    assert workers_for(nodes, [Needs(1, 2.0)], None, 100) == [Needs(1, 2.0)] * 2
    assert fit_on({"CPU": 4.0}, Needs(1, 1.0)) == 0, "a node that tells no memory has none to give"
    assert fit_on(_node(4, 100, 1), Needs(1, 1.0, 0.25)) == 4
    assert fit_on(_node(4, math.inf), Needs(1, 1.0)) == 4
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
