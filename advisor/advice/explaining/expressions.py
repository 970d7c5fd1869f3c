"""Formulas as data, from which a program can recompute a number from the raw profile.

An expression is a number, the name of an array, or a list that begins with what is done to the rest (docs/concepts.md
has the list). Arrays are those of the phase at hand: seconds (processors, iterations), summed over the regions; the
threads of a rank are charged with what its first one spends outside parallel regions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from advisor.advice.ranking.ceilings import IMBALANCE

if TYPE_CHECKING:
    from advisor.analysis.loads import ProfileLoads
    from advisor.analysis.measures import Quantity
    from advisor.model.records import Profile

Expression = Any

ACTUAL: Final[Expression] = ["profile", "actual_s"]
#: Levels below and above the gaps that lie in phases, by what a processor's time is made of.
_LEVELS: Final = {"P": ("I", "IP"), "C'": ("IP", "IPC"), "O": ("IPC", "IPCO")}


def sum_expression(quantity: Quantity, *, own: bool = False) -> Expression:
    """Return a signed sum of arrays; ``own``: of what each processor spent itself."""
    names = [(["own", name] if own else name, sign) for name, sign in quantity.terms]
    if len(names) == 1 and names[0][1] == 1.0:
        return names[0][0]
    if len(names) > 1 and names[0][1] == 1.0 and all(sign == -1.0 for _, sign in names[1:]):
        return ["-", *(name for name, _ in names)]
    return ["+", *(name if sign == 1.0 else ["*", sign, name] for name, sign in names)]


def sum_over_phases(numbers: Iterable[int], body: Expression) -> Expression:
    """Return the sum over phases of what ``body`` is in each."""
    return ["phases", list(numbers), body]


def processor_seconds(quantity: Expression, numbers: Iterable[int]) -> Expression:
    """Return the seconds of each processor in phases."""
    return sum_over_phases(numbers, ["sum", quantity, "iterations"])


def largest_processor(quantity: Expression) -> Expression:
    """Return in a phase which processor has the largest load in each iteration."""
    return ["argmax", quantity, "processors"]


def largest_of_each_iteration(quantity: Expression) -> Expression:
    """Return in a phase the sum over its iterations of the largest load."""
    return ["sum", ["max", quantity, "processors"]]


def mean_of_each_iteration(quantity: Expression) -> Expression:
    """Return in a phase the sum over its iterations of the mean load."""
    return ["sum", ["mean", quantity, "processors"]]


class BoundExpressions:
    """The expressions of bounds, gaps and their parts in phases of one profile; None for what has none."""

    def __init__(self, profile: Profile, loads: ProfileLoads) -> None:
        self.profile, self._loads = profile, loads
        kinds = loads.quantities
        self.work = sum_expression(kinds.work) if kinds.work.is_known else None
        self._made_of = {"I": kinds.computation, "IP": kinds.computation, "IPC": kinds.communication}
        every = range(len(profile.phases))
        self.serial = [p for p in every if loads.phases[p].kind == "serial"]
        self.parallel = [p for p in every if loads.phases[p].kind != "serial"]

    def average_term(self, bound: str, phase: int) -> Expression:
        """Return what a phase adds to one of the bounds I to IPCO."""
        quantity = sum_expression(self._made_of.get(bound, self._loads.quantities.work), own=bound == "I")
        serial = phase in self.serial and bound != "I"
        return sum_over_phases([phase], (largest_of_each_iteration if serial else mean_of_each_iteration)(quantity))

    def synchronizing_term(self, phase: int) -> Expression:
        """Return what the processors with the largest work spend on synchronizing in a phase."""
        return sum_over_phases(
            [phase], ["sum", ["at", sum_expression(self._loads.quantities.sync), largest_processor(self.work)]]
        )

    def duration_term(self, numbers: Iterable[int]) -> Expression:
        """Return how long phases last, from synchronization to synchronization."""
        return sum_over_phases(numbers, ["sum", "duration_s"])

    def steady_term(self, numbers: Iterable[int]) -> Expression:
        """Return B, by how much the largest work of a processor exceeds the mean, in each phase by itself."""
        total = ["sum", self.work, "iterations"]
        return sum_over_phases((p for p in numbers if p in self.parallel), ["-", ["max", total], ["mean", total]])

    def dynamic_term(self, numbers: Iterable[int]) -> Expression:
        """Return D, by how much the largest works of the iterations exceed those of the slowest processor."""
        total = ["max", ["sum", self.work, "iterations"]]
        return sum_over_phases(
            (p for p in numbers if p in self.parallel), ["-", largest_of_each_iteration(self.work), total]
        )

    def bound_expression(self, name: str) -> Expression | None:
        """Return a bound from I up, whose value is known."""
        every = range(len(self.profile.phases))
        if name == "actual":
            return ACTUAL
        if name == "IPCOLMDSW":
            return self.duration_term(every)
        if name in ("I", "IP", "IPC", "IPCO"):
            return ["+", *(self.average_term(name, p) for p in every)]
        if name not in ("IPCOL", "IPCOLM", "IPCOLMD", "IPCOLMDS"):
            return None
        alone = sum_over_phases(self.serial, largest_of_each_iteration(self.work))
        if name == "IPCOL":
            return ["+", alone, ["max", processor_seconds(self.work, self.parallel)]]
        if name == "IPCOLM":
            return ["+", alone, sum_over_phases(self.parallel, ["max", ["sum", self.work, "iterations"]])]
        peaks = sum_over_phases(every, largest_of_each_iteration(self.work))
        if name == "IPCOLMD":
            return peaks
        return ["+", peaks, *(self.synchronizing_term(p) for p in every)]

    def gap_expression(self, lower: str, upper: str) -> Expression | None:
        """Return the difference of two bounds."""
        ends = [self.bound_expression(upper), self.bound_expression(lower)]
        return None if None in ends else ["-", *ends]

    def part_expression(self, letter: str, numbers: Sequence[int]) -> Expression | None:
        """Return the seconds of a gap in phases."""
        if letter in _LEVELS:
            lower, upper = _LEVELS[letter]
            return ["-", *(["+", *(self.average_term(bound, p) for p in numbers)] for bound in (upper, lower))]
        if not self.profile.has_phases:
            return None
        if letter == "D":
            return self.dynamic_term(numbers)
        if letter in IMBALANCE:
            gap = self.gap_expression("IPCO", "IPCOL") if letter == "L" else self.gap_expression("IPCOL", "IPCOLM")
            return ["/", ["*", gap, self.steady_term(numbers)], self.steady_term(self.parallel)]
        if letter == "S'":
            return ["+", *(self.synchronizing_term(p) for p in numbers)]
        if letter == "W":
            busy = [
                sum_over_phases(numbers, largest_of_each_iteration(self.work)),
                *map(self.synchronizing_term, numbers),
            ]
            return ["-", self.duration_term(numbers), *busy]
        return None
