"""Codes of the command `superb`."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import ConfigError, IncompleteError

NO_SUCH_UPSTREAM = Code(
    "no-such-upstream",
    ConfigError,
    "{name!r} is no folder, and the cache of Hugging Face on this machine has no such model",
    "name a model's folder, or fetch it first: hf download {name}",
)
NO_SUCH_LAYERS = Code(
    "no-such-layers",
    ConfigError,
    "{text!r} does not name layers of this model, which are 0 to {last}",
    "write all, or numbers between commas: 0,3,6",
)
SUPERB_TASKS_FAILED = Code(
    "superb-tasks-failed",
    IncompleteError,
    "{count} tasks are not done; the first: {first}",
    "remove the cause and give the same command again: finished tasks are kept",
)
