"""Work in parallel threads, with results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[tuple[Item, Result]]:
    """Each item with its result, in order; at most threads + 1 are in progress.

    All callers in a process that ask for as many threads share them, so steps of a chain together keep no more cores busy. Work
    never waits for other work.

    Args:
        work: called in a thread of its own choice, or in the caller's if there is only one.
        items: taken in the caller's thread.
        threads: at least 1.
    """
    if threads == 1:
        for item in items:
            yield item, work(item)
        return
    going: deque[tuple[Item, Future[Result]]] = deque()
    try:
        for item in items:
            going.append((item, _pool(threads).submit(work, item)))
            if len(going) > threads:
                done, future = going.popleft()
                yield done, future.result()
        while going:
            done, future = going.popleft()
            yield done, future.result()
    finally:  # what is in progress may use what the caller closes next
        wait([future for _, future in going if not future.cancel()])


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="swsdist")
