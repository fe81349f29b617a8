"""A process's client of S3: time-outs, retries, pool, and credentials.

botocore retries requests in its mode `standard`: doubling pauses of random length ("full jitter", up to 20 s), and a
budget per client for all its requests, so that an outage does not multiply them. `swsdist.io.remote.retry` retries
failures that botocore does not see, such as a body that breaks off. s3fs's retries are off: they would multiply both.

A client keeps its first credentials. So it is replaced when an environment variable AWS_* or a file of credentials
changes. boto renews the credentials that it fetches (roles, SSO, instance metadata).
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping
from pathlib import Path

import s3fs

from swsdist.core.text import remember

#: Defaults, which `storage.config_kwargs` overrides: seconds to connect, seconds without a byte, attempts, connections
#: per process.
DEFAULTS: Mapping[str, object] = {
    "connect_timeout": 5,
    "read_timeout": 30,
    "max_pool_connections": 16,
    "retries": {"mode": "standard", "total_max_attempts": 5},
}

# Files of credentials, by the variable that names the file, and their default places.
_FILES = {
    "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials",
    "AWS_CONFIG_FILE": "~/.aws/config",
    "AWS_WEB_IDENTITY_TOKEN_FILE": None,
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": None,
}


def connect(storage: Mapping[str, object]) -> s3fs.S3FileSystem:
    """This process's s3fs filesystem for these options and the current credentials.

    Args:
        storage: options for `s3fs.S3FileSystem`.
    """
    # A client keeps the environment it started with, so a changed environment needs a new client.
    environment = tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("AWS_")))
    return _make_client(json.dumps(dict(storage), sort_keys=True), os.getpid(), environment, _files())


def has_credential_files() -> bool:
    """Whether credentials may come from files, which another process may rewrite."""
    return any(seen is not None for _, seen in _files())


def _files() -> tuple[tuple[str, tuple[int, int, int] | None], ...]:
    """The files of credentials, with values that change when they do."""
    places = [os.environ.get(name, usual) for name, usual in _FILES.items()]
    return tuple((place, _seen(Path(place).expanduser())) for place in places if place)


def _seen(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


@functools.lru_cache(maxsize=8)
def _make_client(
    options: str,
    process: int,
    environment: tuple[tuple[str, str], ...],
    files: tuple[tuple[str, tuple[int, int, int] | None], ...],
) -> s3fs.S3FileSystem:
    """Make a client. `process` only distinguishes forks, whose event loops do not survive; `files` distinguishes
    credentials.
    """
    settings: dict[str, object] = json.loads(options)
    remember(settings)
    variables = dict(environment)
    endpoint = variables.get("AWS_ENDPOINT_URL_S3") or variables.get("AWS_ENDPOINT_URL")
    clients = settings.get("client_kwargs", {})
    if endpoint and "endpoint_url" not in {*settings, *(clients if isinstance(clients, Mapping) else ())}:
        settings["endpoint_url"] = endpoint
    client_config = settings.get("config_kwargs")
    settings["config_kwargs"] = {**DEFAULTS, **(client_config if isinstance(client_config, Mapping) else {})}
    result = s3fs.S3FileSystem(**{**settings, "use_listings_cache": False, "skip_instance_cache": True})
    result.retries = 1
    return result
