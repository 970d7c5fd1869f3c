"""Judges the known workloads by each other; writes the tables of ``docs/validation.md``.

python examples/workloads/table.py          prints the tables
python examples/workloads/table.py --write  puts them on the page
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_similarity import library
from advisor_similarity.neighbours import compute_pairwise_distances

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from advisor.model.records import FloatArray
    from advisor_similarity.library import LibraryEntry

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "validation.md"
BEGIN, END = "<!-- similarity: begin -->\n", "<!-- similarity: end -->\n"
MEASURES: Final = {
    "mix": "expression (9) of the proportions of 23 classes",
    "centroid": "expression (9) of the five components",
    "tanimoto": "Tanimoto distance of the five components",
    "matrix": "parallelism matrix, Frobenius",
}


def size_of(entry: LibraryEntry) -> str:
    """Return the arguments of a workload."""
    return entry.about.split(", ")[0].partition(" ")[2]


def build_of(entry: LibraryEntry) -> str:
    """Return the compiler and its level."""
    return entry.about.split(", ")[1]


def precision(entries: Sequence[LibraryEntry], distances: FloatArray, allowed: FloatArray) -> float:
    """Return how often the nearest of the allowed others (n, n) is a workload of the same program."""
    nearest = np.where(allowed, distances, np.inf).argmin(axis=1)
    hits = [entries[found].program == entry.program for entry, found in zip(entries, nearest, strict=True)]
    return float(np.mean(hits))


def _differ(labels: Sequence[str]) -> FloatArray:
    return np.array([[one != other for other in labels] for one in labels])


def precisions(entries: Sequence[LibraryEntry]) -> Iterator[str]:
    """Yield a row for each measure."""
    others = ~np.eye(len(entries), dtype=bool)
    builds, sizes = _differ([build_of(entry) for entry in entries]), _differ([size_of(entry) for entry in entries])
    compilers = _differ([build_of(entry).split()[0] for entry in entries])
    yield "| nearest by | any other | another build | another compiler | another size and build |"
    yield "|---|--:|--:|--:|--:|"
    for by, words in MEASURES.items():
        distances = compute_pairwise_distances(entries, by)
        cells = (precision(entries, distances, allowed) for allowed in (others, builds, compilers, builds & sizes))
        yield f"| `{by}`: {words} | {' | '.join(f'{cell:.2f}' for cell in cells)} |"


def apart(entries: Sequence[LibraryEntry]) -> Iterator[str]:
    """Yield the mean distances between programs, by the mix; on the diagonal those between sizes and builds."""
    distances = compute_pairwise_distances(entries, "mix")
    names = list(dict.fromkeys(entry.program for entry in entries))
    members = {name: [number for number, entry in enumerate(entries) if entry.program == name] for name in names}
    yield f"| | {' | '.join(names)} |"
    yield f"|---|{'--:|' * len(names)}"
    for row in names:
        cells = (_mean(distances[np.ix_(members[row], members[column])], row == column) for column in names)
        yield f"| {row} | {' | '.join(f'{cell:.2f}' for cell in cells)} |"


def _mean(block: FloatArray, same: bool) -> float:
    """Return the mean of a block of distances, without those of workloads to themselves."""
    return float(block.sum() / (block.size - (len(block) if same else 0)))


def smoothness(entries: Sequence[LibraryEntry]) -> Iterator[str]:
    """Yield average parallelism and smoothability of each program's three sizes, and the range over all builds."""
    yield "| program | sizes | parallelism, gcc -O2 | smoothability, gcc -O2 | over all builds |"
    yield "|---|---|--:|--:|--:|"
    for name in dict.fromkeys(entry.program for entry in entries):
        own = [entry for entry in entries if entry.program == name and entry.smoothability is not None]
        shown = [entry for entry in own if build_of(entry) == "gcc -O2"]
        values = [entry.smoothability or 0.0 for entry in own]
        cells = (
            name,
            ", ".join(size_of(entry) for entry in shown),
            " ".join(f"{entry.operations / entry.cycles:.3g}" for entry in shown),
            " ".join(f"{entry.smoothability:.2f}" for entry in shown),
            f"{min(values):.2f} to {max(values):.2f}",
        )
        yield f"| {' | '.join(cells)} |"


def tables() -> str:
    """Return the tables of the page."""
    entries = library.load_starter()
    texts = [
        f"How often the nearest of {len(entries)} workloads is of the same program:",
        "\n".join(precisions(entries)),
        "Mean distances by the mix, on the diagonal those between sizes and builds of one program:",
        "\n".join(apart(entries)),
        "Average parallelism and smoothability:",
        "\n".join(smoothness(entries)),
    ]
    return "\n\n".join(texts) + "\n"


def main() -> None:
    """Print the tables, or write them."""
    if "--write" not in sys.argv[1:]:
        sys.stdout.write(tables())
        return
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}{tables()}{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
