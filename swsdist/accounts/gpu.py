"""Memory in use on this node's GPUs, from NVIDIA's management library, which comes with the driver.

It is the sum over all processes: inside a container the library's process ids are meaningless.
"""

from __future__ import annotations

import ctypes
from functools import cache

from swsdist.accounts.hardware import gpu_count


class _Memory(ctypes.Structure):
    """`nvmlMemory_t`."""

    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


def gpu_bytes() -> int | None:
    """Bytes in use on all GPUs of this node; None: no GPU, or unknown."""
    if not gpu_count():
        return None
    library = _library()
    if library is None:
        return None
    count = ctypes.c_uint()
    if library.nvmlDeviceGetCount_v2(ctypes.byref(count)):
        return None
    used = 0
    for k in range(count.value):
        handle, memory = ctypes.c_void_p(), _Memory()
        if library.nvmlDeviceGetHandleByIndex_v2(k, ctypes.byref(handle)):
            return None
        if library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)):
            return None
        used += memory.used
    return used


@cache
def _library() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    return None if library.nvmlInit_v2() else library
