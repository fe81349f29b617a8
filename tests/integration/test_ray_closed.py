"""A private Ray is closed to others; clusters that are there, grow, and have nodes of several kinds are used."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import ray
from ray import cloudpickle
from ray.cluster_utils import Cluster

import swsdist
from swsdist.accounts.journal import DriverJournal
from swsdist.config.model import Executor as Settings
from swsdist.core.needs import Needs
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Context, Inputs, Stage, Table
from swsdist.pipeline.execution import ray_instance
from swsdist.pipeline.execution.ray_executor import RayExecutor
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.task import Receipt, Task, TaskOutput
from swsdist.stages import steps
from swsdist.stages.search import Search
from swsdist.testing.synthesis import make_corpus
from tests.support.journals import read_journals

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


cloudpickle.register_pickle_by_value(sys.modules[__name__])


_OWN = {"memory": 2_000_000_000, "object_store_memory": 80_000_000}
_COMMANDS = ("initialization", "setup", "head_setup", "worker_setup", "head_start_ray", "worker_start_ray")


class Granted(Stage):
    """Says what a task was granted, and how many GPUs the cluster has."""

    name = "granted"
    version = 1
    unit = "s"
    tables = {"none": Table(None, None)}

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        """The test makes tasks itself."""
        yield from ()

    def run(self, task: Task, context: Context) -> TaskOutput:
        """Leave a file that says so."""
        place = context.run.local()
        assert place is not None
        (place / task.label).write_text(f"{context.granted.gpus:g} of {ray.cluster_resources().get('GPU', 0):g}")
        return TaskOutput(())


#: Ray's provider of nodes that are processes, which takes no memory as a resource.
_PROVIDER = """
from ray.autoscaler._private.fake_multi_node.node_provider import FakeMultiNodeProvider

class Provider(FakeMultiNodeProvider):
    def _create_node_with_resources_and_labels(self, config, tags, count, resources, labels):
        resources = {name: value for name, value in resources.items() if name != "memory"}
        super()._create_node_with_resources_and_labels(config, tags, count, resources, labels)
