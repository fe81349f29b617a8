"""Read, list and replace objects of S3.

**Reading.** The length of a body is checked against the request, and a complete object against its ETag if that is an MD5:
true for objects from a single put, not encrypted by a key of KMS or of the client. botocore checks the CRCs that newer
servers send. `swsdist.io.remote.client` fetches again after a failed check; failed bodies are never returned.

**Replacing** one only if it is unchanged: on S3 and compatible servers that support it (If-None-Match, If-Match). Source:
 https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-requests.html.

**Listing** all below a prefix, a page of a thousand at a time, in few requests, many in parallel. A single page takes one
request. Longer listings are split into the folders of two levels, in parallel; a long folder whose names continue with
digits of a fingerprint, as those of tables and receipts do, is split at each first digit. The gaps between are listed too,
so the result is complete for any names.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os.path
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from io import UnsupportedOperation
from typing import Any, NamedTuple

import s3fs
from fsspec.asyn import sync
from s3fs.core import S3File

from swsdist.core.codes import storage as codes
from swsdist.core.errors import StorageError
from swsdist.io.failures import explain, s3_error_code
from swsdist.io.local import count
from swsdist.io.remote.client import retry_remote

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


#: S3's answers to a conditional write: the file differs from the expected one; the server lacks conditional writes.
_CHANGED = ("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "412", "409", "404")
_NOT_KNOWN = ("NotImplemented", "InvalidArgument", "InvalidRequest", "501")


def put_if(
    call: Callable[..., Mapping[str, object]], bucket: str, key: str, data: bytes, etag: str | None
) -> str | None:
    """Replace an object that has this ETag; with None, create a new object.

    Args:
        call: S3 request, given a method of its API and the parameters.
        bucket, key: the object.
        data: the complete object.
        etag: without quotation marks.

    Returns:
        The new ETag; None if a different object exists.

    Raises:
        io.UnsupportedOperation: the server lacks conditional writes.
    """
    still = {"IfNoneMatch": "*"} if etag is None else {"IfMatch": etag}
    try:
        answer = call("put_object", Bucket=bucket, Key=key, Body=data, **still)
    except Exception as error:
        code = s3_error_code(error)
        if code in _CHANGED:
            return None
        if code in _NOT_KNOWN:
            raise UnsupportedOperation(f"the server does not know conditional writes ({error})") from None
        raise
    return str(answer["ETag"])


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


class Object(NamedTuple):
    """An existing object."""

    key: str
    size: int
    etag: str


class _Page(NamedTuple):
    """The objects and folders of a page; `more` continues it."""

    objects: list[Object]
    folders: list[str]
    more: str

    @property
    def names(self) -> list[str]:
        """Names of both."""
        return [*(item.key for item in self.objects), *self.folders]


class _Range(NamedTuple):
    """Names that begin with `prefix`, but with none of `but`: after `after` and before `end`, if given.

    Attributes:
        more: token to continue after a page.
        fresh: whether to split it if it is long.
    """

    prefix: str
    after: str = ""
    end: str = ""
    but: tuple[str, ...] = ()
    more: str = ""
    fresh: bool = False

    def has(self, name: str) -> bool:
        """Whether the range contains a name with its prefix."""
        return name > self.after and (not self.end or name < self.end) and not name.startswith(self.but)


#: list_objects_v2 of a bucket; takes further parameters.
Ask = Callable[..., Mapping[str, Any]]

_DIGITS = "0123456789abcdef"
#: Parallel requests.
_AT_ONCE = 8


def objects_below(ask: Ask, prefix: str) -> Iterator[Object]:
    """The objects, unordered.

    Args:
        ask: list_objects_v2 of a bucket; takes further parameters.
        prefix: ends with `/`, or is empty.
    """
    first = _page(ask, Prefix=prefix)
    if not first.more:
        yield from _files(first)
        return
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        prefixes = [prefix]
        for _ in range(2):
            below: dict[str, None] = {}
            for page in _side_by_side(pool, ask, prefixes, Delimiter="/"):
                yield from _files(page)
                below |= dict.fromkeys(page.folders)
            prefixes = list(below)
        for page in _side_by_side(pool, ask, prefixes):
            yield from _files(page)


def _side_by_side(pool: Executor, ask: Ask, prefixes: Iterable[str], **requested: str) -> Iterator[_Page]:
    """All pages of some prefixes, unordered; memory holds only the pages being requested."""
    waiting = deque(_Range(prefix, fresh=True) for prefix in prefixes)
    going: set[Future[tuple[_Page, list[_Range]]]] = set()
    while waiting or going:
        while waiting and len(going) < _AT_ONCE:
            going.add(pool.submit(_next, ask, waiting.popleft(), requested))
        done, going = wait(going, return_when=FIRST_COMPLETED)
        for item in done:
            page, rest = item.result()
            waiting.extend(rest)
            yield page


def _next(ask: Ask, item: _Range, requested: Mapping[str, str]) -> tuple[_Page, list[_Range]]:
    """A page of a range, restricted to the range, and the ranges that remain."""
    place = {"ContinuationToken": item.more} if item.more else {"StartAfter": item.after} if item.after else {}
    page = _page(ask, Prefix=item.prefix, **place, **requested)
    if page.more and item.fresh:
        return _cut(item.prefix, page)
    beyond = bool(item.end and page.names) and max(page.names) >= item.end
    return _only(page, item), [item._replace(more=page.more)] if page.more and not beyond else []


def _cut(prefix: str, page: _Page) -> tuple[_Page, list[_Range]]:
    """Split a long prefix after its first page: the entries not listed again, and the ranges that remain."""
    names = page.names
    keys = [item.key for item in page.objects]
    # Some servers, as for directory buckets, do not sort; and a page with one name may be a folder.
    if keys != sorted(keys) or len(names) < 2:
        return page, [_Range(prefix, more=page.more)]
    last = max(names)
    # Names with a common stem and then a digit: `candidates/0a..`, `shards/part-0a..`.
    stem = os.path.commonprefix([min(names), last]).rstrip(_DIGITS)  # noqa: RUF071 (letter by letter is meant)
    parts = tuple(stem + digit for digit in _DIGITS)
    ends = [("", f"{stem}0"), (f"{stem}9~", f"{stem}a"), (f"{stem}f~", "")]
    between = [_Range(prefix, max(last, after), end, parts) for after, end in ends if not end or last < end]
    return _only(page, _Range(prefix, but=parts)), [*map(_Range, parts), *between]


def _page(ask: Ask, **requested: str) -> _Page:
    answer = ask(**requested)
    objects = [Object(item["Key"], item["Size"], item["ETag"]) for item in answer.get("Contents", ())]
    folders = [item["Prefix"] for item in answer.get("CommonPrefixes", ())]
    return _Page(objects, folders, answer["NextContinuationToken"] if answer.get("IsTruncated") else "")


def _only(page: _Page, some: _Range) -> _Page:
    """The entries of a page in a range."""
    objects = [item for item in page.objects if some.has(item.key)]
    return page._replace(objects=objects, folders=[name for name in page.folders if some.has(name)])


def _files(page: _Page) -> Iterator[Object]:
    return (item for item in page.objects if not item.key.endswith("/"))
