"""Work in threads: results in order, few tasks at a time, and errors that reach who asked."""

from __future__ import annotations

import threading

import pytest

from advisor.support.worker_threads import map_in_threads


@pytest.mark.parametrize("threads", [1, 3])
def test_results_come_in_the_order_of_the_tasks(threads: int) -> None:
    later = threading.Event()

    def work(number: int) -> int:
        if number == 0 and threads > 1:
            assert later.wait(60)  # the first one ends after the second
        later.set()
        return number * number

    assert list(map_in_threads(work, range(7), threads)) == [number * number for number in range(7)]


def test_no_more_tasks_are_taken_than_there_are_threads() -> None:
    taken: list[int] = []
    results = map_in_threads(lambda number: number, (taken.append(n) or n for n in range(9)), 3)
    for done, _ in enumerate(results):
        assert len(taken) <= done + 3


def test_an_error_reaches_who_asked() -> None:
    with pytest.raises(ZeroDivisionError):
        list(map_in_threads(lambda number: 1 // number, (1, 0, 1), 2))
