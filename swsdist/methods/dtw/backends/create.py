"""A backend by its name (`swsdist.registry.registries.BACKENDS`), and those that are chosen by what the machine has."""

from __future__ import annotations

import importlib.util
import platform
from typing import TYPE_CHECKING

from swsdist.accounts.hardware import gpu_count
from swsdist.core.codes import methods as codes
from swsdist.core.errors import UserError
from swsdist.registry.registries import BACKENDS

if TYPE_CHECKING:  # they load numba, and plans do without
    from swsdist.methods.dtw.backends.interface import Backend, Work


def create(name: str, work: Work) -> Backend:
    """The backend of that name.

    Raises:
        ConfigError: there is none.
        UserError: it cannot be used here.
    """
    made: Backend = BACKENDS[name].load()(work)
    return made


def cpu(work: Work) -> Backend:
    """The faster one of this processor: our own product on x86, a BLAS elsewhere."""
    return create("int16" if platform.machine().lower() in ("x86_64", "amd64") else "blas", work)


def auto(work: Work) -> Backend:
    """A GPU where there is one that can be used, else the CPU."""
    return create("cuda" if gpu_count() and missing() is None else "cpu", work)


def granted(name: str, gpus: float) -> str:
    """The backend that a worker searches with that was granted so much of a GPU: it takes none that is another's."""
    return name if BACKENDS[name].gpu is not None else "cuda" if gpus else "cpu"


def missing() -> UserError | None:
    """What a search on a GPU lacks here: the extra `gpu`, or a GPU that can be used; None: nothing."""
    if importlib.util.find_spec("numba_cuda") is None:
        return codes.NO_NUMBA_CUDA(where="search.backend")
    from numba import cuda

    if not cuda.is_available():  # the simulator's is
        return codes.NO_GPU(where="search.backend")
    return None
