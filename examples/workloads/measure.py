"""Measures the kernels of this directory: three sizes, two levels of optimisation, each compiler that is installed.

python examples/workloads/measure.py OUT.json      writes the library that comes along
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from advisor_similarity.histogram import ROWS, frequent_cells
from advisor_similarity.library import LibraryEntry, build_entry
from advisor_similarity.parallelism import observe_program
from advisor_similarity.qemu_tracing import TracePlan

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE: Final = Path(__file__).parent
SIZES: Final = {
    "triad": ("10000 10", "20000 10", "40000 10"),
    "matmul": ("40", "60", "90"),
    "cg": ("20 20", "30 20", "45 20"),
    "spmv": ("1000 10", "2000 10", "4000 10"),
    "fft": ("10 2", "11 2", "12 2"),
    "quicksort": ("5000", "10000", "20000"),
    "bucketsort": ("5000 5", "10000 5", "20000 5"),
    "mergesort": ("5000", "10000", "20000"),
    "stencil": ("40 20", "60 20", "90 20"),
    "montecarlo": ("10000", "20000", "40000"),
}
LEVELS: Final = ("-O2", "-O3")
COMPILERS: Final = ("gcc", "clang")


def build(folder: Path, compiler: str, level: str) -> None:
    """Compile all kernels into ``folder``."""
    command = ["make", "-s", "-C", str(HERE), f"CC={compiler}", f"OPT={level}", f"TO={folder}"]
    subprocess.run(command, check=True, timeout=300)


def measured(folder: Path, cache: Path, about: str, smoothability: bool) -> Iterator[LibraryEntry]:
    """Yield every kernel at every size."""
    for program, sizes in SIZES.items():
        for size in sizes:
            with tempfile.TemporaryDirectory() as scratch:
                plan = TracePlan((str(folder / program), *size.split()), rows=ROWS, quiet=True)
                observed = observe_program(plan, cache, Path(scratch), smoothability)
                cells = frequent_cells(observed)
            name = f"{program} {size}, {about}"
            yield build_entry(observed.workload, name, name, cells)


def rounded(value: object) -> object:
    """Return plain data with its numbers to six digits, and without what is empty."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items() if one or one == 0}
    return [rounded(one) for one in value] if isinstance(value, list | tuple) else value


def main() -> None:
    """Build, measure and write."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("out", type=Path)
    out = arguments.parse_args().out
    entries: list[LibraryEntry] = []
    with tempfile.TemporaryDirectory() as scratch:
        cache = Path(scratch)
        for compiler in filter(shutil.which, COMPILERS):
            for level in LEVELS:
                folder = cache / f"{compiler}{level}"
                build(folder, compiler, level)
                entries += measured(folder, cache, f"{compiler} {level}", smoothability=True)
    lines = (msgspec.json.encode(rounded(msgspec.to_builtins(entry))) for entry in entries)
    out.write_bytes(b"[\n" + b",\n".join(lines) + b"\n]\n")


if __name__ == "__main__":
    main()
