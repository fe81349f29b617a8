"""The status file of a run: a small file in the run folder, which the driver writes every few seconds.

`swsdist status` reads it, and the ends of a few journals, whatever the number of tasks. For a run that has ended or died, the
receipts count; the file records how its last driver ended.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from swsdist.io.filesystem import Folder

NAME = "status.json"
SCHEMA = "swsdist-status/1"


@dataclass
class StageProgress:
    """Progress of a stage: numbers of tasks, of finished, failed and earlier ones; start and end in s since 1970."""

    stage: str
    tasks: int
    done: int
    failed: int = 0
    before: int = 0
    begun: float = 0.0
    ended: float | None = None


@dataclass
class RunStatus:
    """Progress of a run.

    Attributes:
        token: token of the driver's lock.
        state: `running`, or how it ended: `done` (all that was asked, even if the chain has more steps), `incomplete`,
            `cancelled`, `terminated`, `interrupted` or `stopped`.
        message: final error; empty: none.
        t: time of writing, s since 1970.
        journals: journals of the running processes, in the run folder.
    """

    token: str
    host: str
    pid: int
    state: str = "running"
    message: str = ""
    began: float = 0.0
    t: float = 0.0
    stages: list[StageProgress] = field(default_factory=list)
    journals: list[str] = field(default_factory=list)

    def to_json(self) -> str:
        """The content of the file."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1)


def read(run: Folder) -> RunStatus | None:
    """The last driver's status; None if there is none, or one of another version."""
    try:
        values: dict[str, Any] = json.loads(run.read_bytes(NAME))
        if values.pop("schema") != SCHEMA:
            return None
        stages = [StageProgress(**item) for item in values.pop("stages")]
        return RunStatus(**values, stages=stages)
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        return None
