"""``gapwatch compare OLD NEW``: which gap moved by how many seconds between two builds, and is that more than noise?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli import gates, history_location, output, progress, report_output, user_folders
from advisor.model.errors import AdvisorError

if TYPE_CHECKING:
    import argparse

    from advisor.analysis.comparison import Change, Comparison
    from advisor.extension.host import PluginHost
    from advisor.history.build_comparison import BuildComparison
    from advisor.model.records import Advice
    from advisor.model.reports import Report, Table

NAME = "compare"


#: Regions whose part in a change is smaller are not named (of the largest part; seconds).
_LEAST = 0.05
_LEAST_S = 1e-6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    parser.add_argument(
        "before", metavar="OLD", help="Directory with runs of one build, or build name or run number in the history"
    )
    parser.add_argument("after", metavar="NEW", help="Directory, build or run to compare with OLD")
    parser.add_argument("--program", metavar="NAME", help="Program, if several have these builds")
    gates.add_gate_argument(parser, "Exit with status 1 if GATE holds for NEW, with OLD as the base")
    history_location.add_state_argument(parser)
    output.add_output_arguments(parser, (*report_output.FORMS, "markdown"))


def run_command(args: argparse.Namespace) -> int:
    """Compare and show; returns the exit code."""
    from advisor.advice.earlier_runs import ComparisonBase

    compared = _compare(args)
    first, second, found = compared.before, compared.after, compared.comparison
    if args.form == "markdown":
        from advisor.output.markdown import render_comment

        output.write_output(render_comment(second[-1], found), args.output, "utf-8")
    else:
        report_output.show_report(build_comparison_report(found), args)
    gates.check_gates(args.fail_on, second[-1], lambda: ComparisonBase(tuple(first), found))
    return 0


def _compare(args: argparse.Namespace) -> BuildComparison:
    """Compare two paths, else what the history knows by these names; a build may be called like a directory."""
    paths = Path(args.before), Path(args.after)
    there = [path for path in paths if path.exists()]
    if len(there) == 1:
        with suppress(AdvisorError):
            return _compare_history(args)
    return _compare_paths(*paths) if there else _compare_history(args)


def _compare_history(args: argparse.Namespace) -> BuildComparison:
    from advisor.history.build_comparison import compare_stored_builds

    with history_location.open_runs(args) as runs:
        history_location.require_program(args.program, runs)
        return compare_stored_builds(runs, args.before, args.after, args.program)


def _compare_paths(before: Path, after: Path) -> BuildComparison:
    """Compare the runs that lie at two paths; raises ``UsageError`` where those are of different programs."""
    from advisor.analysis.comparison import check_comparable, compare_builds
    from advisor.history.build_comparison import BuildComparison

    host = user_folders.load_host()
    first, second = _advise_on(before, host), _advise_on(after, host)
    check_comparable((first, second))
    return BuildComparison(first, second, replace(compare_builds(first, second), before=str(before), after=str(after)))


def _advise_on(path: Path, host: PluginHost) -> tuple[Advice, ...]:
    """Return the advice on each run at a path, the oldest first."""
    from advisor import pipeline

    with progress.show_stages(f"reading {path}") as stage:
        options = pipeline.Options(rules=user_folders.rule_files(), stage=stage)
        return tuple(study.advice for study in pipeline.iterate_studies([path], options, host))


def build_comparison_report(found: Comparison) -> Report:
    """Return a comparison as a table of the gaps, and a sentence."""
    from advisor.model.reports import Column, Report, Table, Text

    columns = (
        Column("gap"), Column("before", "s"), Column("after", "s"), Column("change", "s"), Column("noise", "s"),
        Column("more than noise"), Column("where"),
    )  # fmt: skip
    rows = tuple(_build_row(change, found) for change in (*found.changes, found.actual))
    before, after = (_describe_runs(*counts) for counts in zip(found.runs, found.disturbed, strict=True))
    title = f"{found.program}: from {found.before} ({before}) to {found.after} ({after})"
    return Report(title, (Table("", columns, rows), *_build_network_table(found), Text(_describe_result(found))))


def _build_network_table(found: Comparison) -> Iterator[Table]:
    """Yield what the builds ask of a network, where events of both are known."""
    from advisor.model.reports import Column, Table
    from advisor.output.wording import describe_count

    rows = tuple(
        (change.words, describe_count(change.before, change), describe_count(change.after, change),
         None if change.noise is None else describe_count(change.noise, change),
         {None: "unknown", True: "yes", False: "no"}[change.beyond_noise])
        for change in found.network
    )  # fmt: skip
    names = ("on the network", "before", "after", "noise", "more than noise")
    if rows:
        yield Table("", tuple(Column(name) for name in names), rows)


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
    from advisor.output.wording import describe_added_traffic

    more = found.added_traffic
    traffic = f" {found.after} adds {describe_added_traffic(more[0])}, whatever the times say." if more else ""
    return _describe_times(found) + traffic + _describe_processors(found)


def _describe_processors(found: Comparison) -> str:
    before, after = (" or ".join(map(str, counts)) for counts in found.processors)
    if before == after:
        return ""
    return f" {found.before} ran on {before} processors and {found.after} on {after}, which changes times as well."


def _describe_times(found: Comparison) -> str:
    if found.repeats:
        return (
            "Both are runs of one build, started alike: nothing was changed between them, so the difference is noise. "
            "A first run is often longer, since it reads its files for the first time."
        )
    if found.actual.beyond_noise is None:
        return "Neither build ran more than once, so nothing can be told from noise: record each at least three times."
    worst = found.largest_increase
    if worst is None:
        unsure = [change.name for change in found.changes if change.delta_s > 0 and found.is_undecided(change)]
        more = f" Of {' and '.join(unsure)} too few runs tell: repeat them." if unsure else ""
        return f"No gap grew by more than noise.{more}"
    from advisor.output import numbers

    where = f", most of it in {worst.places[0][0]}" if worst.places else ""
    name = "The run time" if worst.name == "actual" else worst.name
    return f"{name} grew by {numbers.format_duration(worst.delta_s)}{where}."
