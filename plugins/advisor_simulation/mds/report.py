"""What a simulation shows: where the seconds go, what coherence costs, working sets, and who reads from whom."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis import bounds, gaps
from advisor.formats.native_writer import write_profile
from advisor.model import units
from advisor.model.errors import UsageError
from advisor.model.reports import Bar, Bars, Cell, Column, HeatMap, Part, Report, Table, Text
from advisor.support.atomic_write import atomic_write
from advisor_simulation.mds.coherence import COHERENCE, KINDS
from advisor_simulation.mds.engine import SimulationSettings
from advisor_simulation.mds.references import ReferenceStream, iterate_addresses
from advisor_simulation.mds.run import SimulatedRun, simulate_model
from advisor_simulation.model.checks import read_model, resolve_processors

if TYPE_CHECKING:
    from argparse import Namespace

    from advisor.extension.commands import CommandServices
    from advisor.model.records import FloatArray, IntArray, Profile
    from advisor_simulation.mds.log import SimulationLog
    from advisor_simulation.model.records import Model
    from advisor_simulation.model.world import Profiles

#: Processors that a matrix shows.
PROCESSORS_SHOWN: Final = 64
#: References that a file of addresses may hold.
MOST_ADDRESSES: Final = 5_000_000
#: A smaller share of a run comes from rounding.
_NO_SHARE: Final = 1e-12


def build_report(args: Namespace, services: CommandServices) -> Report:
    """Return the report of ``gapwatch simulate``."""
    model = read_model(args.model)
    machine = services.load_machine(args.machine)
    count = resolve_processors(model, args.processors)
    writer = _AddressWriter() if args.addresses else None
    settings = SimulationSettings(not args.without_data, writer.add_references if writer else None)
    found = simulate_model(
        model, args.model.parent, machine, count, args.finite, settings, make_profile_reader(services)
    )
    if writer is not None:
        writer.write_file(args.addresses)
    if args.save:
        try:
            write_profile(replace(found.profile, parameters={"model": str(args.model.resolve())}), args.save)
        except OSError as error:
            raise UsageError(f"--save {args.save}: {error.strerror or error}") from None
    title = f"{model.name} on {units.format_count(count, 'processor')} of {machine.name}, simulated"
    return Report(
        title,
        (
            _describe_run(found),
            build_gap_bars(found.profile),
            *build_data_parts(found),
            *describe_missing_inputs(model),
        ),
    )


def describe_missing_inputs(model: Model) -> tuple[Text, ...]:
    """Return what a model says that it lacks, and how to get it; a model of a run has such holes."""
    if not model.holes:
        return ()
    told = (f"{hole.at}: {hole.missing}" + (f" ({hole.collect})" if hole.collect else "") for hole in model.holes)
    return (Text("\n".join(("The model has holes, what lies in them is not simulated:", *told))),)


def make_profile_reader(services: CommandServices) -> Profiles:
    """Return what reads the seconds of a region of a profile, by processor."""

    def read_seconds(path: str, region: str) -> FloatArray:
        return region_seconds(services.read(Path(path)), region)

    return read_seconds


def region_seconds(profile: Profile, region: str) -> FloatArray:
    """Return the work of a region on each processor, seconds (Q,); ValueError where there is no such region."""
    total = np.zeros(len(profile.processors))
    known = False
    for phase in profile.phases:
        for row, number in enumerate(phase.regions):
            if profile.regions[number].name == region:
                known = True
                total += phase.arrays["wall_s"][row].sum(axis=1)
    if not known:
        raise ValueError(f"the profile has no region '{region}'")
    return total


def _describe_run(found: SimulatedRun) -> Text:
    log, profile = found.log, found.profile
    said = f"{units.format_seconds(profile.actual_s)}, {units.format_count(len(log.spans), 'synchronization')}, "
    said += f"{units.format_count(log.references, 'reference')} to data."
    notes = " ".join(f"{note.text[:1].upper()}{note.text[1:]}." for note in profile.notes)
    return Text(f"{said} {notes}".strip())


def build_gap_bars(profile: Profile) -> Bars:
    """Return the lowest known bound and all gaps above it as bars; false sharing and migration named in C'."""
    levels = bounds.compute_bounds(profile)
    lowest = next(level for level in levels if level.seconds is not None)
    shown = [Bar(f"{lowest.name} bound", lowest.seconds)]
    for gap in gaps.attribute_gaps(profile, levels):
        shown.append(Bar(gap.name, gap.seconds, note=units.format_share(_round_share(gap.share))))
        if gap.name == "C'":
            parts = coherence_seconds(profile)
            shown += [Bar(f"  {kind}", seconds) for kind, seconds in parts.items() if seconds]
    return Bars("Where the seconds go", "s", tuple(shown))


