"""``gapwatch tune -- CMD``: try what needs no edit of the source, and say what it won."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli import history_location, option_types, output, report_output, user_folders
from advisor.model.errors import UsageError

if TYPE_CHECKING:
    from advisor.experiments.settings import Setting
    from advisor.experiments.tuning import TriedSetting, TuningResult
    from advisor.experiments.tuning_session import TunedCommand, TuningRequest
    from advisor.model.reports import Code, Report, Table

NAME = "tune"

RUNS = 25
BUDGET_S = 3600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    parser.add_argument(
        "--build", metavar="'CMD {flags}'",
        help="Command to build with other flags, such as \"make CFLAGS='{flags}'\" (CMake and Meson are recognized)",
    )  # fmt: skip
    parser.add_argument("--check", metavar="CMD", help="Command that succeeds only if the results are right")
    parser.add_argument(
        "--check-file", metavar="FILE", type=Path,
        help="Result file that must not change (-: standard output)",
    )  # fmt: skip
    parser.add_argument(
        "--tolerance", metavar="X", type=parse_tolerance, default=1e-9,
        help="Relative difference that --check-file allows between numbers (default: 1e-9)",
    )  # fmt: skip
    parser.add_argument("--fast-math", action="store_true", help="Also try -ffast-math, which changes results")
    parser.add_argument("--runs", metavar="N", type=parse_runs, default=RUNS, help=f"Maximum runs (default: {RUNS})")
    parser.add_argument(
        "--budget",
        metavar="TIME",
        type=option_types.parse_budget,
        default=BUDGET_S,
        help="Maximum total time (default: 1 h)",
    )
    parser.add_argument(
        "--advice", metavar="PATH", type=Path, help="Recorded run that decides what to try (default: record one first)"
    )
    parser.add_argument(
        "--session", metavar="DIR", type=Path,
        help="Directory for builds and runs; naming it again resumes (default: below the history)",
    )  # fmt: skip
    parser.add_argument("--again", action="store_true", help="Start over instead of resuming")
    parser.add_argument("--env", metavar="FILE", type=Path, help="Write the winning environment variables to FILE")
    history_location.add_state_argument(parser)
    output.add_output_arguments(parser, report_output.FORMS)
    parser.add_argument(
        "command", metavar="CMD", nargs=argparse.REMAINDER, help="Program and arguments, preferably after --"
    )


def parse_tolerance(text: str) -> float:
    """Return the relative difference that is allowed between numbers of results."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 1, found {text!r}")
    return value


def parse_runs(text: str) -> int:
    """Return the most runs that may be made; fewer than four tell nothing."""
    if not text.isascii() or not text.isdigit() or not 4 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"expected a number of runs, at least 4, found {text!r}")
    return int(text)


def run_command(args: argparse.Namespace) -> int:
    """Tune and show the outcome; returns the exit code."""
    from advisor.experiments.trials import Check
    from advisor.experiments.tuning_session import TuningRequest, run_tuning

    words = tuple(args.command[1:] if args.command[:1] == ["--"] else args.command)
    if not words or not words[0]:
        raise UsageError("no program given; usage: gapwatch tune -- CMD (see gapwatch tune --help)")
    request = TuningRequest(
        words=words, folder=Path.cwd(), build=args.build, check=Check(args.check, args.check_file, args.tolerance),
        fast_math=args.fast_math, runs=args.runs, budget_s=args.budget, advice=args.advice, session=args.session,
        again=args.again, outputs=tuple(file for file in (args.env, args.output) if file is not None),
    )  # fmt: skip
    history, sessions = history_location.locate_history(args), history_location.history_folder(args) / NAME
    tuned = run_tuning(request, history, sessions, user_folders.advise_path, output.write_messages)
    if args.env is not None and tuned.result.best is not None:
        from advisor.experiments.settings import describe_environment

        args.env.write_text(describe_environment(tuned.result.best.setting), "utf-8")
    return report_output.show_report(build_report(tuned), args)


