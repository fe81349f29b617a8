"""Hosts that die, are cut off, come late or leave: the others do the work, and the results are the same bytes."""

from __future__ import annotations

import json
import sys
import time
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest

import swsdist
from swsdist.core.fingerprint import stable_hash
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
    on_cluster.note(
        "a worker host is killed",
        "in mid-search",
        again.finished - killed,
        until="the task that it worked on was done elsewhere",
    )


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
    on_cluster.note(
        "a worker host is killed",
        "in reduce, before the list is fitted, scored, summarised and exported",
        ended - killed,
    )


def test_a_worker_is_killed_in_an_export(on_cluster: Any) -> None:
    on_cluster.sabotage(writing="tail")
    driver = on_cluster.start("reduce.buckets=5", "report.exports=[csv, killed-csv]")
    on_cluster.end(driver)
    died = [line for lines in on_cluster.journals() for line in lines if line["event"] == "died"]
    assert len(died) == 1
    exports = [on_cluster.run.read_bytes(f"exports/{name}.csv") for name in ("detections", "killed")]
    assert exports[0] == exports[1]
    assert on_cluster.same()
    on_cluster.note(
        "a worker's process is killed",
        "while it joins the parts of an export",
        max(one.finished for one in on_cluster.receipts().values()) - float(died[0]["t"]),
    )


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
    node = next(one.node for one in on_cluster.nodes() if one.address == leaver.address)
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


def sections(corpus: str, distance: str) -> dict[str, Any]:
    return {
        "chain": "discover",
        "corpus": {"documents": f"{corpus}/docs.csv"},
        "search": {"distance": distance},
        "index": {"shards": 3},
    }


def test_a_host_is_killed_while_it_aligns(on_cluster: Any, small_corpus: Path, tmp_path: Path) -> None:
    serial = {"run": str(tmp_path / "run"), "executor": {"kind": "serial"}}
    (tmp_path / "here.yaml").write_text(json.dumps(sections(str(small_corpus), "cosine") | serial))
    swsdist.run(str(tmp_path / "here.yaml"))
    on_cluster.sabotage(sleep={"search": 0.4})
    driver = on_cluster.start(sections=sections(on_cluster.corpus, "slow-cosine"))

    def victim() -> Any:
        """A host that is at work on an alignment, when there is no other work left."""
        if not on_cluster.hosts_of("select-pairs"):
            return None
        hosts = on_cluster.at_work("search")
        return next((host for host in on_cluster.hosts.workers if host.name in hosts), None)

    host = on_cluster.wait(victim, driver)
    host.kill()
    lost = on_cluster.wait(lambda: on_cluster.lost(host), driver)
    on_cluster.sabotage(sleep={"search": 0.01})
    on_cluster.end(driver)
    receipts = on_cluster.receipts()
    assert receipts[lost].stage == "align-pairs"
    assert receipts[lost].host != host.name
    here, there = swsdist.digest(str(tmp_path / "run")), swsdist.digest(on_cluster.run.root, on_cluster.hosts.storage)
    assert there == here


WORDS = ("good", "morning", "to", "you", "all")


def made(folder: Path) -> Path:
    """Eight transcripts, each a task of its own by the hash of its name, and terms."""
    talks = folder / "talks"
    talks.mkdir(parents=True)
    ends_a_task = (name for k in count() if stable_hash(name := f"talk{k}.ctm") % 64 == 0)
    for number, name in enumerate(islice(ends_a_task, 8)):
        lines = (
            f"{name} 1 {k} 0.9 {WORDS[(k * k + number) % 5]} {(k + number) % 9 / 10 + 0.1:.1f}\n" for k in range(100)
        )
        (talks / name).write_text("".join(lines))
    (folder / "terms.csv").write_text("query_id,term\nq1,good morning\nq2,you all\nq3,to\n")
    return folder


def lattice_sections(place: str, form: str) -> dict[str, Any]:
    return {
        "chain": "lattices",
        "corpus": {"documents": f"{place}/talks", "queries": f"{place}/terms.csv"},
        "options": {"lattices": {"format": form}},
        "search": {"method": "lattice"},
        "calibrate": {"steps": []},
    }


def test_a_host_is_killed_while_it_indexes_transcripts(on_cluster: Any, tmp_path: Path) -> None:
    files = made(tmp_path / "files")
    serial = {"run": str(tmp_path / "run"), "executor": {"kind": "serial"}, "report": {"clips": 0}}
    (files.parent / "config.yaml").write_text(json.dumps(lattice_sections(str(files), "ctm") | serial))
    swsdist.run(str(files.parent / "config.yaml"))
    place = on_cluster.hosts.put(files, f"{on_cluster.place}-files")
    on_cluster.sabotage(sleep={"index": 2.0}, hosts=[host.name for host in on_cluster.hosts.workers])
    driver = on_cluster.start(sections=lattice_sections(place, "slow-ctm"))
    victim = on_cluster.hosts.workers[1]
    on_cluster.wait(lambda: len(on_cluster.at_work("index")) == 3, driver)
    victim.kill()
    lost = on_cluster.wait(lambda: on_cluster.lost(victim), driver)
    on_cluster.sabotage(sleep={"index": 0.1})
    on_cluster.end(driver)
    receipts = on_cluster.receipts()
    assert receipts[lost].stage == "index-lattices"
    assert receipts[lost].host != victim.name
    assert sum(receipt.stage == "index-lattices" for receipt in receipts.values()) == 8
    here, there = swsdist.digest(str(tmp_path / "run")), swsdist.digest(on_cluster.run.root, on_cluster.hosts.storage)
    assert there == here
