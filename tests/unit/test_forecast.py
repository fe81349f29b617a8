"""The simulator on cases done by hand, and forecasts from receipts of which the answer is known."""

import random
from collections.abc import Callable
from math import inf

import numpy as np
import pytest

from swsdist.config.model import Executor, KeepDetections
from swsdist.core.codes import families
from swsdist.core.needs import Needs
from swsdist.pipeline.execution.policy import fit_on
from swsdist.pipeline.forecast.costs import Cluster, Job, Kind, Load, StepCost, cluster_of, line_of, pooled_costs
from swsdist.pipeline.forecast.forecast import SimulatedRun, Simulator, examples_of, forecast, loads_of
from tests.support.coded import raises

ONE = Executor(in_flight=1)


def load(*seconds: float, name: str = "s", **values: object) -> Load:
    jobs = [Job(f"{name}{k}", some, some) for k, some in enumerate(seconds)]
    return Load(name, jobs, **values)  # type: ignore[arg-type]


def simulate(loads: list[Load], rules: Executor = ONE, driver_task_s: float = 0.0, **cluster: object) -> SimulatedRun:
    given = {"kinds": (Kind(cpus=2),), "start_s": 0.0, **cluster}
    return Simulator(Cluster(**given), rules, 1, driver_task_s).run(loads)  # type: ignore[arg-type]


def test_the_largest_first_and_steps_wait_for_each_other_and_for_the_driver() -> None:
    """7, 6, 5, 4, 3 on two: 7 + 4 | 6 + 5, then 3 after whichever ends first, both at 11: 14."""
    found = simulate([load(3, 4, 5, 6, 7)])
    assert (found.wall, found.busy, found.steps[0].ideal, found.steps[0].waiting) == (14, 25, 12.5, 1.5)
    # With two in flight, the first worker that is ready takes 10 and 3; the other takes 2 and 1, and is idle from 3 on.
    assert simulate([load(10, 3, 2, 1)], Executor(in_flight=2)).wall == 13
    assert simulate([load(10, 3, 2, 1)], ONE).wall == 10
    found = simulate([load(4, 1, name="a"), load(3, name="b", driver_s=2.0), load(5, name="c", in_driver=True)])
    assert found.wall == 4 + 2 + 3 + 5
    assert [step.driver for step in found.steps] == [0, 2, 5]
    # Rounds too. Two workers: 3 and 1, then a total of 2, then 2 and 2, with a second of the driver between.
    a: dict[str, object] = {"name": "a", "driver_s": 1.0}
    found = simulate([load(3, 1, name="a"), load(2, **a), load(2, 2, **a), load(5, name="b")])
    rows = [(step.name, step.tasks, step.wall, step.driver) for step in found.steps]
    assert rows == [("a", 5, 3 + 1 + 2 + 1 + 2, 2), ("b", 1, 5, 0)]
    assert [step.bound for step in found.steps] == ["longest task", "longest task"]
    assert (found.steps[0].longest, found.total.wall, found.total.longest) == (7, 14, 12)


