"""Compiled functions that are kept on disk.

numba keeps compiled code by the CPU's name and features, and takes a function as changed when its own file has. But kernels are
put together from several files, so here the folder is named by what all of `swsdist.kernels` says, and by the versions of
Python, numba and LLVM: another version of the package never meets code of this one.

The folder is `$NUMBA_CACHE_DIR/swsdist-<digest>` where that is set, else `$XDG_CACHE_HOME/swsdist/kernels-<digest>` (~/.cache),
else one in the folder for temporary files, where the home cannot be written. What lies there is unpickled and run, so a folder
is taken only where it is this user's and closed to all others (mode 0700), and nobody else can put another in its place; else
a new one is made, which only this process knows.
The package's own folder is never written to, so it may be read-only. Processes that start at once each compile,
and replace files whole: no one reads half of one.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import TypeVar

import llvmlite
import numba
from numba.core.typing import Signature

Function = TypeVar("Function", bound=Callable[..., object])

_LOCK = threading.Lock()


def compiled(signature: str | Signature) -> Callable[[Function], Function]:
    """Compile a function for a signature, or take it from disk. It runs without the interpreter's lock."""

    def decorate(function: Function) -> Function:
        function.__qualname__ += _enclosed(function)
        with _LOCK:
            before = numba.config.CACHE_DIR
            numba.config.CACHE_DIR = str(folder())
            try:
                made: Function = numba.njit(signature, nogil=True, cache=True)(function)
                return made
            finally:
                numba.config.CACHE_DIR = before

    return decorate


def _enclosed(function: Callable[..., object]) -> str:
    """What a function has of the one around it, as a part of a name; nothing where that is nothing.

    numba tells functions of one name apart by a number that it counts in each process. Two that were compiled by different
    processes may have the same, and then the process that takes both from disk calls one for the other.
    """
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    if not cells:
        return ""
    said = [_said(cell) if isinstance(cell, FunctionType) else repr(cell) for cell in cells]
    return "_" + hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]


def _said(function: FunctionType) -> str:
    """A function's name, and its code where that is another package's: the folder's name tells of ours only."""
    name = f"{function.__module__}.{function.__qualname__}{_enclosed(function)}"
    if function.__module__.startswith("swsdist.kernels."):
        return name
    code = function.__code__
    try:
        text = Path(code.co_filename).read_bytes()
    except OSError:
        text = code.co_code + repr((code.co_consts, code.co_names)).encode()  # of a notebook
    return f"{name} {hashlib.sha256(text).hexdigest()}"


@cache
def folder() -> Path:
    """Where compiled code is kept; it exists and can be written to."""
    name = _digest()
    wishes = [_home() / "swsdist" / f"kernels-{name}", Path(tempfile.gettempdir()) / f"swsdist-{os.getuid()}-{name}"]
    if numba.config.CACHE_DIR:
        wishes.insert(0, Path(numba.config.CACHE_DIR) / f"swsdist-{name}")
    for wish in wishes:
        try:
            wish.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _own(wish):
                continue
            with tempfile.TemporaryFile(dir=wish):
                return wish
        except OSError:
            continue
    return Path(tempfile.mkdtemp(prefix="swsdist-kernels-"))


def _own(place: Path) -> bool:
    """Whether a folder is this user's alone, and no link; and no folder above lets all users replace what lies in it."""
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        return False
    above = (folder.stat().st_mode for folder in place.resolve().parents)
    return all(not mode & stat.S_IWOTH or mode & stat.S_ISVTX for mode in above)


def _home() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    return Path(given) if given else Path("~/.cache").expanduser()


def _digest() -> str:
    """Of all that compiled code depends on, but for the CPU, which numba tells apart itself."""
    found = hashlib.sha256(f"{sys.version} {numba.__version__} {llvmlite.__version__}".encode())
    place = Path(__file__).parent
    for path in sorted(place.rglob("*.py")):
        found.update(str(path.relative_to(place)).encode())
        found.update(path.read_bytes())
    return found.hexdigest()[:16]
