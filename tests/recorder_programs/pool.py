"""Workers that compute and are ended by a signal, as those of a pool are, and a process that is no worker."""

import subprocess
import sys
import time
from multiprocessing import get_context


def spin(seconds: float) -> None:
    while time.process_time() < seconds:
        pass


def square(number: int) -> int:
    start = time.process_time()
    spin(start + 0.1)
    return number * number


if __name__ == "__main__":
    with get_context(sys.argv[1]).Pool(2) as pool:
        print(sum(pool.map(square, range(8), chunksize=1)))
    pool.join()
    if len(sys.argv) > 2:
        subprocess.run([sys.executable, sys.argv[2], "40"], check=True, stdout=subprocess.DEVNULL)
