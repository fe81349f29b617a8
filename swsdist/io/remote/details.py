"""Size and ETag of an object, and the reason if they are unavailable."""

from __future__ import annotations

from typing import Any


def details_of(client: Any, path: str) -> dict[str, Any]:
    """S3's details of an object. After a refusal, requests one byte to learn the reason.

    The answer to HEAD has no body, so expired keys look like missing permissions.

    Args:
        client: of s3fs.
        path: bucket/key.
    """
    try:
        return dict(client.info(path))
    except PermissionError:
        bucket, _, key = path.partition("/")
        client.call_s3("get_object", Bucket=bucket, Key=key, Range="bytes=0-0")  # raises the specific error
        raise
