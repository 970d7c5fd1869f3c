"""Bounds explained: the summed arrays, the processors, and the limiting rates of the machine model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from advisor.advice.explaining.expressions import (
    ACTUAL,
    BoundExpressions,
    Expression,
    largest_of_each_iteration,
    processor_seconds,
    sum_over_phases,
)
from advisor.advice.explaining.records import ExplainedNumber, NumberInput
from advisor.analysis import machine_rates
from advisor.analysis.machine_bounds import COUNTS, FLOATING, UNSTALLED, name_count, sum_operations
from advisor.model.devices import DEVICE_LEVELS, DeviceUse
from advisor.model.records import LEVELS, Bound, Profile

if TYPE_CHECKING:
    from advisor.analysis.loads import ProfileLoads
    from advisor.analysis.machines import Machine
    from advisor.analysis.measures import Quantity

_FORMULA: Final = "sum of the levels up to it; each is the mean over the devices of the seconds they spend so"
_PEAK: Final = "operations and bytes of the kernels at the peak rates of the device"

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
_UNSTALLED_FORMULA: Final = "computation whose issue slots did not wait for memory / processors"
SOURCE: Final = "Hung and Davidson, section 3.2.1"
_ADDS: Final = {level.bound: level.adds for level in LEVELS}


def explain_bound(bound: Bound, profile: Profile, loads: ProfileLoads, machine: Machine | None) -> ExplainedNumber:
    """Return how a bound came about; one without a value says what is missing."""
    if profile.devices is not None:
        return explain_device_bound(bound, profile.devices)
    notes = [note for note in (bound.reason, bound.collect and f"to record it: {bound.collect}") if note]
    inputs: tuple[NumberInput, ...] = ()
    slots = name_count(bound.name, profile) == UNSTALLED if bound.name in COUNTS else False
    if bound.seconds is not None and slots:
        inputs = tuple(_slot_inputs(profile))
    elif bound.seconds is not None:
        counted = bound.name in COUNTS and machine is not None
        inputs = tuple(
            _machine_inputs(bound.name, profile, machine)
            if counted and machine
            else _BoundInputs(profile, loads).iterate_inputs(bound.name)
        )
    return ExplainedNumber(
        "bound", bound.name, _ADDS[bound.name], bound.seconds, "s", bound.status,
        f"{_UNSTALLED_FORMULA if slots else FORMULAS[bound.name]} ({SOURCE})", inputs, notes=tuple(notes),
        expression=_bound_expression(bound.name, inputs, machine),
    )  # fmt: skip


def _bound_expression(name: str, inputs: tuple[NumberInput, ...], machine: Machine | None) -> Expression | None:
    numbers = {one.name: ["input", at] for at, one in enumerate(inputs)}
    if not inputs:
        return None
    if name not in COUNTS:
        return ["+", *numbers.values()]
    counted = {key.removeprefix("operations "): at for key, at in numbers.items() if key.startswith("operations ")}
    if name == "M":
        floating = ["+", *(["*", FLOATING[unit], at] for unit, at in counted.items() if unit in FLOATING)]
        return ["/", floating, ["*", numbers["processors"], numbers["peak"]]]
    if name == "MACS":
        clock = [numbers["clock"]] if "clock" in numbers else []
        return ["/", ["+", *counted.values()], numbers["processors"], *clock]
    busy: dict[str, list[Expression]] = {}
    for key, at in counted.items():
        if f"rate {key}" in numbers and machine is not None:
            pipes = next((unit.pipes or key for unit_name, unit in machine.units.items() if unit_name == key), key)
            busy.setdefault(pipes, []).append(["/", at, numbers[f"rate {key}"]])
    return ["/", ["most", *(["+", *times] for times in busy.values())], numbers["processors"]]


class _BoundInputs:
    """What goes into the bounds that are made of measured times."""

    def __init__(self, profile: Profile, loads: ProfileLoads) -> None:
        self._profile, self._loads, self._terms = profile, loads, BoundExpressions(profile, loads)
        kinds = loads.quantities
        self._made_of = {"I": kinds.computation, "IP": kinds.computation, "IPC": kinds.communication}

    def iterate_inputs(self, name: str) -> Iterator[NumberInput]:
        """Yield the inputs of a bound; their sum is the bound."""
        if name == "actual":
            yield NumberInput(
                "wall time", self._profile.actual_s, "s", f"actual_s, as {self._profile.reader} tells it", ACTUAL
            )
        elif name == "IPCOLMDSW":
            for number, phase in enumerate(self._profile.phases):
                total = float(phase.duration_s.sum()) if phase.duration_s is not None else None
                how = f"duration_s, summed over {_format_iterations(phase.iterations)}"
                yield NumberInput(f"phase {phase.name}", total, "s", how, self._terms.duration_term([number]))
        elif name in ("I", "IP", "IPC", "IPCO"):
            yield from self._average_inputs(name)
        else:
            yield from self._peak_inputs(name)

    def _average_inputs(self, name: str) -> Iterator[NumberInput]:
        terms = format_terms(self._made_of.get(name, self._loads.quantities.work))
        seconds, first = self._loads.spreads[name].iterations, self._loads.iteration_first
        for number, phase in enumerate(self._profile.phases):
            largest = phase.kind == "serial" and name != "I"
            how = "the largest of each iteration" if largest else f"mean over {self._loads.processors} processors"
            total = float(seconds[first[number] : first[number + 1]].sum())
            yield NumberInput(
                f"phase {phase.name}", total, "s", f"{terms}: {how}", self._terms.average_term(name, number)
            )

    def _peak_inputs(self, name: str) -> Iterator[NumberInput]:
        """Yield serial and parallel phases of the bounds above IPCO."""
        terms = format_terms(self._loads.quantities.work)
        work = self._terms.work
        pairs = [*enumerate(zip(self._profile.phases, self._loads.phases, strict=True))]
        for number, (phase, known) in pairs:
            if known.kind == "serial":
                yield NumberInput(
                    f"phase {phase.name}", float(known.peak.sum()), "s", f"{terms}: the largest of each iteration",
                    sum_over_phases([number], largest_of_each_iteration(work)),
                )  # fmt: skip
        parallel = [(number, pair) for number, pair in pairs if pair[1].kind != "serial"]
        if name == "IPCOL":
            total = self._loads.parallel_work
            most = int(total.argmax())
            who = self._profile.processors[most].name
            yield NumberInput(
                f"parallel phases, {who}", float(total[most]), "s", f"{terms}: the largest sum of a processor",
                ["max", processor_seconds(work, self._terms.parallel)],
            )  # fmt: skip
            return
        for number, (phase, known) in parallel:
            who = self._profile.processors[known.slowest].name
            if name == "IPCOLM":
                value, how = float(known.work[known.slowest]), f"{who}, the largest sum over the iterations"
                body: Expression = ["max", ["sum", work, "iterations"]]
            else:
                value, how = float(known.work[known.slowest]) + known.dynamic_s, "the largest of each iteration"
                body = largest_of_each_iteration(work)
            yield NumberInput(f"phase {phase.name}", value, "s", f"{terms}: {how}", sum_over_phases([number], body))
        if name == "IPCOLMDS":
            yield from self._synchronizing_inputs()

    def _synchronizing_inputs(self) -> Iterator[NumberInput]:
        terms = format_terms(self._loads.quantities.sync)
        seconds, first = self._loads.spreads["sync"].iterations, self._loads.iteration_first
        for number, phase in enumerate(self._profile.phases):
            total = float(seconds[first[number] : first[number + 1]].sum())
            how = f"{terms}: of the processor with the largest work"
            yield NumberInput(f"synchronizing in {phase.name}", total, "s", how, self._terms.synchronizing_term(number))


def _slot_inputs(profile: Profile) -> Iterator[NumberInput]:
    """Yield the seconds that did not wait for memory, and the processors."""
    seconds = float(profile.counts[UNSTALLED].sum())
    how = f"counts {UNSTALLED}, of all regions and processors"
    yield NumberInput("operations unstalled", seconds, "s", how, ["sum", ["profile", "counts", UNSTALLED]])
    count = ["count", ["profile", "processors"]]
    yield NumberInput("processors", float(len(profile.processors)), "", "processors of the profile", count)


def _machine_inputs(name: str, profile: Profile, machine: Machine) -> Iterator[NumberInput]:
    """Yield counts and rates."""
    model = f"machine model {machine.name}"
    counted = sum_operations(profile, COUNTS[name])
    for unit, number in sorted(counted.items()):
        array = unit if unit == COUNTS[name] else f"{COUNTS[name]}.{unit}"
        yield NumberInput(f"operations {unit}", number, "", f"counts {array}, of all regions and processors",
                    ["sum", ["profile", "counts", array]])  # fmt: skip
    count = ["count", ["profile", "processors"]]
    yield NumberInput("processors", float(len(profile.processors)), "", "processors of the profile", count)
    if name == "M":
        yield NumberInput(
            "peak", machine_rates.peak_flops_per_s(machine, 1), "flop/s", f"{model}: flops_per_cycle × clock"
        )
    elif name == "MACS":
        yield NumberInput("clock", machine_rates.clock_hz(machine), "Hz", f"{model}: boost or frequency")
    else:
        rates = machine_rates.instruction_rates(machine) if name == "MAC" else machine_rates.unit_rates(machine)
        for unit in sorted(rates.keys() & counted.keys()):
            yield NumberInput(f"rate {unit}", rates[unit], "1/s", f"{model}: units.{unit} × clock")


def format_terms(quantity: Quantity) -> str:
    """Return the arrays that a quantity is made of: ``wall_s - wait_s - sync_s``."""
    text = " ".join(f"{'+' if sign > 0 else '-'} {name}" for name, sign in quantity.terms)
    return text.removeprefix("+ ") or "nothing"


def _format_iterations(count: int) -> str:
    return "1 iteration" if count == 1 else f"{count} iterations"


def explain_device_bound(bound: Bound, use: DeviceUse) -> ExplainedNumber:
    """Return how a bound of a run with devices came about (docs/devices.md)."""
    place = next(number for number, level in enumerate(DEVICE_LEVELS) if level.bound == bound.name)
    names = (
        ["compute", *(str(level.gap) for level in DEVICE_LEVELS[2 : place + 1])] if bound.seconds is not None else []
    )
    inputs = tuple(
        NumberInput(name, float(use.seconds[name].mean()), "s", f"mean over {len(use.devices)} devices")
        for name in names
    )
    notes = tuple(
        note for note in (bound.reason, bound.collect and f"to record it: {bound.collect}") if note is not None
    )
    return ExplainedNumber(
        "bound", bound.name, DEVICE_LEVELS[place].adds, bound.seconds, "s", bound.status,
        _PEAK if bound.name == "R" else _FORMULA, inputs, notes=notes,
        expression=["+", *(["input", at] for at in range(len(inputs)))] if inputs else None,
    )  # fmt: skip
