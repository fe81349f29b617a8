"""A process's client of S3, with its time-outs, pool and credentials, and retries where botocore does not: after a truncated
body, or renewed credentials.

Pauses double and are of random length ("full jitter"): P = U(0, 1) min(8, 2^k / 4) s after attempt k (M. Brooker,
Exponential Backoff And Jitter, AWS Architecture Blog, 2015). A process has a budget of `BUDGET` tokens: each retry
takes one, each success returns a tenth. With an empty budget the first error is final: an outage does not multiply
requests.

botocore retries requests in its mode `standard`: doubling pauses of random length ("full jitter", up to 20 s), and a
budget per client for all its requests, so that an outage does not multiply them. `retry_remote` retries failures that
botocore does not see, such as a body that breaks off. s3fs's retries are off: they would multiply both.

A client keeps its first credentials. So it is replaced when an environment variable AWS_* or a file of credentials
changes. boto renews the credentials that it fetches (roles, SSO, instance metadata).
"""

from __future__ import annotations

import functools
import json
import os
import random
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import s3fs

from swsdist.core.codes import storage as codes
from swsdist.core.errors import StorageError
from swsdist.core.text import remember
from swsdist.io.failures import explain

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


T = TypeVar("T")

#: Most attempts.
ATTEMPTS = 5

#: Tokens per process.
BUDGET = 100.0
_BACK = 0.1

#: Causes of errors that we retry; botocore has already retried the others.
_CREDENTIALS = frozenset(
    code.name
    for code in (
        codes.EXPIRED_S3_CREDENTIALS,
        codes.INVALID_S3_CREDENTIALS,
        codes.NO_S3_CREDENTIALS,
        codes.S3_CREDENTIALS_UNAVAILABLE,
        codes.NO_SUCH_AWS_PROFILE,
    )
)

_random = random.Random()  # not the global generator: users seed that, and here processes must differ


class Budget:
    """The tokens of a process, for all its threads."""

    def __init__(self, tokens: float = BUDGET) -> None:
        self._most = self._left = tokens
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Take a token; return whether there was one."""
        with self._lock:
            had = self._left >= 1
            self._left -= had
        return had

    def give(self) -> None:
        """Return a share of a token after a success."""
        with self._lock:
            self._left = min(self._most, self._left + _BACK)


budget = Budget()


def pause(attempt: int) -> float:
    """Seconds to wait after an attempt, from 1."""
    return _random.random() * min(8.0, 0.5 * 2.0 ** (attempt - 1))


def retry_remote(storage: Mapping[str, object], where: str, do: Callable[[s3fs.S3FileSystem], T]) -> T:
    """Call `do` with the client of this process, with retries where useful.

    Args:
        storage: options for s3fs.
        where: the url, for messages.
        do: receives the client of each attempt, a new client if credentials have changed.

    Raises:
        FileNotFoundError: there is no such object.
        StorageError: any other failure of S3.
    """
    for attempt in range(1, ATTEMPTS + 1):
        client = connect(storage)
        try:
            result = do(client)
        except Exception as error:
            failure = explain(error, where)
            if failure is None or failure.code == codes.MISSING_FILE.name:
                raise
            if attempt == ATTEMPTS or not _helps(failure, client, storage, attempt):
                raise failure from (None if failure is error else error)
        else:
            budget.give()
            return result
    raise AssertionError("ATTEMPTS is at least 1")


def _helps(failure: StorageError, client: s3fs.S3FileSystem, storage: Mapping[str, object], attempt: int) -> bool:
    """Whether to retry; waits before returning true."""
    renewed = failure.code in _CREDENTIALS and connect(storage) is not client
    if renewed:
        return True
    if failure.code != codes.S3_TRANSFER_DAMAGED.name and not (
        failure.code == codes.EXPIRED_S3_CREDENTIALS.name and has_credential_files() and "key" not in storage
    ):
        return False
    if not budget.take():
        return False
    time.sleep(pause(attempt))
    return True
