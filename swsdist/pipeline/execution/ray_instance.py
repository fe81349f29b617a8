"""A Ray instance: a guarded private local one, a cluster, or the one that this process is already connected to.

A client of a Ray node can run code on it. So a private instance listens on the loopback alone, has no dashboard, and requires a
secret token, which only its processes have, in their environment; its files, including sockets, lie in a folder that only its
user may enter. Other users of the machine have no access.

A process can be connected to one Ray only. In a notebook that called `ray.init`, workers are actors of that instance, which is
never shut down here.

Only this file, `ray_executor` and `searcher.on_ray` import ray.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import ray
from ray._private import ray_constants
from ray.autoscaler.sdk import request_resources
from ray.exceptions import RayError

from swsdist.accounts.hardware import node_versions
from swsdist.accounts.journal import Journal
from swsdist.core.codes import families
from swsdist.core.errors import UserError
from swsdist.core.needs import Needs
from swsdist.pipeline.chain import Context
from swsdist.pipeline.execution import guard
from swsdist.pipeline.task import Receipt, Task

#: Bytes of the private instance's object store: only tasks and receipts pass through it.
_OBJECT_STORE = 80_000_000

#: Environment variable with the seconds that Ray waits for its head.
_HEAD_TIMEOUT = "RAY_gcs_rpc_server_reconnect_timeout_s"


#: Ray's variable for machines without cluster support: "0" binds all its servers to 127.0.0.1.
_LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
#: Whether Ray sends usage statistics to its makers.
_USAGE_STATS = "RAY_USAGE_STATS_ENABLED"


class Instance(NamedTuple):
    """The Ray instance that a driver is connected to.

    Attributes:
        guard: guard process of a private instance.
        joined: whether this driver made the connection, and did not find it.
    """

    guard: subprocess.Popen[bytes] | None = None
    joined: bool = True


def node_name() -> str:
    """Name of this process's node (see `ray_executor`)."""
    left = node_number()
    nodes = ray.nodes()
    host, address = next(
        ((node["NodeManagerHostname"], node["NodeManagerAddress"]) for node in nodes if node["NodeID"] == left),
        (socket.gethostname(), ""),
    )
    same = {node["NodeManagerAddress"] for node in nodes if node["NodeManagerHostname"] == host}
    return f"{host}@{address}" if len(same) > 1 else str(host)


class Head:
    """Ray's head, which is probed regularly: Ray's own calls wait for a dead head, and then end the process."""

    def __init__(self) -> None:
        self._address = str(ray.get_runtime_context().gcs_address)
        self._silent_since: float | None = None
        # When Ray gives up, it ends this process without a message; disconnecting takes some seconds, too.
        self._patience = 0.4 * float(os.environ.get(_HEAD_TIMEOUT, "60"))

    def answers(self) -> bool:
        """Whether the head accepts connections.

        Raises:
            UserError: it has not for too long.
        """
        try:
            _knock(self._address, 2.0)
        except OSError as error:
            now = time.monotonic()
            self._silent_since = self._silent_since or now
            if now - self._silent_since > self._patience:
                raise families.NO_CLUSTER(
                    "the head of the Ray cluster is gone ({detail})",
                    "restart it, and run again: computed results are kept",
                    where=f"executor.address: {self._address}",
                    detail=error,
                ) from None
            return False
        self._silent_since = None
        return True

    def wait(self) -> None:
        """Wait until the head accepts connections, before a call of Ray that would wait for it.

        Raises:
            UserError: it has not for too long.
        """
        while not self.answers():
            time.sleep(0.5)

    @property
    def gone(self) -> bool:
        """Whether the head does not answer now."""
        with suppress(UserError):
            return not self.answers()
        return True


def node_number() -> str:
    """Ray's id of this process's node."""
    return str(ray.get_runtime_context().get_node_id())


def alive_nodes() -> set[str]:
    """Ray's ids of the live nodes."""
    return {node["NodeID"] for node in ray.nodes() if node["Alive"]}


def node_resources() -> list[dict[str, float]]:
    """Resources of each live node, by Ray's names."""
    return [dict(node["Resources"]) for node in ray.nodes() if node["Alive"]]


def await_nodes(
    seconds: float, note: Callable[[str], None], lacking: Callable[[Sequence[Mapping[str, float]]], str | None]
) -> list[dict[str, float]]:
    """Resources of each node; waits for what an autoscaler may still add.

    Args:
        seconds: longest wait.
        note: called with what is waited for.
        lacking: what the nodes lack, from their resources; None: nothing.
    """
    deadline = time.monotonic() + seconds
    while True:
        result = node_resources()
        if (lack := lacking(result)) is None or time.monotonic() > deadline:
            return result
        note(f"no node has {lack}: waiting {seconds:.0f} s for one")
        time.sleep(1.0)


