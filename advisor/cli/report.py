"""``gapwatch report DIR``: pages over programs and builds, to be read in a browser or put on a server."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.cli import history_location, option_types, output, progress, user_folders
from advisor.model.errors import AdvisorError, StoreError
from advisor.model.units import format_count
from advisor.support.atomic_write import atomic_write

if TYPE_CHECKING:
    from advisor.history.program_views import RunOverview
    from advisor.model.records import Advice

NAME = "report"
_INDEX: Final = "index.html"
_PAGE: Final = "run-[0-9][0-9][0-9][0-9]"
_FOLDER: Final = "gapwatch-report"
_MOST: Final = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    parser.add_argument(
        "paths", metavar="DIR", nargs="*", type=Path, help="Directory with profiles (default: the runs of the history)"
    )
    parser.add_argument(
        "-o", dest="folder", metavar="FOLDER", type=Path, default=Path(_FOLDER),
        help=f"Output directory; replaces an earlier report (default: {_FOLDER})",
    )  # fmt: skip
    parser.add_argument(
        "--limit",
        metavar="N",
        type=option_types.whole_number("a number of runs from 1 to 9999", most=9_999),
        default=_MOST,
        help=f"Newest runs per program (default: {_MOST})",
    )
    parser.add_argument(
        "--mode", metavar="MODE", type=_parse_mode, default=0o600,
        help="File mode of the pages, such as 644 for a web server (default: 600)",
    )  # fmt: skip
    parser.add_argument("--machine", metavar="NAME|FILE", help="Machine model (see gapwatch machines list)")
    user_folders.add_rules_argument(parser)
    history_location.add_state_argument(parser)


def _parse_mode(text: str) -> int:
    if not re.fullmatch(r"0?[0-6][0-6][0-6]", text) or not int(text, 8) & 0o200:
        raise argparse.ArgumentTypeError(f"expected a file mode such as 600 or 644, found {text!r}")
    return int(text, 8)


def run_command(args: argparse.Namespace) -> int:
    """Write the pages and say where; returns the exit code."""
    from advisor.history import program_views
    from advisor.output.html import index

    folder: Path = args.folder
    _prepare_folder(folder, args.mode)
    shown: list[RunOverview] = []
    problems: list[str] = []
    for advice, earlier in _study_paths(args) if args.paths else _load_history_runs(args, problems):
        file = f"run-{len(shown) + 1:04}.html"
        shown.append(_write_run_page(advice, earlier, folder / file, args.mode))
        problems += advice.problems
    programs = program_views.group_by_program(shown)
    for old in set(folder.glob(f"{_PAGE}.html")) - {folder / one.file for one in shown}:
        old.unlink(missing_ok=True)
    _write_page(folder / _INDEX, index.render_index_page(programs, tuple(dict.fromkeys(problems))), args.mode)
    names = history_location.format_programs([program.name for program in programs])
    output.write_output(f"{folder / _INDEX}: {names or 'no program'}; {format_count(len(shown), 'run')}\n")
    output.write_messages(*dict.fromkeys(problems))
    return 0


def _study_paths(args: argparse.Namespace) -> Iterator[tuple[Advice, Sequence[Advice]]]:
    """Yield the advice on the newest runs of each program in the directories, with the runs before it."""
    from advisor import pipeline

    rules = (*user_folders.rule_files(), *args.rules)
    options = pipeline.Options(user_folders.resolve_machine(args.machine), rules)
    with progress.show_progress(f"reading {args.paths[0]}"):
        studies = pipeline.iterate_studies(
            args.paths, options, user_folders.load_host(), history_location.open_history(args)
        )
        found = [(study.advice, study.earlier.earlier_summaries()) for study in studies]
    yield from _select_newest(found, args.limit)


def _load_history_runs(args: argparse.Namespace, problems: list[str]) -> Iterator[tuple[Advice, Sequence[Advice]]]:
    """Yield the advice on the newest runs of each program in the history, with the runs before it.

    What is damaged of them is left out, and added to ``problems``.
    """
    with history_location.open_runs(args) as runs:
        for program in runs.list_programs():
            known = []
            for entry in runs.list_entries(program, 2 * args.limit):
                try:
                    known.append(runs.load_advice(entry.number))
                except StoreError as error:
                    problems.append(f"{error}; it is left out")
            yield from _select_newest([(advice, known[:at]) for at, advice in enumerate(known)], args.limit)


def _select_newest(
    found: Sequence[tuple[Advice, Sequence[Advice]]], most: int
) -> Iterator[tuple[Advice, Sequence[Advice]]]:
    programs = dict.fromkeys(advice.profile.program for advice, _ in found)
    for program in programs:
        yield from [one for one in found if one[0].profile.program == program][-most:]


def _write_run_page(advice: Advice, earlier: Sequence[Advice], file: Path, mode: int) -> RunOverview:
    from advisor.history import program_views
    from advisor.output.html.advice_page import render_advice_page

    _write_page(file, render_advice_page(advice, earlier, _INDEX), mode)
    return program_views.build_run_overview(advice, earlier, file.name)


def _prepare_folder(folder: Path, mode: int) -> None:
    """Make the folder, for those who may read its pages; refuses one with an index that is not of gapwatch."""
    from advisor.output.html.templates import MARK

    try:
        folder.mkdir(mode=0o700 | mode & 0o044 | (mode & 0o044) >> 2, parents=True, exist_ok=True)
        index = folder / _INDEX
        if index.exists() and MARK not in index.read_text(encoding="utf-8", errors="replace"):
            raise AdvisorError(f"{index} was not written by gapwatch; choose another directory with -o")
    except OSError as error:
        raise AdvisorError(f"{folder}: {error.strerror}") from error


def _write_page(file: Path, text: str, mode: int) -> None:
    """Write a page; it appears under its name only when it is complete."""
    try:
        with atomic_write(file) as partial:
            partial.touch(mode=0o600)
            partial.write_text(text, encoding="utf-8", errors="backslashreplace")
            partial.chmod(mode)
    except OSError as error:
        raise AdvisorError(f"{file}: {error.strerror}") from error
