"""A node's cache keeps what the node indexed, and tasks go where their shards lie: in this run, and in the next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from swsdist.io.filesystem import Folder
from swsdist.store import manifest

pytestmark = pytest.mark.cluster
CACHE = ("executor.cache_gb=1", "executor.cache=$$NODE_DISK/cache")


@pytest.fixture(autouse=True)
def _disks(on_cluster: Any) -> Iterator[None]:
    """Workers have a variable that names a disk of their own, which the driver's host has not."""
    hosts = on_cluster.hosts
    for host in hosts.workers:
        host.kill()
        hosts.start_workers(host, env={"NODE_DISK": f"{host.folder}/tmp"})
    yield
    for host in hosts.workers:
        host.kill()


def copies(on_cluster: Any) -> list[int]:
    """Nodes that hold each shard's file."""
    known = manifest.require(Folder(f"{on_cluster.run.root}/store", on_cluster.hosts.storage))
    lies = [path.stem for host in on_cluster.hosts.workers for path in host.folder.glob("tmp/cache-*/*.cached")]
    return [lies.count(file.sha256) for shard in known.shards for file in shard.files.values()]


def test_a_shard_is_searched_where_it_lies(on_cluster: Any) -> None:
    on_cluster.sabotage(sleep={"index": 0.5, "search": 0.5})
    on_cluster.end(on_cluster.start(*CACHE))
    assert on_cluster.same()
    first = copies(on_cluster)
    assert len(first) == 8
    assert min(first) == 1, "every shard lies where it was written"
    # A worker that would be idle may fetch one. Where tasks go by chance, two of three shards are fetched.
    assert sum(first) <= 10
    began = max(one.finished for one in on_cluster.receipts().values())
    on_cluster.end(on_cluster.start(*CACHE, "search.recurrence=asymmetric"))
    searched = [one for one in on_cluster.receipts().values() if one.stage == "search" and one.started > began]
    assert len(searched) == 8
    assert len({one.host for one in searched}) > 1
    assert sum(copies(on_cluster)) <= 12, "workers tell what they find"
