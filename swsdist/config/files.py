"""Read files of configs, corpora and sweeps, local or on S3, and resolve the paths in them."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable
from pathlib import Path
from typing import cast

from swsdist.core.codes import config as codes
from swsdist.registry.registry import Entry

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")

#: Reads a url. It is loaded on first use: a local config needs nothing of S3.
_FETCH = Entry("swsdist.io.compressed:read_all", 1)


def is_url(path: str) -> bool:
    """Whether a path is a url of any scheme."""
    return _URL.match(path) is not None


def text_of(path: str, what: str, hint: str = "") -> str:
    """The text of a file. S3's server and keys come from the environment, since no config is read yet.

    Args:
        path: local, or an `s3://` url.
        what: kind of file, for messages.
        hint: added to the remedy where the file cannot be read.

    Raises:
        ConfigError: the file cannot be read, or is not text in UTF-8.
        UserError, StorageError: the file is on S3 and cannot be read there.
    """
    try:
        if is_url(path):
            return cast(Callable[[str, str], bytes], _FETCH.load())(path, what).decode("utf-8-sig")
        return Path(path).read_text("utf-8-sig")
    except OSError as error:
        raise codes.UNREADABLE_CONFIG(where=path, what=what, reason=error.strerror, hint=hint) from error
    except UnicodeDecodeError as error:
        no_text = b"\0" in error.object
        raise (codes.CONFIG_NOT_TEXT if no_text else codes.CONFIG_NOT_UTF8)(where=path, what=what) from error


def folder_of(path: str) -> str:
    """The folder of a file: absolute, or a url."""
    return path.rpartition("/")[0] if is_url(path) else str(Path(path).absolute().parent)


def absolute(path: str, base: str) -> str:
    """A path as named by a file in the folder `base`, made absolute; `~` is the home folder on this machine."""
    if is_url(path):
        return path
    path = os.path.expanduser(path)  # noqa: PTH111 (pathlib raises for a user that it does not know)
    if is_url(base) and not path.startswith("/"):
        scheme, separator, root = base.partition("://")
        return scheme + separator + posixpath.normpath(f"{root}/{path}")
    return os.path.abspath(Path("/" if is_url(base) else base) / path)  # noqa: PTH100 (pathlib's would follow links)
