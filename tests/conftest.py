"""Fixtures that several folders of tests share."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.error import URLError

import pytest


@dataclass(frozen=True)
class S3Server:
    """A running S3 server: its endpoint, a bucket of this test session, and the options that reach it."""

    endpoint: str
    bucket: str
    storage: dict[str, Any]

    def new_bucket(self, name: str) -> str:
        """Make another bucket, and give its name back."""
        import s3fs

        s3fs.S3FileSystem(**self.storage, skip_instance_cache=True).mkdir(name)
        return name


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """A real S3 server (moto's) in a process of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    endpoint = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(endpoint, process)
        storage = {"endpoint_url": endpoint, "key": "testing", "secret": "testing"}
        server = S3Server(endpoint, "swsdist", storage)
        server.new_bucket(server.bucket)
        yield server
    finally:
        process.terminate()
        process.wait(timeout=20)


def _wait_for(endpoint: str, process: subprocess.Popen[bytes], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            urllib.request.urlopen(endpoint, timeout=5).close()
            return
        except (URLError, OSError):
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
