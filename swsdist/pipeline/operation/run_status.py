"""How far a run is, as its driver says: one small file in the run folder, written every few seconds while it works.

Whoever looks at a run that works reads this and the ends of a few journals, however many tasks there are. Of a run that has
ended, or died, the receipts tell what is done; the file tells how its last driver ended.
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
    """How far a stage is: tasks that there are, that are done, that failed; when it began and ended (seconds since 1970)."""

    stage: str
    tasks: int
    done: int
    failed: int = 0
    before: int = 0
    begun: float = 0.0
    ended: float | None = None


@dataclass
class RunStatus:
    """How far a run is.

    Attributes:
        token: of the driver's lock.
        state: `running`, or how it ended: `done`, `incomplete`, `cancelled`, `terminated`, `interrupted` or `stopped`.
        message: what it ended with; empty where nothing was wrong.
        t: when this was written, in seconds since 1970.
        journals: of the processes that work, in the run folder.
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
        """As it is written."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1)


def read(run: Folder) -> RunStatus | None:
    """What the last driver said; None if there was none yet, or one of another version."""
    try:
        values: dict[str, Any] = json.loads(run.read_bytes(NAME))
        if values.pop("schema") != SCHEMA:
            return None
        stages = [StageProgress(**item) for item in values.pop("stages")]
        return RunStatus(**values, stages=stages)
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        return None
