"""Particles in cells, in the seven versions that Hung and Davidson list for FSS-PRISM (section 4.2, table 2).

python versions.py            # the table of README.md: both sizes on the SPP-1600 model
python versions.py P4b small DIR  # writes the model of one version for gapwatch simulate

Particles lie in the cells of a square grid, most of them in the first columns. A time step deposits their charge on
the grid, solves for the potential (routine A), smooths it, takes its gradient (routine B) and pushes the particles.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from advisor.analysis import machines
from advisor_simulation.model.checks import read_model
from advisor_simulation.whatif.model_report import ModelBench

VERSIONS = ("P2i", "P3x", "P4a", "P4b", "P5a", "P5b", "P6a")
#: Cycles of 8.3 ns on the SPP-1600, as assumed for examples/crash.
COSTS = {"memory": 60, "near": 70, "far": 240, "node": 8, "line": "32 B", "barrier": 1500, "barrier_per_doubling": 1100}
DEPOSIT, PUSH, SOLVE, SMOOTH, GRADIENT, ADD, COPY = 60, 90, 40, 20, 25, 6, 4
#: Rows are pushed in so many groups, with a barrier behind each, where no copies of the field keep them apart.
GROUPS = 8


class _Writer(yaml.SafeDumper):
    """Writes values out where they occur twice."""

    def ignore_aliases(self, data: object) -> bool:
        return True


@dataclass(frozen=True)
class Problem:
    """A grid of ``side`` squared cells on so many processors."""

    side: int
    processors: int
    steps: int = 2

    @property
    def cells(self) -> int:
        """The cells of the grid."""
        return self.side**2

    def particles(self, cell: int) -> int:
        """Return how many particles are in a cell: most in the first columns."""
        return 1 + 8 * (self.side - 1 - cell % self.side) // (self.side - 1)

    def solver_work(self, cell: int) -> int:
        """Return the work of the solver in a cell: more towards the last columns, where the grid is stretched."""
        return SOLVE + 2 * SOLVE * (cell % self.side) // self.side


SIZES = {"small": Problem(24, 8), "large": Problem(64, 32)}


def describe_version(version: str, problem: Problem) -> dict[str, Any]:
    """Return the model of a version as a document of the modelling language."""
    at = VERSIONS.index(version)
    cells, side, processors = problem.cells, problem.side, problem.processors
    by_rows = [cell // side * processors // side for cell in range(cells)]
    by_columns = [cell % side * processors // side for cell in range(cells)]
    owners = _cut_rows(problem) if at >= 1 else by_columns
    mine = [[cell for cell in range(cells) if owners[cell] == worker] for worker in range(processors)]
    tables: dict[str, Any] = {
        "count": {"values": [problem.particles(cell) for cell in range(cells)]},
        "solve": {"values": [problem.solver_work(cell) for cell in range(cells)]},
        "line": {
            "values": [sum(problem.solver_work(row * side + each) for row in range(side)) for each in range(side)]
        },
        "up": {"values": [min(cell + side, cells - 1) if cell + side < cells else cell for cell in range(cells)]},
        "owner": {"values": owners},
        "grid_owner": {"values": list(owners) if at >= 1 else by_rows},
        "column": {"values": [[row * side + line for row in range(side)] for line in range(side)]},
        "mine": {"values": mine},
        "spread": {"values": [[worker * cells + cell for cell in own] for worker, own in enumerate(mine)]},
        "copies": {"values": [[worker * cells + cell for worker in range(processors)] for cell in range(cells)]},
        "work": {"values": [sum(problem.particles(cell) for cell in own) for own in mine]},
        "all": {"values": [list(range(cells)) for _ in range(processors)]},
        "replica": {"values": [[worker * cells + cell for cell in range(cells)] for worker in range(processors)]},
        "border": {"values": [_border(mine, worker, side) for worker in range(processors)]},
    }
    document: dict[str, Any] = {
        "aml": 1, "name": f"particles-{version}", "parameters": {"cells": cells, "side": side, "steps": problem.steps},
        "costs": COSTS, "tables": tables,
        "domains": {
            "particles": {"size": "cells", "decomposition": {"kind": "explicit", "owner": "owner"}},
            "grid": {"size": "cells", "decomposition": {"kind": "explicit", "owner": "grid_owner"}},
            "lines": {"size": "side"} | ({"decomposition": {"kind": "block", "weight": "line[i]"}} if at >= 1 else {}),
            "workers": {"size": processors},
        },
        "arrays": {
            "Part": {"shape": ["cells", 16]}, "Charge": {"shape": ["cells"]}, "Potential": {"shape": ["cells"]},
            "Smooth": {"shape": ["cells"]},
            "Field": {"shape": ["cells", 2]}, "Copies": {"shape": [f"cells * {processors}"]},
            "Fields": {"shape": [f"cells * {processors}", 2]}, "Halo": {"shape": ["cells"]},
        },
    }  # fmt: skip
    smooth = {
        "parallel": "smooth",
        "over": "grid",
        "weight": SMOOTH,
        "reads": ["Potential[i]"],
        "writes": ["Smooth[i]"],
    }
    steps = [*_deposit(at), _solve(at), smooth, _gradient(at), *_push(at)]
    used = yaml.safe_dump(steps)
    document["arrays"] = {name: each for name, each in document["arrays"].items() if f"{name}[" in used}
    kept = [name for name in tables if f"{name}[" in used or name in ("owner", "grid_owner", "line")]
    document["tables"] = {name: tables[name] for name in kept}
    document["lists"] = {name: tables[name]["values"] for name in kept if isinstance(tables[name]["values"][0], list)}
    document["tables"] |= {name: {"file": f"{name}.txt", "ragged": True} for name in document["lists"]}
    document["control"] = [{"loop": "steps", "times": "steps", "do": steps}]
    return document


def _cut_rows(problem: Problem) -> list[int]:
    """Return owners of cells: rows cut so that all have as much to do."""
    work = [
        sum((DEPOSIT + PUSH) * problem.particles(row * problem.side + column) for column in range(problem.side))
        + sum(problem.solver_work(row * problem.side + column) + GRADIENT for column in range(problem.side))
        for row in range(problem.side)
    ]
    total, done, owners = sum(work), 0.0, []
    for each in work:
        owners += [min(int((done + each / 2) * problem.processors / total), problem.processors - 1)] * problem.side
        done += each
    return owners


def _border(mine: list[list[int]], worker: int, side: int) -> list[int]:
    """Return the cells above the last row of a worker, which belong to the next one."""
    last = max(mine[worker], default=-1) // side * side
    following = {cell for own in mine[worker + 1 :] for cell in own}
    return [cell for cell in range(last + side, last + 2 * side) if cell in following] or mine[worker][-1:]


def _deposit(at: int) -> list[dict[str, Any]]:
    """Loop C: copies of the grid for each processor and their sum; by colours (P5a); with buffered borders (P6a)."""
    if at < 4:
        return [
            {"parallel": "deposit", "over": "workers", "index": "w", "weight": f"{DEPOSIT} * work[w]",
             "reads": ["Part[mine[w]]"], "writes": ["Copies[spread[w]]"]},
            {"parallel": "add copies", "over": "grid", "weight": f"{ADD} * copies_count[i]",
             "reads": ["Copies[copies[i]]"], "writes": ["Charge[i]"]},
        ]  # fmt: skip
    if at < 6:
        return [
            {"parallel": f"deposit {color}", "over": "particles", "weight": f"{DEPOSIT} * count[i]",
             "where": f"i // side % 4 == {color}", "reads": ["Part[i]"], "writes": ["Charge[i]", "Charge[up[i]]"]}
            for color in range(4)
        ]  # fmt: skip
    return [
        {"parallel": "deposit", "over": "particles", "weight": f"{DEPOSIT} * count[i]", "reads": ["Part[i]"],
         "writes": ["Charge[i]"]},
        {"parallel": "add borders", "over": "workers", "index": "w", "weight": f"{ADD} * border_count[w]",
         "reads": ["Charge[border[w]]"], "end": "none"},
    ]  # fmt: skip


def _solve(at: int) -> dict[str, Any]:
    """Routine A: the outer loop over columns, whose cells are others' rows; over rows from P4a on."""
    if at < 2:
        return {"parallel": "solve", "over": "lines", "index": "j", "weight": "line[j]",
                "reads": ["Charge[column[j]]"], "writes": ["Potential[column[j]]"]}  # fmt: skip
    return {
        "parallel": "solve",
        "over": "grid",
        "weight": "solve[i]",
        "reads": ["Charge[i]"],
        "writes": ["Potential[i]"],
    }


