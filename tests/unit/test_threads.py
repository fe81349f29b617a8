"""Work in threads: order, how much is in progress, errors, and what an early end leaves."""

import threading
import time
from collections.abc import Iterator

import pytest

from swsdist.core.threads import in_threads


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_are_in_order_whatever_takes_longest(threads: int) -> None:
    def slow(k: int) -> int:
        time.sleep(0.002 * (k % 3))
        return k * k

    assert list(in_threads(slow, range(30), threads)) == [(k, k * k) for k in range(30)]


@pytest.mark.parametrize(("threads", "ahead"), [(1, 1), (2, 3), (5, 6)])
def test_items_are_taken_a_bounded_number_ahead(threads: int, ahead: int) -> None:
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        for k in range(30):
            taken += 1
            yield k

    for k, _ in in_threads(str, items(), threads):
        assert taken <= k + ahead


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_comes_in_its_turn(threads: int) -> None:
    work = in_threads(lambda k: 1 // (3 - k), range(9), threads)
    assert [next(work)[0] for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ZeroDivisionError):
        next(work)


def test_chains_of_steps_share_their_threads() -> None:
    names = set()

    def step(k: int) -> int:
        names.add(threading.current_thread().name)
        return k + 1

    first = (value for _, value in in_threads(step, range(50), 3))
    assert [value for _, value in in_threads(step, first, 3)] == list(range(2, 52))
    assert len(names) <= 3


def test_after_an_early_end_nothing_is_in_progress() -> None:
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
