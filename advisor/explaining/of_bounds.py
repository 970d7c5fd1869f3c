"""Bounds explained: which arrays are summed up, over whom, and which rates of the machine model decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor import machines
from advisor.explaining.records import Input, Number
from advisor.machine_bounds import COUNTS, operations
from advisor.model import LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from advisor.loads import Loads
    from advisor.machines import Machine
    from advisor.measures import Quantity
    from advisor.model import Bound, Profile

#: docs/concepts.md has the same formulas with their symbols.
FORMULAS: Final = {
    "M": "floating-point operations / (processors × peak of a core)",
    "MA": "time of the busiest functional unit for the operations of the source / processors",
    "MAC": "time of the busiest functional unit for the compiled operations / processors",
    "MACS": "cycles of the compiler's schedule / processors / clock",
    "I": "computation of all processors in all phases / processors",
    "IP": "serial phases: the largest computation of each iteration; parallel phases: their computation / processors",
    "IPC": "as IP, with computation and transfer instead of computation",
    "IPCO": "serial phases: the largest work of each iteration; parallel phases: their work / processors",
    "IPCOL": "serial phases as in IPCO + the largest work of a processor in all parallel phases together",
    "IPCOLM": "serial phases as in IPCO + the sum over the parallel phases of the largest work of a processor",
    "IPCOLMD": "serial phases as in IPCO + the sum over phases and iterations of the largest work of a processor",
    "IPCOLMDS": "IPCOLMD + what the processor with the largest work spends on synchronizing, in each iteration",
    "IPCOLMDSW": "the sum of the times between the synchronizations that divide the run",
    "actual": "wall time of the run",
}
SOURCE: Final = "Hung and Davidson, section 3.2.1"
_ADDS: Final = {level.bound: level.adds for level in LEVELS}


def explained(bound: Bound, profile: Profile, loads: Loads, machine: Machine | None) -> Number:
    """Return how a bound came about; one without a value says what is missing."""
    notes = [note for note in (bound.reason, bound.collect and f"to record it: {bound.collect}") if note]
    inputs: tuple[Input, ...] = ()
    if bound.seconds is not None:
        counted = bound.name in COUNTS and machine is not None
        inputs = tuple(
            _of_machine(bound.name, profile, machine) if counted and machine else _Inputs(profile, loads).of(bound.name)
        )
    return Number(
        "bound", bound.name, _ADDS[bound.name], bound.seconds, "s", bound.status,
        f"{FORMULAS[bound.name]} ({SOURCE})", inputs, notes=tuple(notes),
    )  # fmt: skip


class _Inputs:
    """What goes into the bounds that are made of measured times."""

    def __init__(self, profile: Profile, loads: Loads) -> None:
        self._profile, self._loads = profile, loads
        kinds = loads.quantities
        self._made_of = {"I": kinds.computation, "IP": kinds.computation, "IPC": kinds.communication}

    def of(self, name: str) -> Iterator[Input]:
        """Yield the inputs of a bound; their sum is the bound."""
        if name == "actual":
            yield Input("wall time", self._profile.actual_s, "s", f"actual_s, as {self._profile.reader} tells it")
        elif name == "IPCOLMDSW":
            for phase in self._profile.phases:
                total = float(phase.duration_s.sum()) if phase.duration_s is not None else None
                yield Input(f"phase {phase.name}", total, "s", f"duration_s, summed over {_times(phase.iterations)}")
        elif name in ("I", "IP", "IPC", "IPCO"):
            yield from self._averages(name)
        else:
            yield from self._peaks(name)

    def _averages(self, name: str) -> Iterator[Input]:
        terms = written(self._made_of.get(name, self._loads.quantities.work))
        seconds, first = self._loads.spreads[name].iterations, self._loads.iteration_first
        for number, phase in enumerate(self._profile.phases):
            largest = phase.kind == "serial" and name != "I"
            how = "the largest of each iteration" if largest else f"mean over {self._loads.processors} processors"
            total = float(seconds[first[number] : first[number + 1]].sum())
            yield Input(f"phase {phase.name}", total, "s", f"{terms}: {how}")

    def _peaks(self, name: str) -> Iterator[Input]:
        """Yield serial and parallel phases of the bounds above IPCO."""
        terms = written(self._loads.quantities.work)
        pairs = [*zip(self._profile.phases, self._loads.phases, strict=True)]
        for phase, known in pairs:
            if known.kind == "serial":
                yield Input(
                    f"phase {phase.name}", float(known.peak.sum()), "s", f"{terms}: the largest of each iteration"
                )
        parallel = [(phase, known) for phase, known in pairs if known.kind != "serial"]
        if name == "IPCOL":
            total = self._loads.parallel_work
            most = int(total.argmax())
            who = self._profile.processors[most].name
            yield Input(f"parallel phases, {who}", float(total[most]), "s", f"{terms}: the largest sum of a processor")
            return
        for phase, known in parallel:
            who = self._profile.processors[known.slowest].name
            if name == "IPCOLM":
                value, how = float(known.work[known.slowest]), f"{who}, the largest sum over the iterations"
            else:
                value, how = float(known.work[known.slowest]) + known.dynamic_s, "the largest of each iteration"
            yield Input(f"phase {phase.name}", value, "s", f"{terms}: {how}")
        if name == "IPCOLMDS":
            yield from self._synchronizing()

    def _synchronizing(self) -> Iterator[Input]:
        terms = written(self._loads.quantities.sync)
        seconds, first = self._loads.spreads["sync"].iterations, self._loads.iteration_first
        for number, phase in enumerate(self._profile.phases):
            total = float(seconds[first[number] : first[number + 1]].sum())
            yield Input(
                f"synchronizing in {phase.name}", total, "s", f"{terms}: of the processor with the largest work"
            )


def _of_machine(name: str, profile: Profile, machine: Machine) -> Iterator[Input]:
    """Yield counts and rates."""
    model = f"machine model {machine.name}"
    counted = operations(profile, COUNTS[name])
    for unit, number in sorted(counted.items()):
        array = unit if unit == COUNTS[name] else f"{COUNTS[name]}.{unit}"
        yield Input(f"operations {unit}", number, "", f"counts {array}, of all regions and processors")
    yield Input("processors", float(len(profile.processors)), "", "processors of the profile")
    if name == "M":
        yield Input("peak", machines.peak_flops_per_s(machine, 1), "flop/s", f"{model}: flops_per_cycle × clock")
    elif name == "MACS":
        yield Input("clock", machines.clock_hz(machine), "Hz", f"{model}: boost or frequency")
    else:
        rates = machines.instruction_rates(machine) if name == "MAC" else machines.unit_rates(machine)
        for unit in sorted(rates.keys() & counted.keys()):
            yield Input(f"rate {unit}", rates[unit], "1/s", f"{model}: units.{unit} × clock")


def written(quantity: Quantity) -> str:
    """Return the arrays that a quantity is made of: ``wall_s - wait_s - sync_s``."""
    text = " ".join(f"{'+' if sign > 0 else '-'} {name}" for name, sign in quantity.terms)
    return text.removeprefix("+ ") or "nothing"


def _times(count: int) -> str:
    return "1 iteration" if count == 1 else f"{count} iterations"
