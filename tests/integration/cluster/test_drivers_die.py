"""The head, or the driver, dies; two drivers want one run; a clock is wrong."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from swsdist.core.codes import families
from swsdist.core.codes import pipeline as codes
from swsdist.pipeline.lock import read
from tests.support.coded import says

pytestmark = pytest.mark.cluster
OFF_CLOCK = str(Path(__file__).parent / "off_clock")


def test_two_drivers_and_the_first_whose_clock_is_off_is_killed(on_cluster: Any) -> None:
    """Who comes second watches the first's heartbeat: it is refused while the first lives, and takes over when it is dead."""
    on_cluster.sabotage(sleep={"index": 8.0})
    path = os.pathsep.join([OFF_CLOCK, on_cluster.hosts.env["PYTHONPATH"]])
    first = on_cluster.start(env={"PYTHONPATH": path, "CLOCK_OFF": "3600"})
    on_cluster.wait(lambda: len(on_cluster.at_work("index")) == 3, first)
    holder = read(on_cluster.run)
    assert holder is not None
    assert holder["t"] > time.time() + 3000, "its clock is an hour ahead"
    elsewhere = on_cluster.hosts.workers[0]
    asked = time.time()
    second = on_cluster.start(host=elsewhere)
    said = on_cluster.end(second, code=2)
    refused = time.time() - asked
    assert says(said, codes.FOLDER_IN_USE)
    assert f"on {on_cluster.hosts.head.name} " in said
    assert first.poll() is None
    on_cluster.note("a second driver, on another host", "while the first indexes", refused, same=None)
    first.kill()
    first.communicate()
    died = time.time()
    on_cluster.sabotage(sleep={"index": 0.1})
    before = on_cluster.receipts()
    third = on_cluster.start(host=elsewhere)
    said = on_cluster.end(third, seconds=300)
    took = time.time() - died
    assert "waiting for a heartbeat" in said
    assert before.keys() <= on_cluster.receipts().keys()
    assert on_cluster.same()
    on_cluster.note("the driver's clock is an hour ahead", "from the start", refused)
    on_cluster.note("the driver is killed", "while it indexes; its clock is an hour ahead", took)


def test_the_head_is_killed(on_cluster: Any) -> None:
    """The driver is on another host; it ends, and with a new head it goes on."""
    hosts = on_cluster.hosts
    on_cluster.sabotage(sleep={"index": 3.0})
    driver = on_cluster.start(host=hosts.workers[0])
    on_cluster.wait(lambda: on_cluster.receipts(), driver)
    hosts.head.kill()
    killed = time.time()
    _, said = driver.communicate(timeout=300)
    ended = time.time() - killed
    assert driver.returncode == 2, said
    assert says(said, families.NO_CLUSTER)
    assert read(on_cluster.run) is None, "the run is free"
    before = on_cluster.receipts()
    assert before
    for host in hosts.network.hosts:
        host.kill()
    hosts.start_head()
    hosts.start_workers(*hosts.workers)
    on_cluster.sabotage(sleep={"index": 0.1})
    on_cluster.end(on_cluster.start(host=hosts.workers[0]))
    assert before.keys() <= on_cluster.receipts().keys()
    assert on_cluster.same()
    on_cluster.note("the head is killed", "while workers index; the driver is on another host", ended)
