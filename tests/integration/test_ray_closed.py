"""A private Ray is closed to others, and a Ray that is there already is not ours to end."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

#: A private instance, looked at from within and from outside; prints a line a fact.
PRIVATE = """
import os, subprocess, sys
import psutil, ray
from swsdist.pipeline.execution.ray_instance import connect, disconnect

@ray.remote
def mine():
    return os.environ["RAY_AUTH_TOKEN"], os.environ["RAY_USAGE_STATS_ENABLED"]

instance = connect(None, 1)
for one in os.scandir(os.environ["TMPDIR"]):
    print("folder", one.path, oct(one.stat().st_mode & 0o777), one.stat().st_uid == os.getuid())
assert not {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN"} & set(os.environ), "other children of the driver have no token"
token, telling = ray.get(mine.remote())
assert telling == "0", "Ray's makers are told nothing"
assert len(token) == 64
me = psutil.Process()
mine = [me, *me.children(recursive=True)]
for process in mine:
    for one in process.net_connections("inet"):
        if one.status == psutil.CONN_LISTEN:
            print("listens", one.laddr.ip.removeprefix("::ffff:"))
    for one in process.net_connections("unix"):
        if one.laddr.startswith("/"):
            print("socket", one.laddr)
    assert token not in " ".join(process.cmdline())
address = ray.get_runtime_context().gcs_address
stranger = "from ray._raylet import GcsClient; GcsClient(address=%r).internal_kv_keys(b'', None, timeout=5)" % address
for name, secret in (("none", {}), ("wrong", {"RAY_AUTH_TOKEN": "b" * 64}), ("right", {"RAY_AUTH_TOKEN": token})):
    env = {**os.environ, "RAY_AUTH_MODE": "token" if secret else "disabled", **secret}
    done = subprocess.run([sys.executable, "-c", stranger], env=env, capture_output=True, text=True, timeout=300)
    print(name, "let in" if done.returncode == 0 else "kept out" if "AuthenticationError" in done.stderr else done.stderr)
disconnect(instance)
# The secret is forgotten: Ray makes one of its own for what the user starts.
ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
print("next", ray.cluster_resources()["CPU"])
"""


@pytest.mark.ray
def test_a_private_instance_listens_on_the_loopback_and_answers_to_its_own_token(env: dict[str, str]) -> None:
    """Its sockets lie in a folder that nobody else may enter: to those that Ray makes all users of the machine may write."""
    env["HOME"] = env["TMPDIR"]
    said = subprocess.run(
        [sys.executable, "-c", PRIVATE], env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert said.returncode == 0, said.stderr
    lines = said.stdout.splitlines()
    listens = {line for line in lines if line.startswith("listens")}
    assert listens == {"listens 127.0.0.1"}
    closed = {line.split()[1] for line in lines if line.startswith("folder") and line.endswith(" 0o700 True")}
    sockets = [line.split()[1] for line in lines if line.startswith("socket")]
    assert {name.rpartition("/")[2] for name in sockets} >= {"plasma_store", "raylet"}
    assert [name for name in sockets if not any(name.startswith(f"{folder}/") for folder in closed)] == []
    assert [line for line in lines if not line.startswith(("listens", "folder", "socket"))] == [
        "none kept out",
        "wrong kept out",
        "right let in",
        "next 1.0",
    ]


#: A notebook that has Ray, runs a config, and goes on with its Ray.
NOTEBOOK = """
import sys
import ray
import swsdist
from swsdist.core.errors import UserError

ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")

@ray.remote
class Counter:
    def __init__(self):
        self.n = 0
    def more(self):
        self.n += 1
        return self.n

counter = Counter.options(num_cpus=0).remote()
ray.get(counter.more.remote())
address = ray.get_runtime_context().gcs_address
try:
    swsdist.run(sys.argv[1], sets=["executor.kind=ray", "executor.address=local"])
except UserError as error:
    print("refused:", error.message)
try:
    swsdist.run(sys.argv[1], sets=["executor.kind=ray", "executor.address=10.9.8.7:6379"])
except UserError as error:
    print("refused:", error.message)
assert ray.get(counter.more.remote()) == 2, "it lives"
done = swsdist.run(sys.argv[1], sets=["executor.kind=ray", "executor.workers=1"])
assert ray.get_runtime_context().gcs_address == address
assert ray.get(counter.more.remote()) == 3, "it lives still"
print(swsdist.digest(done.folder)["all"])
"""


@pytest.mark.ray
def test_a_ray_that_is_there_already_is_used_and_never_shut_down(scene: Any, undisturbed: dict[str, str]) -> None:
    env = {**scene.env, "HOME": scene.env["TMPDIR"]}
    command = [sys.executable, "-c", NOTEBOOK, str(scene.config)]
    said = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert said.returncode == 0, said.stderr
    *refused, digest = said.stdout.splitlines()[-3:]
    assert all("is requested, but this process is connected to the Ray at" in line for line in refused), refused
    assert digest == undisturbed["all"]
