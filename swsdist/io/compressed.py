"""Plain, gzip or xz files, recognised by their first bytes, local or `s3://`; and the lines of text files.

A truncated or damaged packed file is an error that names it: the part read before is never taken for the content.
"""

from __future__ import annotations

import gzip
import io
import lzma
import stat
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from swsdist.core.codes import families
from swsdist.core.codes import io as codes
from swsdist.io.failures import explain
from swsdist.io.filesystem import is_remote, open_path
from swsdist.io.local import retry_local

#: Bytes; a longer "line" is no text.
LONGEST_LINE = 1 << 20


@contextmanager
def opened(path: str, storage: Mapping[str, object] | None = None, *, what: str = "file") -> Iterator[BinaryIO]:
    """The content of a file, unpacked while reading.

    Refuses pipes and devices: they cannot be read twice, and may block or never end.

    Args:
        path: local or `s3://`.
        storage: options for s3fs.
        what: description of the file in the message that it is missing.

    Raises:
        UserError: the file is missing, no regular file, or unreadable.
        DataError: it is packed and damaged, which may appear only while reading.
    """
    with _raw(path, storage, what) as raw:
        first = raw.read(6)
        raw.seek(0)
        content: BinaryIO = raw
        if first.startswith(b"\x1f\x8b"):
            content = cast(BinaryIO, gzip.GzipFile(fileobj=raw))
        elif first.startswith(b"\xfd7zXZ\x00"):
            # Its own `readline` is Python, and slow. It only reads from `raw`, which is closed.
            content = cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, lzma.LZMAFile(raw))))  # noqa: SIM115
        try:
            yield content
        except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
            raise codes.DAMAGED_ARCHIVE(where=path, error=error) from error


def _raw(path: str, storage: Mapping[str, object] | None, what: str) -> BinaryIO:
    try:
        if not is_remote(path) and not _is_regular(path):  # before opening: a pipe without writer blocks
            raise families.WRONG_KIND(
                "this is a pipe or a device, not a file",
                "write it to a file first, and name that (it may be compressed)",
                where=path,
            )
        result = open_path(path, storage)
        # s3fs's file does not bound line lengths.
        return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, result))) if is_remote(path) else result
    except (FileNotFoundError, NotADirectoryError) as error:
        raise codes.NO_SUCH_FILE(where=path, what=what) from error
    except IsADirectoryError as error:
        raise families.WRONG_KIND("this is a folder, not a file", "name a file", where=path) from error
    except OSError as error:
        raise explain(error, short(path, 300)) or error from error
    except ValueError as error:  # a zero byte
        raise families.UNWRITABLE_NAME(
            "this cannot be the name of a file ({error})",
            "give a path without NUL characters, of at most 4096 bytes",
            where=repr(path),
            error=error,
        ) from error


def _is_regular(path: str) -> bool:
    """Whether a path is a regular file.

    Raises:
        OSError: it is missing, access is denied, or it is a folder.
    """
    mode = retry_local(Path(path).stat).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError
    return stat.S_ISREG(mode)


def short(text: str, most: int = 80) -> str:
    """A text, cut to at most `most` characters, for a message, which must be written: halves of surrogate pairs are escaped."""
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= most else f"{text[: most - 3]}..."


def read_all(path: str, what: str = "file", storage: Mapping[str, object] | None = None) -> bytes:
    """The content of a file; see `opened`."""
    with opened(path, storage, what=what) as stream:
        return stream.read()


def lines(path: str, storage: Mapping[str, object] | None = None) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 text file with their numbers from 1, without line ends; a byte order mark is ignored.

    Raises:
        UserError: there is no such file.
        DataError: a line is not UTF-8, holds a zero byte, or is longer than 1 MiB; or as in `opened`.
    """
    with opened(path, storage) as stream:
        number = 0
        while line := stream.readline(LONGEST_LINE):
            number += 1
            if len(line) == LONGEST_LINE or b"\x00" in line:
                raise families.MALFORMED_FILE(
                    "this is not a text file", "name a text file in UTF-8", where=f"{path}, line {number}"
                )
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                demand_utf8(line, path, number)
                raise
            yield number, text.rstrip("\r\n")


def demand_utf8(content: bytes, path: str, first: int = 1) -> None:
    """Demand UTF-8.

    Args:
        content: lines of a file.
        path: of the file.
        first: number of the first of these lines.

    Raises:
        DataError: it is not; with the line.
    """
    if first == 1 and content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise codes.UTF16_TEXT(where=f"{path}, line 1", path=path)
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[content.rfind(b"\n", 0, error.start) + 1 :].partition(b"\n")[0]
        number = first + content.count(b"\n", 0, error.start)
        raise codes.NOT_UTF8(where=f"{path}, line {number}", text=repr(line.strip()[:60])) from None
