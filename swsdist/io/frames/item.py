"""Where the frames of one key are, and what a format's file must do to be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from swsdist.core.codes import io as codes
from swsdist.core.errors import ConfigError, DataError
from swsdist.io.filesystem import open_path

#: Frames as a file has them: an array of whatever shape and type, which is checked by who reads it.
RawFrames = NDArray[np.generic]

#: The identities of an item whose file is not there, and of one whose file may not be read.
MISSING, UNREADABLE = "missing", "unreadable"


class Item(NamedTuple):
    """The frames of one key.

    Attributes:
        form: name of the format.
        file: path or url.
        at: the place in it, as the format says; empty: all of it.
        identity: changes when the item changes, or (where the format does not tell) anything of its file.
        size: about how many bytes.
    """

    form: str
    file: str
    at: str
    identity: str
    size: int


class Reader(Protocol):
    """An open file."""

    #: Seconds from frame to frame, where the file tells it: after `read`, of what was read.
    shift: float | None

    def read(self, at: str) -> RawFrames:
        """The frames at a place.

        Raises:
            DataError: they are damaged, or not there.
            OSError: the file cannot be read.
        """
        ...

    def close(self) -> None:
        """Close the file."""
        ...


#: Items of a file by key: its path, its identity, its bytes, and options for s3fs.
Find = Callable[[str, str, int, Mapping[str, object]], Iterator[tuple[str, Item]]]

#: Opens a file: its path, and options for s3fs.
Open = Callable[[str, Mapping[str, object]], Reader]


class Format(NamedTuple):
    """What is known of a format.

    Attributes:
        endings: of its files, with the dot, in lower case.
        find: the items of a file; None where a file is one item, whose key is its name in the folder.
        open: opens a file.
    """

    endings: tuple[str, ...]
    find: Find | None
    open: Open


def missing_library(library: str, extra: str, where: str) -> ConfigError:
    """What to say where an optional library is not installed."""
    return codes.MISSING_FRAMES_LIBRARY(where=where, library=library, extra=extra)


@contextmanager
def damage_errors(path: str, *kinds: type[Exception]) -> Iterator[None]:
    """Say of a file that it is damaged where a library says so in its own way; trouble of the file system stays."""
    try:
        yield
    except FileNotFoundError as error:
        raise codes.NO_SUCH_FILE(where=path, what="file") from error
    except PermissionError as error:
        raise codes.UNREADABLE_FILE(where=path) from error
    except kinds as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise damaged(path, error) from error


def damaged(path: str, error: object, key: str | None = None) -> DataError:
    """The error of a file, or of a key in it, that cannot be understood."""
    subject = f"the frames of {key!r} are" if key else "the file is"
    return codes.DAMAGED_FRAMES_FILE(where=path, subject=subject, error=error)


def read_all(path: str, storage: Mapping[str, object]) -> bytes:
    """All bytes of a file."""
    with open_file(path, storage) as file:
        return file.read()


def open_file(path: str, storage: Mapping[str, object]) -> BinaryIO:
    """A seekable binary file, local or `s3://`."""
    return open_path(path, storage)
