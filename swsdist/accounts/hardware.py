"""Hardware of a node, versions of its software, and memory in use on its GPUs.

GPU memory comes from NVIDIA's management library, which is part of the driver. It is the sum over all processes,
because process ids of the library are meaningless inside a container.

Source of the description: Rodriguez-Fuentes and Penagarikano (2013), section 4.3, which requires it of every system.
"""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypedDict

from swsdist.registry.registry import is_in_entry_points


class Description(TypedDict):
    """Hardware of a node: clock in GHz, RAM in GB."""

    brand: str
    cpu: str
    cores: int
    clock_ghz: float | None
    ram_gb: float
    os: str
    gpu: str | None


def _first_line(path: str) -> str | None:
    try:
        return Path(path).read_text(errors="replace").strip() or None
    except OSError:
        return None


@cache
def describe() -> Description:
    """Brand, CPU model, cores, clock in GHz, RAM in GB and operating system of this machine."""
    import psutil

    cpu, clock = None, None
    for line in (_first_line("/proc/cpuinfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name" and cpu is None:
            cpu = " ".join(value.split())
        if name.strip() == "cpu MHz" and clock is None:
            clock = round(float(value) / 1000, 2)
    vendor, product = _first_line("/sys/class/dmi/id/sys_vendor"), _first_line("/sys/class/dmi/id/product_name")
    return {
        "brand": " ".join(part for part in (vendor, product) if part) or "unknown",
        "cpu": cpu or platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "clock_ghz": clock,
        "ram_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "os": f"{platform.system()} {platform.release()}",
        "gpu": _gpus(),
    }


def _gpus() -> str | None:
    """Models of the GPUs, from the NVIDIA driver; None: no GPU."""
    models = []
    for place in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        for line in (_first_line(str(place)) or "").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "Model":
                models.append(value.strip())
    models = models[: gpu_count()] or ["NVIDIA GPU"] * gpu_count()
    return ", ".join(f"{models.count(item)} x {item}" for item in dict.fromkeys(models)) or None


@cache
def gpu_count() -> int:
    """Number of NVIDIA GPUs that are visible to processes."""
    return len(list(Path("/dev").glob("nvidia[0-9]*")))


@cache
def versions() -> dict[str, str]:
    """Versions of Python, swsdist, and the libraries that affect results or costs."""
    from importlib.metadata import PackageNotFoundError, version

    installed = {"python": platform.python_version()}
    for name in ("swsdist", "numpy", "numba", "scipy", "pyarrow", "soundfile", "soxr", "ray", "s3fs"):
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            continue
    with suppress(ImportError, OSError):
        import soundfile

        installed["libsndfile"] = soundfile.__libsndfile_version__
    return installed


#: Prefix of the names of plug-ins in `node_versions`.
PLUG_IN = "plug-in "


@cache
def node_versions() -> dict[str, str]:
    """`versions()`, and the versions of other packages that add entries to registries."""
    from importlib.metadata import distributions

    found = versions().copy()
    if not is_in_entry_points("[swsdist."):
        return found
    for package in distributions():  # the first of a name is imported
        if package.name != "swsdist" and any(point.group.startswith("swsdist.") for point in package.entry_points):
            found.setdefault(f"{PLUG_IN}{package.name}", package.version)
    return found


def gpu_bytes() -> int | None:
    """Bytes in use on all GPUs of this node; None: no GPU, or unknown."""
    if not gpu_count():
        return None
    import pynvml

    try:
        return sum(int(pynvml.nvmlDeviceGetMemoryInfo(gpu).used) for gpu in _handles())
    except pynvml.NVMLError:
        return None


@cache
def _handles() -> list[Any]:
    """The library's handles; it is loaded once for the life of a process."""
    import pynvml

    pynvml.nvmlInit()
    return [pynvml.nvmlDeviceGetHandleByIndex(k) for k in range(pynvml.nvmlDeviceGetCount())]
