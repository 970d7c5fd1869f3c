"""``gapwatch bisect OLD..NEW -- CMD``: which commit changed the run time, or a gap."""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli import option_types, output, report_output, user_folders
from advisor.model.errors import AdvisorError, UsageError

if TYPE_CHECKING:
    from advisor.experiments.change_point import FoundChange
    from advisor.experiments.commits import CommitRunner
    from advisor.model.records import Advice
    from advisor.model.reports import Report, Table, Text

NAME = "bisect"

_RUNS = 200
_LONGEST_S = 3600.0
#: Runs of the commit and of its parent that are recorded at the end, to tell which gaps moved.
_RECORDED = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    parser.add_argument("span", metavar="OLD..NEW", help="Commits to search, OLD excluded; first parents only")
    _add_options(parser)
    parser.add_argument(
        "command", metavar="CMD", nargs=argparse.REMAINDER, help="Program and arguments, preferably after --"
    )


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--build", metavar="CMD", help="Command that builds a commit, such as 'make -j'; run without a shell"
    )
    parser.add_argument(
        "--gap", metavar="NAME", type=_parse_gap, help="Gap to follow, such as L (default: the run time)"
    )
    parser.add_argument("--runs", metavar="N", type=_parse_runs, default=_RUNS, help=f"Maximum runs (default: {_RUNS})")
    parser.add_argument(
        "--limit",
        metavar="TIME",
        type=option_types.parse_budget,
        default=_LONGEST_S,
        help="Time limit per run (default: 1 h)",
    )
    output.add_output_arguments(parser, report_output.FORMS)


def _split_command(args: argparse.Namespace) -> list[str]:
    """Return the command, after taking in the options between the span and ``--``, which argparse leaves to it."""
    from advisor.cli.parsers import CommandParser

    words: list[str] = args.command
    end = words.index("--") if "--" in words else 0
    parser = CommandParser(prog=f"gapwatch {NAME}", add_help=False, allow_abbrev=False)
    _add_options(parser)
    parser.set_defaults(**{name: value for name, value in vars(args).items() if name not in ("span", "command")})
    parser.parse_args(words[:end], namespace=args)
    return words[end + 1 :] if "--" in words else words


def _parse_runs(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 8 <= int(text) <= 100_000:
        raise argparse.ArgumentTypeError(f"expected a number of runs, at least 8, found {text!r}")
    return int(text)


def _parse_gap(text: str) -> str:
    from advisor.model.records import GAP_NAMES

    if unknown := [name for name in text.split("+") if name not in GAP_NAMES]:
        raise argparse.ArgumentTypeError(f"no gap {unknown[0]!r}; the gaps are {', '.join(GAP_NAMES)}")
    return text


def run_command(args: argparse.Namespace) -> int:
    """Search and show the commit; returns the exit code."""
    from advisor.experiments.change_point import find_change
    from advisor.experiments.commits import CommitRunner, list_commits

    words = _split_command(args)
    if not words or not words[0]:
        raise UsageError("no program given; usage: gapwatch bisect OLD..NEW -- CMD (see gapwatch bisect --help)")
    repository = Path.cwd()
    commits = list_commits(repository, args.span)
    session = Path(tempfile.mkdtemp(prefix="gapwatch-bisect-")) / "session"
    runner = CommitRunner(
        repository,
        commits,
        words,
        session,
        args.build,
        args.gap,
        args.limit,
        user_folders.advise_path,
        output.write_messages,
    )
    try:
        found = find_change(runner.measure_commit, len(commits) - 1, args.runs)
        failed = [number for number in (0, len(commits) - 1) if number in runner.failures]
        if failed:
            ends = "; ".join(f"{commits[number][:10]}: {runner.failures[number]}" for number in failed)
            raise AdvisorError(f"nothing to search between: {ends}")
        return report_output.show_report(_build_report(found, commits, repository, runner, args.gap), args)
    finally:
        runner.close()
        session.parent.rmdir()


def _build_report(
    found: FoundChange, commits: Sequence[str], repository: Path, runner: CommitRunner, gap: str | None
) -> Report:
    from advisor.experiments.commits import run_git
    from advisor.model.reports import Column, Report, Table, Text
    from advisor.output import numbers

    if found.version is None:
        return Report("", (Text(f"No commit was found: {found.reason} ({found.runs} runs)."),))
    lines = [
        run_git(repository, "show", "--no-patch", "--format=%h%x00%an%x00%s", commits[one]) for one in found.candidates
    ]
    rows = tuple(tuple(line.strip().split("\0")) for line in lines)
    listed = Table("Commits", tuple(map(Column, ("commit", "author", "subject"))), rows)
    parts: list[Text | Table] = [listed]
    chance = numbers.format_percentage(found.probability)
    if found.reason is None and found.change is not None:
        middle, width = found.change.difference, found.change.half_width(1)
        if gap is None:
            low, high, ratio = (math.exp(value) - 1 for value in (middle - width, middle + width, middle))
            moved = f"The run time changed by {ratio:+.1%} ({low:+.1%} to {high:+.1%})"
        else:
            ends = numbers.format_interval((middle - width, middle + width))
            moved = f"{gap} changed by {numbers.format_duration(middle)} ({ends})"
        parts.append(Text(f"{moved} with {rows[0][0]}; probability {chance}, {found.runs} runs."))
        parts += _compare_gaps(found.version, runner)
    else:
        parts.append(Text(f"Not certain: {found.reason}. The commits above hold 99 % of the probability."))
    return Report("", tuple(parts))


def _compare_gaps(version: int, runner: CommitRunner) -> list[Text | Table]:
    """Return which gaps moved with a commit, from recorded runs of it and of its parent, in turns."""
    from advisor.analysis.comparison import compare_builds
    from advisor.model.reports import Column, Table, Text

    groups: tuple[list[Advice], list[Advice]] = ([], [])
    try:
        for _ in range(_RECORDED):
            for side, number in zip(groups, (version - 1, version), strict=True):
                side.append(runner.record_commit(number))
    except AdvisorError as error:
        return [Text(f"The gaps are not known: {error}")]
    found = compare_builds(*groups)
    words = {None: "unknown", True: "yes", False: "no"}
    rows = tuple(
        (one.name, one.before_s, one.after_s, one.delta_s, one.noise_s,
         "too few runs tell" if found.is_undecided(one) else words[one.beyond_noise])
        for one in found.changes if one.before_s or one.after_s
    )  # fmt: skip
    units = ("before", "after", "change", "noise")
    columns = (Column("gap"), *(Column(name, "s") for name in units), Column("more than noise"))
    return [Table("Gaps of its parent and of the commit", columns, rows)]
