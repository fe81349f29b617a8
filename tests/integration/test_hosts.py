"""Several hosts, for real: each is a network namespace with its own address and its own Ray node.

Needs root and `ip`. Every process of a host is found by its namespace, so nothing else is ever touched.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


def ip(*words: str, check: bool = True) -> str:
    """Run `ip`."""
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True).stdout


@dataclass
class Hosts:
    """Two hosts on one bridge, a CPU each."""

    names: tuple[str, str]
    addresses: tuple[str, str]

    @property
    def address(self) -> str:
        """Of the cluster."""
        return f"{self.addresses[0]}:6379"

    def on(self, host: int) -> tuple[str, ...]:
        """What a command is run under, to run it on a host."""
        return ("ip", "netns", "exec", self.names[host])

    def kill(self, host: int) -> None:
        """The host dies: all its processes at once."""
        for pid in ip("netns", "pids", self.names[host]).split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


@pytest.fixture
def hosts(env: dict[str, str]) -> Iterator[Hosts]:
    """Two hosts, and a Ray cluster on them."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and the command `ip` to make network namespaces")
    tag = f"{os.getpid() % 100000}"
    bridge, names = f"swsb{tag}", (f"sws{tag}a", f"sws{tag}b")
    network = f"10.77.{os.getpid() % 250}"
    made = Hosts(names, (f"{network}.1", f"{network}.2"))
    try:
        try:
            ip("link", "add", bridge, "type", "bridge")
            ip("link", "set", bridge, "up")
            for name, address, end in zip(names, made.addresses, "ab", strict=True):
                ip("netns", "add", name)
                ip("link", "add", f"swsv{tag}{end}", "type", "veth", "peer", "name", "eth0", "netns", name)
                ip("link", "set", f"swsv{tag}{end}", "master", bridge, "up")
                ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
                ip("-n", name, "link", "set", "eth0", "up")
                ip("-n", name, "link", "set", "lo", "up")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"network namespaces cannot be made here: {error.stderr.strip()}")
        _start_ray(made, env)
        yield made
    finally:
        for host, name in enumerate(names):
            if name in ip("netns", "list").split():
                made.kill(host)
                ip("netns", "delete", name, check=False)
        for end in "ab":
            ip("link", "delete", f"swsv{tag}{end}", check=False)
        ip("link", "delete", bridge, check=False)


def _start_ray(hosts: Hosts, env: dict[str, str]) -> None:
    ray = str(Path(sys.executable).with_name("ray"))
    # A dead host is noticed within seconds, not half a minute.
    quick = {"RAY_health_check_period_ms": "500", "RAY_health_check_failure_threshold": "3"}
    env["RAY_AUTH_MODE"], env["RAY_AUTH_TOKEN"] = (
        "token",
        uuid.uuid4().hex,
    )  # of this cluster alone; drivers need it, too
    size = ("--num-cpus=1", "--memory=3000000000", "--object-store-memory=80000000")
    head = ("--head", "--port=6379", f"--temp-dir={env['TMPDIR']}/ray", "--include-dashboard=false")
    for host, role in enumerate([head, (f"--address={hosts.address}",)]):
        subprocess.run(
            [*hosts.on(host), ray, "start", *role, f"--node-ip-address={hosts.addresses[host]}", *size],
            env={**env, **quick},
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=120,
        )


def tasks(scene: Any) -> dict[str, int]:
    """Tasks by address of the node, as the report tells."""
    return {row["host"].rpartition("@")[2]: row["tasks"] for row in scene.report()["nodes"]}


def at_work(scene: Any) -> set[str]:
    """Addresses of nodes on which a worker has indexed something and is at it just now."""
    found = set()
    for lines in scene.journals():
        mine = [line["event"] for line in lines if line.get("stage") == "index" and line["event"] in ("begin", "end")]
        if lines[0]["role"] == "worker" and mine.count("end") and mine[-1] == "begin":
            found.add(lines[0]["host"].rpartition("@")[2])
    return found


@pytest.mark.ray
def test_two_hosts_and_one_dies(scene: Any, hosts: Hosts, undisturbed: dict[str, str]) -> None:
    scene.sabotage(seconds=1.5)
    cluster = (
        "executor.kind=ray",
        f"executor.address={hosts.address}",
        "features.name=saboteur",
        "index.shards=8",
    )
    process = scene.start(*cluster, under=hosts.on(0))
    scene.wait(lambda: at_work(scene) == set(hosts.addresses), process)
    time.sleep(1.1)
    hosts.kill(1)
    _, err = process.communicate(timeout=180)
    assert process.returncode == 0, err
    assert scene.digest() == undisturbed
    assert scene.rejected() == []
    assert set(tasks(scene)) == set(hosts.addresses)
    assert min(tasks(scene).values()) > 0, "what the dead host had done counts"
    assert scene.report()["repeated_cpu"] > 0
