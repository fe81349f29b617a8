"""A Ray instance to work on: a private local one, guarded, or a cluster, or the one that this process is connected to already.

Whoever may speak to a node of Ray can run code on it. So a private instance listens on the loopback alone, has no dashboard,
and answers only to a secret of its own, which its processes have in their environment; its files, sockets among them, lie in a
folder that its user alone may enter. Other users of the machine are kept out.

A process can be connected to one Ray only. In a notebook that has called `ray.init` a run's workers are actors there; that Ray
is the user's, and is never shut down here.

Only this file, `ray_executor`, `ray_metrics` and `searcher.on_ray` import ray.
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import ray
from ray._private import ray_constants
from ray.autoscaler.sdk import request_resources
from ray.exceptions import RayError

from swsdist.core.codes import pipeline as codes
from swsdist.core.errors import UserError
from swsdist.core.needs import Needs
from swsdist.pipeline.execution import guard

#: Bytes of the private instance's object store: only tasks and receipts pass through it.
_OBJECT_STORE = 80_000_000

#: The variable with the seconds for which Ray waits for its head.
_GIVES_UP = "RAY_gcs_rpc_server_reconnect_timeout_s"


#: For Ray the same as "this is a machine where Ray makes no cluster": all its servers bind to 127.0.0.1.
_LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
#: Whether a process of Ray tells its makers once an hour what runs here.
_TELLS_ANYSCALE = "RAY_USAGE_STATS_ENABLED"


class Instance(NamedTuple):
    """The Ray instance that a driver is connected to.

    Attributes:
        guard: of a private one.
        joined: whether the driver's connection is its own, and not one that was there before.
    """

    guard: subprocess.Popen[bytes] | None = None
    joined: bool = True


def node_name() -> str:
    """The name of the node that this process is on (`ray_executor` says how nodes are named)."""
    mine = node_number()
    nodes = ray.nodes()
    host, address = next(
        ((node["NodeManagerHostname"], node["NodeManagerAddress"]) for node in nodes if node["NodeID"] == mine),
        (socket.gethostname(), ""),
    )
    same = {node["NodeManagerAddress"] for node in nodes if node["NodeManagerHostname"] == host}
    return f"{host}@{address}" if len(same) > 1 else str(host)


class Head:
    """Ray's head, which is asked now and then whether it is there: Ray's own calls wait for it, and then end the process."""

    def __init__(self) -> None:
        self._address = str(ray.get_runtime_context().gcs_address)
        self._silent_since: float | None = None
        # Ray itself ends this process without a word when it gives up; to leave Ray takes some seconds, too.
        self._patience = 0.4 * float(os.environ.get(_GIVES_UP, "60"))

    def answers(self) -> bool:
        """Whether somebody listens there.

        Raises:
            UserError: nobody has for too long.
        """
        try:
            _knock(self._address, 2.0)
        except OSError as error:
            now = time.monotonic()
            self._silent_since = self._silent_since or now
            if now - self._silent_since > self._patience:
                raise codes.RAY_HEAD_LOST(where=f"executor.address: {self._address}", detail=error) from None
            return False
        self._silent_since = None
        return True

    def wait(self) -> None:
        """Until somebody listens there: what is asked of Ray next would wait for it.

        Raises:
            UserError: nobody has for too long.
        """
        while not self.answers():
            time.sleep(0.5)

    @property
    def gone(self) -> bool:
        """Whether it does not answer just now."""
        with suppress(UserError):
            return not self.answers()
        return True


def node_number() -> str:
    """Ray's name of the node that this process is on."""
    return str(ray.get_runtime_context().get_node_id())


def alive_nodes() -> set[str]:
    """Ray's names of the nodes that live."""
    return {node["NodeID"] for node in ray.nodes() if node["Alive"]}


def node_resources() -> list[dict[str, float]]:
    """Resources of each node that is alive, as Ray names them."""
    return [dict(node["Resources"]) for node in ray.nodes() if node["Alive"]]


def await_nodes(seconds: float, told: Callable[[str], None]) -> list[dict[str, float]]:
    """Resources of each node; where none has CPUs, as before an autoscaler has brought some, one is waited for."""
    deadline = time.monotonic() + seconds
    while True:
        found = node_resources()
        if any(node.get("CPU") for node in found) or time.monotonic() > deadline:
            return found
        told(f"no node has CPUs for workers: waiting {seconds:.0f} s for one")
        time.sleep(1.0)


def ready_calls(calls: list[ray.ObjectRef], seconds: float) -> list[ray.ObjectRef]:
    """Those of some calls that are answered when the first is; none if that takes longer."""
    if not ray.wait(calls, num_returns=1, timeout=seconds)[0]:
        return []
    ready: list[ray.ObjectRef] = ray.wait(calls, num_returns=len(calls), timeout=0)[0]
    return ready


