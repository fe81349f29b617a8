"""Where a command writes: files, folders and standard streams. Whether it can is asked before anything is computed.

One type of option for all commands: `type=written(*PICTURES)` for a file, of the kinds that its ending can tell,
`type=FOLDER` for a folder that is made.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from pathlib import Path
from typing import Any

import click

from swsdist.errors import UserError
from swsdist.report.pictures import demand_converter


class _Written(click.Path):
    """A file to write, of one of some kinds, which its ending tells.

    Attributes:
        endings: in lower case; none: any ending will do.
    """

    def __init__(self, endings: tuple[str, ...], dash: bool = False) -> None:
        super().__init__(dir_okay=False, allow_dash=dash)
        self.name = "file"
        self.endings = endings

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The path, if it can be written.

        Raises:
            UserError: it is of another kind, there is no such folder, it cannot be written to, or a library is missing that
                writes this kind.
        """
        path = str(value)
        if not (self.allow_dash and path == "-"):
            check_ending(path, self.endings)
            check_place(path)
            if ".svg" in self.endings:
                demand_converter(path)
        return path


class _WrittenFolder(click.Path):
    """A folder to write files to, which is made if it is not there."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The path, if it can be made or written to.

        Raises:
            UserError: it is a file, or it cannot be written to.
        """
        path = Path(str(value)).absolute()
        there = next(one for one in (path, *path.parents) if one.exists())
        if not there.is_dir():
            raise UserError("this is a file, and a folder is wanted", where=str(there), remedy="name another")
        if not os.access(there, os.W_OK):
            raise UserError("the folder cannot be written to", where=str(there), remedy="name another")
        return str(value)


FOLDER = _WrittenFolder(file_okay=False)


def written(*endings: str, dash: bool = False) -> click.Path:
    """The type of an option that names a file to write, with one of these endings (`.svg`)."""
    return _Written(endings, dash)


def check_ending(path: str, endings: tuple[str, ...]) -> None:
    """Whether a file's ending is one of a few; any will do where there are none.

    Raises:
        UserError: it is not.
    """
    ending = Path(path).suffix.lower()
    if not endings or ending in endings:
        return
    *others, last = endings
    known = f"{', '.join(others)} or {last}" if others else last
    what = f"no {ending} is written here" if ending else "its ending does not tell what to write"
    raise UserError(f"{what}, only {known}", where=path, remedy=f"name a file that ends in {known}")


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


def save_fitted(path: str | None, fitted: bytes | None) -> None:
    """Write what was fitted to the file of `--save`, if that was given, and say so.

    Raises:
        click.UsageError: nothing was fitted.
    """
    if path is None:
        return
    if fitted is None:
        raise click.UsageError("Nothing was fitted, so there is nothing to --save.")
    Path(path).write_bytes(fitted)
    print(f"{path}: what was fitted")


def check_place(path: str | None) -> None:
    """Whether a file can be written there; None and `-` (standard output) are fine.

    Raises:
        UserError: it is a folder, there is no such folder, or it cannot be written to.
    """
    if path is None or path == "-":
        return
    folder = Path(path).absolute().parent
    if Path(path).is_dir():
        raise UserError("this is a folder, and a file is wanted", where=path, remedy="name a file in it")
    if not folder.is_dir():
        raise UserError("there is no such folder to write to", where=str(folder), remedy="make it, or name another")
    if not os.access(folder, os.W_OK) or (Path(path).exists() and not os.access(path, os.W_OK)):
        raise UserError("the file cannot be written", where=path, remedy="look at its permissions, or name another")


def check_new_folder(path: str | None) -> None:
    """Whether a folder that can be made or written to (`FOLDER`) is empty.

    Raises:
        UserError: it is not.
    """
    if path is not None and Path(path).is_dir() and any(Path(path).iterdir()):
        raise UserError("this folder is not empty", where=path, remedy="name a new one, so that nothing is mixed")
