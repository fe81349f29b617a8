"""Memory in use on a node's GPUs, by a library that stands for NVIDIA's."""

from __future__ import annotations

from typing import Any

import pytest

from swsdist.accounts import gpu


class Library:
    """Answers as NVIDIA's does; a call whose name is in `fails` returns an error."""

    def __init__(self, used: list[int], fails: str = "") -> None:
        self.used, self.fails = used, fails

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:
        count._obj.value = len(self.used)
        return int(self.fails == "count")

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, handle: Any) -> int:
        handle._obj.value = index + 1  # 0 is no handle
        return int(self.fails == "handle")

    def nvmlDeviceGetMemoryInfo(self, handle: Any, memory: Any) -> int:
        memory._obj.total, memory._obj.free = 80, 80 - self.used[handle.value - 1]
        memory._obj.used = self.used[handle.value - 1]
        return int(self.fails == "memory")


@pytest.mark.parametrize(
    ("count", "library", "expected"),
    [
        (2, Library([5, 7]), 12),
        (1, Library([0]), 0),
        (0, Library([5]), None),
        (2, None, None),
        (2, Library([5], "count"), None),
        (2, Library([5], "handle"), None),
        (2, Library([5], "memory"), None),
    ],
)
def test_bytes_of_all_gpus(
    monkeypatch: pytest.MonkeyPatch, count: int, library: Library | None, expected: int | None
) -> None:
    monkeypatch.setattr(gpu, "gpu_count", lambda: count)
    monkeypatch.setattr(gpu, "_library", lambda: library)
    assert gpu.gpu_bytes() == expected