def build_report(tuned: TunedCommand) -> Report:
    """Return the table of settings, what the best one won, and how to use it."""
    from advisor.experiments.settings import describe_environment
    from advisor.model.reports import Code, Report, Text
    from advisor.output import numbers

    result = tuned.result
    parts: list[Text | Table | Code] = [_build_table(result, tuned.request)]
    best = result.best
    if best is None and result.undecided_setting is not None and result.undecided_setting.effect is not None:
        name, gain = result.undecided_setting.setting.name, 1 / result.undecided_setting.effect.ratio
        parts.append(Text(f"Not decided after {result.runs} runs: {name} looks {gain:.2f}x as fast, not beyond doubt."))
    elif best is None and result.stopped:
        parts.append(Text(f"Not decided after {result.runs} runs: no setting is certainly faster so far."))
    elif best is None and result.tried and all(one.effect is None for one in result.tried):
        parts.append(Text(f"No setting could be judged: the verdicts say why ({result.runs} runs)."))
    elif best is None and result.hides_gains:
        noise = f"the first two runs of the start differ by {100 * result.spread:.0f} %"
        parts.append(Text(f"Not decided after {result.runs} runs: {noise}; try again on a quieter machine."))
    elif best is None:
        parts.append(Text(f"Nothing to gain: no setting is faster beyond doubt ({result.runs} runs)."))
    elif best.effect is not None:
        gain = 1 / best.effect.ratio
        low, high = (f"{1 / ratio:.2f}x" for ratio in (best.effect.high, best.effect.low))
        times = " to ".join(numbers.format_duration(seconds) for seconds in (result.start_s, best.median_s))
        name = best.setting.name
        parts.append(Text(f"{name}: {gain:.2f}x as fast ({low} to {high}), from {times} ({result.runs} runs)."))
        parts += _describe_winner(best.setting, tuned.request, tuned.session)
        if best.setting.variables:
            parts.append(Code("Environment file", "", describe_environment(best.setting).rstrip()))
    if result.stopped:
        parts.append(Text(f"Stopped early: {result.stopped}. The same command resumes with a larger budget."))
    return Report("", (*parts, *map(Text, tuned.limits)))


def _describe_winner(setting: Setting, request: TuningRequest, session: Path) -> list[Code]:
    """Return the lines that run the command with the winner, and the patch of the makefile where there is one.

    The patch is written into the directory of the session too, since what a terminal shows has lost its tabs.
    """
    from advisor.experiments.build_trees import describe_reconfiguration, find_build_system, write_makefile_patch
    from advisor.experiments.settings import describe_setting
    from advisor.model.reports import Code

    folder, build = request.folder, request.build
    lines, parts = describe_setting(setting, request.words, build), []
    system = find_build_system(request.words, folder) if build is None and setting.flags is not None else None
    if system is not None and setting.flags is not None:
        lines = [*describe_reconfiguration(*system, setting.flags), *lines]
    parts.append(Code("Lines for a job script", "sh", "\n".join(lines)))
    if build is not None and setting.flags is not None:
        patch = write_makefile_patch(folder, build, setting.flags)
        if patch is not None:
            file = session / "makefile.patch"
            file.write_bytes(patch.encode("utf-8", "surrogateescape"))
            parts.append(Code(f"Patch of the makefile: patch -p1 < {shlex.quote(str(file))}", "diff", patch.rstrip()))
    return parts


def _build_table(result: TuningResult, request: TuningRequest) -> Table:
    from advisor.collect.binaries.executables import find_program
    from advisor.model.reports import Column, Table

    program = (find_program(request.words, request.folder) or Path(request.words[0])).name
    columns = (
        Column("setting"), Column("at stake", "share"), Column("median", "s"), Column("speedup"), Column("interval"),
        Column("runs"), Column("verdict"),
    )  # fmt: skip
    rows = (("start", None, result.start_s, None, None, None, ""), *map(_build_row, result.tried))
    return Table(f"Settings of {program}", columns, rows)


def _build_row(tried: TriedSetting) -> tuple[str | float | None, ...]:
    effect = tried.effect
    known = effect is not None and effect.low > 0
    return (
        tried.setting.name, tried.setting.stake_share, tried.median_s,
        None if effect is None else f"{1 / effect.ratio:.2f}x",
        f"{1 / effect.high:.2f}x to {1 / effect.low:.2f}x" if effect is not None and known else None,
        None if effect is None else effect.runs, tried.verdict,
    )  # fmt: skip
