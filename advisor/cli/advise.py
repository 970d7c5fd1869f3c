"""``gapwatch advise``: one run in, ranked advice out."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli import gates, history_location, option_types, output, progress, user_folders
from advisor.cli.next_commands import fill_commands

if TYPE_CHECKING:
    from advisor.advice.earlier_runs import EarlierRuns, RunHistory
    from advisor.model.records import Advice
    from advisor.output.source_tree import SourceTree
    from advisor.pipeline import Study


NAME = "advise"
FORMS = ("text", "json", "markdown", "sarif", "codequality", "openmetrics", "html")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    parser.add_argument(
        "paths", metavar="PATH", nargs="+", type=_parse_path, help="Profile or trace (of several, the newest run)"
    )
    parser.add_argument(
        "--run", metavar="N|NAME", dest="chosen",
        help="Which of several runs: number in the list, name, or part of the path (default: the newest)",
    )  # fmt: skip
    add_advice_arguments(parser)
    # a cluster whose workers take part
    parser.add_argument(
        "--cluster", metavar="ADDRESS", help="Address of a Dask scheduler whose workers analyse the windows of a trace"
    )
    parser.add_argument(
        "--shared", metavar="DIR", type=_parse_path,
        help="Directory that all workers of --cluster see, for the events (default: the current directory)",
    )  # fmt: skip
    history_location.add_state_argument(parser)


def add_advice_arguments(parser: argparse.ArgumentParser) -> None:
    """Give a command that advises on a run its options."""
    add_study_arguments(parser)
    gates.add_gate_argument(parser)
    parser.add_argument("--verbose", action="store_true", help="Show all recommendations, evidence, code and tables")
    add_format_arguments(parser)


def add_study_arguments(parser: argparse.ArgumentParser) -> None:
    """Give a command the options that decide what is advised, as ``study_runs`` reads them."""
    parser.add_argument(
        "--order",
        choices=("seconds", "steps"),
        default="seconds",
        help="Order recommendations by gain or by tuning step (default: seconds)",
    )
    parser.add_argument("--machine", metavar="NAME|FILE", help="Machine model (see gapwatch machines list)")
    user_folders.add_rules_argument(parser)
    parser.add_argument(
        "--binary", metavar="FILE", type=_parse_path, help="Executable of the run, if the recording does not name it"
    )
    parser.add_argument(
        "--cores",
        metavar="N",
        type=option_types.parse_cores,
        help="Cores available to the run, if the profile does not say",
    )
    parser.add_argument(
        "--target", metavar="'P=1024 N=8192'", type=option_types.parse_target,
        help="Production size: show what dominates there, from models of earlier runs",
    )  # fmt: skip


def _parse_path(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("expected a path, got an empty string")
    return Path(text)


def run_command(args: argparse.Namespace) -> int:
    """Advise on what the arguments name; returns the exit code."""
    compares = args.form == "markdown" or any(isinstance(gate, gates.ChangeGate) for gate in args.fail_on)
    past, reading = history_location.open_history(args), _find_readers(args)
    study = study_runs(args.paths, args, past, args.chosen, paths_are_builds=compares, reading=reading)
    if len(study.runs) > len(args.paths):
        _list_runs(study, args.paths)
    deliver_advice(fill_commands(update_item_states(study.advice, args), args.paths), study.earlier, args)
    return 0


def _find_readers(args: argparse.Namespace) -> Callable[[], AbstractContextManager[object]]:
    """Return what is entered while runs are read: it lets the workers of a cluster take part, if one is named."""
    if args.cluster is not None:
        from advisor.support.cluster import use_cluster

        return partial(use_cluster, args.cluster, args.shared or Path())
    if args.shared is not None:
        from advisor.model.errors import UsageError

        raise UsageError("--shared names a directory for the workers of --cluster ADDRESS, which is missing")
    return nullcontext


def _list_runs(study: Study, paths: Sequence[Path]) -> None:
    """Say which runs lie at the paths, and which of them the advice is about."""
    from advisor.collect.listed_runs import format_runs

    number = study.chosen + 1
    newest = "the newest" if number == len(study.runs) else "as asked"
    output.write_messages(
        f"{paths[0]} holds {len(study.runs)} runs; this is about number {number}, {newest} (--run chooses another):",
        *format_runs(study.runs),
    )


def update_item_states(advice: Advice, args: argparse.Namespace) -> Advice:
    """Return the advice with the state of each item in the history; as it is where that cannot be read, which is said
    elsewhere.
    """
    place = history_location.locate_history(args)
    if not advice.recommendations or (isinstance(place, Path) and not place.is_dir()):
        return advice
    from advisor.history.history_queries import StoredHistory
    from advisor.model.errors import StoreError

    try:
        return StoredHistory(place).update_item_states(advice)
    except StoreError:
        return advice


def study_runs(
    paths: Sequence[Path], args: argparse.Namespace, past: RunHistory | None, chosen: str | None = None, *,
    paths_are_builds: bool = False, reading: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Study:  # fmt: skip
    """Return the advice on the newest of the paths, or the ``chosen`` run, as the options of the command line want it,
    after its ``past``.

    With ``paths_are_builds``, several paths name the builds of runs that state none; ``reading`` is entered while they
    are read.
    """
    from advisor import pipeline

    rules = (*user_folders.rule_files(), *args.rules)
    machine = user_folders.resolve_machine(args.machine)
    options = pipeline.Options(
        machine, rules, args.order, args.cores, args.target, args.binary, chosen, paths_are_builds and len(paths) > 1
    )
    with progress.show_stages(f"reading {paths[0]}" if len(paths) == 1 else f"reading {len(paths)} runs") as stage:
        return pipeline.study_newest(
            paths, replace(options, stage=stage, reading=reading), user_folders.load_host(), past
        )


def deliver_advice(advice: Advice, earlier: EarlierRuns, args: argparse.Namespace, head: str = "") -> None:
    """Write advice, in text behind ``head``, then judge the gates."""
    from advisor.advice.earlier_runs import require_base

    text = render_advice(advice, earlier, args)
    comment = args.form == "markdown"
    output.write_output(head + text if args.form == "text" else text, args.output, "utf-8" if comment else None)
    try:
        gates.check_gates(args.fail_on, advice, lambda: require_base(advice, earlier.earlier_summaries(), args.base))
    finally:
        output.write_messages(*(problem for problem in earlier.problems if problem not in advice.problems))


def add_format_arguments(parser: argparse.ArgumentParser) -> None:
    """Give a command that writes advice the options that say how."""
    output.add_output_arguments(parser, FORMS)
    parser.add_argument(
        "--base", metavar="BUILD",
        help="Base build for Markdown and for gates on changes (default: the newest other build)",
    )  # fmt: skip
    parser.add_argument(
        "--source-root", metavar="DIR", type=Path, help="Checkout that SARIF and code quality locations are relative to"
    )
    parser.add_argument(
        "--fallback-location", metavar="FILE[:LINE]",
        help="Place in the checkout of advice without a source file (default: its build file or README)",
    )  # fmt: skip


def render_advice(advice: Advice, earlier: EarlierRuns, args: argparse.Namespace) -> str:
    """Return the advice in the form that the arguments ask for; ``earlier`` is the past of its program."""
    if args.form == "json":
        from advisor.output.advice_document import build_advice_document, to_json

        return to_json(build_advice_document(advice))
    if args.form == "markdown":
        from advisor.advice.earlier_runs import find_change
        from advisor.output.markdown import render_comment

        return render_comment(advice, find_change(advice, earlier.earlier_summaries(), args.base))
    if args.form == "sarif":
        from advisor.output.sarif import render_sarif

        return render_sarif(advice, _open_tree(args))
    if args.form == "codequality":
        from advisor.output.sarif import render_code_quality

        return render_code_quality(advice, _open_tree(args))
    if args.form == "openmetrics":
        from advisor.output.open_metrics import render_open_metrics

        return render_open_metrics([advice])
    if args.form == "html":
        from advisor.output.html.advice_page import render_advice_page

        return render_advice_page(advice, earlier.earlier_summaries())
    from advisor.output.terminal import render_screen

    return render_screen(advice, output.build_page(args, verbose=args.verbose))


def _open_tree(args: argparse.Namespace) -> SourceTree:
    """Return the checkout that the arguments name."""
    from advisor.output.source_tree import open_source_tree

    return open_source_tree(args.source_root, args.fallback_location)