def _gradient(at: int) -> dict[str, Any]:
    """Routine B: the same, from P4b on."""
    if at < 3:
        return {"parallel": "gradient", "over": "lines", "index": "j", "weight": f"{GRADIENT} * column_count[j]",
                "reads": ["Smooth[column[j]]"], "writes": ["Field[column[j]]"]}  # fmt: skip
    return {"parallel": "gradient", "over": "grid", "weight": GRADIENT, "reads": ["Smooth[i]", "Smooth[up[i]]"],
            "writes": ["Field[i]"]}  # fmt: skip


def _push(at: int) -> list[dict[str, Any]]:
    """Loop D: every processor copies the whole field; rows group by group from the shared one (P5b); at once (P6a)."""
    push = {"over": "particles", "weight": f"{PUSH} * count[i]", "writes": ["Part[i]"]}
    if at < 5:
        return [
            {"parallel": "copy field", "over": "workers", "index": "w", "weight": f"{COPY} * all_count[w]",
             "reads": ["Field[all[w]]"], "writes": ["Fields[replica[w]]"], "end": "none"},
            {"parallel": "push", **push, "reads": ["Part[i]", "Fields[i + cells * owner[i]]"]},
        ]  # fmt: skip
    if at < 6:
        return [
            {"parallel": f"push {group}", **push, "where": f"i // side % {GROUPS} == {group}",
             "reads": ["Part[i]", "Field[i]", "Field[up[i]]"]}
            for group in range(GROUPS)
        ]  # fmt: skip
    return [{"parallel": "push", **push, "reads": ["Part[i]", "Field[i]", "Field[up[i]]"]}]


