"""What the processor of this machine can run, and code in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable

from llvmlite.binding import get_host_cpu_features


def runnable(kernels: Iterable[str]) -> list[str]:
    """Kernels of OpenBLAS that this processor can run; one with AVX-512 stops at its first instruction elsewhere."""
    has_avx512 = get_host_cpu_features().get("avx512f")
    return [kernel for kernel in kernels if kernel != "SkylakeX" or has_avx512]


def python(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Python in a process of its own, with variables of the environment."""
    call = [sys.executable, *arguments]
    return subprocess.run(call, env=os.environ | variables, text=True, capture_output=True, check=False)


def printed(*arguments: str, **variables: str) -> str:
    """What it prints, where it ends well."""
    done = python(*arguments, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
