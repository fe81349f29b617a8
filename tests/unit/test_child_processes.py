"""CPU time of processes that this one started, whoever waits for them: with real processes."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator

import pytest

from swsdist.accounts.child_processes import ChildProcesses
from swsdist.accounts.journal import cpu_seconds

#: Takes 0.3 s of CPU, tells it, and waits for the end of its input.
_BURN = """
import sys, time
while time.process_time() < 0.3:
    pass
print(time.process_time(), flush=True)
sys.stdin.read()
"""
#: Starts such a process as a child; at each line of input it does what that says.
_PARENT = """
import signal, subprocess, sys
if {ignores}:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", {burn!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
print(child.stdout.readline().strip(), child.pid, flush=True)
sys.stdin.readline()
child.stdin.close()
child.wait()
print("ended", flush=True)
sys.stdin.readline()
"""


class Family:
    """A child of ours, and its child."""

    def __init__(self, ignores: bool) -> None:
        text = _PARENT.format(ignores=ignores, burn=_BURN)
        pipe = subprocess.PIPE
        self.parent = subprocess.Popen([sys.executable, "-c", text], stdin=pipe, stdout=pipe, text=True)
        seconds, number = self.read().split()
        self.burnt, self.grandchild = float(seconds), int(number)

    def read(self) -> str:
        assert self.parent.stdout is not None
        return self.parent.stdout.readline()

    def go_on(self) -> None:
        assert self.parent.stdin is not None
        self.parent.stdin.write("\n")
        self.parent.stdin.flush()


@pytest.fixture(params=[True, False], ids=["nobody waits", "its parent waits"])
def family(request: pytest.FixtureRequest) -> Iterator[Family]:
    made = Family(request.param)
    yield made
    made.parent.kill()
    made.parent.wait()
    for pipe in (made.parent.stdin, made.parent.stdout):
        assert pipe is not None
        pipe.close()


def test_each_second_is_counted_once_while_they_live_and_after(family: Family) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = ChildProcesses()
    alone = sum(cpu_seconds())
    assert {family.parent.pid, family.grandchild} <= set(started.look())
    both = started.seconds()
    assert both >= family.burnt - 0.02
    apart = started.seconds({family.grandchild})
    assert both - apart == pytest.approx(family.burnt, abs=0.06), "counted elsewhere"

    family.go_on()  # the grandchild ends
    assert family.read() == "ended\n"
    assert family.grandchild not in started.look()
    assert started.seconds() == pytest.approx(both, abs=0.06)
    assert started.seconds({family.grandchild}) == pytest.approx(apart, abs=0.06)

    family.go_on()  # the child ends, and is waited for: what it took is in our own account
    family.parent.wait()
    started.look()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    waited = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
    assert waited + started.seconds() == pytest.approx(both, abs=0.06)
    own = sum(cpu_seconds()) - alone - waited
    assert own >= 0