def test_what_bounds_a_step_and_transfers_share() -> None:
    """By hand, on four workers: what takes most of it, and at least half."""
    four = (Kind(cpus=4),)
    assert simulate([load(*[1.0] * 40)], kinds=four).steps[0].bound == "work"
    assert simulate([load(9.0, 1.0, 1.0)], kinds=four).steps[0].bound == "longest task"
    assert simulate([load(3.0, 3.0, driver_s=4.0)], kinds=four).steps[0].bound == "driver"
    assert simulate([load(5.0, in_driver=True)], kinds=four).steps[0].bound == "driver"
    answers = simulate([load(*[0.01] * 400)], kinds=four, driver_task_s=0.1).steps[0]
    assert (answers.bound, answers.answers) == ("driver", pytest.approx(40)), "which deals with answers all the time"
    assert simulate([load(2.0, 2.0)], kinds=four, start_s=30.0).steps[0].bound == "waiting"
    fast = simulate([load(8.0)], kinds=(Kind(cpus=1, speed=4.0),)).steps[0]
    assert (fast.wall, fast.longest) == (2, 2)
    # On one worker: ready at 10, two tasks of 2 s, half a second between them. It has its second task already.
    one = (Kind(cpus=1),)
    assert simulate([load(2, 2, gap_s=0.5)], Executor(in_flight=2), kinds=one, start_s=10.0).wall == 14.5
    # Four workers end at 1; the driver takes 0.5 s for each answer, one at a time.
    assert simulate([load(1, 1, 1, 1)], driver_task_s=0.5, kinds=(Kind(cpus=4),)).wall == 3.0
    # Eight tasks of 3 s: a worker three times as fast does six of them in 6 s, the other two.
    assert simulate([load(*[3.0] * 8)], kinds=(Kind(cpus=1), Kind(cpus=1, speed=3.0))).wall == 6
    # 100 MB each at 100 MB/s a node: the second begins while the first transfers, so it has half: 2 s, and 1 s of work.
    jobs = [Job("a", 2, 1, 100_000_000), Job("b", 1, 1, 100_000_000)]
    assert simulate([Load("s", jobs)], node_mb_s=100.0).wall == 3
    assert simulate([Load("s", jobs)], kinds=(Kind(2, 1),), node_mb_s=100.0).wall == 2
    assert simulate([Load("s", jobs)], kinds=(Kind(2, 1),), node_mb_s=100.0, storage_mb_s=100.0).wall == 3


def test_second_attempts_and_gpus_beside_cpus() -> None:
    """Works of 10 s; the slow node takes 100 s for its one. From 20 s on, twice what is usual, another may try: 10 s more."""
    kinds = (Kind(cpus=2), Kind(cpus=1, speed=0.1))
    found = simulate([load(*[10.0] * 5), load(*[10.0] * 5, name="next")], kinds=kinds)
    # The slow node's worker was let go, and a new one is there at once; the run does not wait for it at the end.
    assert [step.wall for step in found.steps] == [30, 30]
    assert (found.again, found.lost) == (2, 30)
    # Six tasks of 4 s: a GPU four times as fast does four of them in 4 s, a CPU one, and the GPU's last is done at 5.
    kinds = (Kind(cpus=8, gpus=1, gpu_speed=4.0), Kind(cpus=1, speed=0.9))
    both = Load("s", load(*[4.0] * 6).jobs, needs=(Needs(gpus=1.0), Needs()))
    found = simulate([both], kinds=kinds)
    assert (found.wall, found.workers) == (5, 2)
    alone = Load("s", both.jobs, needs=(Needs(gpus=1.0),))
    assert simulate([alone], kinds=kinds).wall == 6, "on GPUs only: nothing on the node without one"
    assert simulate([Load("s", both.jobs)], kinds=kinds).workers == 6, "on CPUs: no more workers than tasks"
    assert simulate([alone], kinds=(Kind(cpus=2),)).wall == 12, "no GPU anywhere: the receipts' machine stands for one"
    again = simulate([load(1.0, 1.0, name="first"), both], kinds=kinds, start_s=3.0)
    assert again.steps[1].wall > 6, "workers without a GPU give way to one that has it, which takes its time"
    with raises(families.NO_WORKER):
        simulate([alone], kinds=(Kind(cpus=1, gpus=1, memory_gb=0.5), Kind(cpus=1)))


