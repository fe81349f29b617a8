"""Fixtures that several folders of tests share, which tests run beside each other, and on how many examples.

With pytest-xdist (`make test`) a worker takes one test after the other, or all of one group. Tests that start Ray, those that
have the S3 server, those that read the run of Mboshi dev and those that read the source are a group each: they share what was
started or made once, and do not run beside their like.

The environment variable HYPOTHESIS_PROFILE says on which examples a property is tried: `nightly`, as many as its test says,
others each time; `dev`, at most 20 of these; `ci` (the default), half, the same each time: a failure there is the change's.
"""

from __future__ import annotations

import gc
import math
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError

import hypothesis
import pytest

# The root of the checkout, which pytest started as a program does not put on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.support.recipes import find_recipes

find_recipes()

#: Examples of a property, by the profile, of what its test says.
PROFILES: dict[str, Callable[[int], int]] = {
    "dev": lambda examples: min(examples, 20),
    "ci": lambda examples: math.ceil(examples / 2),
    "nightly": lambda examples: examples,
}
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")

# Properties inherit these. None has a deadline: no time is asserted, and beside others a kernel is compiled for seconds.
hypothesis.settings.register_profile("swsdist", deadline=None, derandomize=PROFILE == "ci")
hypothesis.settings.load_profile("swsdist")


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests in groups, and set the number of examples."""
    if PROFILE not in PROFILES:
        raise pytest.UsageError(f"HYPOTHESIS_PROFILE is {PROFILE!r}, and not one of {', '.join(PROFILES)}")
    changed: set[Any] = set()
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            if "s3" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group("s3"))
            elif "mboshi_dev" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group("mboshi-dev"))
            elif item.get_closest_marker("ray"):
                item.add_marker(pytest.mark.xdist_group("ray"))
            elif item.path.parent.name == "arch":
                item.add_marker(pytest.mark.xdist_group("arch"))
        if hypothesis.is_hypothesis_test(getattr(item, "obj", None)):
            _limit(item, PROFILES[PROFILE], changed)


def pytest_collection_finish() -> None:
    """Collect garbage seldom: what the tests import is a million objects, and each collection would look at all of them."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


def _limit(item: Any, examples: Callable[[int], int], changed: set[Any]) -> None:
    """Set a property's number of examples, once. hypothesis has no public way to do so after `@settings`."""
    test = getattr(item.obj, "__func__", item.obj)
    place, name = (test, "_hypothesis_internal_use_settings") if hasattr(test, "hypothesis") else (item.cls, "settings")
    if place not in changed:  # a machine of states has them in its class
        changed.add(place)
        said = getattr(place, name)
        setattr(place, name, hypothesis.settings(said, max_examples=examples(said.max_examples)))


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
def mboshi_dev(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The run of configs/mboshi-dev.yaml: its `RunResult`; to be read only."""
    import swsdist

    root = Path(__file__).resolve().parents[1]
    if not (root.parent / "shared/data/mboshi/dev").is_dir():
        pytest.skip("needs ../shared beside the checkout, with the Mboshi corpus")
    folder = tmp_path_factory.mktemp("mboshi-dev")
    return swsdist.run(root / "configs/mboshi-dev.yaml", sets=[f"run={folder}", "executor.kind=serial"])


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
        process.wait(timeout=60)


def _wait_for(endpoint: str, process: subprocess.Popen[bytes], seconds: float = 240.0) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            urllib.request.urlopen(endpoint, timeout=5).close()
            return
        except (URLError, OSError):
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
