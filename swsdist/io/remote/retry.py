"""Retry S3 requests where botocore does not: after a truncated body, or renewed credentials.

Pauses double and are of random length ("full jitter"): P = U(0, 1) min(8, 2^k / 4) s after attempt k (M. Brooker,
Exponential Backoff And Jitter, AWS Architecture Blog, 2015). A process has a budget of `BUDGET` tokens: each retry
takes one, each success returns a tenth. With an empty budget the first error is final: an outage does not multiply
requests.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

import s3fs

from swsdist.core.codes import storage as codes
from swsdist.core.errors import StorageError
from swsdist.io.failures import explain
from swsdist.io.remote.connection import connect, has_credential_files

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
