"""Two threads of Python that compute: they take turns in the interpreter."""

import threading


def count(most: int) -> None:
    at = 0
    while at < most:
        at += 1


threads = [threading.Thread(target=count, args=(12_000_000,)) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
