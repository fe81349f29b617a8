"""The client of S3 of a process: its time-outs, its retries, its pool, and the credentials that it was made with.

Requests are made again by botocore, in its mode `standard`: pauses that double, of random length ("full jitter", up to 20 s),
and a budget that a client has for all its requests together, so that an outage does not multiply them. What botocore does not
see, a body that breaks off, is made again by `swsdist.io.remote.retry`. s3fs's own retries are off: they would multiply both.

A client keeps the credentials that it found. So it is made anew when a variable AWS_* of the environment changes, or one of the
files that hold credentials. Credentials that boto fetches itself (roles, SSO, instance metadata) it renews itself.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping
from pathlib import Path

import s3fs

from swsdist.core.redaction import remember

#: What `storage.config_kwargs` may say otherwise: seconds to connect, seconds without a byte, attempts, connections a process.
DEFAULTS: Mapping[str, object] = {
    "connect_timeout": 5,
    "read_timeout": 30,
    "max_pool_connections": 16,
    "retries": {"mode": "standard", "total_max_attempts": 5},
}

# Where credentials are, by the variable that names the file, and where it lies if none does.
_FILES = {
    "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials",
    "AWS_CONFIG_FILE": "~/.aws/config",
    "AWS_WEB_IDENTITY_TOKEN_FILE": None,
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": None,
}


def connect(storage: Mapping[str, object]) -> s3fs.S3FileSystem:
    """The s3fs filesystem of this process for these options and the credentials that there are now.

    Args:
        storage: options for `s3fs.S3FileSystem`.
    """
    # A client keeps what it found in the environment, so another environment needs another client.
    environment = tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("AWS_")))
    return _made(json.dumps(dict(storage), sort_keys=True), os.getpid(), environment, _files())


def has_credential_files() -> bool:
    """Whether there are files that credentials may come from, which another process may write anew."""
    return any(seen is not None for _, seen in _files())


def _files() -> tuple[tuple[str, tuple[int, int, int] | None], ...]:
    """The files that hold credentials, and what changes with them."""
    places = [os.environ.get(name, usual) for name, usual in _FILES.items()]
    return tuple((place, _seen(Path(place).expanduser())) for place in places if place)


def _seen(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


@functools.lru_cache(maxsize=8)
def _made(
    options: str,
    process: int,
    environment: tuple[tuple[str, str], ...],
    files: tuple[tuple[str, tuple[int, int, int] | None], ...],
) -> s3fs.S3FileSystem:
    """`process` is only there to tell forks apart: a client's event loop does not survive one; `files`, to tell credentials."""
    settings: dict[str, object] = json.loads(options)
    remember(settings)
    found = dict(environment)
    endpoint = found.get("AWS_ENDPOINT_URL_S3") or found.get("AWS_ENDPOINT_URL")
    clients = settings.get("client_kwargs", {})
    if endpoint and "endpoint_url" not in {*settings, *(clients if isinstance(clients, Mapping) else ())}:
        settings["endpoint_url"] = endpoint
    text = settings.get("config_kwargs")
    settings["config_kwargs"] = {**DEFAULTS, **(text if isinstance(text, Mapping) else {})}
    result = s3fs.S3FileSystem(**{**settings, "use_listings_cache": False, "skip_instance_cache": True})
    result.retries = 1
    return result
