"""Starts itself with an empty environment, as pyperf does, reads what that computed, and waits for its end."""

import subprocess
import sys

if sys.argv[1:] == ["worker"]:
    total = 0
    for number in range(4_000_000):
        total += number * number
    print(total)
else:
    print(subprocess.run([sys.executable, __file__, "worker"], env={}, capture_output=True, check=True).stdout)
