"""Hosts that die, are cut off, come late or leave: the others do the work, and the results are the same bytes."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from swsdist.pipeline.task import Receipt
from tests.support.cluster.network import run

pytestmark = pytest.mark.cluster


def done_by(on_cluster: Any, name: str, after: float) -> Receipt | None:
    """The first task that a host began after a time, and ended."""
    found = [one for one in on_cluster.receipts().values() if one.host == name and one.started > after]
    return min(found, key=lambda one: one.finished, default=None)


def test_a_worker_host_is_killed_in_mid_search(on_cluster: Any) -> None:
    on_cluster.sabotage(sleep={"search": 1.5})
    driver = on_cluster.start()
    victim = on_cluster.hosts.workers[1]
    on_cluster.wait(lambda: len(on_cluster.at_work("search")) == 3, driver)
    victim.kill()
    killed = time.time()
    lost = on_cluster.wait(lambda: on_cluster.lost(victim), driver)
    on_cluster.sabotage(sleep={"search": 0.1})
    on_cluster.end(driver)
    again = on_cluster.receipts()[lost]
    assert again.host != victim.name
    assert on_cluster.same()
    elsewhere = "the task that it worked on was done elsewhere"
    on_cluster.note("a worker host is killed", "in mid-search", again.finished - killed, until=elsewhere)


def test_a_worker_host_is_killed_behind_the_search(on_cluster: Any) -> None:
    """While others fit, score, summarise and export: a task of a bucket each."""
    driver = on_cluster.start("reduce.buckets=64", "report.exports=[csv, stdlist]")
    victim = on_cluster.hosts.workers[2]
    on_cluster.wait(lambda: on_cluster.hosts_of("reduce"), driver)
    victim.kill()
    killed = time.time()
    on_cluster.end(driver)
    behind = ("normalise", "align", "decide", "measure", "summarise", "format", "export")
    ended = max(one.finished for one in on_cluster.receipts().values())
    assert all(on_cluster.hosts_of(stage) - {victim.name} for stage in behind)
    assert on_cluster.same()
    when = "in reduce, before the list is fitted, scored, summarised and exported"
    on_cluster.note("a worker host is killed", when, ended - killed)


def test_a_worker_is_killed_in_an_export(on_cluster: Any) -> None:
    on_cluster.sabotage(writing="tail")
    driver = on_cluster.start("reduce.buckets=5", "report.exports=[csv, killed-csv]")
    on_cluster.end(driver)
    died = [line for lines in on_cluster.journals() for line in lines if line["event"] == "died"]
    assert len(died) == 1
    exports = [on_cluster.run.read_bytes(f"exports/{name}.csv") for name in ("detections", "killed")]
    assert exports[0] == exports[1]
    assert on_cluster.same()
    took = max(one.finished for one in on_cluster.receipts().values()) - float(died[0]["t"])
    on_cluster.note("a worker's process is killed", "while it joins the parts of an export", took)


def test_a_network_is_cut_and_healed(on_cluster: Any) -> None:
    """Ray takes the node for dead. When it can be reached again it is started anew, as a supervisor does, and is used."""
    on_cluster.sabotage(sleep={"index": 2.0, "search": 2.0})
    driver = on_cluster.start()
    victim = on_cluster.hosts.workers[0]
    on_cluster.wait(lambda: len(on_cluster.at_work("index")) == 3, driver)
    victim.cut()
    cut = time.time()
    lost = on_cluster.wait(lambda: on_cluster.lost(victim), driver)
    on_cluster.wait(lambda: lost in on_cluster.receipts(), driver)
    again = on_cluster.receipts()[lost]
    victim.heal()
    victim.kill()
    healed = time.time()
    on_cluster.hosts.start_workers(victim)
    back = on_cluster.wait(lambda: done_by(on_cluster, victim.name, healed), driver)
    on_cluster.sabotage(sleep={"search": 0.1})
    on_cluster.end(driver)
    assert on_cluster.same()
    on_cluster.note("a host's network is cut", "while it indexes", again.finished - cut)
    on_cluster.note("the network is healed", "in the same run", back.finished - healed)


def test_a_node_comes_late_and_one_leaves(on_cluster: Any) -> None:
    late, leaver = on_cluster.hosts.workers[2], on_cluster.hosts.workers[1]
    late.kill()
    on_cluster.sabotage(sleep={"index": 2.0, "search": 2.0})
    driver = on_cluster.start()
    on_cluster.wait(lambda: len(on_cluster.at_work("index")) == 2, driver)
    came = time.time()
    on_cluster.hosts.start_workers(late)
    first = on_cluster.wait(lambda: done_by(on_cluster, late.name, came), driver)
    on_cluster.note("a node comes late", f"while the others do stage {first.stage}", first.finished - came)
    on_cluster.wait(lambda: leaver.name in on_cluster.at_work("search"), driver)
    ray = str(Path(sys.executable).with_name("ray"))
    node = on_cluster.node(leaver)
    left = time.time()
    why = ("--reason", "DRAIN_NODE_REASON_PREEMPTION", "--reason-message", "spot", "--deadline-remaining-seconds", "1")
    words = (ray, "drain-node", "--address", on_cluster.hosts.address, "--node-id", node, *why)
    run(on_cluster.hosts.head, words, on_cluster.hosts.env)
    time.sleep(1.0)
    leaver.kill()
    lost = on_cluster.wait(lambda: on_cluster.lost(leaver), driver)
    on_cluster.sabotage(sleep={"search": 0.5})
    on_cluster.end(driver)
    again = on_cluster.receipts()[lost]
    assert on_cluster.same()
    on_cluster.note("a node is drained, and leaves", "in mid-search", again.finished - left)
