"""What ``gapwatch parallelism`` shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.analysis.machine_rates import clock_hz
from advisor.model.reports import Axis, Bar, Bars, Cell, Column, Line, Part, Report, Series, Table, Text
from advisor.model.units import format_seconds
from advisor_similarity.executed_functions import (
    GENERATED,
    collect_functions,
    count_rewritten,
    count_unknown,
    is_stripped,
)
from advisor_similarity.histogram import build_histogram
from advisor_similarity.machine_units import balance_units
from advisor_similarity.qemu_tracing import find_architecture, find_program
from advisor_similarity.steps import COARSE, UNKNOWN

if TYPE_CHECKING:
    from advisor.analysis.machines import Machine
    from advisor_similarity.images import Stream
    from advisor_similarity.parallelism import Observation

_LISTED = 8

_LEAST_SHARE = 0.0005
#: Below this smoothability the centroid stands for little of a workload: of the NAS benchmarks all but one are at 0.83
#: or more, and the one at 0.68 is the exception (A. Meajil, T. El-Ghazawi, T. Sterling, figure 2).
SMOOTH: Final = 0.75


def build_report(observed: Observation, functions: int, machine: Machine | None = None) -> Report:
    """Return text, tables and plots of a run on the oracle machine, and how the units of ``machine`` would meet it."""
    parts: list[Part] = [
        Text(_describe_run(observed)),
        _centroid_table(observed),
        *(_describe_units(observed, machine) if machine else ()),
        _mix_bars(observed),
        _profile_series(observed),
    ]
    parts += [
        _function_table(observed, functions),
        *_thread_table(observed),
        *_process_table(observed),
        *build_histogram(observed),
    ]
    parts += [Text(note) for note in collect_notes(observed)]
    return Report(f"Parallel instructions of {observed.workload.name}", tuple(parts))


def _describe_run(observed: Observation) -> str:
    workload = observed.workload
    made = "ran, {} operations of them were scheduled" if observed.sampling else "make {} operations"
    text = (
        f"{workload.instructions:,} instructions {made.format(f'{workload.operations:,}')}; "
        f"the oracle machine needs {workload.cycles:,} cycles for them: average parallelism {workload.parallelism:.4g}."
    )
    if workload.smoothability is not None and observed.limited_cycles is not None:
        text += (
            f" With {observed.slots:,} operations a cycle it needs {observed.limited_cycles:,}: "
            f"smoothability {workload.smoothability:.3g}."
        )
        if workload.smoothability < SMOOTH:
            text += " Its parallelism comes in bursts, so the centroid, a mean over all cycles, stands for few of them."
    return text


def _centroid_table(observed: Observation) -> Table:
    workload, sampled = observed.workload, observed.sampled
    errors: tuple[float | None, ...] = sampled.errors if sampled else (None,) * len(COARSE)
    total = sum(workload.centroid) or 1.0
    columns = [Column("component"), Column("operations a cycle"), Column("share", "share")]
    columns += [Column("standard error")] if sampled else []
    rows: list[tuple[Cell, ...]] = [
        (name, value, value / total, error) if sampled else (name, value, value / total)
        for name, value, error in zip(COARSE, workload.centroid, errors, strict=True)
    ]
    return Table("Centroid", tuple(columns), tuple(rows))


def _describe_units(observed: Observation, machine: Machine) -> list[Part]:
    """Return what the units of a machine would make of the workload: which it waits for, which stay idle."""
    found = balance_units(observed.workload, machine)
    if found is None:
        return [Text(f"The model {machine.name} states no functional units: gapwatch machines probe measures them.")]
    clock, cycles = clock_hz(machine), observed.workload.cycles
    longest = found.demands[0]
    least = max(found.cycles, cycles)
    time = f" ({format_seconds(least / clock)})" if clock else ""
    reason = f"the units for {', '.join(longest.units)}" if found.cycles > cycles else "what waits for what"
    text = f"A core of {machine.name} takes at least {least:,.0f} cycles{time} for it, because of {reason}. "
    text += f"The units stand {found.distance:.2f} from the proportions that the program asks for."
    if found.missing:
        text += f" The model does not state: {', '.join(found.missing)}."
    columns = (Column("units"), Column("asked for a cycle"), Column("started a cycle"), Column("busy", "share"))
    rows = tuple(
        (", ".join(demand.units), demand.demand, demand.supply, demand.cycles / found.cycles if found.cycles else 0.0)
        for demand in found.demands
    )
    return [Text(text), Table(f"Units of {machine.name}", columns, rows)]


def _mix_bars(observed: Observation) -> Bars:
    total = sum(observed.workload.fine.values()) or 1.0
    kinds = sorted(observed.workload.fine.items(), key=lambda kind: -kind[1])
    return Bars(
        "Mix", "share", tuple(Bar(name, value / total) for name, value in kinds if value / total > _LEAST_SHARE)
    )


def _profile_series(observed: Observation) -> Series:
    stream = max(observed.image.streams, key=lambda stream: stream.cycles)
    x = tuple(float(number << stream.shift) for number in range(len(stream.buckets)))
    widths = [min(1 << stream.shift, stream.cycles - (number << stream.shift)) for number in range(len(stream.buckets))]
    lines = tuple(
        Line(name, x, tuple(bucket[number] / width for bucket, width in zip(stream.buckets, widths, strict=True)))
        for number, name in enumerate(COARSE)
        if any(bucket[number] for bucket in stream.buckets)
    )
    return Series(
        "Operations a cycle over the run", Axis("cycle of the oracle machine"), Axis("operations a cycle"), lines
    )


def _function_table(observed: Observation, count: int) -> Table:
    found = collect_functions(observed.image, observed.traced.templates)
    total = sum(place.instructions for place in found) or 1
    columns = (Column("function"), Column("file"), Column("instructions"), Column("of all", "share"))
    kinds = tuple(Column(name, "share") for name in COARSE)
    rows: list[tuple[Cell, ...]] = []
    for place in found[: max(count, 0)]:
        operations = sum(place.operations) or 1
        shares = tuple(number / operations for number in place.operations[:UNKNOWN])
        rows.append((place.name, place.file, place.instructions, place.instructions / total, *shares))
    return Table("Functions", (*columns, *kinds), tuple(rows))


def _thread_table(observed: Observation) -> list[Part]:
    streams = observed.image.streams
    if len(streams) < 2:
        return []
    columns = (Column("thread"), Column("operations"), Column("cycles"), Column("average parallelism"))
    rows = tuple((f"{number}", *_stream_row(stream)) for number, stream in enumerate(streams))
    return [Table("Threads, each as a separate stream", columns, rows)]


def _stream_row(stream: Stream) -> tuple[Cell, ...]:
    operations = int(stream.operations.sum())
    return operations, stream.cycles, operations / max(1, stream.cycles)


def _process_table(observed: Observation) -> list[Part]:
    images = sorted(observed.traced.images, key=lambda image: -image.instructions)
    if len(images) < 2:
        return []
    columns = (Column("process"), Column("instructions"), Column("average parallelism"), Column("shown above"))
    rows: list[tuple[Cell, ...]] = []
    for image in images[:20]:
        operations = sum(int(stream.operations.sum()) for stream in image.streams)
        cycles = max((stream.cycles for stream in image.streams), default=0)
        shown = "yes" if image is observed.image else "until it became another" if image.became_another else ""
        rows.append((str(image.process), image.instructions, operations / max(1, cycles), shown))
    return [Table("Processes", columns, tuple(rows))]


def collect_notes(observed: Observation) -> list[str]:
    """Return sentences on what is missing or uncertain, most serious first."""
    found = [
        *_exit_notes(observed),
        *filter(None, [observed.region]),
        *_unknown_notes(observed),
        *_unclaimed_notes(observed),
        *_generated_notes(observed),
    ]
    return [*found, *_sampling_notes(observed), *_second_run_notes(observed), *_symbol_notes(observed)]


def _exit_notes(observed: Observation) -> list[str]:
    code = observed.traced.exit_code
    return [f"The program ended with exit code {code}: this is what it did until then."] if code else []


def _unknown_notes(observed: Observation) -> list[str]:
    counts = count_unknown(observed.image, observed.traced.templates)
    if not counts:
        return []
    most = sorted(counts.items(), key=lambda entry: -entry[1])[:_LISTED]
    names = ", ".join(f"{mnemonic} {count:,} times" for mnemonic, count in most)
    share = sum(counts.values()) / max(1, observed.workload.instructions)
    return [f"Instructions of no known class, {share:.2g} of all, stand outside of the centroid: {names}."]


def _unclaimed_notes(observed: Observation) -> list[str]:
    accesses = sum(stream.unclaimed + stream.lost for stream in observed.image.streams)
    return [f"{accesses:,} accesses to memory belong to no load or store that was understood."] if accesses else []


def _generated_notes(observed: Observation) -> list[str]:
    found = collect_functions(observed.image, observed.traced.templates)
    made = sum(place.instructions for place in found if place.name == GENERATED)
    if not made:
        return []
    share = made / max(1, observed.workload.instructions)
    text = f"{share:.2g} of the instructions were generated while the program ran; they belong to no function."
    changed = count_rewritten(observed.image)
    return [f"{text} At {changed:,} places they were rewritten later on." if changed else text]


def _sampling_notes(observed: Observation) -> list[str]:
    sampled = observed.sampled
    if not observed.sampling:
        return []
    if sampled is None:
        return [
            "Sampled: one window was scheduled, the beginning of the run. How much windows differ is not known; take a "
            "shorter --window."
        ]
    return [
        f"Sampled: {sampled.windows} windows were scheduled, each as if everything before it had been there. "
        "Parallelism that reaches further than a window is not seen, and no standard error tells of it: "
        "try another --window."
    ]


def _second_run_notes(observed: Observation) -> list[str]:
    if observed.slots is None or observed.workload.smoothability is not None:
        return []
    return [f"No smoothability: the second run did {observed.differs:.1%} more or less work than the first."]


def _symbol_notes(observed: Observation) -> list[str]:
    program = find_program(observed.traced.program)
    if find_architecture(program) is None or not is_stripped(program):
        return []
    return [f"{program.name} is stripped: its functions have no names. Link without -s to see them."]
