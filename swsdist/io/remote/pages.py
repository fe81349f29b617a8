"""All objects below a prefix, a page of a thousand at a time, in as few requests as that allows, many side by side.

What fits a page takes one request. Of more, the folders of two levels are listed side by side; and of a folder that is long by
itself, whose names go on with digits of a fingerprint, as those of tables and receipts do, each first digit, and what lies
between these. So a listing is whole whatever the names are.
"""

from __future__ import annotations

import os.path
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from typing import NamedTuple, TypedDict, cast


class Object(NamedTuple):
    """An object that is there."""

    key: str
    size: int
    etag: str


class _Content(TypedDict):
    Key: str
    Size: int
    ETag: str


class _Prefix(TypedDict):
    Prefix: str


class _Answer(TypedDict, total=False):
    """What is used of the answer to list_objects_v2."""

    Contents: list[_Content]
    CommonPrefixes: list[_Prefix]
    IsTruncated: bool
    NextContinuationToken: str


class _Page(NamedTuple):
    """The objects and folders of a page; `more` continues it."""

    objects: list[Object]
    folders: list[str]
    more: str

    @property
    def names(self) -> list[str]:
        """Of all."""
        return [*(item.key for item in self.objects), *self.folders]


class _Range(NamedTuple):
    """Names that begin with `prefix`, but with none of `but`: those after `after` and before `end`, where these are given.

    Attributes:
        more: continues it where a page ended.
        fresh: it is cut if it is long.
    """

    prefix: str
    after: str = ""
    end: str = ""
    but: tuple[str, ...] = ()
    more: str = ""
    fresh: bool = False

    def has(self, name: str) -> bool:
        """Whether a name, which begins so, is in it."""
        return name > self.after and (not self.end or name < self.end) and not name.startswith(self.but)


#: list_objects_v2 of a bucket, of its further parameters.
Ask = Callable[..., Mapping[str, object]]

_DIGITS = "0123456789abcdef"
#: Requests at a time.
_AT_ONCE = 8


def objects_below(ask: Ask, prefix: str) -> Iterator[Object]:
    """The objects, in no order.

    Args:
        ask: list_objects_v2 of a bucket, of its further parameters.
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
    """All pages of some prefixes, as they come; no more of them in memory than are asked for at a time."""
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
    """A page of a range, without what is not in it, and what is to be listed yet."""
    place = {"ContinuationToken": item.more} if item.more else {"StartAfter": item.after} if item.after else {}
    page = _page(ask, Prefix=item.prefix, **place, **requested)
    if page.more and item.fresh:
        return _cut(item.prefix, page)
    beyond = bool(item.end and page.names) and max(page.names) >= item.end
    return _only(page, item), [item._replace(more=page.more)] if page.more and not beyond else []


def _cut(prefix: str, page: _Page) -> tuple[_Page, list[_Range]]:
    """Of the first page of a long prefix what is not listed again, and all that is to be listed yet."""
    names = page.names
    keys = [item.key for item in page.objects]
    # A server that lists in another order, as directory buckets do; or one whose pages have a name, which may be a folder.
    if keys != sorted(keys) or len(names) < 2:
        return page, [_Range(prefix, more=page.more)]
    last = max(names)
    # Names that begin alike, and go on with a digit: `candidates/0a..`, `shards/part-0a..`.
    stem = os.path.commonprefix([min(names), last]).rstrip(_DIGITS)  # noqa: RUF071 (letter by letter is meant)
    parts = tuple(stem + digit for digit in _DIGITS)
    ends = [("", f"{stem}0"), (f"{stem}9~", f"{stem}a"), (f"{stem}f~", "")]
    between = [_Range(prefix, max(last, after), end, parts) for after, end in ends if not end or last < end]
    return _only(page, _Range(prefix, but=parts)), [*map(_Range, parts), *between]


def _page(ask: Ask, **requested: str) -> _Page:
    answer = cast("_Answer", ask(**requested))
    objects = [Object(item["Key"], item["Size"], item["ETag"]) for item in answer.get("Contents", ())]
    folders = [item["Prefix"] for item in answer.get("CommonPrefixes", ())]
    return _Page(objects, folders, answer["NextContinuationToken"] if answer.get("IsTruncated") else "")


def _only(page: _Page, some: _Range) -> _Page:
    """Those of a range."""
    objects = [item for item in page.objects if some.has(item.key)]
    return page._replace(objects=objects, folders=[name for name in page.folders if some.has(name)])


def _files(page: _Page) -> Iterator[Object]:
    return (item for item in page.objects if not item.key.endswith("/"))
