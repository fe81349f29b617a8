"""Files as they come: plain, gzip or xz, told by their first bytes, local or `s3://`; and the lines of text files.

A packed file that ends early, or is damaged, is an error that names it: what was read before is never taken for all.
"""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from swsdist.errors import DataError, UserError
from swsdist.io.filesystem import open_path

_LONGEST_LINE = 1 << 20  # bytes; a "line" beyond it is not text


@contextmanager
def opened(path: str, storage: Mapping[str, Any] | None = None) -> Iterator[BinaryIO]:
    """The content of a file, unpacked as it is read.

    Args:
        path: local or `s3://`.
        storage: options for s3fs.

    Raises:
        UserError: there is no such file.
        DataError: it is packed and damaged, which may show only while it is read.
    """
    try:
        raw = open_path(path, storage)
    except FileNotFoundError as error:
        raise UserError("there is no such file", where=path, remedy="look at the path") from error
    except IsADirectoryError as error:
        raise UserError("it is a folder", where=path, remedy="name a file") from error
    with raw:
        first = raw.read(6)
        raw.seek(0)
        content: BinaryIO = raw
        if first.startswith(b"\x1f\x8b"):
            content = cast(BinaryIO, gzip.GzipFile(fileobj=raw))
        elif first.startswith(b"\xfd7zXZ\x00"):
            content = cast(BinaryIO, lzma.LZMAFile(raw))  # noqa: SIM115 (it only reads from `raw`, which is closed)
        try:
            yield content
        except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
            raise DataError(f"it is damaged or cut off ({error})", where=path, remedy="fetch it again") from error


def lines(path: str, storage: Mapping[str, Any] | None = None) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 text file with their numbers from 1, without their ends; a byte order mark is ignored.

    Raises:
        UserError: there is no such file.
        DataError: a line is not UTF-8, holds a zero byte, or is longer than 1 MiB; or as of `opened`.
    """
    with opened(path, storage) as stream:
        number = 0
        while line := stream.readline(_LONGEST_LINE):
            number += 1
            where = f"{path}, line {number}"
            if len(line) == _LONGEST_LINE or b"\x00" in line:
                raise DataError("it is not a text file", where=where, remedy="name a text file in UTF-8")
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise DataError(
                    f"it is not UTF-8: {line.strip()[:60]!r}",
                    where=where,
                    remedy="convert it: iconv -f LATIN1 -t UTF-8 (or what it is written in)",
                ) from error
            yield number, text.rstrip("\r\n")