def test_what_a_stage_needs_bounds_its_workers_and_nodes_fail() -> None:
    """Tasks of 2 s on 4 CPUs and 16 GB: four at once, or two that take 8 GB each, which stay, and leave no room for others."""
    assert fit_on(Kind(cpus=16, memory_gb=10).resources, Needs(1, 4)) == 2
    assert fit_on(Kind(cpus=16).resources, Needs(4, 1)) == 4
    big = Load("big", load(*[2.0] * 4, name="b").jobs, needs=(Needs(memory_gb=8.0),))
    found = simulate([load(*[2.0] * 4), big, load(*[2.0] * 4, name="c")], kinds=(Kind(cpus=4, memory_gb=16.0),))
    assert [step.wall for step in found.steps] == [2, 4, 4]
    for one, memory in ((load(1), 0.5), (big, 4.0)):
        with raises(families.NO_WORKER):
            simulate([one], kinds=(Kind(cpus=4, memory_gb=memory),))
    calm = simulate([load(*[600.0] * 40)], kinds=(Kind(10, 2),))
    how: dict[str, object] = {"kinds": (Kind(10, 2, mtbf_hours=0.5),), "repair_s": 60.0}
    found = simulate([load(*[600.0] * 40)], **how)  # type: ignore[arg-type]
    assert (calm.failures, found.failures > 0, found.failed, found.wall > calm.wall) == (0, True, 0, True)
    assert found.busy == pytest.approx(40 * 600 + found.lost)
    # As for Ray's executor: more workers are lost with their nodes than may be replaced for other reasons.
    rules = Executor(in_flight=2, attempts=50, actor_restarts=2)
    found = simulate([load(*[600.0] * 400)], rules, **how)  # type: ignore[arg-type]
    assert (found.failures > 2, found.failed) == (True, 0)
    assert found.busy == pytest.approx(400 * 600 + found.lost)
    # A node that lives a minute, and work of an hour: everything fails in the end, and the run ends.
    assert simulate([load(3600.0, 3600.0)], ONE, kinds=(Kind(cpus=2, mtbf_hours=1 / 60),)).failed == 2


def test_a_cluster_from_a_file() -> None:
    found = cluster_of({"start_s": 3, "kinds": [{"nodes": 2, "cpus": 4, "price": 1.5}, {"name": "gpu"}]}, "here")
    assert found == Cluster((Kind(2, 4, price=1.5), Kind(name="gpu")), start_s=3)
    assert (found.nodes, found.price) == (3, 3.0)
    for values, key, code in (
        ({"kinds": [{"cpu": 3}]}, "kinds.0.cpu", families.UNKNOWN_KEY),
        ({"kinds": [{"cpus": "many"}]}, "kinds.0.cpus", families.INVALID_VALUE),
        ({"kinds": {"cpus": 1}}, "kinds", families.INVALID_VALUE),
        ({"kinds": [{"nodes": 0}]}, "kinds.0.nodes", families.INVALID_VALUE),
        ({"start": 3}, "start", families.UNKNOWN_KEY),
        ({"kinds": []}, "kinds", families.INVALID_VALUE),
    ):
        with raises(code, where="here", key=key):
            cluster_of(values, "here")


def test_a_line_through_receipts_and_draws_of_them() -> None:
    work = np.array([1.0, 2, 3, 4, 5, 6, 7, 8])
    assert line_of(work, 3 + 2 * work) == (pytest.approx(3), pytest.approx(2))
    assert line_of(work, 2 * work) == (pytest.approx(0, abs=1e-9), pytest.approx(2))
    assert line_of(work[:3], 3 + 2 * work[:3]) == (0, pytest.approx(21 / 6))  # too few to tell
    assert line_of(np.zeros(2), np.array([1.0, 3])) == (2, 0)
    assert line_of(work, work[::-1].copy()) == (pytest.approx(4.5), 0)  # more work in less time: it does not matter
    one, draw = cost("index", [1.0], factors=np.array([0.5, 1.5])), random.Random(3)
    assert {one.job("x", 100.0, draw).seconds for _ in range(30)} == {0.5, 1.5}
    kinds = (Kind(3, 2, mtbf_hours=1.0),)
    runs = [Simulator(Cluster(kinds), ONE, 5).run([load(*[900.0] * 20)]) for _ in range(2)]
    assert runs[0] == runs[1]
    assert inf > runs[0].wall > 0


def cost(name: str, work: list[float], **values: object) -> StepCost:
    given: dict[str, object] = {"unit": "s", "factors": np.ones(1), "walls": 0.01 * np.array(work), "per_work": 0.01}
    given |= dict.fromkeys(("fixed", "bytes_per_work", "driver_s", "gap_s", "cpu_s"), 0.0)
    given |= {"in_driver": False, "grows_with_hours": "larger", "grows_with_queries": "same", **values}
    return StepCost(name=name, work=np.array(work), **given)  # type: ignore[arg-type]


