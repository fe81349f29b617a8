"""Files that a command is to write: whether it can is asked before anything is computed."""

from __future__ import annotations

import os
from pathlib import Path

from swsdist.errors import UserError


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
