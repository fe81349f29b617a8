"""Read objects of S3 with checks of length, identity and digest.

The length of a body is checked against the request, and a complete object against its ETag if that is an MD5: true for
objects from a single put, not encrypted by a key of KMS or of the client. botocore checks the CRCs that newer servers
send. `swsdist.io.remote.retry` fetches again after a failed check; failed bodies are never returned.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import re
from collections.abc import Mapping
from typing import Any

import s3fs
from fsspec.asyn import sync
from s3fs.core import S3File

from swsdist.core.codes import storage as codes
from swsdist.core.errors import StorageError
from swsdist.io.byte_count import count
from swsdist.io.failures import explain
from swsdist.io.remote.retry import retry_remote

#: Bytes per second below which a transfer is given up as stalled.
SLOWEST = 20_000

_MD5 = re.compile(r'"?([0-9a-f]{32})"?')


#: An answer to GetObject.
_Answer = Mapping[str, Any]


def read_object(storage: Mapping[str, object], url: str) -> bytes:
    """All bytes of an object, by one request.

    Raises:
        FileNotFoundError: there is no such object.
        StorageError: it could not be read completely.
    """
    return retry_remote(storage, url, lambda client: _read_complete(client, url))


def _read_complete(client: s3fs.S3FileSystem, url: str) -> bytes:
    answer, data = _get(client, url)
    if _agrees(answer, data):
        return data
    # If the ETag is no MD5, a second read gives the same bytes.
    _, second = _get(client, url)
    if data != second or len(data) != int(client.info(_key(url))["size"]):
        raise damaged(url, f"{len(data)} bytes came that do not agree with the ETag")
    return data


def _agrees(answer: _Answer, data: bytes) -> bool:
    tag = _MD5.fullmatch(answer.get("ETag", ""))
    encrypted = answer.get("ServerSideEncryption", "AES256") != "AES256" or "SSECustomerAlgorithm" in answer
    return tag is None or encrypted or hashlib.md5(data, usedforsecurity=False).hexdigest() == tag[1]


class CheckedFile(S3File):  # type: ignore[misc]  # s3fs has no types
    """An object open for reading; each fetched range is checked, and fetched again if necessary."""

    def __init__(self, client: s3fs.S3FileSystem, url: str, ahead: int, storage: Mapping[str, object]) -> None:
        self._url, self._storage = url, storage
        super().__init__(client, _key(url), "rb", block_size=ahead)
        if self.details["type"] != "file":  # s3fs opens a folder as an empty file
            raise FileNotFoundError(errno.ENOENT, "is a folder", url)

    @property
    def etag(self) -> str:
        """ETag of the open object."""
        return str(self.details["ETag"])

    def _fetch_range(self, start: int, end: int) -> bytes:
        end = min(end, self.size)
        if start >= end:
            return b""
        return retry_remote(self._storage, self._url, lambda client: self._range(client, start, end))

    def _range(self, client: s3fs.S3FileSystem, start: int, end: int) -> bytes:
        # Some servers lack If-Match; then compare the answer's ETag.
        match = {} if client.local_expiry_check else {"IfMatch": self.details["ETag"]}
        answer, data = _get(client, self._url, Range=f"bytes={start}-{end - 1}", **match)
        if answer.get("ETag", self.details["ETag"]) != self.details["ETag"]:
            raise _changed(self._url)
        text = answer.get("ContentRange", f"bytes {start}-{end - 1}/{self.size}")
        if len(data) != end - start or text != f"bytes {start}-{end - 1}/{self.size}":
            raise damaged(self._url, f"{len(data)} bytes ({text}) came of {end - start} from {start} of {self.size}")
        return data


def open_checked(storage: Mapping[str, object], url: str, ahead: int) -> CheckedFile:
    """An object open for reading; it fetches `ahead` bytes beyond each request.

    Raises:
        FileNotFoundError: there is no such object.
        StorageError: any other failure of S3.
    """
    return retry_remote(storage, url, lambda client: CheckedFile(client, url, ahead, storage))


def _get(client: s3fs.S3FileSystem, url: str, **more: str) -> tuple[_Answer, bytes]:
    """An answer, and its body."""
    try:
        got: tuple[_Answer, bytes] = sync(client.loop, _fetch, client, url, more)
    except OSError as error:
        if isinstance(error, FileNotFoundError) or "pre-conditions" not in str(error):
            raise
        raise _changed(url) from error
    return got


def _changed(url: str) -> StorageError:
    return codes.OBJECT_CHANGED(where=url)


async def _fetch(client: s3fs.S3FileSystem, url: str, more: Mapping[str, str]) -> tuple[_Answer, bytes]:
    bucket, key, version = client.split_path(_key(url))
    if version:
        more = {**more, "VersionId": version}
    answer: _Answer = await client._call_s3("get_object", Bucket=bucket, Key=key, **more)
    body, length = answer["Body"], answer["ContentLength"]
    patience = float(client.config_kwargs["read_timeout"]) + length / SLOWEST
    try:
        data = await asyncio.wait_for(body.read(), patience)
        count(len(data))
    except TimeoutError:
        raise damaged(url, f"its {length} bytes did not come within {patience:.0f} s") from None
    except Exception as error:
        if explain(error, url) is None:
            raise
        raise damaged(url, f"its {length} bytes broke off: {error}") from error
    finally:
        body.close()
    if len(data) != length:
        raise damaged(url, f"{len(data)} of {length} bytes came")
    return answer, data


def damaged(url: str, what: str) -> StorageError:
    """The error of a damaged body."""
    return codes.S3_TRANSFER_DAMAGED(where=url, detail=f" ({what})")


def _key(url: str) -> str:
    return url.removeprefix("s3://")
