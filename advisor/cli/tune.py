"""``gapwatch tune -- CMD``: try what needs no edit of the source, and say what it won."""

from __future__ import annotations

import argparse
import shlex
import shutil
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli import history_location, option_types, output, report_output, user_folders
from advisor.model.errors import AdvisorError, UsageError
from advisor.model.lists import join_names

if TYPE_CHECKING:
    from advisor.experiments.candidates import ProgramFacts
    from advisor.experiments.settings import Setting
    from advisor.experiments.sources import SourceFiles
    from advisor.experiments.trials import TrialRunner
    from advisor.experiments.tuning import TriedSetting, TuningResult
    from advisor.model.records import Advice
    from advisor.model.reports import Code, Report, Table

NAME = "tune"

_RUNS = 25
#: Settings that are tried: with the two starts of the first block that is eight runs.
_SETTINGS = 6
_BUDGET_S = 3600.0
#: So many lines of results that are not compared are named.
_LINES = 8


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
        "--tolerance", metavar="X", type=_parse_tolerance, default=1e-9,
        help="Relative difference that --check-file allows between numbers (default: 1e-9)",
    )  # fmt: skip
    parser.add_argument("--fast-math", action="store_true", help="Also try -ffast-math, which changes results")
    parser.add_argument("--runs", metavar="N", type=_parse_runs, default=_RUNS, help=f"Maximum runs (default: {_RUNS})")
    parser.add_argument(
        "--budget",
        metavar="TIME",
        type=option_types.parse_budget,
        default=_BUDGET_S,
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


def _parse_tolerance(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 1, found {text!r}")
    return value


def _parse_runs(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 4 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"expected a number of runs, at least 4, found {text!r}")
    return int(text)


def run_command(args: argparse.Namespace) -> int:
    """Tune and show the outcome; returns the exit code."""
    from advisor.experiments import candidates, tuning
    from advisor.experiments.trials import Check, TrialRunner

    words = tuple(args.command[1:] if args.command[:1] == ["--"] else args.command)
    if not words or not words[0]:
        raise UsageError("no program given; usage: gapwatch tune -- CMD (see gapwatch tune --help)")
    if args.build is not None and "{flags}" not in args.build:
        raise UsageError("--build says nowhere where the flags go: write {flags}")
    folder = Path.cwd()
    session, sources = _open_session(args, words, folder)
    until = time.monotonic() + args.budget
    with sources.watch_run() if sources is not None else nullcontext():
        advice = _advise(args, words, folder, session)
    checked = args.check is not None or args.check_file is not None
    facts = candidates.describe_program(words, folder, advice, rebuilds=sources is not None, checked=checked)
    most = max(2, min(_SETTINGS, args.runs // 3))
    settings = candidates.propose_settings(facts, advice, fast_math=args.fast_math, most=most)
    check = Check(args.check, args.check_file, args.tolerance)
    runner = TrialRunner(words, folder, session, args.build, check, sources)
    if args.check_file is not None:
        first = runner.run_trial(tuning.REFERENCE, until - time.monotonic())
        if first.failure is not None:
            raise AdvisorError(f"the command as it is fails: {first.failure}")
    left_s = until - time.monotonic()
    if left_s <= 0:
        raise AdvisorError("the budget ran out before anything could be tried; increase --budget")
    runs = args.runs - (args.check_file is not None)
    result = tuning.tune_command(runner, settings, runs, left_s, lambda words: output.write_messages(words))
    if result is None:
        raise AdvisorError("the command as it is fails, or its --check does; mend that first")
    if result.best is not None and advice is not None:
        _store_gain(args, runner, advice, result.best.setting, session)
    if args.env is not None and result.best is not None:
        from advisor.experiments.settings import describe_environment

        args.env.write_text(describe_environment(result.best.setting), "utf-8")
    return report_output.show_report(_build_report(result, words, args, session, _describe_limits(facts, runner)), args)


def _open_session(args: argparse.Namespace, words: Sequence[str], folder: Path) -> tuple[Path, SourceFiles | None]:
    """Return the directory of this command's runs, emptied if it is to begin anew, and the files that its builds read.

    Runs of another program, build or environment are none of this one, nor are those of sources that changed since.
    Raises ``UsageError`` for a directory of these.
    """
    from advisor.experiments.build_trees import find_sources
    from advisor.experiments.sources import SourceFiles
    from advisor.experiments.trials import identify_work

    check = (args.check, args.check_file, args.tolerance)
    key = identify_work(words, folder, args.build, *check)
    session: Path = args.session or history_location.history_folder(args) / "tune" / key[:16]
    if args.again and session.exists():
        if not (session / "key").exists():
            raise UsageError(f"{session} was not written by gapwatch tune; remove it yourself")
        shutil.rmtree(session)
    try:
        session.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{session}: {error.strerror}; name a directory for the runs with --session") from error
    stated = session / "key"
    if stated.exists() and stated.read_text("utf-8") != key:
        raise UsageError(
            f"{session} holds runs of another command, program or environment; --again starts over, or name another one"
        )
    stated.write_text(key, "utf-8")
    place = find_sources(words, folder, args.build)
    if place is None:
        return session, None
    own = [file for file in (args.env, args.output) if file is not None]
    sources = SourceFiles(place[0], session, (*place[1], *own))
    changed = sources.find_changed()
    if changed:
        raise UsageError(f"{changed[0]} changed since the runs in {session} were made; --again starts over")
    return session, sources


def _advise(args: argparse.Namespace, words: Sequence[str], folder: Path, session: Path) -> Advice | None:
    """Return the advice on a recorded run of the command; None, and a sentence why, where it cannot be recorded."""
    from advisor import pipeline
    from advisor.collect import builds, sidecar
    from advisor.collect.binaries.executables import find_program
    from advisor.experiments.processes import record_run

    path: Path = args.advice or session / "recorded" / "start"
    binary = None if args.advice else find_program(words, folder)
    options = pipeline.Options(rules=user_folders.rule_files(), binary=binary)
    try:
        if args.advice is None and not path.exists():
            sidecar_folder = path.parent
            sidecar_folder.mkdir(exist_ok=True)
            sidecar.write_sidecar(sidecar_folder, {"build": builds.identify_build(folder) or "start"}, {})
            record_run(words, folder, path, args.budget)
        return pipeline.advise([path], options, user_folders.load_host())
    except AdvisorError as error:
        if args.advice is not None:
            raise
        output.write_messages(f"not recorded, so it is unknown which settings matter: {error}")
        return None


def _store_gain(args: argparse.Namespace, runner: TrialRunner, advice: Advice, best: Setting, session: Path) -> None:
    """Note in the history that the winner was applied, and what it won: a recorded run before, and one with it."""
    from advisor.experiments.tuned_history import store_tuned_run

    if args.advice is not None:
        return
    try:
        store_tuned_run(
            runner, advice, best, session / "recorded", history_location.locate_history(args),
            user_folders.advise_path, args.budget,
        )  # fmt: skip
    except AdvisorError as error:
        output.write_messages(f"the gain is not in the history: {error}")


def _describe_limits(facts: ProgramFacts, runner: TrialRunner) -> list[str]:
    """Return what was not compared or not tried, and why."""
    from advisor.support.launchers import find_rank_option

    limits = []
    if runner.varying_lines:
        lines = join_names([*map(str, runner.varying_lines)], _LINES)
        limits.append(f"Not compared, since they differ from run to run: lines {lines} of the results.")
    if not facts.checked:
        limits.append("Results were not checked: use --check or --check-file, so that a faster run is not a wrong one.")
        if facts.mpi and find_rank_option(facts.words):
            limits.append("Other numbers of ranks are tried only with a check: they may solve another problem.")
    return limits


def _build_report(
    result: TuningResult, words: Sequence[str], args: argparse.Namespace, session: Path, limits: Sequence[str]
) -> Report:
    from advisor.experiments.settings import describe_environment
    from advisor.model.reports import Code, Report, Text
    from advisor.output import numbers

    parts: list[Text | Table | Code] = [_build_table(result, words)]
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
        parts += _describe_winner(best.setting, words, args.build, session)
        if best.setting.variables:
            parts.append(Code("Environment file", "", describe_environment(best.setting).rstrip()))
    if result.stopped:
        parts.append(Text(f"Stopped early: {result.stopped}. The same command resumes with a larger budget."))
    return Report("", (*parts, *map(Text, limits)))


def _describe_winner(setting: Setting, words: Sequence[str], build: str | None, session: Path) -> list[Code]:
    """Return the lines that run the command with the winner, and the patch of the makefile where there is one.

    The patch is written into the directory of the session too, since what a terminal shows has lost its tabs.
    """
    from advisor.experiments.build_trees import describe_reconfiguration, find_build_system, write_makefile_patch
    from advisor.experiments.settings import describe_setting
    from advisor.model.reports import Code

    lines, parts = describe_setting(setting, words, build), []
    system = find_build_system(words, Path.cwd()) if build is None and setting.flags is not None else None
    if system is not None and setting.flags is not None:
        lines = [*describe_reconfiguration(*system, setting.flags), *lines]
    parts.append(Code("Lines for a job script", "sh", "\n".join(lines)))
    if build is not None and setting.flags is not None:
        patch = write_makefile_patch(Path.cwd(), build, setting.flags)
        if patch is not None:
            file = session / "makefile.patch"
            file.write_bytes(patch.encode("utf-8", "surrogateescape"))
            parts.append(Code(f"Patch of the makefile: patch -p1 < {shlex.quote(str(file))}", "diff", patch.rstrip()))
    return parts


def _build_table(result: TuningResult, words: Sequence[str]) -> Table:
    from advisor.collect.binaries.executables import find_program
    from advisor.model.reports import Column, Table

    program = (find_program(words, Path.cwd()) or Path(words[0])).name
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
