"""Work in threads: order, how much is in progress, errors, and what an early end leaves."""

import threading
import time

import pytest

from swsdist.core.threads import in_threads


def test_items_are_taken_a_bounded_number_ahead() -> None:
    for threads, ahead in ((1, 1), (2, 3), (5, 6)):
        taken: list[int] = []
        items = (taken.append(k) or k for k in range(30))
        assert all(len(taken) <= k + ahead for k, _ in in_threads(str, items, threads))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_and_errors_are_in_order_whatever_takes_longest(threads: int) -> None:
    def slow(k: int) -> int:
        time.sleep(0.002 * (k % 3))
        return 12 // (20 - k)

    work = in_threads(slow, range(30), threads)
    assert [next(work) for _ in range(20)] == [(k, 12 // (20 - k)) for k in range(20)]
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
