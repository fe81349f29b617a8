"""Work in threads, passes that questions share, and bytes that are counted."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

from swsdist.core.errors import UserError
from swsdist.core.threads import in_threads
from swsdist.core.types import CANDIDATES, EXAMPLES
from swsdist.methods.method import Unit
from swsdist.searcher.searcher import Passes


def test_items_are_taken_a_bounded_number_ahead_and_none_after_an_early_end() -> None:
    for threads, ahead in ((1, 1), (2, 3), (5, 6)):
        taken: list[int] = []
        items = (taken.append(k) or k for k in range(30))
        assert all(len(taken) <= k + ahead for k, _ in in_threads(str, items, threads))
    running, lock = 0, threading.Lock()

    def step(k: int) -> int:
        nonlocal running
        with lock:
            running += 1
        time.sleep(0.02)
        with lock:
            running -= 1
        return k

    work = in_threads(step, range(50), 2)
    next(work)
    work.close()  # type: ignore[attr-defined]
    assert running == 0


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_and_errors_are_in_order_whatever_takes_longest(threads: int) -> None:
    def slow(k: int) -> int:
        time.sleep(0.002 * (k % 3))
        return 12 // (20 - k)

    work = in_threads(slow, range(30), threads)
    assert [next(work) for _ in range(20)] == [(k, 12 // (20 - k)) for k in range(20)]
    with pytest.raises(ZeroDivisionError):
        next(work)


UNITS = [Unit((name,), None, 1, 1) for name in "abc"]
Search = Callable[[pa.Table], Iterator[tuple[Unit, Iterable[pa.Table]]]]


def examples(*query_ids: str, features: bytes = b"") -> pa.Table:
    row: dict[str, Any] = dict.fromkeys(EXAMPLES.names)
    row |= {"example": 1, "duration": 1.0, "frames": 1, "features": features}
    return pa.Table.from_pylist([row | {"query_id": name} for name in query_ids], EXAMPLES)


class Engine:
    """Finds each query once in each unit, at the length of its features; the first pass waits until it may begin."""

    def __init__(self) -> None:
        self.passes: list[int] = []
        self.may_begin = threading.Event()

    def search(self, queries: pa.Table) -> Iterator[tuple[Unit, Iterable[pa.Table]]]:
        self.passes.append(queries.num_rows)
        assert self.may_begin.wait(20)
        if b"bad" in queries["features"].to_pylist():
            raise ValueError("it does not fit the store")
        for unit in UNITS:
            base = dict.fromkeys(CANDIDATES.names, 0) | {"doc_id": unit.shards[0]}
            asked = queries.to_pylist()
            rows = [base | {"query_id": row["query_id"], "cost": len(row["features"])} for row in asked]
            yield unit, [pa.Table.from_pylist(rows, CANDIDATES)]


def found(passes: Passes, search: Search, table: pa.Table) -> list[tuple[str, str, int]]:
    return [
        (row["doc_id"], row["query_id"], row["cost"])
        for _, tables in passes.search(search, table)
        for part in tables
        for row in part.to_pylist()
    ]


def expected(*query_ids: str, cost: int) -> list[tuple[str, str, int]]:
    return [(unit.shards[0], name, cost) for unit in UNITS for name in query_ids]


def waiting(passes: Passes, engine: Engine, people: ThreadPoolExecutor, tables: list[pa.Table]) -> list[Any]:
    """Questions that wait while the first is searched."""
    first = people.submit(found, passes, engine.search, examples("first"))
    while not engine.passes:
        pass
    others = [people.submit(found, passes, engine.search, table) for table in tables]
    while len(passes._waiting) < len(tables):
        pass
    engine.may_begin.set()
    return [first, *others]


def test_those_that_wait_share_a_pass_and_a_mistake_is_nobody_elses() -> None:
    passes, engine = Passes("store"), Engine()
    with ThreadPoolExecutor(9) as people:
        asked = waiting(passes, engine, people, [examples("w", "v 1", features=bytes(k)) for k in range(1, 5)])
        assert asked[0].result() == expected("first", cost=0)
        for k, each in enumerate(asked[1:], 1):
            assert each.result() == expected("w", "v 1", cost=k)
    assert engine.passes == [1, 8]
    passes, engine = Passes("store"), Engine()
    with ThreadPoolExecutor(9) as people:
        asked = waiting(passes, engine, people, [examples("w"), examples("w", features=b"bad"), examples("w")])
        for each in (asked[1], asked[3]):
            assert each.result() == expected("w", cost=0)
        with pytest.raises(ValueError, match="does not fit"):
            asked[2].result()


def test_the_end_is_told_to_those_that_wait() -> None:
    passes, engine = Passes("store"), Engine()
    with ThreadPoolExecutor(9) as people:
        first = people.submit(found, passes, engine.search, examples("first"))
        while not engine.passes:
            pass
        other = people.submit(found, passes, engine.search, examples("w"))
        while not passes._waiting:
            pass
        passes.close()
        with pytest.raises(UserError, match="closed"):
            other.result()
        engine.may_begin.set()
        with pytest.raises(UserError, match="closed"):
            first.result()
    with pytest.raises(UserError, match="closed"):
        found(passes, engine.search, examples("w"))
