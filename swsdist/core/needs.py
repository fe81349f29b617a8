"""Resources that a task needs of a machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Needs:
    """Resources of one worker. Work lists alternatives, the best first, and gets the first available.

    Attributes:
        cpus: CPUs, and so threads.
        memory_gb: GB = 1e9 bytes; 0: not stated, so that the config decides.
        gpus: GPUs; a fraction shares one.
    """

    cpus: int = 1
    memory_gb: float = 0.0
    gpus: float = 0.0

    def __post_init__(self) -> None:
        if self.cpus < 1 or self.memory_gb < 0 or self.gpus < 0:
            raise ValueError(f"{self} cannot be: at least 1 CPU, and neither memory nor GPUs below 0")

    def satisfies(self, other: Needs) -> bool:
        """Whether these resources suffice for `other`; a GPU is not used for work without need of one."""
        enough = self.cpus >= other.cpus and self.memory_gb >= other.memory_gb and self.gpus >= other.gpus
        return enough and bool(self.gpus) == bool(other.gpus)


#: Needs of work that states none.
LEAST: tuple[Needs, ...] = (Needs(),)
