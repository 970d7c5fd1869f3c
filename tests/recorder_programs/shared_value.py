"""Processes that add numbers one by one to a value that they share."""

import multiprocessing
import time


def add(total) -> None:  # noqa: ANN001  (what multiprocessing.Value returns has no name)
    while time.process_time() < 0.6:
        for number in range(100):
            with total.get_lock():
                total.value += number


if __name__ == "__main__":
    shared = multiprocessing.get_context("fork").Value("d", 0.0)
    workers = [multiprocessing.get_context("fork").Process(target=add, args=(shared,)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
