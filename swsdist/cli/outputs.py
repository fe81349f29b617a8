"""Where a command writes: files, folders and standard streams. Whether it can is asked before anything is computed.

One type of option for all commands: `type=written(*PICTURES)` for a file, of the kinds that its ending can tell,
`type=FOLDER` for a folder that is made. A command with such an option is a `Writing`: what it reads is never written over
(`demand_apart`).
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import click

from swsdist.core.codes import cli as codes
from swsdist.core.errors import StoreError
from swsdist.io.filesystem import is_remote
from swsdist.report.pictures import demand_converter


class _Written(click.Path):
    """A file to write, of one of some kinds, which its ending tells.

    Attributes:
        endings: in lower case; none: any ending will do.
        several: of several tables each has a CSV file of its own, called `out-queries.csv` where `out.csv` is named.
    """

    def __init__(self, endings: tuple[str, ...], dash: bool, several: bool) -> None:
        super().__init__(dir_okay=False, allow_dash=dash)
        self.name = "file"
        self.endings = endings
        self.several = several

    def hits(self, given: Path, out: Path) -> bool:
        """Whether `given` is among the files that are written where `out` is named."""
        if _is_same(given, out):
            return True
        if not self.several or out.suffix.lower() != ".csv" or given.suffix != out.suffix:
            return False
        return given.name.startswith(f"{out.stem}-") and _is_same(given.parent, out.parent)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The path, if it can be written.

        Raises:
            UserError: it is of another kind, there is no such folder, it cannot be written to, or a library is missing that
                writes this kind.
        """
        path = str(value)
        if not (self.allow_dash and path == "-"):
            demand_local(path)
            check_ending(path, self.endings)
            check_place(path)
            if ".svg" in self.endings:
                demand_converter(path)
        return path


class _WrittenFolder(click.Path):
    """A folder to write files to, which is made if it is not there.

    Attributes:
        endings: of the files that are written to it.
    """

    def __init__(self, endings: tuple[str, ...] = ()) -> None:
        super().__init__(file_okay=False)
        self.endings = endings

    def hits(self, given: Path, out: Path) -> bool:
        """Whether `given` lies in the folder `out`, and is of the kind that is written there."""
        return given.suffix.lower() in self.endings and _is_same(given.parent, out)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The path, if it can be made or written to.

        Raises:
            UserError: it is a file, or it cannot be written to.
        """
        demand_local(str(value))
        path = Path(str(value)).absolute()
        there = next(one for one in (path, *path.parents) if one.exists())
        if not there.is_dir():
            raise codes.OUTPUT_IS_FILE(where=str(there))
        if not os.access(there, os.W_OK):
            raise codes.OUTPUT_NOT_WRITABLE(where=str(there))
        return str(value)


FOLDER = _WrittenFolder()
TABLES_FOLDER = _WrittenFolder((".csv",))


def written(*endings: str, dash: bool = False, several: bool = False) -> click.Path:
    """The type of an option that names a file to write, with one of these endings (`.svg`).

    Args:
        endings: in lower case; none: any.
        dash: `-` is standard output.
        several: of several tables each has a CSV file of its own, whose name begins as this one's.
    """
    return _Written(endings, dash, several)


class Writing(click.Command):
    """A command that writes files: none of them is one that its other arguments name, and no two of them are one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the arguments.

        Raises:
            UserError: a file that is to be written is one that is read, or is to be written twice.
        """
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:  # the shell completes a command
            named = list(_named(ctx)) if next(_outputs(ctx), None) is not None else []
            demand_apart(ctx, [*named, *_of_runs(named)])
        return rest


def demand_apart(context: click.Context, inputs: Iterable[str]) -> None:
    """Whether a command writes to none of the files that it reads, and to each file once.

    Links to a file are that file. Of the folder of a run or store all files that are theirs are read. What is no plain file
    (`/dev/null`), or not there, is not asked about.

    Args:
        context: of the command, with its parameters.
        inputs: paths that are read; what is no path is passed over.

    Raises:
        UserError: one is written to that is read, or two outputs are one file.
    """
    outputs = list(_outputs(context))
    given = [Path(one) for one in dict.fromkeys(inputs) if _exists(one)]
    for name, path, kind in outputs:
        out = Path(path)
        for one in given:
            if one.is_file() and kind.hits(one, out):
                what = str(one)
            elif one.is_dir() and _is_of(one, out):
                what = f"a file of {one}"
            else:
                continue
            raise codes.OUTPUT_IS_INPUT(where=f"{name} {path}", what=what)
    for k, (name, path, kind) in enumerate(outputs):
        for other, same, its in outputs[:k]:
            one, two = Path(path), Path(same)
            meet = _is_same(one, two) or kind.hits(two, one) or its.hits(one, two)
            if meet and (not one.exists() or one.is_file() or two.is_file() or not two.exists()):
                raise codes.SAME_OUTPUT(where=f"{name} {path}", other=other)


def _outputs(context: click.Context) -> Iterator[tuple[str, str, _Written | _WrittenFolder]]:
    """What a command is to write: name of the option, path, type."""
    for one in context.command.params:
        value = context.params.get(one.name or "")
        if isinstance(one.type, _Written | _WrittenFolder) and isinstance(value, str) and value != "-":
            yield _shown(one), value, one.type


def _named(context: click.Context) -> Iterator[str]:
    """Paths among a command's other arguments: PATH, NAME=PATH."""
    for one in context.command.params:
        if isinstance(one.type, _Written | _WrittenFolder | click.Choice):
            continue
        value = context.params.get(one.name or "")
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str):
                yield text
                yield text.partition("=")[2]


