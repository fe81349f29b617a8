"""Memory in use on this node's GPUs, from NVIDIA's management library, which comes with the driver.

It is the sum over all processes: inside a container the library's process ids are meaningless.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from swsdist.accounts.hardware import gpu_count


def gpu_bytes() -> int | None:
    """Bytes in use on all GPUs of this node; None: no GPU, or unknown."""
    if not gpu_count():
        return None
    import pynvml

    try:
        return sum(int(pynvml.nvmlDeviceGetMemoryInfo(gpu).used) for gpu in _gpus())
    except pynvml.NVMLError:
        return None


@cache
def _gpus() -> list[Any]:
    """The library's handles; it is loaded once for the life of a process."""
    import pynvml

    pynvml.nvmlInit()
    return [pynvml.nvmlDeviceGetHandleByIndex(k) for k in range(pynvml.nvmlDeviceGetCount())]
