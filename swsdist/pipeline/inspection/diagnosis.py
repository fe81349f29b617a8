"""Checks of a machine, for `swsdist doctor`."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any

from swsdist.accounts.hardware import describe, versions
from swsdist.audio.formats import ffmpeg
from swsdist.config.model import Executor
from swsdist.core.errors import ConfigError, SwsdistError
from swsdist.features.ssl.folder import ENCODER_FILES, cached_models
from swsdist.io.filesystem import Folder
from swsdist.io.hub_cache import way_to
from swsdist.lattices.recognition import Recognition
from swsdist.pipeline.chain import Finding
from swsdist.registry import registries
from swsdist.registry.registries import EXECUTORS, FEATURES, RECOGNISERS
from swsdist.registry.registry import Entry, Registry

_REGISTRIES: tuple[Registry[Any], ...] = tuple(var for var in vars(registries).values() if isinstance(var, Registry))


def diagnose(s3: str | None, storage: Mapping[str, Any], with_executors: bool) -> Iterator[Finding]:
    """Run all checks.

    Args:
        s3: folder to list, or None.
        storage: options for s3fs.
        with_executors: start the executors, or connect to their clusters.
    """
    machine = describe()
    clock = f" at {machine['clock_ghz']} GHz" if machine["clock_ghz"] else ""
    yield Finding("machine", True, f"{machine['brand']}, {machine['os']}")
    yield Finding("cpu", True, f"{machine['cpu']}, {machine['cores']} cores{clock}, {machine['ram_gb']} GB")
    yield Finding("versions", True, ", ".join(f"{name} {value}" for name, value in versions().items()))
    yield _blas()
    yield Finding("features", True, ", ".join(f"{name} ({place})" for name, place in FEATURES.targets()))
    encoders = (
        ", ".join(cached_models()) or f"none in the cache of the hub; {way_to('openai/whisper-base', ENCODER_FILES)}"
    )
    yield Finding("encoders", True, f"{encoders} (--model, or the extractor ssl)")
    yield Finding("recognisers", True, ", ".join(map(_recogniser, RECOGNISERS)))
    for error in (error for registry in _REGISTRIES for error in registry.broken()):
        yield Finding("extension", False, f"{error.where}: {error.message}" if error.where else error.message)
    yield _ffmpeg()
    free = shutil.disk_usage(tempfile.gettempdir()).free / 1e9
    yield Finding("disk", free > 1, f"{free:.1f} GB free in {tempfile.gettempdir()}")
    yield _gpu()
    for name in EXECUTORS if with_executors else ():
        yield from _executor(Executor(kind=name))
    if s3 is not None:
        yield _s3(s3, storage)


def _recogniser(name: str) -> str:
    """A recogniser, and what it lacks."""
    try:
        Recognition(name=name).create()
    except ConfigError as error:
        return f"{name} ({error.message}: {error.remedy})"
    return name


def _ffmpeg() -> Finding:
    program = ffmpeg.program()
    if program is None:
        return Finding(
            "ffmpeg",
            True,
            "none: m4a, mp4, wma, webm, video ... are rejected; install ffmpeg as a package of the system",
        )
    return Finding("ffmpeg", True, f"{ffmpeg.version(program)} ({program}): m4a, mp4, wma, webm, video ... are read")


def _blas() -> Finding:
    from threadpoolctl import threadpool_info

    from swsdist.methods.dtw.backends.matrix_product import by_numpy

    libraries = {
        f"{item['internal_api']} {item['version']} ({item.get('architecture', '?')})" for item in threadpool_info()
    }
    try:
        by_numpy()
    except SwsdistError as error:
        return Finding("BLAS", False, str(error))
    return Finding("BLAS", True, f"exact on integers below 2^24; {', '.join(sorted(libraries))}")


def _gpu() -> Finding:
    if find_spec("numba_cuda") is None:
        return Finding("GPU", True, "none (extra `gpu` is not installed); searches run on the CPU")
    from numba import cuda

    from swsdist.kernels.cuda.launch import SIMULATED

    if SIMULATED:
        return Finding("GPU", True, "numba's simulator of one (NUMBA_ENABLE_CUDASIM is set)")
    if not cuda.is_available():
        return Finding("GPU", True, "none that can be used; searches run on the CPU")
    from numba.cuda.cudadrv.error import CudaSupportError, NvvmSupportError

    from swsdist.kernels.distances.create import create
    from swsdist.methods.dtw.search import warm
    from swsdist.methods.dtw.settings import Settings

    device = cuda.get_current_device()
    name = device.name.decode() if isinstance(device.name, bytes) else str(device.name)
    try:
        warm(Settings(create("cosine", 1), 1, 1, 1, backend="cuda"))
    except (CudaSupportError, NvvmSupportError) as error:
        return Finding("GPU", False, f"{name}, but nothing can be compiled for it: {error}")
    free, total = cuda.current_context().get_memory_info()
    return Finding("GPU", True, f"{name}, {free / 1e9:.1f} of {total / 1e9:.1f} GB free; search.backend: cuda works")


def _executor(settings: Executor) -> Iterator[Finding]:
    clock = time.perf_counter()
    try:
        if check := settings.entry.check:
            text = Entry(check, 1).load()(settings.cluster)
            yield Finding(settings.kind, True, f"{text}; up and down in {time.perf_counter() - clock:.1f} s")
    except (SwsdistError, OSError, RuntimeError) as error:
        yield Finding(settings.kind, False, str(error))


def _s3(place: str, storage: Mapping[str, Any]) -> Finding:
    clock = time.perf_counter()
    try:
        files = len(Folder(place, storage).listing())
    except (SwsdistError, OSError) as error:
        return Finding("S3", False, str(error))
    return Finding("S3", True, f"{place}: {files} files, listed in {time.perf_counter() - clock:.2f} s")