def connect(address: str | None, cpus: int) -> Instance:
    """Join a cluster, or start a private local instance; where this process is connected to a Ray already, use that one.

    Args:
        address: of the cluster; `local` for a private instance; None for the connection that there is, else a private instance.
        cpus: of a private instance; 0 for all of this machine.

    Returns:
        For `disconnect`.

    Raises:
        UserError: no cluster answers there, or this process is connected to another.
    """
    if ray.is_initialized():
        _demand_same(address)
        return Instance(joined=False)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address and address != "local":
        try:
            _knock(address)
            _forget_secret()  # that of a private instance before
            with _own_sigterm():
                ray.init(address=address, **quiet)
        except (OSError, RuntimeError, ValueError, RayError) as error:
            raise codes.NO_RAY_CLUSTER(where=f"executor.address: {address}", detail=error) from None
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
                _temp_dir=f"{folder}/ray",  # to this one everybody may write: Ray sees to that
                **quiet,
            )
    except BaseException:
        disconnect(instance)
        raise
    return instance


def await_end(actors: Sequence[Any], seconds: float = 2.0) -> None:
    """Wait until actors that were killed are gone, but not long.

    One that still lives when its node's part of Ray ends takes up to a second of CPU to find that out.
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
                left.append(calls[call])  # it did not know yet
            except RayError:
                continue
        time.sleep(0.02)


def ask_for(workers: int, given: Needs) -> None:
    """Tell an autoscaler of the cluster, if there is one, for how many workers there should be room."""
    with suppress(RayError, RuntimeError, OSError):  # the cluster may be gone
        request_resources(bundles=[{"CPU": given.cpus, "memory": int(given.memory_gb * 1e9)}] * workers)


def disconnect(instance: Instance) -> None:
    """Leave the cluster, or end the private instance; a connection that was there before stays."""
    if not instance.joined:
        return
    ray.shutdown()
    if instance.guard is not None:
        _forget_secret()
        # What was computed is told, however long a process takes to go.
        with suppress(subprocess.TimeoutExpired):
            instance.guard.communicate(timeout=30)


def _demand_same(address: str | None) -> None:
    """That an address, if there is one, is that of the Ray that this process is connected to."""
    mine: str = ray.get_runtime_context().gcs_address
    if address is None or address == "auto" or address.rpartition("://")[2] == mine:
        return
    requested = "a private instance of Ray" if address == "local" else f"the Ray at {address}"
    raise codes.OTHER_RAY_CONNECTION(where="executor.address", requested=requested, address=mine)


@contextmanager
def _closed() -> Iterator[None]:
    """What is started in here listens on the loopback alone, and answers to a new secret.

    The environment is as it was afterwards: other children of this process need no secret of Ray.
    """
    own = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32), _LOOPBACK: "0", _TELLS_ANYSCALE: "0"}
    names = (*own, "RAY_AUTH_TOKEN_PATH")
    before = {name: os.environ.pop(name) for name in names if name in os.environ}
    clusters = ray_constants.ENABLE_RAY_CLUSTER  # read from the environment when ray was imported
    os.environ.update(own)
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
    """Have Ray look for mode and secret in the environment again, which it keeps for as long as the process lives."""
    known: Any = ray._raylet
    known.Config.initialize("")
    known.AuthenticationTokenLoader.instance().reset_cache()


def _knock(address: str, seconds: float = 10.0) -> None:
    """Raises OSError where nobody listens: `ray.init` would try for many minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=seconds).close()


@contextmanager
def _own_sigterm() -> Iterator[None]:
    """Let `ray.init` put no handlers of its own in place of ours: a signal that came just then would be lost.

    One that it puts in native code, which ends the process with SIGABRT, is seen by nobody here, so ours is put anew.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    whole, ours = signal.signal, signal.getsignal(signal.SIGTERM)

    def keep(number: int, handler: Any) -> Any:
        return signal.getsignal(number) if number == signal.SIGTERM else whole(number, handler)

    signal.signal = keep  # type: ignore[assignment]
    try:
        yield
    finally:
        signal.signal = whole
        whole(signal.SIGTERM, ours)


def _private_folder() -> str:
    """A new folder that this user alone may enter, in the temporary folder, or in /tmp where that is too long.

    The path of a Unix socket may have 107 bytes, and Ray's begins with up to 64 of its own below the folder that it is given.
    """
    place = tempfile.gettempdir()
    return tempfile.mkdtemp(prefix="sws-ray-", dir=place if len(place) <= 22 else "/tmp")


def reach(address: str | None) -> dict[str, float]:
    """Resources of a cluster, or of a private instance that is started and shut down for it."""
    instance = connect(address, 0)
    try:
        return dict(ray.cluster_resources())
    finally:
        disconnect(instance)
