"""``gapwatch explain``: how the numbers of the advice on a run came about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli import history_location, output, progress, user_folders
from advisor.model.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from advisor.pipeline import Study

NAME = "explain"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    parser.add_argument("run", metavar="RUN|PATH", help="Profile or trace, or a run of the history by number or name")
    parser.add_argument("what", metavar="WHAT", nargs="?", help="Explain one action, gap or bound only (default: all)")
    parser.add_argument("--machine", metavar="NAME|FILE", help="Machine model (see gapwatch machines list)")
    user_folders.add_rules_argument(parser)
    parser.add_argument(
        "--profile", metavar="FILE", type=Path,
        help="Also write the underlying profile as gapwatch/profile/1 (JSON, or NPZ by suffix)",
    )  # fmt: skip
    parser.add_argument("--verbose", action="store_true", help="Show all inputs and terms of each number")
    history_location.add_state_argument(parser)
    output.add_output_arguments(parser)


def run_command(args: argparse.Namespace) -> int:
    """Explain; returns the exit code."""
    from advisor.advice.explaining import explain_study
    from advisor.output import explanation_text

    study = _study_run(_resolve_paths(args), args)
    found = explain_study(study, args.what)
    if args.profile is not None:
        from advisor.formats import native_writer

        native_writer.write_profile(study.advice.profile, args.profile)
    if args.form == "json":
        from advisor.output.advice_document import to_json

        text = to_json(explanation_text.build_explanation_document(found))
    else:
        text = explanation_text.render_explanation(found, output.build_page(args, verbose=args.verbose))
    output.write_output(text, args.output)
    output.write_messages(*study.advice.problems)
    return 0


def _study_run(paths: Sequence[Path], args: argparse.Namespace) -> Study:
    from advisor import pipeline

    options = pipeline.Options(user_folders.resolve_machine(args.machine), (*user_folders.rule_files(), *args.rules))
    with progress.show_progress(f"reading {paths[0]}"):
        return pipeline.study_newest(paths, options, user_folders.load_host(), history_location.open_history(args))


def _resolve_paths(args: argparse.Namespace) -> list[Path]:
    """Return what the run is read from; of one in the history the files that it was read from then."""
    path = Path(args.run)
    number = None if path.exists() else _find_run_number(args)
    if number is None:
        return [path]
    with history_location.open_runs(args) as runs:
        files = [unit.path for unit in runs.units_of_run(number)]
    if not files:
        raise UsageError(f"no run {args.run} in the history (see gapwatch history)")
    return files


def _find_run_number(args: argparse.Namespace) -> int | None:
    """Return the number of a run in the history that is named by it, or by what advice and pages call the run."""
    if args.run.isascii() and args.run.isdigit():
        return int(args.run)
    if history_location.open_history(args) is None:
        return None
    with history_location.open_runs(args) as runs:
        named = [entry.number for entry in runs.list_entries() if entry.run == args.run]
    return named[-1] if named else None