"""


@pytest.fixture
def growing() -> Iterator[str]:
    """A head without CPUs, and Ray's autoscaler, which may add up to two nodes of each of two types.

    `ray.cluster_utils.AutoscalingCluster` does so, too, but ends every Ray of this machine.
    """
    place = tempfile.mkdtemp(prefix="t-", dir="/tmp")  # a socket's path is short
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    types: dict[str, dict[str, Any]] = {"cpu": {"CPU": 2, **_OWN}, "gpu": {"CPU": 2, "GPU": 1, **_OWN}}
    grows: dict[str, Any] = {"node_config": {}, "min_workers": 0, "max_workers": 2}
    config = {
        "cluster_name": "grows",
        "max_workers": 4,
        "idle_timeout_minutes": 5,
        "provider": {
            "type": "external",
            "module": "provider.Provider",
            "gcs_address": address,
            "use_node_id_as_ip": True,  # all nodes have the same
            "disable_node_updaters": True,
            "disable_launch_config_check": True,
        },
        "available_node_types": {
            "ray.head.default": {"resources": {}, "node_config": {}, "max_workers": 0},
            **{name: {"resources": resources, **grows} for name, resources in types.items()},
        },
        "head_node_type": "ray.head.default",
        # What its launcher would fill in, and these nodes have no use for.
        **{name: {} for name in ("auth", "file_mounts")},
        **{f"{name}_commands": [] for name in _COMMANDS},
        **{name: [] for name in ("cluster_synced_files", "rsync_exclude", "rsync_filter")},
        "file_mounts_sync_continuously": False,
        "upscaling_speed": 1.0,
    }
    (Path(place) / "config.yaml").write_text(json.dumps(config))
    (Path(place) / "provider.py").write_text(_PROVIDER)
    command = ["ray", "start", "--head", "--block", f"--port={address.split(':')[1]}", "--num-cpus=0", "--num-gpus=0"]
    command += ["--node-ip-address=127.0.0.1", "--include-dashboard=false", "--disable-usage-stats"]
    command += [
        f"--temp-dir={place}/ray",
        "--object-store-memory=80000000",
        f"--autoscaling-config={place}/config.yaml",
    ]
    variables = {"AUTOSCALER_UPDATE_INTERVAL_S": "1", "RAY_FAKE_CLUSTER": "1"}
    paths = {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    paths["PYTHONPATH"] = os.pathsep.join([place, os.environ.get("PYTHONPATH", "")])
    with (Path(place) / "log").open("w") as log:
        head = subprocess.Popen(
            command, env=os.environ | variables | paths, stdout=log, stderr=log, start_new_session=True
        )
    try:
        deadline = time.monotonic() + 60
        while "Ray runtime started" not in (text := (Path(place) / "log").read_text()):
            assert time.monotonic() < deadline, text
            assert head.poll() is None, text
            time.sleep(0.1)
        yield address
    finally:
        # The autoscaler ends first, for it would replace what is ended.
        head.send_signal(signal.SIGTERM)
        head.wait(60)
        for process in psutil.process_iter(["cmdline"]):
            if place in " ".join(process.info["cmdline"] or ()):
                process.kill()
        shutil.rmtree(place, ignore_errors=True)


@pytest.mark.ray
def test_a_cluster_grows_by_what_is_asked_for(growing: str, tmp_path: Path) -> None:
    stage: Any = Granted()
    folder = Folder(str(tmp_path))
    journal = DriverJournal(folder)
    settings = Settings(kind="ray", address=growing, workers=3, memory_per_worker_gb=0.2)
    notes: list[str] = []
    executor = RayExecutor(Context(folder, {"granted": stage}), journal, settings, notes.append)

    def run(label: str, *needs: Needs) -> str:
        (task, outcome), *others = executor.run([Task("granted", f"{len(notes):032x}", label, 0.1, {})], needs, _none)
        assert not others
        assert isinstance(outcome, Receipt), outcome
        return (tmp_path / task.label).read_text()

    try:
        on_cpu, on_gpu = Needs(memory_gb=0.2), Needs(memory_gb=0.2, gpus=1.0)
        assert run("either", on_gpu, on_cpu) == "0 of 0", "no GPU was started for it"
        assert run("gpu", on_gpu) == "1 of 1", "one task, one GPU"
        assert run("cpu", on_cpu) == "0 of 1"
    finally:
        executor.close()
        journal.close()
    assert notes == [
        "no node has CPUs for workers: waiting 300 s for one",
        "no node has a GPU for workers: waiting 900 s for one",
    ]


def _none(task: Task, part: float) -> None:
    """Parts of tasks are of no interest."""


cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Idling(Stage):
    """Takes as long as a task says; where it says so, the first attempt hangs."""

    name = "idling"
    version = 1
    unit = "s"
    any_device = True
    tables = {"none": Table(None, None)}

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        """The test makes tasks itself."""
        yield from ()

    def run(self, task: Task, context: Context) -> TaskOutput:
        """Leave a file that says who was here."""
        place = context.run.local()
        assert place is not None
        (place / f"{task.label}-{os.getpid()}").write_text(f"{context.granted.gpus:g}")
        hangs = task.payload["hangs"] and len(list(place.glob(f"{task.label}-*"))) == 1
        time.sleep(600.0 if hangs else task.work)
        if hangs:
            (place / "it-was-waited-for").touch()
        return TaskOutput(())


class Together(Search):
    """A search in which a CPU waits until a GPU has done a task: else it might do all of them alone."""

    def run(self, task: Task, context: Context) -> TaskOutput:
        """Leave word, or wait for it."""
        place = context.run.local()
        assert place is not None
        word, deadline = place / "gpu", time.monotonic() + 120
        if context.granted.gpus:
            done = super().run(task, context)
            word.touch()
            return done
        while not word.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        return super().run(task, context)


@pytest.fixture
def two_nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Two nodes of a CPU each; one says that it has a GPU, too."""
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")  # for what the nodes start
    place = tempfile.mkdtemp(prefix="t-", dir="/tmp")  # a socket's path is short
    head = {"num_cpus": 1, "num_gpus": 1, "include_dashboard": False, "temp_dir": place}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        made.add_node(num_cpus=1)
        yield str(made.address)
    finally:
        made.shutdown()
        shutil.rmtree(place, ignore_errors=True)


