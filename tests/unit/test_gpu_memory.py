"""Memory in use on a node's GPUs, by a module that stands for NVIDIA's."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from swsdist.accounts import hardware


class NVMLError(Exception):
    """As NVIDIA's."""


class Library:
    """Answers as NVIDIA's does; a call whose name is in `fails` raises."""

    NVMLError = NVMLError

    def __init__(self, used: list[int], fails: str = "") -> None:
        self.used, self.fails, self.loaded = used, fails, 0

    def _call(self, name: str) -> None:
        if name == self.fails:
            raise NVMLError(name)

    def nvmlInit(self) -> None:
        self._call("init")
        self.loaded += 1

    def nvmlDeviceGetCount(self) -> int:
        self._call("count")
        return len(self.used)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        self._call("handle")
        return index + 1  # 0 is no handle

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:
        self._call("memory")
        used = self.used[handle - 1]
        return SimpleNamespace(total=80, free=80 - used, used=used)


@pytest.mark.parametrize(
    ("count", "library", "expected"),
    [
        (2, Library([5, 7]), 12),
        (1, Library([0]), 0),
        (0, None, None),
        *((2, Library([5], fails), None) for fails in ("init", "count", "handle", "memory")),
    ],
)
def test_bytes_of_all_gpus(
    monkeypatch: pytest.MonkeyPatch, count: int, library: Library | None, expected: int | None
) -> None:
    hardware._handles.cache_clear()
    monkeypatch.setattr(hardware, "gpu_count", lambda: count)
    monkeypatch.setitem(sys.modules, "pynvml", library)
    assert [hardware.gpu_bytes(), hardware.gpu_bytes()] == [expected] * 2
    assert library is None or library.loaded <= 1 or expected is None
    hardware._handles.cache_clear()