def write_model(version: str, problem: Problem, folder: Path) -> Path:
    """Write the model of a version and the files of its lists; return its path."""
    document = describe_version(version, problem)
    for name, rows in document.pop("lists").items():
        (folder / f"{name}.txt").write_text("".join(" ".join(map(str, row)) + "\n" for row in rows), encoding="ascii")
    path = folder / f"particles-{version}.yaml"
    path.write_text(yaml.dump(document, sort_keys=False, Dumper=_Writer), encoding="utf-8")
    return path


def simulate_version(version: str, problem: Problem) -> dict[str, float]:
    """Return the seconds of a version and its gaps on the SPP-1600 model."""
    with tempfile.TemporaryDirectory() as place:
        path = write_model(version, problem, Path(place))
        bench = ModelBench(Path(place), machines.load_machine("convex-spp1600"), problem.processors)
        model = read_model(path)
        return {"time": bench.total_seconds(model), **bench.compute_gaps(model)}


def copies_bytes(version: str, problem: Problem) -> int:
    """Return the memory that a version needs for copies of the grid, in bytes."""
    at = VERSIONS.index(version)
    charge = 8 * problem.cells * problem.processors if at < 4 else 0
    field = 16 * problem.cells * problem.processors if at < 5 else 0
    return charge + field


def main(words: list[str]) -> None:
    """Print the model of a version, or the table."""
    if words:
        print(write_model(words[0], SIZES[words[1]], Path(words[2])))
        return
    for size, problem in SIZES.items():
        print(f"\n{size}: {problem.side} x {problem.side} cells, {problem.processors} processors\n")
        print("| version | time, ms | C', ms | L, ms | M', ms | S', ms | copies, KiB |\n|---|---|---|---|---|---|---|")
        for version in VERSIONS:
            found = simulate_version(version, problem)
            cells = [found["time"], found["C'"], found["L"], found["M'"], found["S'"]]
            values = " | ".join(f"{1e3 * value:.2f}" for value in cells)
            print(f"| {version} | {values} | {copies_bytes(version, problem) / 1024:.0f} |")


if __name__ == "__main__":
    main(sys.argv[1:])
