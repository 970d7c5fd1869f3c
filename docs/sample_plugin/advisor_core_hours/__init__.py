"""What a run and each of its gaps cost in core hours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor.advice.facts import Fact
from advisor.extension.commands import Argument
from advisor.extension.hookspecs import hookimpl
from advisor.model.records import Finding
from advisor.model.reports import Axis, Column, Line, Report, Series, Table, Text

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping, Sequence

    from advisor.extension.commands import CommandRegistry, CommandServices
    from advisor.model.records import Gap, Profile

advisor_api = 1  # the version of the plugin contract that this was written for

SECONDS_PER_HOUR = 3600


def core_hours(profile: Profile, seconds: float) -> float:
    """Return what ``seconds`` of the whole run cost, in hours of one processor."""
    return seconds * len(profile.processors) / SECONDS_PER_HOUR


@hookimpl
def advisor_findings(profile: Profile, gaps: Sequence[Gap]) -> Sequence[Finding]:
    """Return one finding: the cost of the run and of its largest gap."""
    if not gaps:
        return []
    largest = max(gaps, key=lambda gap: gap.seconds)
    total, part = core_hours(profile, profile.actual_s), core_hours(profile, largest.seconds)
    text = f"The run took {total:.3g} core hours, {part:.3g} of them in gap {largest.name}."
    measures = {"core_hours": total, "largest_gap_core_hours": part}
    return [Finding("", "cost", profile.program, text, measures)]  # the host fills in our name


@hookimpl
def advisor_facts() -> Sequence[Fact]:
    """Return a fact for conditions such as ``{fact: run.core_hours, is: ">= 100"}``."""
    return [
        Fact(
            name="run.core_hours",
            unit="count",
            scope="run",
            needs=("wall_s",),
            command="record the run with any profiler",
            formula="wall time of the run x processors / 3600",
            compute=lambda profile, phase: core_hours(profile, profile.actual_s),
        )
    ]


@hookimpl
def advisor_commands(register: CommandRegistry) -> None:
    """Register ``gapwatch core-hours PATH [--price P]``."""
    arguments = [
        Argument("path", "the profile or trace", Path),
        Argument("--price", "price of a core hour, for a column with costs", float),
    ]
    register("core-hours", "Show what each gap of a run costs in core hours.", arguments, run)


@hookimpl
def advisor_services() -> Mapping[str, Callable[..., object]]:
    """Return ``core-hours.of(profile, seconds)`` for the commands of other plugins."""
    return {"core-hours.of": core_hours}


def run(args: Namespace, services: CommandServices) -> Report:
    """Return a table with one row per gap, the costly ones first, and what earlier runs cost."""
    advice = services.advise(args.path)
    columns = [Column("gap"), Column("time", "s"), Column("core hours")]
    rows: list[tuple[str | float, ...]] = []
    for gap in sorted(advice.gaps, key=lambda gap: -gap.seconds):
        hours = core_hours(advice.profile, gap.seconds)
        rows.append((gap.name, gap.seconds, hours, *([hours * args.price] if args.price is not None else [])))
    if args.price is not None:
        columns.append(Column("price"))
    total = core_hours(advice.profile, advice.profile.actual_s)
    costs = Table("", tuple(columns), tuple(rows))
    total_text = Text(f"The whole run took {total:.3g} core hours.")
    earlier = [run.profile for run in services.load_history(advice.profile.program) if run.profile.has_run_time]
    parts = (costs, total_text, _over_time(earlier)) if earlier else (costs, total_text)
    return Report(f"Core hours of {advice.profile.program}", parts)


def _over_time(earlier: Sequence[Profile]) -> Series:
    """Return a plot of what earlier runs cost."""
    each = tuple(core_hours(profile, profile.actual_s) for profile in earlier)
    line = Line("", tuple(range(1, len(each) + 1)), each)
    return Series("Earlier runs", Axis("run"), Axis("core hours"), (line,))
