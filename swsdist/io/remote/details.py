"""Size and ETag of an object, and why there are none."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

D = TypeVar("D", covariant=True)


class _Client(Protocol[D]):
    def info(self, path: str) -> D: ...

    def call_s3(self, method: str, **kwargs: Any) -> object: ...


def details_of(client: _Client[D], path: str) -> D:
    """What S3 says of an object. What it refuses is asked for once more, by a byte.

    The answer to HEAD has no body, so keys that have expired look there as if they never had any rights.

    Args:
        client: of s3fs.
        path: bucket/key.
    """
    try:
        return client.info(path)
    except PermissionError:
        bucket, _, key = path.partition("/")
        client.call_s3("get_object", Bucket=bucket, Key=key, Range="bytes=0-0")  # raises, and says why
        raise
