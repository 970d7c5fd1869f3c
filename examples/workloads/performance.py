"""Times the kernels on the processor and under emulators of it, and predicts each program from the others.

python examples/workloads/performance.py measure OUT.json   measures; the library that lies here is ``timed.json``
python examples/workloads/performance.py                    prints the table of ``docs/validation.md`` from it
python examples/workloads/performance.py --write            puts it on the page

QEMU and valgrind stand in for other machines: each makes other kinds of instructions dear.
"""

from __future__ import annotations

import math
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
from measure import COMPILERS, LEVELS, build, rounded

from advisor_similarity.library import LibraryEntry, build_entry
from advisor_similarity.neighbours import compute_distances
from advisor_similarity.parallelism import observe_program
from advisor_similarity.parallelism_command import measure_cpu_seconds
from advisor_similarity.performance import OPERATIONS, compare_performance, predict_known, predict_seconds
from advisor_similarity.qemu_tracing import TracePlan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HERE: Final = Path(__file__).resolve().parent
STORED: Final = HERE / "timed.json"
PAGE: Final = HERE.parents[1] / "docs" / "validation.md"
BEGIN, END = "<!-- performance: begin -->\n", "<!-- performance: end -->\n"
#: Sizes that run long enough to be timed.
SIZES: Final = {
    "triad": "100000 1200", "matmul": "300", "cg": "400 60", "spmv": "40000 60", "fft": "17 6", "quicksort": "800000",
    "bucketsort": "1000000 30", "mergesort": "800000", "stencil": "700 100", "montecarlo": "6000000",
}  # fmt: skip
MACHINES: Final = {
    "processor": (),
    "qemu": ("qemu-x86_64", "-cpu", "max"),
    "valgrind": ("valgrind", "--tool=none", "-q"),
}
ROUNDS: Final = 5


def measure_all() -> list[LibraryEntry]:
    """Return every kernel by every build, observed once and timed on every machine."""
    entries = []
    with tempfile.TemporaryDirectory() as scratch:
        for compiler in filter(shutil.which, COMPILERS):
            for level in LEVELS:
                folder = Path(scratch) / f"{compiler}{level}"
                build(folder, compiler, level)
                for program, size in SIZES.items():
                    entries.append(measure_one((str(folder / program), *size.split()), f"{compiler} {level}", scratch))
                    print(entries[-1].name, entries[-1].seconds, file=sys.stderr)
    return entries


def measure_one(command: tuple[str, ...], built: str, scratch: str) -> LibraryEntry:
    """Return one run of a kernel."""
    program = Path(command[0]).name
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        observed = observe_program(TracePlan(command, quiet=True), Path(scratch), Path(folder), smoothability=False)
    name = f"{program} {' '.join(command[1:])}, {built}"
    seconds = {machine: measure_cpu_seconds((*runner, *command), runs=ROUNDS) for machine, runner in MACHINES.items()}
    return replace(build_entry(observed.workload, name), program=program, seconds=seconds)


def build_table(entries: Sequence[LibraryEntry]) -> Iterator[str]:
    """Yield the tables: how far predictions are off by each reference, and what the command makes of it."""
    yield "| from | to | median error | with all programs alike | worst |"
    yield "|---|---|--:|--:|--:|"
    for machine in MACHINES:
        for reference in (OPERATIONS, *MACHINES):
            if reference != machine:
                errors = np.exp(np.abs(predict_known(entries, machine, reference, "mix"))) - 1
                alike = np.exp(np.abs(predict_alike(entries, machine, reference))) - 1
                row = f"{np.median(errors):.0%} | {np.median(alike):.0%} | {errors.max():.0%} |"
                yield f"| {reference} | {machine} | {row}".replace("%", " %")
    yield ""
    yield "| `--predict`, with the times on the other two known | median error | 80 % interval holds |"
    yield "|---|--:|--:|"
    for machine in MACHINES:
        errors, held = judge_command(entries, machine)
        yield f"| {machine} | {np.median(errors):.0%} | {held} of {len(entries)} |".replace("%", " %")
    yield ""
    correlations = ", ".join(f"{correlate_similarity(entries, machine):.2f} on {machine}" for machine in MACHINES)
    yield "Rank correlation between the distance of two workloads and their performance similarity:"
    yield f"{correlations}."


def predict_alike(entries: Sequence[LibraryEntry], machine: str, reference: str) -> list[float]:
    """Return ln(predicted / measured) where all other programs count alike, however similar they are."""
    ratios = [
        (one.program, math.log(one.seconds[machine] / (one.seconds.get(reference) or one.operations)))
        for one in entries
    ]
    return [float(np.mean([other for name, other in ratios if name != mine])) - ratio for mine, ratio in ratios]


def judge_command(entries: Sequence[LibraryEntry], machine: str) -> tuple[list[float], int]:
    """Return the errors of ``similar --predict``, each program left out of what is known, and how often it holds."""
    errors, held = [], 0
    for entry in entries:
        known = [one for one in entries if one.program != entry.program]
        unknown = replace(entry, seconds={name: spent for name, spent in entry.seconds.items() if name != machine})
        found = predict_seconds(unknown, known, machine, "mix")
        if found is not None and found.low_s is not None and found.high_s is not None:
            errors.append(math.exp(abs(math.log(found.seconds / entry.seconds[machine]))) - 1)
            held += found.low_s <= entry.seconds[machine] <= found.high_s
    return errors, held


def correlate_similarity(entries: Sequence[LibraryEntry], machine: str) -> float:
    """Return Spearman's rank correlation over all pairs of workloads of different programs."""
    apart, alike = [], []
    for number, first in enumerate(entries):
        others = [one for one in entries[number + 1 :] if one.program != first.program]
        if others:
            apart += compute_distances(first, others, "centroid").tolist()
            alike += [compare_performance(first, one)[machine] for one in others]
    ranks = [np.argsort(np.argsort(values)) for values in (apart, alike)]
    return float(np.corrcoef(*ranks)[0, 1])


def main(words: Sequence[str]) -> None:
    """Measure, print or write."""
    if words[:1] == ["measure"]:
        lines = (msgspec.json.encode(rounded(msgspec.to_builtins(entry))) for entry in measure_all())
        Path(words[1]).write_bytes(b"[\n" + b",\n".join(lines) + b"\n]\n")
        return
    entries = msgspec.json.decode(STORED.read_bytes(), type=list[LibraryEntry])
    table = "".join(f"{line}\n" for line in build_table(entries))
    if words[:1] == ["--write"]:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(before + BEGIN + table + END + rest.partition(END)[2])
    else:
        sys.stdout.write(table)


if __name__ == "__main__":
    main(sys.argv[1:])
