"""What the processor of this machine can run."""

from __future__ import annotations

from collections.abc import Iterable

from llvmlite.binding import get_host_cpu_features


def runnable(kernels: Iterable[str]) -> list[str]:
    """Kernels of OpenBLAS that this processor can run; one with AVX-512 stops at its first instruction elsewhere."""
    has_avx512 = get_host_cpu_features().get("avx512f")
    return [kernel for kernel in kernels if kernel != "SkylakeX" or has_avx512]
