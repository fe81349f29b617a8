"""Transcripts on several hosts: one is killed while it indexes, the others do its work, and the results are the same bytes."""

from __future__ import annotations

import json
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest

import swsdist
from swsdist.core.fingerprint import stable_hash

pytestmark = pytest.mark.cluster

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


def sections(place: str, form: str) -> dict[str, Any]:
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
    (files.parent / "config.yaml").write_text(json.dumps(sections(str(files), "ctm") | serial))
    swsdist.run(str(files.parent / "config.yaml"))
    place = on_cluster.hosts.put(files, f"{on_cluster.place}-files")
    on_cluster.sabotage(sleep={"index": 2.0}, hosts=[host.name for host in on_cluster.hosts.workers])
    driver = on_cluster.start(sections=sections(place, "slow-ctm"))
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
