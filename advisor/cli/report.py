"""``gapwatch report DIR``: pages over programs and builds, to be read in a browser or put on a server."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.cli import history_places, output, places, progress
from advisor.model.errors import AdvisorError
from advisor.support.whole_files import replacing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from advisor.history.overview import Seen
    from advisor.model.records import Advice

NAME = "report"
HELP = "write pages over programs and builds, with an index: of the runs in directories, or of the history"
_INDEX: Final = "index.html"
_PAGE: Final = "run-[0-9][0-9][0-9][0-9]"
_FOLDER: Final = "gapwatch-report"
_MOST: Final = 100


def configure(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    parser.add_argument(
        "paths", metavar="DIR", nargs="*", type=Path, help="where profiles lie (default: the runs of the history)"
    )
    parser.add_argument(
        "-o", dest="folder", metavar="FOLDER", type=Path, default=Path(_FOLDER),
        help=f"where to write the pages; what an earlier report left there goes (default: {_FOLDER})",
    )  # fmt: skip
    parser.add_argument(
        "--most", metavar="N", type=_most, default=_MOST, help=f"pages of each program, the newest (default: {_MOST})"
    )
    parser.add_argument("--machine", metavar="NAME|FILE", help="the machine model of the runs (gapwatch machines list)")
    places.add_rules(parser)
    history_places.add_state(parser)


def _most(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= 9_999:
        raise argparse.ArgumentTypeError(f"expected a number of runs from 1 to 9999, found {text!r}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Write the pages and say where; returns the exit code."""
    from advisor.history import overview
    from advisor.output.html import index

    folder: Path = args.folder
    _prepare(folder)
    shown: list[Seen] = []
    problems: list[str] = []
    for advice, earlier in _of_paths(args) if args.paths else _of_history(args):
        file = f"run-{len(shown) + 1:04}.html"
        shown.append(_written(advice, earlier, folder / file))
        problems += advice.problems
    programs = overview.by_program(shown)
    for old in set(folder.glob(f"{_PAGE}.html")) - {folder / one.file for one in shown}:
        old.unlink(missing_ok=True)
    _write(folder / _INDEX, index.page(programs, tuple(dict.fromkeys(problems))))
    many = "1 run" if len(shown) == 1 else f"{len(shown)} runs"
    output.emit(f"{folder / _INDEX}: {', '.join(program.name for program in programs) or 'no program'}; {many}\n")
    output.complain(*dict.fromkeys(problems))
    return 0


def _of_paths(args: argparse.Namespace) -> Iterator[tuple[Advice, Sequence[Advice]]]:
    """Yield the advice on the newest runs of each program in the directories, with the runs before it."""
    from advisor import pipeline

    rules = (*places.rule_files(), *args.rules)
    options = pipeline.Options(places.machine(args.machine), rules)
    with progress.working(f"reading {args.paths[0]}"):
        studies = pipeline.studies(args.paths, options, places.load_host(), history_places.past(args))
        found = [(study.advice, study.earlier.advice()) for study in studies]
    yield from _newest(found, args.most)


def _of_history(args: argparse.Namespace) -> Iterator[tuple[Advice, Sequence[Advice]]]:
    """Yield the advice on the newest runs of each program in the history, with the runs before it."""
    with history_places.open_runs(args) as runs:
        for program in runs.programs():
            known = [runs.advice(entry.number) for entry in runs.entries(program, 2 * args.most)]
            yield from _newest([(advice, known[:at]) for at, advice in enumerate(known)], args.most)


def _newest(found: Sequence[tuple[Advice, Sequence[Advice]]], most: int) -> Iterator[tuple[Advice, Sequence[Advice]]]:
    programs = dict.fromkeys(advice.profile.program for advice, _ in found)
    for program in programs:
        yield from [one for one in found if one[0].profile.program == program][-most:]


def _written(advice: Advice, earlier: Sequence[Advice], file: Path) -> Seen:
    """Write the page of a run."""
    from advisor.history import overview
    from advisor.output import pictures
    from advisor.output.html.page import page

    _write(file, page(advice, pictures.of_run(advice, earlier), _INDEX))
    return overview.seen(advice, earlier, file.name)


def _prepare(folder: Path) -> None:
    """Make the folder; refuses one that holds an index which is not of gapwatch."""
    from advisor.output.html.filling import MARK

    try:
        folder.mkdir(parents=True, exist_ok=True)
        index = folder / _INDEX
        if index.exists() and MARK not in index.read_text(encoding="utf-8", errors="replace"):
            raise AdvisorError(f"{index} is not of gapwatch; name another folder with -o")
    except OSError as error:
        raise AdvisorError(f"{folder}: {error.strerror}") from error


def _write(file: Path, text: str) -> None:
    """Write a page; it appears under its name only when it is complete."""
    try:
        with replacing(file) as partial:
            partial.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise AdvisorError(f"{file}: {error.strerror}") from error
