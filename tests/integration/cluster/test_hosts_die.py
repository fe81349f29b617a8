"""Hosts that die, are cut off, come late or leave: the others do the work, and the results are the same bytes."""

from __future__ import annotations

import time
from typing import Any

import pytest

pytestmark = pytest.mark.cluster


def test_a_worker_host_is_killed_in_mid_search(on_cluster: Any) -> None:
    on_cluster.sabotage(sleep={"search": 1.5})
    driver = on_cluster.start()
    victim = on_cluster.hosts.workers[1]
    on_cluster.wait(lambda: len(on_cluster.at_work("search")) == 3, driver)
    lost = on_cluster.at_work("search")[victim.name]
    victim.kill()
    killed = time.time()
    on_cluster.sabotage(sleep={"search": 0.1})
    on_cluster.end(driver)
    assert on_cluster.hosts_of("index") == {host.name for host in on_cluster.hosts.workers}
    again = on_cluster.receipts()[lost]
    assert again.host != victim.name
    assert on_cluster.same()
    on_cluster.note(
        "a worker host killed",
        "in mid-search",
        again.finished - killed,
        "its task was done elsewhere",
        "the run went on",
    )
