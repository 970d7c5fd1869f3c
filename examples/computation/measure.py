"""Times of the programs with one fault each and of their repaired versions, taken alternately.

python measure.py [ROUNDS] prints a table: medians, and the share of the faulty version's time that the repair won.
Of programs on one thread the CPU time is taken, which other programs disturb less; of the others the wall time.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
SERIAL = ("unoptimized", "aliasing", "loop_order", "thrashing", "functions", "allocation", "ordered_sum")
THREADED = ("false_sharing", "sleeping", "locking", "small_tasks")
MPIRUN = ("mpirun", "--oversubscribe", "-n")


def list_commands(name: str) -> tuple[list[str], list[str]]:
    """Return how the faulty and the repaired version of a program are started."""
    if name == "too_many_ranks":
        return [*MPIRUN, "8", f"./{name}"], [*MPIRUN, "2", f"./{name}"]
    launch = [*MPIRUN, "2"] if name == "one_writer" else []
    return [*launch, f"./{name}"], [*launch, f"./{name}-repaired"]


def time_command(command: list[str], *, cpu: bool) -> float:
    """Return the seconds that a command takes, by the clock on the wall or on the processors."""
    started, before = time.monotonic(), os.times()
    subprocess.run(command, cwd=HERE, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    if cpu:
        return after.children_user + after.children_system - before.children_user - before.children_system
    return time.monotonic() - started


def measure_pair(name: str, rounds: int) -> tuple[float, float]:
    """Return the medians of both versions, which are run in turn."""
    pair = list_commands(name)
    taken = [[time_command(command, cpu=name in SERIAL) for command in pair] for _ in range(rounds)]
    return statistics.median(row[0] for row in taken), statistics.median(row[1] for row in taken)


def main() -> None:
    """Build all programs, measure them and print the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    subprocess.run(["make", "-s", "all"], cwd=HERE, check=True)
    print("| program | faulty | repaired | won |\n|---|--:|--:|--:|")
    for name in (*SERIAL, *THREADED, "one_writer", "too_many_ranks"):
        faulty, repaired = measure_pair(name, rounds)
        print(f"| {name} | {faulty:.2f} s | {repaired:.2f} s | {1 - repaired / faulty:.0%} |", flush=True)


if __name__ == "__main__":
    main()
