"""Tables of docs/studies.md: how alike public programs are, and how alike they perform (Tables 13 to 16 of the source).

python studies/workloads/table.py            prints them
python studies/workloads/table.py --write    puts them on the page
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_similarity import library
from advisor_similarity.neighbours import compute_distances
from advisor_similarity.performance import OPERATIONS, compare_performance, predict_known

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from advisor.model.records import FloatArray
    from advisor_similarity.library import LibraryEntry

HERE: Final = Path(__file__).resolve().parent
PAGE: Final = HERE.parents[1] / "docs" / "studies.md"
BEGIN, END = "<!-- workloads: begin -->\n", "<!-- workloads: end -->\n"
MACHINES: Final = ("processor", "qemu")
#: The source's pairs by the names of NPB today: its workload similarity and least and largest performance similarity.
PAIRS: Final = {
    ("npb-ep", "npb-ft"): (0.39, 0.3251, 0.4244),
    ("npb-is", "npb-cg"): (0.319, 0.2618, 0.3988),
    ("npb-mg", "npb-ep"): (0.53, 0.4746, 0.5836),
    ("npb-bt", "npb-cg"): (0.998, 0.4546, 0.8558),
}


def load_timed() -> list[LibraryEntry]:
    """Return the public programs with what they took on each machine."""
    seconds = json.loads((HERE / "seconds.json").read_text(encoding="utf-8"))
    return [replace(one, seconds=seconds[one.name]) for one in library.load_programs()]


def build_tables(entries: Sequence[LibraryEntry]) -> Iterator[str]:
    """Yield the lines: what the programs are, the source's pairs, all pairs, and who is nearest to whom."""
    builds = {one.about.rpartition(", ")[2] for one in entries}
    first = {one.program: one for one in reversed(entries)}
    yield "| program | instructions | parallelism | smoothability | nearest other program (by the mix) |"
    yield "|---|--:|--:|--:|---|"
    for name, one in sorted(first.items()):
        near, distance = _find_nearest_program(one, list(first.values()))
        smooth = "-" if one.smoothability is None else f"{one.smoothability:.2f}"
        millions, width = one.instructions / 1e6, one.operations / one.cycles
        yield f"| {name} | {millions:.0f} M | {width:.3g} | {smooth} | {near}, {distance:.2f} |"
    yield ""
    yield "| pair | workloads, here | paper | performance, processor | QEMU | paper |"
    yield "|---|--:|--:|--:|--:|--:|"
    for pair, (paper, low, high) in PAIRS.items():
        one, other = (first[name] for name in pair)
        same = compare_performance(one, other)
        shown = " | ".join(f"{same[machine]:.2f}" for machine in MACHINES)
        apart = compute_distances(one, [other], "tanimoto")[0]
        yield f"| {pair[0]}, {pair[1]} | {apart:.2f} | {paper:g} | {shown} | {low:.2f} to {high:.2f} |"
    yield ""
    of_npb = [one for name, one in first.items() if name.startswith("npb-")]
    for words, some in (("NPB", of_npb), ("all programs", list(first.values()))):
        ranks = ", ".join(f"{_correlate(some, machine):.2f} on {machine}" for machine in MACHINES)
        yield f"Rank correlation of the two over all pairs of {words}: {ranks}."
    yield ""
    yield "| seconds from operations, each program from the others | median error | with all alike | worst |"
    yield "|---|--:|--:|--:|"
    for machine in MACHINES:
        errors = np.exp(np.abs(predict_known(list(first.values()), machine, OPERATIONS, "mix"))) - 1
        alike = np.exp(np.abs(_predict_alike(list(first.values()), machine))) - 1
        row = f"{np.median(errors):.0%} | {np.median(alike):.0%} | {errors.max():.0%}".replace("%", " %")
        yield f"| {machine} | {row} |"
    if len(builds) > 1:
        hits = sum(_is_recognised(one, entries) for one in entries)
        yield ""
        yield f"Of {len(entries)} workloads the nearest of another build, by the mix, is of the same program in {hits}."


def _find_nearest_program(one: LibraryEntry, all_of: Sequence[LibraryEntry]) -> tuple[str, float]:
    others = [other for other in all_of if other.program != one.program]
    distances = compute_distances(one, others, "mix")
    at = int(np.argmin(distances))
    return others[at].program, float(distances[at])


def _is_recognised(one: LibraryEntry, entries: Sequence[LibraryEntry]) -> bool:
    built = one.about.rpartition(", ")[2]
    others = [other for other in (*entries, *library.load_starter()) if other.about.rpartition(", ")[2] != built]
    return others[int(np.argmin(compute_distances(one, others, "mix")))].program == one.program


def _predict_alike(entries: Sequence[LibraryEntry], machine: str) -> FloatArray:
    """Return ln(predicted / measured) (n,) of each program, where all others count alike."""
    ratios = np.log([one.seconds[machine] / one.operations for one in entries])
    return np.asarray((ratios.sum() - ratios) / (len(ratios) - 1) - ratios)


def _correlate(entries: Sequence[LibraryEntry], machine: str) -> float:
    """Return Spearman's rank correlation of workload (as Table 12) and performance similarity over all pairs."""
    pairs = list(combinations(entries, 2))
    apart = [float(compute_distances(one, [other], "tanimoto")[0]) for one, other in pairs]
    alike = [compare_performance(one, other)[machine] for one, other in pairs]
    first, second = (np.argsort(np.argsort(values)) for values in (apart, alike))
    return float(np.corrcoef(first, second)[0, 1])


def main() -> None:
    """Print or write."""
    table = "".join(f"{line}\n" for line in build_tables(load_timed()))
    if sys.argv[1:] == ["--write"]:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(before + BEGIN + table + END + rest.partition(END)[2], encoding="utf-8")
    else:
        sys.stdout.write(table)


if __name__ == "__main__":
    main()