def _of_runs(named: Iterable[str]) -> Iterator[str]:
    """Paths in the configs of those that are folders of runs, or stores in them."""
    from swsdist.config.section import paths_in
    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.inspection.loading import config_of
    from swsdist.pipeline.plan import load_plans

    folders = [Path(one) for one in named if _exists(one) and Path(one).is_dir()]
    for place in dict.fromkeys(place for folder in folders for place in (folder, folder.absolute().parent)):
        if (place / "plan.json").is_file():
            run = Folder(str(place))
            with suppress(StoreError):  # of another version: who reads it says so
                for plan in load_plans(run).values():
                    yield from paths_in(config_of(run, plan))


def _shown(param: click.Parameter) -> str:
    return max(param.opts, key=len) if isinstance(param, click.Option) else (param.name or "").upper()


def _exists(path: str) -> bool:
    try:
        return bool(path) and Path(path).exists()
    except (OSError, ValueError):  # too long for a name, or with a null byte: it is none
        return False


def _is_same(one: Path, other: Path) -> bool:
    """Whether two paths are of one file or folder, which need not be there."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()


#: What lies in the folder of a run or of a store, beside folders.
_OWN = frozenset(
    {
        *("plan.json", "config.yaml", "manifest.json", "report.json", "report.html", "rejected.parquet"),
        *("accounts.parquet", "nodes.parquet", "system-description.md", "system-description.tex"),
    }
)


def _is_of(folder: Path, out: Path) -> bool:
    """Whether a file that is there was made by the run, or is of the store, that a folder is."""
    if not out.is_file() or not any((folder / name).is_file() for name in ("plan.json", "manifest.json")):
        return False
    root, place = folder.resolve(), out.resolve()
    return place.is_relative_to(root) and (place.parent != root or place.name in _OWN)


def demand_local(path: str) -> None:
    """Whether a path to write to is one of a disk.

    Raises:
        UserError: it is a url.
    """
    if is_remote(path):
        raise codes.OUTPUT_NOT_LOCAL(where=path)


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
    raise codes.UNKNOWN_ENDING(where=path, ending=ending or "nothing", endings=known)


#: What stands for characters of our own on a terminal that lacks them.
_PLAIN = {"–": "-", "·": "*", "✓": "+", "✗": "x", "…": "..."}


class _Pipe(io.FileIO):
    """What is written to it goes nowhere once its reader has left, as `head` does.

    Attributes:
        left: whether it has.
    """

    left = False

    def write(self, data: Any) -> int:
        """Write, as long as somebody reads."""
        try:
            return super().write(data)
        except ConnectionError:
            self.left = True
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            return super().write(data)


def pipe(stream: IO[str]) -> IO[str]:
    """The same stream; its reader may leave, and the work goes on. What is no file is left as it is."""
    if not isinstance(stream, io.TextIOWrapper) or not isinstance(stream.buffer, io.BufferedWriter | io.FileIO):
        return stream
    file = _Pipe(stream.fileno(), "w", closefd=False)
    buffer = file if isinstance(stream.buffer, io.FileIO) else io.BufferedWriter(file)
    return io.TextIOWrapper(
        buffer, stream.encoding, stream.errors, line_buffering=stream.line_buffering, write_through=stream.write_through
    )


def is_read() -> bool:
    """Whether somebody reads standard output, as far as it is known."""
    buffer = getattr(sys.stdout, "buffer", None)
    return not getattr(getattr(buffer, "raw", buffer), "left", False)


def fit_streams() -> None:
    """Let standard output and error take every text: what an encoding lacks is written plainly, or by its number (`\\xfc`).

    Bytes of file names that are not UTF-8 are written as they are. Whoever reads a stream may leave: a command goes on to its
    end.
    """
    codecs.register_error("swsdist", _plain)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if (
            getattr(sys, name) is None
        ):  # closed by who called: its number is the least that is free, and no other file's now
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, closefd=False))
    sys.stdout, sys.stderr = pipe(sys.stdout), pipe(sys.stderr)
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
        raise codes.OUTPUT_IS_FOLDER(where=path)
    if not folder.is_dir():
        raise codes.NO_OUTPUT_FOLDER(where=str(folder))
    if not os.access(folder, os.W_OK) or (Path(path).exists() and not os.access(path, os.W_OK)):
        raise codes.OUTPUT_NOT_WRITABLE(where=path)


def check_new_folder(path: str | None) -> None:
    """Whether a folder that can be made or written to (`FOLDER`) is empty.

    Raises:
        UserError: it is not.
    """
    if path is not None and Path(path).is_dir() and any(Path(path).iterdir()):
        raise codes.FOLDER_NOT_EMPTY(where=path)
