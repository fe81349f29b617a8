"""Create a backend by name (`swsdist.registry.registries.BACKENDS`); choose `cpu` and `auto` by the machine."""

from __future__ import annotations

import importlib.util
import platform
from typing import TYPE_CHECKING

from swsdist.accounts.hardware import gpu_count
from swsdist.core.codes import families
from swsdist.core.errors import UserError
from swsdist.registry.registries import BACKENDS

if TYPE_CHECKING:  # they load numba, and plans do without
    from swsdist.methods.dtw.backends.interface import Backend, Work


def create(name: str, work: Work) -> Backend:
    """The backend of that name.

    Raises:
        ConfigError: the name is unknown.
        UserError: the machine lacks its requirements.
    """
    backend: Backend = BACKENDS[name].load()(work)
    return backend


def cpu(work: Work) -> Backend:
    """The faster CPU backend: int16 products on x86, a BLAS elsewhere."""
    return create("int16" if platform.machine().lower() in ("x86_64", "amd64") else "blas", work)


def auto(work: Work) -> Backend:
    """The GPU if usable, else the CPU."""
    return create("cuda" if gpu_count() and missing() is None else "cpu", work)


def granted(name: str, gpus: float) -> str:
    """The backend for a worker with this share of a GPU; without one, it must not use the GPU of another worker."""
    return name if BACKENDS[name].gpu is not None else "cuda" if gpus else "cpu"


def missing() -> UserError | None:
    """The error if this machine lacks the extra `gpu` or a usable GPU; None if it can search on a GPU."""
    if importlib.util.find_spec("numba_cuda") is None:
        return families.NOT_INSTALLED.of(UserError)(
            "the GPU search needs numba-cuda, which is not installed",
            "pip install 'swsdist[gpu]', or set search.backend to cpu",
            where="search.backend",
        )
    from numba import cuda

    if not cuda.is_available():  # the simulator's is
        return families.NO_GPU(
            "this machine has no usable GPU",
            "set search.backend to cpu, or see the GPU line of `swsdist doctor`",
            where="search.backend",
        )
    return None