def ready_calls(calls: list[ray.ObjectRef], seconds: float) -> list[ray.ObjectRef]:
    """The calls that are answered when the first answer arrives; empty after `seconds`."""
    if not ray.wait(calls, num_returns=1, timeout=seconds)[0]:
        return []
    ready: list[ray.ObjectRef] = ray.wait(calls, num_returns=len(calls), timeout=0)[0]
    return ready


def connect(address: str | None, cpus: int) -> Instance:
    """Join a cluster, start a private local instance, or use the present connection of this process.

    Args:
        address: address of the cluster; `local`: a private instance; None: the present connection, or a private instance.
        cpus: CPUs of a private instance; 0: all of this machine.

    Returns:
        The instance, for `disconnect`.

    Raises:
        UserError: no cluster answers at the address, this process is connected to another, or Ray does not start.
    """
    if ray.is_initialized():
        _demand_same(address)
        return Instance(joined=False)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address and address != "local":
        try:
            _knock(address)
            _forget_secret()  # of an earlier private instance
            with _own_sigterm():
                ray.init(address=address, **quiet)
        except (OSError, RuntimeError, ValueError, RayError) as error:
            raise families.NO_CLUSTER(
                "no Ray cluster answers ({detail})",
                "start it (`ray start --head`), correct the address, or leave it out for a private local one",
                where=f"executor.address: {address}",
                detail=error,
            ) from None
        return Instance()
    folder = _private_folder()
    instance = Instance(guard.start(folder))
    try:
        with _own_sigterm(), _closed():
            ray.init(
                address="local",
                num_cpus=cpus or len(os.sched_getaffinity(0)),
                object_store_memory=_OBJECT_STORE,
                include_dashboard=False,
                _temp_dir=f"{folder}/ray",  # Ray makes this folder writable for everybody
                **quiet,
            )
    except BaseException as error:
        disconnect(instance)
        if isinstance(error, Exception):  # Ray raises nothing narrower when a node starts too slowly
            raise families.NO_CLUSTER(
                "Ray does not start on this machine ({detail})",
                "run without it: --set executor.kind=serial; or try again when the machine is less busy",
                where="executor.kind: ray",
                detail=str(error).split("\n")[0],
            ) from error
        raise
    return instance


def create_actor(kind: type, needs: Needs, *arguments: object, **options: object) -> Any:
    """Start an actor with these resources: a handle."""
    needed = {"num_cpus": needs.cpus, "num_gpus": needs.gpus, "memory": int(needs.memory_gb * 1e9)}
    return ray.remote(kind).options(**needed, **options).remote(*arguments)


def await_end(actors: Sequence[Any], seconds: float = 2.0) -> None:
    """Wait a short time until killed actors are gone.

    An actor that outlives its node's raylet takes up to a second of CPU to notice.
    """
    deadline = time.monotonic() + seconds
    left = list(actors)
    while left and (rest := deadline - time.monotonic()) > 0:
        calls = {actor.__ray_ready__.remote(): actor for actor in left}
        ended, silent = ray.wait(list(calls), num_returns=len(calls), timeout=rest)
        left = [calls[call] for call in silent]
        for call in ended:
            try:
                ray.get(call)
                left.append(calls[call])  # not killed yet
            except RayError:
                continue
        time.sleep(0.02)


def ask_for(workers: int, needs: Needs) -> None:
    """Ask the cluster's autoscaler, if any, for room for this number of workers."""
    bundle = {"CPU": needs.cpus, "memory": int(needs.memory_gb * 1e9), **({"GPU": needs.gpus} if needs.gpus else {})}
    with suppress(RayError, RuntimeError, OSError):  # the cluster may be gone
        request_resources(bundles=[bundle] * workers)


def disconnect(instance: Instance) -> None:
    """Leave the cluster, or end the private instance; a connection that already existed stays."""
    if not instance.joined:
        return
    ray.shutdown()
    if instance.guard is not None:
        _forget_secret()
        # A slow process must not delay the results.
        with suppress(subprocess.TimeoutExpired):
            instance.guard.communicate(timeout=30)


def _demand_same(address: str | None) -> None:
    """Check that the address, if any, is that of the present connection."""
    present: str = ray.get_runtime_context().gcs_address
    if address is None or address == "auto" or address.rpartition("://")[2] == present:
        return
    requested = "a private instance of Ray" if address == "local" else f"the Ray at {address}"
    raise families.CONFLICTING_OPTIONS(
        "{requested} is requested, but this process is connected to the Ray at {address}",
        (
            "call ray.shutdown() first, start another process (`swsdist run`), or leave the address "
            "out (RAY_ADDRESS too) to use the present connection"
        ),
        where="executor.address",
        requested=requested,
        address=present,
    )


