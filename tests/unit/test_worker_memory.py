"""A worker gives memory back between tasks; in a process of its own, since the tests before may have filled this one."""

import subprocess
import sys

_PROGRAM = """
import psutil
from swsdist.pipeline.execution.executor import release_memory, use_system_memory

use_system_memory()
import pyarrow as pa

class Cycle:
    pass

def resident():
    return psutil.Process().memory_info().rss

release_memory()
before = resident()
cycle = Cycle()
cycle.me, cycle.blocks = cycle, [bytearray(1000) for _ in range(100_000)]
table = pa.table({"x": pa.array(["a name that takes some bytes"] * 2_000_000)}).cast(pa.schema([("x", pa.large_string())]))
last = [bytearray(1000) for _ in range(100)]  # above all that is given back
held = resident() - before
del cycle, table
release_memory()
print(held / 1e6, (resident() - before) / 1e6)
"""


def test_what_a_task_held_is_given_back() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    held, left = map(float, done.stdout.split())
    assert held > 150
    assert left < 0.3 * held  # without it three quarters stay
