"""Items: places of the frames of a key; and the interface of formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from swsdist.core.codes import families
from swsdist.core.codes import io as codes
from swsdist.core.errors import ConfigError, DataError, UserError
from swsdist.io.filesystem import open_path

#: Frames as stored: an array of any shape and type, checked by the caller.
RawFrames = NDArray[np.generic]

#: Identities of items with a missing or unreadable file.
MISSING, UNREADABLE = "missing", "unreadable"


class Item(NamedTuple):
    """The frames of one key.

    Attributes:
        form: name of the format.
        file: path or url.
        at: place in the file, specific to the format; empty: all of it.
        identity: changes with the item, or (in formats without item identity) with its file.
        size: approximate bytes.
    """

    form: str
    file: str
    at: str
    identity: str
    size: int


class Reader(Protocol):
    """An open file."""

    #: Frame shift in s, if the file gives it; valid for the last `read`.
    shift: float | None

    def read(self, at: str) -> RawFrames:
        """The frames at a place.

        Raises:
            DataError: they are damaged or missing.
            OSError: the file cannot be read.
        """
        ...

    def close(self) -> None:
        """Close the file."""
        ...


#: Returns items of a file by key, given path, identity, bytes, and options for s3fs.
Find = Callable[[str, str, int, Mapping[str, object]], Iterator[tuple[str, Item]]]

#: Opens a file, given path and options for s3fs.
Open = Callable[[str, Mapping[str, object]], Reader]


class Format(NamedTuple):
    """A format of files.

    Attributes:
        endings: of its files, with the dot, in lower case.
        find: finds the items of a file; None if a file is one item, whose key is its relative path.
        open: opens a file.
    """

    endings: tuple[str, ...]
    find: Find | None
    open: Open


def missing_library(library: str, extra: str, where: str) -> ConfigError:
    """The error for a missing optional library."""
    return families.NOT_INSTALLED(
        "the library {library} is not installed",
        "pip install 'swsdist[{extra}]'",
        where=where,
        library=library,
        extra=extra,
    )


@contextmanager
def damage_errors(path: str, *kinds: type[Exception]) -> Iterator[None]:
    """Convert a library's exceptions about a file into errors of damage; file system errors pass."""
    try:
        yield
    except FileNotFoundError as error:
        raise codes.NO_SUCH_FILE(where=path, what="file") from error
    except PermissionError as error:
        raise families.UNREADABLE_FILE.of(UserError)(
            "the file may not be read", "check its permissions", where=path
        ) from error
    except kinds as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise damaged(path, error) from error


def damaged(path: str, error: object, key: str | None = None) -> DataError:
    """The error of a damaged file, or of a key in it."""
    subject = f"the frames of {key!r} are" if key else "the file is"
    return families.DAMAGED_FILE.of(DataError)(
        "{subject} damaged or cut off ({error})",
        "write it, or copy it, again",
        where=path,
        subject=subject,
        error=error,
    )


def read_all(path: str, storage: Mapping[str, object]) -> bytes:
    """All bytes of a file."""
    with open_file(path, storage) as file:
        return file.read()


def open_file(path: str, storage: Mapping[str, object]) -> BinaryIO:
    """A seekable binary file, local or `s3://`."""
    return open_path(path, storage)
