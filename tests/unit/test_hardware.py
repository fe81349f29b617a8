"""What a node is, against what the machine says by other ways."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from swsdist.accounts import hardware


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_machine_describes_itself() -> None:
    found = hardware.describe()
    assert json.loads(json.dumps(found)) == found
    assert set(found) == {"brand", "cpu", "cores", "clock_ghz", "ram_gb", "os", "gpu"}
    said = subprocess.run(["nproc"], env={}, capture_output=True, text=True, check=True).stdout
    assert found["cores"] == int(said), "those that this process may use"
    with Path("/proc/meminfo").open() as file:
        kibibytes = int(file.readline().split()[1])
    assert found["ram_gb"] == round(kibibytes * 1024 / 1e9, 1)
    assert found["os"] == f"Linux {platform.release()}"
    with Path("/proc/cpuinfo").open() as file:
        models = [" ".join(line.partition(":")[2].split()) for line in file if line.startswith("model name")]
    assert found["cpu"] in (models[:1] or [platform.processor(), platform.machine()])


def test_a_machine_that_says_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container without /proc/cpuinfo and without a vendor."""
    monkeypatch.setattr(hardware, "_first_line", lambda path: None)
    hardware.describe.cache_clear()
    try:
        found = hardware.describe()
    finally:
        hardware.describe.cache_clear()
    assert found["brand"] == "unknown"
    assert found["clock_ghz"] is None
    assert found["cpu"] == (platform.processor() or platform.machine())


def test_versions_of_what_counts() -> None:
    found = dict(hardware.versions())  # every caller gets the same one
    assert found.pop("python") == platform.python_version()
    assert re.fullmatch(r"\d+\.\d+\.\d+", found.pop("libsndfile"))  # no package, but what decodes
    assert {"swsdist", "numpy", "numba", "pyarrow", "soxr"} <= set(found)
    assert found == {name: version(name) for name in found}
