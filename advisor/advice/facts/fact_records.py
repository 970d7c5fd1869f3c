"""What a fact is: a word of the rules' vocabulary with its unit, inputs and formula."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from advisor.model.records import Profile
from advisor.trace.events import Trace

Value = float | str | bool
Unit = Literal["s", "B", "share", "ratio", "count", "name", "yes/no"]
Scope = Literal["run", "phase"]
Compute = Callable[[Profile, int | None], Value | None]
TraceCompute = Callable[[Profile, Trace, int | None], Value | None]

#: The dimension of ``advisor.model.units`` in which thresholds of a unit are written; the others are plain numbers.
DIMENSIONS: Final[Mapping[Unit, str]] = {"s": "time", "B": "size", "share": "share"}


@dataclass(frozen=True, slots=True)
class Fact:
    """One word of the vocabulary.

    ``needs`` names the arrays and counts of a Profile that the fact is computed from, ``command`` records them
    (``{launch}`` stands for what starts all ranks, ``mpirun -n 4``). ``compute`` is for facts of plugins: it returns
    the value in a phase (an index into ``Profile.phases``) or, with None, in the run; None where it is unknown.
    ``of_trace`` does the same from the events of the run, and is unknown where there are none.
    ``finding`` names kind, subject and measure of a finding whose number is the value in a run of which it was made;
    what only the history of a program tells is known in this way.
    """

    name: str
    unit: Unit
    scope: Scope
    needs: tuple[str, ...]
    command: str
    formula: str
    compute: Compute | None = None
    of_trace: TraceCompute | None = None
    finding: tuple[str, str, str] | None = None


def parse_facts(needs: str, command: str, rows: str) -> tuple[Fact, ...]:
    """Facts that need the same, one line each: ``name | unit | formula``; ``run.`` and ``device.`` are of the run."""
    cells = ([cell.strip() for cell in row.split("|")] for row in rows.strip().splitlines())
    units: dict[str, Unit] = {unit: unit for unit in ("s", "B", "share", "ratio", "count", "name", "yes/no")}
    return tuple(
        Fact(
            name,
            units[unit],
            "run" if name.startswith(("run.", "device.")) else "phase",
            tuple(needs.split()),
            command,
            formula,
        )
        for name, unit, formula in cells
    )