@contextmanager
def _closed() -> Iterator[None]:
    """Within the context, Ray's processes start with loopback servers and a new secret token.

    The environment is restored afterwards: other child processes must not have the token.
    """
    variables = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32), _LOOPBACK: "0", _USAGE_STATS: "0"}
    names = (*variables, "RAY_AUTH_TOKEN_PATH")
    before = {name: os.environ.pop(name) for name in names if name in os.environ}
    clusters = ray_constants.ENABLE_RAY_CLUSTER  # read from the environment when ray was imported
    os.environ.update(variables)
    ray_constants.ENABLE_RAY_CLUSTER = False
    _forget_secret()
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = clusters
        for name in names:
            os.environ.pop(name, None)
        os.environ.update(before)


def _forget_secret() -> None:
    """Make Ray read mode and token from the environment again; it caches them for the life of the process."""
    raylet: Any = ray._raylet
    raylet.Config.initialize("")
    raylet.AuthenticationTokenLoader.instance().reset_cache()


def _knock(address: str, seconds: float = 10.0) -> None:
    """Raise OSError if the address does not accept connections; `ray.init` would try for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=seconds).close()


@contextmanager
def _own_sigterm() -> Iterator[None]:
    """Keep our handler of SIGTERM while `ray.init` runs, which would replace it and lose signals.

    Ray also sets a native handler, which ends the process with SIGABRT; Python cannot see it, so ours is set again.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    set_signal, ours = signal.signal, signal.getsignal(signal.SIGTERM)

    def keep(number: int, handler: Any) -> Any:
        return signal.getsignal(number) if number == signal.SIGTERM else set_signal(number, handler)

    signal.signal = keep  # type: ignore[assignment]
    try:
        yield
    finally:
        signal.signal = set_signal
        set_signal(signal.SIGTERM, ours)


def _private_folder() -> str:
    """Create a folder that only this user may enter, in the temporary folder, or in /tmp if that path is too long.

    The path of a Unix socket has at most 107 bytes, of which Ray uses up to 64 below this folder.
    """
    place = tempfile.gettempdir()
    return tempfile.mkdtemp(prefix="sws-ray-", dir=place if len(place) <= 22 else "/tmp")


def check(address: str | None) -> str:
    """Resources of a cluster, or of a private instance, which is started and shut down."""
    instance = connect(address, 0)
    try:
        has = ray.cluster_resources()
        return f"{address or 'a private instance'}: {has.get('CPU', 0):g} CPUs, {has.get('memory', 0) / 1e9:.1f} GB"
    finally:
        disconnect(instance)


#: What workers count of finished tasks, by stage. Ray adds `ray_` to each name, and labels of node and worker.
_METRICS: dict[str, tuple[str, Callable[[Receipt], float]]] = {
    "tasks_total": ("Tasks that are done.", lambda receipt: 1),
    "cpu_seconds_total": ("CPU seconds of tasks that are done.", lambda receipt: receipt.cost.cpu),
    "work_total": ("Work that is done, in the stage's unit: seconds of audio of index.", lambda receipt: receipt.work),
    "cells_total": ("Query frames times document frames that were searched.", lambda receipt: receipt.cost.cells),
    "read_bytes_total": ("Bytes that tasks read of files and objects.", lambda receipt: receipt.cost.bytes_read),
    "written_bytes_total": ("Bytes of outputs that tasks wrote.", lambda receipt: receipt.cost.bytes_written),
}


class Ready(NamedTuple):
    """The first answer of an actor.

    Attributes:
        host: name of its node.
        pid: its process.
        journal: name of its journal.
        node: Ray's id of the node.
        versions: versions of libraries.
        cached: files in the node's cache, SHA-256 and bytes.
    """

    host: str
    pid: int
    journal: str
    node: str
    versions: dict[str, str]
    # An older swsdist has no such field: the node is refused by its version, not taken for a crash.
    cached: Sequence[tuple[str, int]] = ()


class Actor:
    """A worker in its own process, for the whole run.

    Ray exports its metrics for Prometheus on each node, if Ray's extra `default` is installed.
    """

    def __init__(self, context: Context, threads: int) -> None:
        self._context = context
        self._threads = threads

    def ready(self) -> Ready:
        """Start the worker, and describe it.

        Not in `__init__`: errors of an actor's constructor reach the driver as text only.
        """
        from ray.util.metrics import Counter

        from swsdist.pipeline.execution.executor import Worker
        from swsdist.store.memory import cached_files

        self._counters = {
            name: Counter(f"swsdist_{name}", description=text, tag_keys=("stage",))
            for name, (text, _) in _METRICS.items()
        }
        self._journal = Journal(self._context.run, "worker", node_name())
        self._worker = Worker(self._context, self._journal, self._threads, dedicated=True)
        return Ready(
            self._journal.host, os.getpid(), self._journal.name, node_number(), node_versions(), cached_files()
        )

    def run(self, task: Task) -> Receipt:
        """Run a task."""
        receipt = self._worker.run(task)
        for name, (_, amount) in _METRICS.items():
            if (value := amount(receipt)) > 0:  # Ray refuses an increment of 0
                self._counters[name].inc(value, tags={"stage": receipt.stage})
        return receipt

    def close(self) -> None:
        """Close the journal."""
        self._journal.close()
