"""``gapwatch compare A B``: which gap moved by how many seconds between two builds, and is that more than noise?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from advisor.cli import gates, history_location, output, report_output
from advisor.model.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from advisor.analysis.comparison import Change, Comparison
    from advisor.history.runs import RunEntry, RunStore
    from advisor.model.records import Advice
    from advisor.model.reports import Report

NAME = "compare"
HELP = "show which gaps changed between two builds or runs, where, and whether beyond noise"


#: Regions whose part in a change is smaller are not named (of the largest part; seconds).
_LEAST = 0.05
_LEAST_S = 1e-6
#: So many builds are named to who asked for one that is not there.
_NAMED = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    parser.add_argument("before", metavar="A", help="Build name or run number (see gapwatch history)")
    parser.add_argument("after", metavar="B", help="Build or run to compare with A")
    parser.add_argument("--program", metavar="NAME", help="Program, if several have these builds")
    gates.add_gate_argument(parser, "Exit with status 1 if GATE holds for B, with A as the base")
    history_location.add_state_argument(parser)
    output.add_output_arguments(parser, (*report_output.FORMS, "markdown"))


def run_command(args: argparse.Namespace) -> int:
    """Compare and show; returns the exit code."""
    from advisor.advice.earlier_runs import NOISE_BUILDS, ComparisonBase
    from advisor.analysis.comparison import compare_builds

    with history_location.open_runs(args) as runs:
        program, before, after = _select_runs(runs, args)
        earlier = [
            _load_advice(runs, build)
            for build in _find_repeated_builds(runs.list_entries(program), before, after)[-NOISE_BUILDS:]
        ]
        first, second = _load_advice(runs, before), _load_advice(runs, after)
    found = compare_builds(first, second, earlier)
    found = replace(found, before=_describe_side(args.before, before), after=_describe_side(args.after, after))
    if args.form == "markdown":
        from advisor.output.markdown import render_comment

        output.write_output(render_comment(second[-1], found), args.output, "utf-8")
    else:
        report_output.show_report(_build_report(found), args)
    gates.check_gates(args.fail_on, second[-1], lambda: ComparisonBase(tuple(first), found))
    return 0


def _select_runs(runs: RunStore, args: argparse.Namespace) -> tuple[str, list[RunEntry], list[RunEntry]]:
    """Return the program and the runs that the two names stand for."""
    history_location.require_program(args.program, runs)
    entries = [entry for entry in runs.list_entries() if args.program in (None, entry.program)]
    sides = [_find_side(name, entries) for name in (args.before, args.after)]
    programs = {entry.program for entry in sides[0]} & {entry.program for entry in sides[1]}
    if len(programs) != 1:
        names = ", ".join(sorted({entry.program for side in sides for entry in side}))
        raise UsageError(f"choose a program with --program: {names}")
    [program] = programs
    before, after = ([one for one in side if one.program == program and one.actual_s is not None] for side in sides)
    if not (before and after):
        raise UsageError(f"{args.after if before else args.before} was recorded without times of {program!r}")
    return program, before, after


def _find_repeated_builds(
    entries: Sequence[RunEntry], before: Sequence[RunEntry], after: Sequence[RunEntry]
) -> list[list[RunEntry]]:
    """Return the builds that ran more than once, without the runs that are compared.

    Where these are two single runs and no others tell the noise, their own builds do, such as of two repeats.
    """
    others = _group_by_build([entry for entry in entries if entry not in (*before, *after)])
    return others or (_group_by_build(entries) if len(before) == len(after) == 1 else [])


def _group_by_build(entries: Sequence[RunEntry]) -> list[list[RunEntry]]:
    found: dict[str, list[RunEntry]] = {}
    for entry in entries:
        if entry.build is not None and entry.actual_s is not None:
            found.setdefault(entry.build, []).append(entry)
    return [build for build in found.values() if len(build) > 1]


def _find_side(name: str, entries: Sequence[RunEntry]) -> list[RunEntry]:
    """Return the runs of the build of that name, else the run of that number; raises ``UsageError``."""
    side = [entry for entry in entries if entry.build == name]
    side = side or [entry for entry in entries if str(entry.number) == name]
    if side:
        return side
    builds = list(dict.fromkeys(entry.build for entry in reversed(entries) if entry.build is not None))[:_NAMED]
    span = f"runs have the numbers {entries[0].number} to {entries[-1].number}" if entries else "there is no run"
    known = f"the last builds are {', '.join(reversed(builds))}" if builds else "no run says of which build it is"
    raise UsageError(f"no run or build named {name!r}; {known}; {span}")


def _describe_side(name: str, side: Sequence[RunEntry]) -> str:
    """Return what a side of the comparison is called: its build, or the run that stands for it."""
    build = side[0].build
    if name == build:
        return build
    return f"run {name}" if build is None else f"run {name} of {build}"


def _load_advice(runs: RunStore, entries: list[RunEntry]) -> list[Advice]:
    return [runs.load_advice(entry.number) for entry in entries]


def _build_report(found: Comparison) -> Report:
    from advisor.model.reports import Column, Report, Table, Text

    columns = (
        Column("gap"), Column("before", "s"), Column("after", "s"), Column("change", "s"), Column("noise", "s"),
        Column("more than noise"), Column("where"),
    )  # fmt: skip
    rows = tuple(_build_row(change, found) for change in (*found.changes, found.actual))
    before, after = (_describe_runs(*counts) for counts in zip(found.runs, found.disturbed, strict=True))
    title = f"{found.program}: from {found.before} ({before}) to {found.after} ({after})"
    return Report(title, (Table("", columns, rows), Text(_describe_result(found))))


def _build_row(change: Change, found: Comparison) -> tuple[str | float | None, ...]:
    from advisor.output import numbers

    beyond = {None: "unknown", True: "yes", False: "unsure" if found.is_undecided(change) else "no"}[
        change.beyond_noise
    ]
    largest = max((abs(seconds) for _, seconds in change.places), default=0.0)
    places = "; ".join(
        f"{name} {'+' if seconds > 0 else ''}{numbers.format_duration(seconds)}"
        for name, seconds in change.places
        if abs(seconds) >= max(_LEAST * largest, _LEAST_S)
    )
    return (change.name, change.before_s, change.after_s, change.delta_s, change.noise_s, beyond, places)


def _describe_runs(count: int, disturbed: int) -> str:
    words = "1 run" if count == 1 else f"{count} runs"
    return f"{words}, {disturbed} left out as disturbed" if disturbed else words


def _describe_result(found: Comparison) -> str:
    if found.actual.beyond_noise is None:
        return "No build ran more than once, so nothing can be told from noise: repeat the runs."
    worst = found.largest_increase
    if worst is None:
        unsure = [change.name for change in found.changes if change.delta_s > 0 and found.is_undecided(change)]
        more = f" Of {' and '.join(unsure)} too few runs tell: repeat them." if unsure else ""
        return f"No gap grew by more than noise.{more}"
    from advisor.output import numbers

    where = f", most of it in {worst.places[0][0]}" if worst.places else ""
    name = "The run time" if worst.name == "actual" else worst.name
    return f"{name} grew by {numbers.format_duration(worst.delta_s)}{where}."
