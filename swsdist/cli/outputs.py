"""Where a command writes: files, of which is asked whether they can be before anything is computed, and standard streams."""

from __future__ import annotations

import codecs
import io
import os
import sys
from pathlib import Path

from swsdist.errors import UserError

#: What stands for characters of our own on a terminal that lacks them.
_PLAIN = {"–": "-", "·": "*", "✓": "+", "✗": "x", "…": "..."}


def fit_streams() -> None:
    """Let standard output and error take every text: what an encoding lacks is written plainly, or by its number (`\\xfc`).

    Bytes of file names that are not UTF-8 are written as they are.
    """
    codecs.register_error("swsdist", _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="swsdist")


def write_data() -> None:
    """What goes to standard output from now on is for programs: UTF-8, whatever the terminal takes."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="swsdist")


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    if all("\udc80" <= one <= "\udcff" for one in text):
        return text.encode("utf-8", "surrogateescape"), error.end
    plain = "".join(_PLAIN.get(one, one) for one in text)
    return plain.encode("ascii", "backslashreplace").decode("ascii"), error.end


def check_place(path: str | None) -> None:
    """Whether a file can be written there; None and `-` (standard output) are fine.

    Raises:
        UserError: there is no such folder, or it cannot be written to.
    """
    if path in (None, "-"):
        return
    folder = Path(path or "").absolute().parent
    if not folder.is_dir():
        raise UserError("there is no such folder to write to", where=str(folder), remedy="make it, or name another")
    if not os.access(folder, os.W_OK):
        raise UserError("the folder cannot be written to", where=str(folder), remedy="name another")


def check_new_folder(path: str | None) -> None:
    """Whether a folder can be filled with files: it must be new or empty, in a folder that can be written to.

    Raises:
        UserError: it cannot.
    """
    if path is None:
        return
    folder = Path(path)
    if folder.is_dir() and any(folder.iterdir()):
        raise UserError("this folder is not empty", where=path, remedy="name a new one, so that nothing is mixed")
    check_place(path if not folder.is_dir() else f"{path}/file")
