"""A cluster of hosts: a Ray head that runs no tasks, Ray workers, and an S3 server (moto's) for corpus, store and run.

The hosts share no folder; what they have in common lies on the S3 server, which is a process of this machine. Every cluster has
a token of its own, which its drivers need (`Cluster.env`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError

from swsdist.core.errors import UserError
from swsdist.io.filesystem import Folder
from tests.support.cluster.network import Host, Network, run

_BUCKET = "cluster"
_S3_PORT = 5000
_RAY_PORT = 6379
_STARTS = 3
#: A dead host is noticed within seconds, not half a minute; a driver gives a dead head up after ten.
_QUICK = {
    "RAY_health_check_initial_delay_ms": "2000",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "4",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "20",
}


class Cluster:
    """A head (the first host) and workers; `env` is their environment, with a token, without what is of another cluster."""

    def __init__(self, network: Network, env: Mapping[str, str]) -> None:
        self.network = network
        kept = {name: value for name, value in env.items() if not name.startswith(("RAY_", "AWS_"))}
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": uuid.uuid4().hex}
        self.env = {**kept, **token, **_QUICK}
        endpoint = f"http://{network.gateway}:{_S3_PORT}"
        self.storage = {"endpoint_url": endpoint, "key": "testing", "secret": "testing"}
        self.bucket = f"s3://{_BUCKET}"
        server = [sys.executable, "-m", "moto.server", "-H", network.gateway, "-p", str(_S3_PORT)]
        self._server = subprocess.Popen(
            # Ends with this process, however that ends.
            ["setpriv", "--pdeathsig", "TERM", *server] if shutil.which("setpriv") else server,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            self._make_bucket(endpoint)
        except BaseException:
            self.close()
            raise

    @property
    def head(self) -> Host:
        """The host with Ray's head, which runs no tasks."""
        return self.network.hosts[0]

    @property
    def workers(self) -> list[Host]:
        """The other hosts."""
        return self.network.hosts[1:]

    @property
    def address(self) -> str:
        """Of Ray."""
        return f"{self.head.address}:{_RAY_PORT}"

    @property
    def sets(self) -> tuple[str, str]:
        """Of a config, to run on this cluster."""
        return "executor.kind=ray", f"executor.address={self.address}"

    def start_head(self) -> None:
        """Start Ray's head."""
        self._start(self.head, ["--head", f"--port={_RAY_PORT}", "--num-cpus=0", "--include-dashboard=false"], {})

    def start_workers(self, *hosts: Host, cpus: int = 1, env: Mapping[str, str] | None = None) -> None:
        """Start Ray on workers, side by side; `env` are variables of these hosts only."""
        with ThreadPoolExecutor(len(hosts)) as pool:
            begun = [
                pool.submit(self._start, host, [f"--address={self.address}", f"--num-cpus={cpus}"], env or {})
                for host in hosts
            ]
            for item in begun:
                item.result()

    def _start(self, host: Host, role: list[str], env: Mapping[str, str]) -> None:
        ray = str(Path(sys.executable).with_name("ray"))
        size = ["--memory=3000000000", "--object-store-memory=80000000", f"--temp-dir={host.folder}/ray"]
        words = [ray, "start", *role, f"--node-ip-address={host.address}", *size, "--disable-usage-stats"]
        for attempt in range(_STARTS):
            try:
                run(host, words, {**self.env, **env})
                return
            except UserError:  # Ray gives itself half a minute, which is too little where the machine has much to do
                if attempt == _STARTS - 1:
                    raise
                host.kill()

    def put(self, files: Path, place: str) -> str:
        """Copy a folder to the S3 server; gives its url."""
        target = Folder(f"{self.bucket}/{place}", self.storage)
        for path in sorted(files.rglob("*")):
            if path.is_file():
                target.write_bytes(path.relative_to(files).as_posix(), path.read_bytes())
        return target.root

    def _make_bucket(self, endpoint: str) -> None:
        request = urllib.request.Request(f"{endpoint}/{_BUCKET}", method="PUT")
        deadline = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(request, timeout=5).close()
                return
            except (URLError, OSError) as error:
                if self._server.poll() is not None or time.monotonic() > deadline:
                    raise UserError(
                        f"the S3 server did not start ({error})", where=endpoint, remedy="pip install 'moto[server]'"
                    ) from None
                time.sleep(0.1)

    def close(self) -> None:
        """End the S3 server; the hosts end with their network."""
        self._server.terminate()
        self._server.wait(timeout=20)


@contextmanager
def cluster(workers: int, folder: Path, env: Mapping[str, str] | None = None) -> Iterator[Cluster]:
    """A cluster that runs: its head and its workers, a CPU each. The folder's path is short, since sockets lie below it."""
    network = Network(workers + 1, folder)
    try:
        made = Cluster(network, os.environ if env is None else env)
        try:
            made.start_head()
            made.start_workers(*made.workers)
            yield made
        finally:
            made.close()
    finally:
        network.close()
