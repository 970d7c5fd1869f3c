"""``gapwatch bisect OLD..NEW -- CMD``: which commit changed the run time, or a gap."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli import option_types, output, report_output, user_folders
from advisor.model.errors import UsageError

if TYPE_CHECKING:
    from advisor.analysis.comparison import Comparison
    from advisor.experiments.commit_search import FoundCommit
    from advisor.model.reports import Report, Table, Text

NAME = "bisect"

RUNS = 200
LONGEST_S = 3600.0


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
        "--gap", metavar="NAME", type=parse_gap, help="Gap to follow, such as L (default: the run time)"
    )
    parser.add_argument("--runs", metavar="N", type=parse_runs, default=RUNS, help=f"Maximum runs (default: {RUNS})")
    parser.add_argument(
        "--limit",
        metavar="TIME",
        type=option_types.parse_budget,
        default=LONGEST_S,
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


def parse_runs(text: str) -> int:
    """Return the most runs that may be made; fewer than eight tell no change from noise."""
    if not text.isascii() or not text.isdigit() or not 8 <= int(text) <= 100_000:
        raise argparse.ArgumentTypeError(f"expected a number of runs, at least 8, found {text!r}")
    return int(text)


def parse_gap(text: str) -> str:
    """Return the name of a gap, or of several that are merged (``L+S``)."""
    from advisor.model.records import GAP_NAMES

    if unknown := [name for name in text.split("+") if name not in GAP_NAMES]:
        raise argparse.ArgumentTypeError(f"no gap {unknown[0]!r}; the gaps are {', '.join(GAP_NAMES)}")
    return text


def run_command(args: argparse.Namespace) -> int:
    """Search and show the commit; returns the exit code."""
    from advisor.experiments.commit_search import SearchRequest, search_commits

    words = _split_command(args)
    if not words or not words[0]:
        raise UsageError("no program given; usage: gapwatch bisect OLD..NEW -- CMD (see gapwatch bisect --help)")
    request = SearchRequest(
        repository=Path.cwd(), span=args.span, words=tuple(words), runs=args.runs, limit_s=args.limit,
        build=args.build, gap=args.gap,
    )  # fmt: skip
    found = search_commits(request, user_folders.advise_path, output.write_messages)
    return report_output.show_report(build_report(found, args.gap), args)


def build_report(found: FoundCommit, gap: str | None) -> Report:
    """Return the commits that hold the change of the run time or the ``gap``, its size, and the gaps that moved."""
    from advisor.model.reports import Column, Report, Table, Text
    from advisor.output import numbers

    change = found.change
    if change.version is None:
        return Report("", (Text(f"No commit was found: {change.reason} ({change.runs} runs)."),))
    rows = tuple((one.name, one.author, one.subject) for one in found.candidates)
    parts: list[Text | Table] = [Table("Commits", tuple(map(Column, ("commit", "author", "subject"))), rows)]
    chance = numbers.format_percentage(change.probability)
    if found.is_certain and change.change is not None:
        middle, width = change.change.difference, change.change.half_width(1)
        if gap is None:
            low, high, ratio = (math.exp(value) - 1 for value in (middle - width, middle + width, middle))
            moved = f"The run time changed by {ratio:+.1%} ({low:+.1%} to {high:+.1%})"
        else:
            ends = numbers.format_interval((middle - width, middle + width))
            moved = f"{gap} changed by {numbers.format_duration(middle)} ({ends})"
        parts.append(Text(f"{moved} with {rows[0][0]}; probability {chance}, {change.runs} runs."))
        parts.append(_build_gap_table(found.gaps) if found.gaps else Text(f"The gaps are not known: {found.problem}"))
    else:
        parts.append(Text(f"Not certain: {change.reason}. The commits above hold 99 % of the probability."))
    return Report("", tuple(parts))


def _build_gap_table(found: Comparison) -> Table:
    from advisor.model.reports import Column, Table

    words = {None: "unknown", True: "yes", False: "no"}
    rows = tuple(
        (one.name, one.before_s, one.after_s, one.delta_s, one.noise_s,
         "too few runs tell" if found.is_undecided(one) else words[one.beyond_noise])
        for one in found.changes if one.before_s or one.after_s
    )  # fmt: skip
    units = ("before", "after", "change", "noise")
    columns = (Column("gap"), *(Column(name, "s") for name in units), Column("more than noise"))
    return Table("Gaps of its parent and of the commit", columns, rows)
