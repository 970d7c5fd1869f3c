"""The work is done by processes that the program forks."""

import os
import sys
import time


def compute(seconds: float) -> None:
    while time.process_time() < seconds:
        sum(range(1000))


for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        compute(0.3)
        os._exit(0)
compute(0.3)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
