"""A cluster that begins without workers grows as a run asks, by Ray's own autoscaler; nodes are processes, GPUs made up."""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from ray import cloudpickle

from swsdist.accounts.journal import DriverJournal
from swsdist.config.model import Executor as Settings
from swsdist.core.needs import Needs
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Context, Inputs, Stage, Table
from swsdist.pipeline.execution.ray_executor import RayExecutor
from swsdist.pipeline.task import Receipt, Task, TaskOutput

pytestmark = pytest.mark.ray
cloudpickle.register_pickle_by_value(sys.modules[__name__])

_OWN = {"memory": 2_000_000_000, "object_store_memory": 80_000_000}
_COMMANDS = ("initialization", "setup", "head_setup", "worker_setup", "head_start_ray", "worker_start_ray")


class Granted(Stage):
    name = "granted"
    version = 1
    unit = "s"
    tables = {"none": Table(None, None)}

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        yield from ()

    def run(self, task: Task, context: Context) -> TaskOutput:
        there = ray.cluster_resources().get("GPU", 0)
        context.run.write_bytes(task.label, f"{context.granted.gpus:g} of {there:g}".encode())
        return TaskOutput(())


#: Nodes that are processes; no memory as a resource.
_PROVIDER = """
from ray.autoscaler._private.fake_multi_node.node_provider import FakeMultiNodeProvider

class Provider(FakeMultiNodeProvider):
    def _create_node_with_resources_and_labels(self, config, tags, count, resources, labels):
        resources = {name: value for name, value in resources.items() if name != "memory"}
        super()._create_node_with_resources_and_labels(config, tags, count, resources, labels)
"""


@pytest.fixture
def cluster(new_ray_head: Any) -> Iterator[str]:
    """A head without CPUs, and Ray's autoscaler, which may add up to two nodes of each of two types.

    `ray.cluster_utils.AutoscalingCluster` does so, too, but ends every Ray of this machine.
    """
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
            **dict.fromkeys(("use_node_id_as_ip", "disable_node_updaters", "disable_launch_config_check"), True),
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
    options = ("--num-cpus=0", "--num-gpus=0", "--node-ip-address=127.0.0.1")
    variables = {"AUTOSCALER_UPDATE_INTERVAL_S": "1", "RAY_FAKE_CLUSTER": "1"}
    with tempfile.TemporaryDirectory(prefix="t-", dir="/tmp", ignore_cleanup_errors=True) as place:
        (Path(place) / "config.yaml").write_text(json.dumps(config))
        (Path(place) / "provider.py").write_text(_PROVIDER)
        paths = {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
        paths["PYTHONPATH"] = os.pathsep.join([place, os.environ.get("PYTHONPATH", "")])
        scaling = f"--autoscaling-config={place}/config.yaml"
        # What is left is killed after the head, for its autoscaler would replace it.
        with new_ray_head(Path(place), address, os.environ | variables | paths, *options, scaling):
            yield address


def test_a_cluster_grows_by_what_is_asked_for(cluster: str, tmp_path: Path) -> None:
    stage: Any = Granted()
    folder = Folder(str(tmp_path))
    journal = DriverJournal(folder)
    settings = Settings(kind="ray", address=cluster, workers=3, memory_per_worker_gb=0.2)
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
    pass
