"""Memory in use on a node's GPUs, by a module that stands for NVIDIA's."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from swsdist.accounts import hardware


def library(used: list[int], fails: str = "") -> SimpleNamespace:
    """Answers as NVIDIA's does; a call whose name is `fails` raises."""

    class NVMLError(Exception):
        """As NVIDIA's."""

    def call(name: str, answer: object) -> object:
        if name == fails:
            raise NVMLError(name)
        return answer

    def memory(handle: int) -> object:
        number = used[handle - 1]  # 0 is no handle
        return call("memory", SimpleNamespace(total=80, free=80 - number, used=number))

    return SimpleNamespace(
        NVMLError=NVMLError,
        nvmlInit=lambda: call("init", None),
        nvmlDeviceGetCount=lambda: call("count", len(used)),
        nvmlDeviceGetHandleByIndex=lambda index: call("handle", index + 1),
        nvmlDeviceGetMemoryInfo=memory,
    )


def test_bytes_of_all_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    for count, stands, expected in (
        (2, library([5, 7]), 12),
        (1, library([0]), 0),
        (0, None, None),
        *((2, library([5], fails), None) for fails in ("init", "count", "handle", "memory")),
    ):
        hardware._handles.cache_clear()
        monkeypatch.setattr(hardware, "gpu_count", lambda count=count: count)
        monkeypatch.setitem(sys.modules, "pynvml", stands)
        assert [hardware.gpu_bytes(), hardware.gpu_bytes()] == [expected] * 2
    hardware._handles.cache_clear()
