"""Random faults for an hour; on this machine, and on hosts of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.soak
@pytest.mark.parametrize("hosts", [0, 3])
def test_a_hundred_random_faults(hosts: int) -> None:
    words = ["-m", "tests.support.soak", "--hours", "1", "--faults", "100", "--hosts", str(hosts)]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "100 faults in " in done.stdout
    assert ", 0 of them with other bytes" in done.stdout