def test_more_hours_make_more_tasks_larger_ones_or_more_buckets() -> None:
    costs = [
        cost("index", [3600.0, 1800.0], grows_with_hours="more"),
        cost("queries", [12.0], unit="examples", grows_with_hours="same", grows_with_queries="more"),
        cost("search", [10.0, 5.0], unit="cells", grows_with_hours="more", grows_with_queries="more"),
        cost("reduce", [8.0, 8.0], unit="candidates", grows_with_queries="larger"),
        cost("normalise", [8.0], unit="detections", grows_with_hours="kept"),
    ]
    assert examples_of(costs) == 12
    loads = {one.name: one for one in loads_of(costs, 4, 3, 1.5, 0)}
    assert {name: (len(one.jobs), sum(job.work for job in one.jobs)) for name, one in loads.items()} == {
        "index": (8, 4 * 5400),
        "queries": (3, 36),
        "search": (24, 4 * 3 * 15),
        "reduce": (2, 4 * 3 * 16),
        "normalise": (1, 1.5 * 8),
    }
    told = forecast(costs, Cluster((Kind(2, 1, price=3.0),), start_s=0.0), ONE, 1.5, hours=6.0)
    assert told.hours == 6
    assert told.wall_s == pytest.approx(sum((2 * 54, 0.12, 4 * 0.15 / 2, 4 * 0.08, 4 * 0.08)), rel=0.02)
    assert told.node_hours == pytest.approx(2 * told.wall_s / 3600)
    assert told.price == pytest.approx(3 * told.node_hours)
    assert told.low_s <= told.wall_s <= told.high_s
    costs = [
        cost("index", [3600.0], grows_with_hours="more"),
        cost("queries", [1000.0], unit="examples", grows_with_hours="same", grows_with_queries="more"),
        cost("reduce", [1000.0] * 16, unit="candidates", grows_with_queries="larger", in_buckets=True),
        cost("align", [100.0] * 16, grows_with_hours="kept", in_buckets=True),
        cost("fit", [1600.0], grows_with_hours="kept", in_buckets=True, most_work=64 * 1600.0),
        cost("long", [1600.0], grows_with_hours="kept", in_buckets=True, most_work=1e5),
    ]
    keep, cluster = KeepDetections(least=1, per_second=1 / 36), Cluster((Kind(4),))

    def steps(buckets: Callable[[int], int] | None) -> dict[str, int]:
        told = forecast(costs, cluster, ONE, 1.0, keep=keep, buckets=buckets, hours=64.0)
        assert told.seconds == pytest.approx(0.01 * (64 * 3600 + 1000 + 64 * 16000 + 3 * 64 * 1600), rel=0.01)
        return {step.name: step.tasks for step in told.steps}

    fixed = {"index": 64, "queries": 1, "reduce": 16, "align": 16, "fit": 1, "long": 16}
    assert steps(None) == steps(lambda rows: 16) == fixed
    assert steps(lambda rows: 16 if rows < 100_000 else 64) == {**fixed, "reduce": 64, "align": 64, "long": 64}
    assert steps(lambda rows: 16 if rows < 100_000 else 4096)["align"] == 888, "no more than queries fill"


def test_what_grows_and_what_cannot_be_foreseen() -> None:
    """A model is fitted to 4 hours at most: of 1 hour, then of 100; of 8, then of 80."""
    for work, grown, had in (([3600.0], 100, 1.0), ([3600.0] * 4, 10, 8.0)):
        fit = cost("fit", work, grows_with_hours="more", most_hours=4.0)
        (fitted,) = loads_of([fit], grown, 1, 1, 0, had_hours=had)
        assert len(fitted.jobs) == 4
    # Tasks of 2 s + 0.01 s a unit: one run of equal tasks takes it all for growing, another size tells them apart.
    small, large = (
        cost("reduce", [size] * 2, per_work=2 / size + 0.01, walls=np.full(2, 2 + 0.01 * size))
        for size in (100.0, 400.0)
    )
    for runs, seconds in (([[small]], 30), ([[small], [large]], 12)):
        assert pooled_costs(*runs)[0].job("x", 1000.0, random.Random(0)).seconds == pytest.approx(seconds)
    with raises(families.MISSING_INPUT):
        forecast([cost("search", [1.0], unit="cells")], Cluster(), ONE, 0.0)
    with raises(families.EMPTY_INPUT):
        forecast([cost("index", [3600.0], grows_with_hours="more")], Cluster(), ONE, 1.0, queries=3.0)
