"""``gapwatch explain``: how the numbers of the advice on a run came about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli import history_places, output, places, progress
from advisor.model.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from advisor.pipeline import Study

NAME = "explain"
HELP = "say how each number came about: formula, inputs, arrays, thresholds, rules"


def configure(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    parser.add_argument("run", metavar="RUN|PATH", help="a profile or trace, or a run in the history by number or name")
    parser.add_argument("what", metavar="ACTION|GAP", nargs="?", help="one action or one gap (default: everything)")
    parser.add_argument("--machine", metavar="NAME|FILE", help="the machine model of the run (gapwatch machines list)")
    places.add_rules(parser)
    parser.add_argument(
        "--profile", metavar="FILE", type=Path,
        help="also write the profile that the numbers are computed from, as gapwatch/profile/1 (JSON; NPZ by its name)",
    )  # fmt: skip
    parser.add_argument("--verbose", action="store_true", help="all inputs and all parts of each number")
    history_places.add_state(parser)
    output.add_options(parser)


def run(args: argparse.Namespace) -> int:
    """Explain; returns the exit code."""
    from advisor.advice.explaining import explain
    from advisor.output import explained

    study = _study(_paths(args), args)
    found = explain(study, args.what)
    if args.profile is not None:
        from advisor.formats import writing

        writing.write(study.advice.profile, args.profile)
    if args.form == "json":
        from advisor.output.document import to_json

        text = to_json(explained.document(found))
    else:
        text = explained.screen(found, output.page(args, verbose=args.verbose))
    output.emit(text, args.output)
    output.complain(*study.advice.problems)
    return 0


def _study(paths: Sequence[Path], args: argparse.Namespace) -> Study:
    from advisor import pipeline

    options = pipeline.Options(places.machine(args.machine), (*places.rule_files(), *args.rules))
    with progress.working(f"reading {paths[0]}"):
        return pipeline.study(paths, options, places.load_host(), history_places.past(args))


def _paths(args: argparse.Namespace) -> list[Path]:
    """Return what the run is read from; of one in the history the files that it was read from then."""
    path = Path(args.run)
    number = None if path.exists() else _number(args)
    if number is None:
        return [path]
    with history_places.open_runs(args) as runs:
        files = [unit.path for unit in runs.units(number)]
    if not files:
        raise UsageError(f"there is no run {args.run} in the history (gapwatch history lists them)")
    return files


def _number(args: argparse.Namespace) -> int | None:
    """Return the number of a run in the history that is named by it, or by what advice and pages call the run."""
    if args.run.isascii() and args.run.isdigit():
        return int(args.run)
    if history_places.past(args) is None:
        return None
    with history_places.open_runs(args) as runs:
        named = [entry.number for entry in runs.entries() if entry.run == args.run]
    return named[-1] if named else None