@pytest.mark.ray
def test_gpu_workers_and_cpu_workers_side_by_side_and_what_hangs_is_tried_again(
    two_nodes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []  # of an autoscaler
    monkeypatch.setattr(ray_instance, "request_resources", lambda bundles: asked.append(bundles))
    stage: Any = Idling()
    folder = Folder(str(tmp_path))
    journal = DriverJournal(folder)
    settings = Settings(kind="ray", address=two_nodes, workers=2, memory_per_worker_gb=0.2)
    executor = RayExecutor(Context(folder, {"idling": stage}), journal, settings)
    tasks = [Task("idling", f"{k:032x}", f"t{k}", 0.3, {"hangs": False}) for k in range(8)]
    tasks.append(Task("idling", f"{8:032x}", "t8", 0.2, {"hangs": True}))
    try:
        needs = (Needs(gpus=1.0, memory_gb=0.2), Needs(memory_gb=0.2))
        ended = [one for _, one in executor.run(tasks, needs, lambda task, part: None)]
        assert not (tmp_path / "it-was-waited-for").exists()
        # The next stage is not held up by what the first left behind.
        later = [Task("idling", f"{k:032x}", f"t{k}", 0.1, {"hangs": False}) for k in range(9, 12)]
        after = [one for _, one in executor.run(later, needs, lambda task, part: None)]
    finally:
        executor.close()
        journal.close()
    assert len(ended) == 9
    assert all(isinstance(one, Receipt) for one in (*ended, *after))
    by_process = {path.name.split("-")[1]: path.read_text() for path in tmp_path.glob("t*-*")}
    assert sorted(by_process.values()) == ["0", "1"], "a worker with a GPU, and one without"
    assert len(list(tmp_path.glob("t8-*"))) == 2
    text = (tmp_path / journal.name).read_text()
    assert text.count('"event": "again"') == 1
    assert asked == [[{"CPU": 1, "memory": 200_000_000}] * 2, []], "room for its workers, and in the end for none"


@pytest.mark.ray
@pytest.mark.compile
@pytest.mark.skipif(importlib.util.find_spec("numba_cuda") is None, reason="the extra gpu is not installed")
def test_a_gpu_and_a_cpu_search_one_run_and_find_the_bytes_of_a_cpu_alone(
    two_nodes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_corpus(tmp_path / "corpus", documents=6, queries=3, voices=2)
    tables = {"documents": "docs", "queries": "queries", "references": "refs"}
    config: dict[str, Any] = {
        "corpus": {name: str(tmp_path / "corpus" / f"{table}.csv") for name, table in tables.items()},
        "index": {"shards": 6},
    }
    alone = swsdist.run({**config, "run": str(tmp_path / "cpu"), "executor": {"kind": "serial"}})
    monkeypatch.setattr(steps, "Search", Together)
    ray = {"kind": "ray", "address": two_nodes, "memory_per_worker_gb": 0.2, "in_flight": 1}
    mixed = swsdist.run({**config, "run": str(tmp_path / "mixed"), "executor": ray, "search": {"backend": "auto"}})
    assert swsdist.digest(mixed.folder) == swsdist.digest(alone.folder)
    folder = Folder(str(tmp_path / "mixed"))
    ups = [line for lines in read_journals(folder) for line in lines if line["event"] == "up"]
    gpus = {line["pid"]: line["gpus"] for line in ups}  # type: ignore[typeddict-item]
    by = {gpus[pid] for pid in Ledger(folder).receipts("search", "").table()["pid"].to_pylist()}
    assert by == {0.0, 1.0}
