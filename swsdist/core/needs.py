"""Resources that a task needs of a machine."""

from __future__ import annotations

import re
from dataclasses import dataclass

from swsdist.core.codes import cli as codes
from swsdist.core.errors import ConfigError


@dataclass(frozen=True)
class Needs:
    """Resources of one worker. Work lists alternatives, the best first, and gets the first available.

    Attributes:
        cpus: CPUs, and so threads.
        memory_gb: GB = 1e9 bytes.
        gpus: GPUs; a fraction shares one.
    """

    cpus: int = 1
    memory_gb: float = 1.0
    gpus: float = 0.0

    def __post_init__(self) -> None:
        if self.cpus < 1 or self.memory_gb <= 0 or self.gpus < 0:
            raise ValueError(f"{self} cannot be: at least 1 CPU, some memory, and no less than no GPU")

    def satisfies(self, other: Needs) -> bool:
        """Whether these resources suffice for `other`; a GPU is not used for work without need of one."""
        enough = self.cpus >= other.cpus and self.memory_gb >= other.memory_gb and self.gpus >= other.gpus
        return enough and bool(self.gpus) == bool(other.gpus)


#: Needs of work that states none.
LEAST: tuple[Needs, ...] = (Needs(),)


#: Packages of modules that have another name, or come with another package.
_PACKAGES = {
    "vl_convert": "vl-convert-python",
    "huggingface_hub": "transformers",
    "ctranslate2": "faster-whisper",
}
_OPTIONAL = re.compile(r"([\w.-]+).*;.*extra == ['\"]([\w-]+)['\"]")


def extras() -> dict[str, str]:
    """The extra that brings each optional package; `dev` has what others have."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        optional = [match.groups() for each in requires("swsdist") or () if (match := _OPTIONAL.match(each))]
    except PackageNotFoundError:
        return {}
    return {package.lower(): extra for package, extra in optional if extra != "dev"}


def error_of(error: BaseException) -> ConfigError | None:
    """The error of a module that an extra brings; None: it is another."""
    if not isinstance(error, ImportError) or not error.name:
        return None
    library = error.name.partition(".")[0]
    extra = extras().get(_PACKAGES.get(library, library.replace("_", "-")))
    return None if extra is None else codes.MISSING_LIBRARY(library=library, extra=extra)
