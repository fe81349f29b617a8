"""All objects below a prefix, a page at a time, several prefixes side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypedDict, cast


class Object(TypedDict):
    """An object of a page."""

    Key: str
    Size: int
    ETag: str


class _Prefix(TypedDict):
    Prefix: str


class _Page(TypedDict, total=False):
    """An answer of list_objects_v2."""

    Contents: list[Object]
    CommonPrefixes: list[_Prefix]
    IsTruncated: bool
    NextContinuationToken: str


def pages_below(ask: Callable[..., Mapping[str, object]], prefix: str) -> Iterator[list[Object]]:
    """The objects in the order of their names, a page at a time.

    Args:
        ask: list_objects_v2 of a bucket, of its further parameters.
        prefix: ends with `/`, or is empty.
    """
    for page in _pages(ask, prefix):
        yield [one for one in page.get("Contents", ()) if not one["Key"].endswith("/")]


def files_below(ask: Callable[..., Mapping[str, object]], prefix: str) -> Iterator[tuple[str, int]]:
    """Name, without the prefix, and size of each object, in no order; the prefixes of two levels are listed side by side.

    Args:
        ask: list_objects_v2 of a bucket, of its further parameters.
        prefix: ends with `/`, or is empty.
    """
    skip, prefixes = len(prefix), [prefix]
    for _ in range(2):
        pages = [page for one in prefixes for page in _pages(ask, one, Delimiter="/")]
        prefixes = [one["Prefix"] for page in pages for one in page.get("CommonPrefixes", ())]
        yield from (file for page in pages for file in _files(page, skip))
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda one: [file for page in _pages(ask, one) for file in _files(page, skip)], prefixes):
            yield from found


def _pages(ask: Callable[..., Mapping[str, object]], prefix: str, **more: str) -> Iterator[_Page]:
    while True:
        page = cast("_Page", ask(Prefix=prefix, **more))
        yield page
        if not page.get("IsTruncated"):
            return
        more["ContinuationToken"] = page["NextContinuationToken"]


def _files(page: _Page, skip: int) -> Iterator[tuple[str, int]]:
    for entry in page.get("Contents", ()):
        if not entry["Key"].endswith("/"):
            yield entry["Key"][skip:], entry["Size"]