def _round_share(share: float) -> float:
    """Return a share without what rounding leaves of zero."""
    return share if abs(share) > _NO_SHARE else 0.0


def coherence_seconds(profile: Profile) -> dict[str, float]:
    """Return what each kind of coherence traffic costs, seconds of the run (mean over the processors)."""
    causes = profile.causes
    if causes is None:
        return {}
    total = np.bincount(causes.kind, causes.seconds, minlength=len(causes.kinds)) / len(profile.processors)
    return dict(zip(causes.kinds, map(float, total), strict=True))


def build_data_parts(found: SimulatedRun) -> tuple[Part, ...]:
    """Return the tables of memory transactions, working sets and flow."""
    if not found.log.flows:
        return ()
    return (_transaction_table(found), _working_set_table(found.log), _flow_map(found.log))


def _transaction_table(found: SimulatedRun) -> Table:
    rows: dict[str, tuple[IntArray, FloatArray]] = {}
    for span in found.log.spans:
        for one in span.entries:
            if one.counts.any():
                counts, cost = rows.get(one.region, (np.zeros(len(KINDS), dtype=np.int64), np.zeros(COHERENCE)))
                rows[one.region] = (counts + one.counts.sum(axis=0), cost + one.traffic.sum(axis=0))
    columns = (
        Column("region"),
        *(Column(kind) for kind in KINDS),
        *(Column(f"{kind} time", "s") for kind in KINDS[:3]),
    )
    cells: tuple[tuple[Cell, ...], ...] = tuple(
        (name, *(int(count) for count in counts), *(float(one) * found.costs.second for one in cost))
        for name, (counts, cost) in rows.items()
    )
    return Table("Transactions of the caches, all processors", columns, cells)


def _working_set_table(log: SimulationLog) -> Table:
    columns = (
        Column("region"),
        Column("references"),
        Column("smallest", "B"),
        Column("mean", "B"),
        Column("largest", "B"),
    )
    rows = tuple(
        (
            flow.region,
            flow.items,
            int(flow.working_set.min()),
            float(flow.working_set.mean()),
            int(flow.working_set.max()),
        )
        for flow in log.flows.values()
    )
    return Table("Working sets, by processor", columns, rows)


def _flow_map(log: SimulationLog) -> HeatMap:
    total = sum((flow.words for flow in log.flows.values()), start=np.zeros((1, 1), dtype=np.int64))
    count = min(len(total), PROCESSORS_SHOWN)
    names = tuple(str(number) for number in range(count))
    cells = tuple(tuple(float(value) for value in row[:count]) for row in total[:count])
    return HeatMap("Words read after others wrote them, from row to column", "", names, names, cells)


class _AddressWriter:
    """Collects references as lines ``region processor R|W address bytes``."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add_references(self, region: str, parts: ReferenceStream, place: IntArray) -> None:
        """Take in the references of one loop."""
        if len(self.lines) + len(parts.word) > MOST_ADDRESSES:
            raise UsageError(
                f"these are more than {MOST_ADDRESSES:,} references; make the model smaller for --addresses"
            )
        for sub, kind, address, size in iterate_addresses(parts):
            self.lines.append(f"{region}\t{place[sub]}\t{kind}\t{address}\t{size}\n")

    def write_file(self, path: Path) -> None:
        """Write the file; it appears under its name when it is complete."""
        try:
            with atomic_write(path) as partial:
                partial.write_text("".join(self.lines), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"--addresses {path}: {error.strerror or error}") from None
