"""Nodes that are up, but not fit: a full disk, another version, a package that is not there; and a task that is too large."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import soundfile

pytestmark = pytest.mark.cluster
OFF_CLOCK = str(Path(__file__).parent / "off_clock")


def has(place: Path, hosts: Any, name: str, version: str) -> dict[str, str]:
    """Environment of a node that has this version of a package."""
    info = place / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return {"PYTHONPATH": os.pathsep.join([str(place), hosts.env["PYTHONPATH"]])}


def test_a_full_disk_and_another_version_and_a_clock_that_is_behind(on_cluster: Any, tmp_path: Path) -> None:
    hosts = on_cluster.hosts
    full, old, good = hosts.workers
    other = has(tmp_path / "other", hosts, "numpy", "1.0")
    for host in hosts.workers:
        host.kill()
    full.disk = "16k"  # less than a piece takes
    try:
        hosts.start_workers(full)
        hosts.start_workers(old, env=other)
        path = os.pathsep.join([OFF_CLOCK, hosts.env["PYTHONPATH"]])
        hosts.start_workers(good, env={"PYTHONPATH": path, "CLOCK_OFF": "-3600"})
        on_cluster.sabotage(sleep={"index": 0.5})
        began = time.time()
        said = on_cluster.end(on_cluster.start())
        took = time.time() - began
    finally:
        for host in hosts.workers:
            host.kill()
        full.disk = ""
    assert f"{old.name} is not used: it has numpy 1.0 (driver: " in said
    assert f"{full.name} gets no tasks for a minute: no space left on the disk" in said
    assert on_cluster.hosts_of("index") == {good.name}
    assert all(one.finished < began - 3000 for one in on_cluster.receipts().values() if one.host == good.name)
    assert on_cluster.same()
    report = json.loads(on_cluster.run.read_bytes("report.json"))
    assert report["isf"] > 0
    on_cluster.note("a worker's clock is an hour behind", "from the start", took)
    on_cluster.note("a node's disk is full (its TMPDIR)", "from the start", on_cluster.told(full.name) - began)
    on_cluster.note("a node has another numpy", "from the start", on_cluster.told(old.name) - began)


def test_a_worker_that_cannot_start_and_a_task_that_is_too_large(
    on_cluster: Any, small_corpus: Path, tmp_path: Path
) -> None:
    hosts = on_cluster.hosts
    bad, old, good = hosts.workers
    package = tmp_path / "broken" / "swsdist"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('not whole here')\n")
    other = has(tmp_path / "other", hosts, "swsdist", "0.0.9")
    bad.kill()
    old.kill()
    try:
        hosts.start_workers(old, env=other)
        hosts.start_workers(bad, env={"PYTHONPATH": str(package.parent)})
        samples = int(soundfile.info(small_corpus / "audio" / "d003.flac").frames)
        on_cluster.sabotage(how="memory", samples=[samples])
        began = time.time()
        said = on_cluster.end(on_cluster.start("executor.attempts=2", flags=("--keep-going",)), code=4)
        took = time.time() - began
    finally:
        bad.kill()
        old.kill()
    assert "a worker could not start" in said
    assert f"{old.name} is not used: it has swsdist 0.0.9 (driver: " in said
    assert on_cluster.hosts_of("index") == {good.name}
    with on_cluster.run.open("rejected.parquet") as file:
        (row,) = pq.read_table(file).to_pylist()
    assert (row["kind"], row["reason"]) == ("task", "killed")
    assert "out of memory" in row["message"]
    begun = [line["fingerprint"] for lines in on_cluster.journals() for line in lines if line["event"] == "begin"]
    assert begun.count(row["id"].removeprefix("index-")) == 2
    on_cluster.order.unlink()
    on_cluster.end(on_cluster.start())
    assert on_cluster.same()
    broken = "a node cannot start a worker (swsdist is broken there)"
    on_cluster.note(broken, "from the start", on_cluster.told("a worker could not start") - began)
    on_cluster.note("a node has another version of swsdist", "from the start", on_cluster.told(old.name) - began)
    on_cluster.note("a task runs out of memory (MemoryError)", "at each attempt", took)
