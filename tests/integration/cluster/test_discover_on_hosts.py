"""Term discovery on several hosts: one is killed while it aligns, the others do its work; the bytes are the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import swsdist

pytestmark = pytest.mark.cluster


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
