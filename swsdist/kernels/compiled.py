"""Compiled functions with a cache on disk.

numba keys compiled code by the CPU's name and features, and recompiles a function when its own file changes. But
kernels are assembled from several files, so here the name of the cache folder is a digest of all sources of
`swsdist.kernels` and of the versions of Python, numba and LLVM. Versions of the package never share compiled code.

The folder is `$NUMBA_CACHE_DIR/swsdist-<digest>` if that is set, else `$XDG_CACHE_HOME/swsdist/kernels-<digest>`
(~/.cache), else, if the home is not writable, a folder among the temporary files. Its files are unpickled and executed,
so a folder is used only if it belongs to this user, is closed to all others (mode 0700), and nobody else can replace
it; otherwise a new private one is created for this process. The package's own folder is never written to, so it may be
read-only. Processes that start together each compile, and replace files atomically.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import TypeVar

import llvmlite
import numba
from numba.core.typing import Signature

Function = TypeVar("Function", bound=Callable[..., object])

_LOCK = threading.Lock()
#: Set once a function was compiled, and not loaded.
_COMPILED = threading.Event()
#: Seconds before a message, and between looks.
_PATIENCE, _LOOK = 2.0, 0.2


def compiled(signature: str | Signature) -> Callable[[Function], Function]:
    """Compile a function for a signature, or load it from disk. It runs without the interpreter's lock."""

    def decorate(function: Function) -> Function:
        function.__qualname__ += _enclosed(function)
        with _cached():
            made = numba.njit(signature, nogil=True, cache=True)(function)
        if made.stats.cache_misses:
            _COMPILED.set()
        return made  # type: ignore[no-any-return]

    return decorate


@contextmanager
def announcing(say: Callable[[str], None]) -> Iterator[None]:
    """Say it once if something was compiled, and what is done inside takes longer for it."""
    ended = threading.Event()

    def watch() -> None:
        waits = _PATIENCE
        while not ended.wait(waits):
            waits = _LOOK
            if _COMPILED.is_set():
                say("preparing, once: the search is compiled for this machine")
                return

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield
    finally:
        ended.set()
        watching.join()


@contextmanager
def _cached() -> Iterator[Path]:
    """Functions that numba compiles inside are cached in the folder, in one thread at a time: numba's setting is global."""
    with _LOCK:
        place, before = folder(), numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(place)
        try:
            yield place
        finally:
            numba.config.CACHE_DIR = before


@contextmanager
def one_process_compiles() -> Iterator[None]:
    """Libraries that are imported inside keep their compiled functions in the folder, one process at a time.

    numba caches a `guvectorize` in two files, and a process that loads those of two others calls address 0, then and ever
    after (numba#10128).
    """
    with _cached() as place, (place / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError:  # a file system without locks
            numba.config.CACHE_DIR = tempfile.mkdtemp(prefix="swsdist-kernels-")
        yield


def _enclosed(function: Callable[..., object]) -> str:
    """The closure of a function, as a part of a name; empty without a closure.

    numba distinguishes functions of the same name by a counter per process. Functions compiled by different processes
    may share a number, and a process that loads both from disk would call the wrong one.
    """
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    if not cells:
        return ""
    names = [_code_name(cell) if isinstance(cell, FunctionType) else repr(cell) for cell in cells]
    return "_" + hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]


def _code_name(function: FunctionType) -> str:
    """A function's name, and its code if it belongs to another package, which the folder's name does not cover."""
    name = f"{function.__module__}.{function.__qualname__}{_enclosed(function)}"
    if function.__module__.startswith("swsdist.kernels."):
        return name
    code = function.__code__
    try:
        source = Path(code.co_filename).read_bytes()
    except OSError:
        source = code.co_code + repr((code.co_consts, code.co_names)).encode()  # of a notebook
    return f"{name} {hashlib.sha256(source).hexdigest()}"


@cache
def folder() -> Path:
    """The cache folder; it exists and is writable."""
    name = _digest()
    wishes = [_home() / "swsdist" / f"kernels-{name}", Path(tempfile.gettempdir()) / f"swsdist-{os.getuid()}-{name}"]
    if numba.config.CACHE_DIR:
        wishes.insert(0, Path(numba.config.CACHE_DIR) / f"swsdist-{name}")
    for wish in wishes:
        try:
            wish.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_private(wish):
                continue
            with tempfile.TemporaryFile(dir=wish):
                return wish
        except OSError:
            continue
    return Path(tempfile.mkdtemp(prefix="swsdist-kernels-"))


def _is_private(place: Path) -> bool:
    """Whether a folder is no link and accessible to this user only, and no folder above lets all users replace its
    content.
    """
    status = place.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        return False
    above = (folder.stat().st_mode for folder in place.resolve().parents)
    return all(not mode & stat.S_IWOTH or mode & stat.S_ISVTX for mode in above)


def _home() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME")
    return Path(cache) if cache else Path("~/.cache").expanduser()


def _digest() -> str:
    """Digest of everything compiled code depends on, except the CPU, which numba distinguishes itself."""
    digest = hashlib.sha256(f"{sys.version} {numba.__version__} {llvmlite.__version__}".encode())
    place = Path(__file__).parent
    for path in sorted(place.rglob("*.py")):
        digest.update(str(path.relative_to(place)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
