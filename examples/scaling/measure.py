"""Run the programs at several sizes and numbers of ranks, and write what they took in Extra-P's text format.

python measure.py OUT [--sizes 96 128 …] [--ranks 1 2 4] [--repeats 5]
"""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = ("gauss", "matmul", "ocean")
LAUNCH = ("mpirun", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1")


def seconds(program: str, size: int, ranks: int) -> float:
    """Return what the slowest rank took, in the fastest of several times."""
    command = [*LAUNCH, "-n", str(ranks), str(HERE / program), str(size)]
    printed = subprocess.run(command, capture_output=True, check=True, text=True, timeout=300).stdout
    return float(printed.split()[2])


def measured(program: str, sizes: list[int], ranks: list[int], repeats: int) -> dict[tuple[int, int], list[float]]:
    """Return the times by (N, P); the repeats go round, so that what disturbs one round disturbs every point alike."""
    points = [(size, rank) for size in sizes for rank in ranks]
    found: dict[tuple[int, int], list[float]] = {point: [] for point in points}
    for _ in range(repeats):
        for point in points:
            found[point].append(seconds(program, *point))
    return found


def text(times: dict[tuple[int, int], list[float]]) -> str:
    """Return the times in Extra-P's text format."""
    lines = ["PARAMETER N", "PARAMETER P", "POINTS " + " ".join(f"( {n} {p} )" for n, p in times), "METRIC time"]
    return "\n".join([*lines, *("DATA " + " ".join(f"{value:.6g}" for value in row) for row in times.values()), ""])


def main() -> None:
    """Measure all programs into ``OUT/PROGRAM.txt``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 96, 128, 160, 192, 256, 320, 384])
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    subprocess.run(["make", "-s", "-C", str(HERE)], check=True)
    given.out.mkdir(parents=True, exist_ok=True)
    for program in PROGRAMS:
        (given.out / f"{program}.txt").write_text(text(measured(program, given.sizes, given.ranks, given.repeats)))


if __name__ == "__main__":
    main()
