"""A Ray instance to work on: a private local one, guarded, or a cluster. Only this file and `ray_executor` import ray."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import ray
from ray.exceptions import RayError

from swsdist.errors import UserError
from swsdist.pipeline.execution import guard

#: Bytes of the private instance's object store: only tasks and receipts pass through it.
_OBJECT_STORE = 80_000_000


class Instance(NamedTuple):
    """The Ray instance that a driver is connected to: a guarded private one, or a cluster, which has no guard."""

    guard: subprocess.Popen[bytes] | None = None


def node_name() -> str:
    """The name of the node that this process is on; see above."""
    mine = ray.get_runtime_context().get_node_id()
    nodes = ray.nodes()
    host, address = next(
        ((node["NodeManagerHostname"], node["NodeManagerAddress"]) for node in nodes if node["NodeID"] == mine),
        (socket.gethostname(), ""),
    )
    same = {node["NodeManagerAddress"] for node in nodes if node["NodeManagerHostname"] == host}
    return f"{host}@{address}" if len(same) > 1 else str(host)


def node_resources() -> list[dict[str, float]]:
    """Resources of each node that is alive, as Ray names them."""
    return [dict(node["Resources"]) for node in ray.nodes() if node["Alive"]]


def connect(address: str | None, cpus: int) -> Instance:
    """Join a cluster, or start a private local instance.

    Args:
        address: of the cluster; None or `local` for a private instance.
        cpus: of a private instance; 0 for all of this machine.

    Returns:
        For `disconnect`.

    Raises:
        UserError: no cluster answers there.
    """
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address and address != "local":
        try:
            _knock(address)
            with _own_sigterm():
                ray.init(address=address, **quiet)
        except (OSError, RuntimeError, ValueError, RayError) as error:
            raise UserError(
                f"no Ray cluster answers ({error})",
                where=f"executor.address: {address}",
                remedy="start it (`ray start --head`), mend the address, or leave it out for a private local one",
            ) from None
        return Instance()
    folder = _private_folder()
    instance = Instance(guard.start(folder))
    try:
        with _own_sigterm():
            ray.init(
                address="local",
                num_cpus=cpus or len(os.sched_getaffinity(0)),
                object_store_memory=_OBJECT_STORE,
                include_dashboard=False,
                _temp_dir=folder,
                **quiet,
            )
    except BaseException:
        disconnect(instance)
        raise
    return instance


def disconnect(instance: Instance) -> None:
    """Leave the cluster, or end the private instance."""
    ray.shutdown()
    if instance.guard is not None:
        # What was computed is told, however long a process takes to go.
        with suppress(subprocess.TimeoutExpired):
            instance.guard.communicate(timeout=30)


def _knock(address: str) -> None:
    """Raises OSError where nobody listens: `ray.init` would try for many minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()


@contextmanager
def _own_sigterm() -> Iterator[None]:
    """`ray.init` puts a handler of its own in place of ours, with other exit codes: put ours back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    except SystemExit:
        raise SystemExit(128 + signal.SIGTERM) from None
    finally:
        signal.signal(signal.SIGTERM, handler)


def _private_folder() -> str:
    """A new folder in the temporary folder, or in /tmp where that is too long: a Unix socket's path may have 107 bytes."""
    place = tempfile.gettempdir()
    return tempfile.mkdtemp(prefix="sws-ray-", dir=place if len(place) <= 24 else "/tmp")


def reach(address: str | None) -> dict[str, float]:
    """Resources of a cluster, or of a private instance that is started and shut down for it."""
    instance = connect(address, 0)
    try:
        return dict(ray.cluster_resources())
    finally:
        disconnect(instance)
