"""``gapwatch run``: run a program, sample its processes, and advise on that."""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.cli import advise, history_places, output
from advisor.model.errors import AdvisorError, UsageError

if TYPE_CHECKING:
    from advisor.collect.records import Recording
    from advisor.model.records import Profile

NAME = "run"
HELP = "run a program, sample its processes, and advise on that; no profiler needed"

_SHORTEST_S: Final = 1e-3
_LONGEST_S: Final = 60.0
_NAME_LIMIT: Final = 60
_SIGNALLED: Final = 128


def configure(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    parser.add_argument(
        "--profile", metavar="FILE", type=Path,
        help="where to keep what was sampled (default: gapwatch-run-PROGRAM-TIME.json here)",
    )  # fmt: skip
    parser.add_argument(
        "--interval", metavar="TIME", type=_interval, default=0.05, help="between two samples (default: 50 ms)"
    )
    advise.add_options(parser)
    history_places.add_state(parser)
    parser.add_argument(
        "command", metavar="CMD", nargs=argparse.REMAINDER,
        help="the program and its arguments, best after --; its exit status is that of gapwatch, unless it is 0",
    )  # fmt: skip


def _interval(text: str) -> float:
    from advisor.model import units

    try:
        seconds = units.parse(text, "time")
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if not _SHORTEST_S <= seconds <= _LONGEST_S:
        raise argparse.ArgumentTypeError(f"expected a time from 1 ms to 60 s, found {text!r}")
    return seconds


def run(args: argparse.Namespace) -> int:
    """Run the program and advise on it; returns its exit status if that is not 0, 128 + n after signal n."""
    from advisor.collect.launch import record

    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command or not command[0]:
        raise UsageError("which program? gapwatch run -- CMD (gapwatch run --help says more)")
    _flush()
    recording = record(command, args.interval)
    from advisor.collect import notes  # only now, as what follows: the program had the machine for itself

    if recording.code:
        output.complain(notes.ending(recording.code))
    status = recording.code if recording.code >= 0 else _SIGNALLED - recording.code
    try:
        _advise(recording, args)
    except AdvisorError as error:
        if not status:
            raise
        output.complain(str(error))
    return status


def _flush() -> None:
    """Write out what we have written, before the program writes."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _advise(recording: Recording, args: argparse.Namespace) -> None:
    from advisor.collect import table, tools
    from advisor.collect.profile import profile_of
    from advisor.collect.sampled import sampled

    found = sampled(recording)
    file = _keep(profile_of(found, tools.next_command(found)), args.profile)
    output.complain(f"sampled into {file}; gapwatch advise reads it again")
    study = advise.study_of([file], args, history_places.past(args))
    head = ""
    if args.form == "text":
        from advisor.output import report

        head = report.text(table.report(found), output.page(args)) + "\n"
    advise.deliver(tools.here(study.advice, found), study.earlier, args, head)


def _keep(profile: Profile, file: Path | None) -> Path:
    """Write the profile where the user wants it, else into this directory, else where temporary files are."""
    from advisor.formats import writing

    if file is not None:
        writing.write(profile, file)
        return file
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", profile.program).lstrip("-.")[:_NAME_LIMIT] or "program"
    when = re.sub(r"[^0-9T]", "", (profile.started or "")[:19])
    path = Path(f"gapwatch-run-{name}-{when}.json")
    if path.exists():
        path = path.with_name(f"{path.stem}-{os.getpid()}.json")
    try:
        writing.write(profile, path)
    except OSError:
        path = Path(tempfile.mkdtemp(prefix="gapwatch-")) / path
        writing.write(profile, path)
    return path
