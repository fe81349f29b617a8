"""The table of faults: what was done to a cluster, when, how long it took to get over it, and whether results were the same.

`make faults` writes it. The environment variable FAULT_TABLE names the file.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from swsdist.accounts.hardware import describe, versions

_HEAD = """# What a cluster survives

A head and three workers, each with one CPU, run as network namespaces on one machine, with an S3 server and no shared
\
folder. Each fault is a test in `tests/integration/cluster` with slowed tasks. `make faults` writes this page. *The same
bytes* means \
the digest of an undisturbed serial run.

| fault | when | seconds | what had happened by then | outcome | the same bytes |
|---|---|---:|---|---|---|
"""


@dataclass(frozen=True)
class Fault:
    """A row of the table: what was done, when, the seconds from there to `until`, and the run's outcome; whether the digest is
    the serial run's, None where nothing was computed.
    """

    fault: str
    when: str
    seconds: float
    until: str
    outcome: str
    same: bool | None


@dataclass
class Table:
    """Rows in the order in which the faults were tried."""

    rows: list[Fault] = field(default_factory=list)

    def write(self, path: Path) -> None:
        """As a page of Markdown."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page(self.rows), encoding="utf-8")


def page(rows: Sequence[Fault]) -> str:
    """The page with these rows, and on what machine they were measured."""
    words = {True: "yes", False: "NO", None: "nothing was computed"}
    lines = [
        f"| {row.fault} | {row.when} | {row.seconds:.1f} | {row.until} | {row.outcome} | {words[row.same]} |\n"
        for row in rows
    ]
    machine, of = describe(), versions()
    tail = (
        f"\nMeasured on {machine['cores']} cores ({machine['cpu']}), Ray {of.get('ray', '?')}, Python {of['python']}, "
        f"{time.strftime('%Y-%m-%d', time.gmtime())}. Ray checks health faster here than by default: it "
        "notices "
        "a dead host in about 2 s instead of 15, a disconnected one in about 6 s instead of a minute. "
        "A dead head is given up after 8 s instead of 24.\n"
    )
    return _HEAD + "".join(lines) + tail
