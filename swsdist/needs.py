"""What a piece of work needs of the machine that does it."""

from __future__ import annotations

from typing import NamedTuple


class Needs(NamedTuple):
    """CPUs and so threads, memory in GB (1e9 bytes), GPUs (a part of one may be shared)."""

    cpus: int = 1
    memory_gb: float = 1.0
    gpus: float = 0.0
