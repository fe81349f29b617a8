"""List all objects below a prefix, a page of a thousand at a time, in few requests, many in parallel.

A single page takes one request. Longer listings are split into the folders of two levels, in parallel; a long folder
whose names continue with digits of a fingerprint, as those of tables and receipts do, is split at each first digit. The
gaps between are listed too, so the result is complete for any names.
"""

from __future__ import annotations

import os.path
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple


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
