"""What a node is."""

import json

from swsdist.accounts import hardware


def test_the_machine_describes_itself() -> None:
    found = hardware.describe()
    assert json.loads(json.dumps(found)) == found
    assert set(found) == {"brand", "cpu", "cores", "clock_ghz", "ram_gb", "os"}
    assert found["cores"] >= 1
    assert found["ram_gb"] > 0.1
    assert found["cpu"]
    assert found["clock_ghz"] is None or 0.1 < found["clock_ghz"] < 10
    assert found["os"].startswith(("Linux", "Darwin", "Windows"))


def test_versions_of_what_counts() -> None:
    found = hardware.versions()
    assert {"python", "swsdist", "numpy", "numba", "pyarrow", "librosa", "soxr"} <= set(found)
    assert all(version[0].isdigit() for version in found.values())
