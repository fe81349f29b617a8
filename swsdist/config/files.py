"""Files of configs, corpora and sweeps: on a disk or at an `s3://` url; and what the paths in them are relative to."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable
from pathlib import Path
from typing import cast

from swsdist.core.errors import ConfigError
from swsdist.registry.registry import Entry

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")

#: What fetches an url. It is loaded when one is named: a config on a disk needs nothing of S3.
_FETCH = Entry("swsdist.io.compressed:read_all", 1)


def is_url(path: str) -> bool:
    """Whether it is an url, of whatever kind."""
    return _URL.match(path) is not None


def text_of(path: str, what: str, remedy: str = "look at the path") -> str:
    """The text of a file. Where S3's server and keys are, the environment tells: the config that may say so is not read yet.

    Args:
        path: local, or an `s3://` url.
        what: it is, for messages.
        remedy: where it cannot be read.

    Raises:
        ConfigError: it cannot be read, or is not UTF-8.
        UserError, StorageError: it is on S3 and cannot be read there.
    """
    try:
        if is_url(path):
            return cast(Callable[[str, str], bytes], _FETCH.load())(path, what).decode("utf-8-sig")
        return Path(path).read_text("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"cannot read the {what}: {error.strerror}", where=path, remedy=remedy) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"the {what} is not UTF-8 text", where=path, remedy="save it as UTF-8") from error


def folder_of(path: str) -> str:
    """The folder that a file lies in, absolute or an url."""
    return path.rpartition("/")[0] if is_url(path) else str(Path(path).absolute().parent)


def absolute(path: str, base: str) -> str:
    """A path that a file in the folder `base` names; `~` is a home on this machine."""
    if is_url(path):
        return path
    path = os.path.expanduser(path)  # noqa: PTH111 (pathlib raises for a user that it does not know)
    if is_url(base) and not path.startswith("/"):
        scheme, separator, root = base.partition("://")
        return scheme + separator + posixpath.normpath(f"{root}/{path}")
    return os.path.abspath(Path("/" if is_url(base) else base) / path)  # noqa: PTH100 (pathlib's would follow links)
