"""``gapwatch run``: run a program, record or sample it, and advise on that."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.cli import advise, history_location, option_types, output, supervision, user_folders
from advisor.cli.error_messages import run_guarded
from advisor.cli.next_commands import fill_commands
from advisor.collect.passes.planning import PASSES
from advisor.model.errors import AdvisorError, UsageError

if TYPE_CHECKING:
    from advisor.collect.recorder.session import Session
    from advisor.collect.records import Recording
    from advisor.model.records import Profile

NAME = "run"

#: Where the ordinary run lies in the directory of all recordings of --deep.
RECORDING: Final = "recording"
_NAME_LIMIT: Final = 60
_SIGNALLED: Final = 128


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    parser.add_argument(
        "--profile", metavar="PATH", type=Path,
        help="Where to keep the recording (default: ./gapwatch-run-PROGRAM-TIME)",
    )  # fmt: skip
    parser.add_argument(
        "--from-outside", action="store_true", help="Do not preload the recorder; only sample the processes"
    )
    parser.add_argument(
        "--mpi", metavar="MPICC",
        help="MPI compiler of the program, if CMD does not show that it starts MPI (make run)",
    )  # fmt: skip
    parser.add_argument(
        "--limit",
        metavar="SIZE",
        type=option_types.make_quantity_parser("size", "a size from 1 MiB to 1 TiB", 1 << 20, 1 << 40),
        default="1 GiB",
        help="Maximum recording per process (default: 1 GiB)",
    )
    parser.add_argument(
        "--deep", action="store_true",
        help="Make further passes that count instructions, cache misses and more, after showing a plan (docs/deep.md)",
    )  # fmt: skip
    parser.add_argument(
        "--skip", metavar="PASS", action="append", default=[], choices=PASSES,
        help=f"Skip a pass of --deep: {', '.join(PASSES)}; repeatable",
    )  # fmt: skip
    parser.add_argument("--yes", action="store_true", help="Run all passes of --deep without asking, even long ones")
    parser.add_argument(
        "--interval",
        metavar="TIME",
        type=option_types.make_quantity_parser("time", "a time from 1 ms to 60 s", 1e-3, 60.0),
        default=0.05,
        help="Sampling interval (default: 50 ms)",
    )
    advise.add_advice_arguments(parser)
    history_location.add_state_argument(parser)
    parser.add_argument(
        "command", metavar="CMD", nargs=argparse.REMAINDER,
        help="Program and arguments, preferably after --; a nonzero exit status is passed on",
    )  # fmt: skip


def run_command(args: argparse.Namespace) -> int:
    """Run the program and advise on it; returns its exit status if that is not 0, 128 + n after signal n."""
    from advisor.collect.launch import record_program

    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command or not command[0]:
        raise UsageError("no program given; usage: gapwatch run -- CMD (see gapwatch run --help)")
    # Write out what we have written, before the program writes
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    if args.deep and args.from_outside:
        raise UsageError("--deep needs a recording, which --from-outside does not make")
    if args.profile is not None:
        _refuse_unwritable(args.profile, as_folder=not args.from_outside)
    session = None if args.from_outside else _session(command, args)
    recording = record_program(
        session.command if session else command, args.interval, session.variables if session else None
    )
    if session is not None:
        from advisor.collect.recorder.background import await_background

        await_background(session, output.write_messages)
    from advisor.collect import notes  # only now, as what follows: the program had the machine for itself

    if recording.code:
        output.write_messages(notes.describe_exit_status(recording.code))
    status = recording.code if recording.code >= 0 else _SIGNALLED - recording.code
    history_location.connect_history_early(args)
    code = supervision.run_part(
        lambda: run_guarded(lambda: _advise_recording(recording, session, args)), offline=not args.deep
    )
    return status or code


def _session(command: Sequence[str], args: argparse.Namespace) -> Session | None:
    """Return the session that records the program; None, and a sentence why, where that is not possible."""
    from advisor.collect.recorder.session import prepare_session

    try:
        folder = _folder(command, args.profile)
        return prepare_session(command, folder / RECORDING if args.deep else folder, int(args.limit), args.mpi)
    except AdvisorError as error:
        output.write_messages(f"not recorded, only sampled from outside: {error}")
        return None


def _refuse_unwritable(wanted: Path, *, as_folder: bool) -> None:
    """Raise ``UsageError`` if nothing can be written where the user wants it: before the program runs for nothing."""
    if wanted.exists() and (as_folder or wanted.is_dir()):
        raise UsageError(f"--profile: {wanted} is there already; name a new {'directory' if as_folder else 'file'}")
    above = next(folder for folder in wanted.absolute().parents if folder.exists())
    if not as_folder and above != wanted.absolute().parent:
        raise UsageError(f"--profile: can't write {wanted}")
    try:
        tempfile.TemporaryDirectory(prefix=".gapwatch-", dir=above).cleanup()  # root may write anywhere, says access()
    except OSError as error:
        raise UsageError(f"--profile: can't write {wanted}: {error.strerror}") from error


def _folder(command: Sequence[str], wanted: Path | None) -> Path:
    """Return where to record to: where the user wants it, else here, else where temporary files are."""
    if wanted is not None:
        return wanted
    words = [word for word in command if os.path.isfile(word) and not word.startswith("-")]
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", Path((words or command)[-1 if words else 0]).name)[:_NAME_LIMIT]
    folder = Path(f"gapwatch-run-{name or 'program'}-{time.strftime('%Y%m%dT%H%M%S')}")
    if folder.exists():
        folder = folder.with_name(f"{folder.name}-{os.getpid()}")
    return folder if os.access(".", os.W_OK) else Path(tempfile.mkdtemp(prefix="gapwatch-")) / folder


def _advise_recording(recording: Recording, session: Session | None, args: argparse.Namespace) -> int:
    """Advise on what was recorded; on what was sampled from outside where nothing was. Returns the exit code."""
    from advisor.collect.recorder.session import finish_session

    missing = finish_session(session) if session else None
    if session is None or missing:
        if missing:
            output.write_messages(f"only sampled from outside: {missing}")
            if args.deep and session is not None:
                with suppress(OSError):
                    session.folder.parent.rmdir()  # of which nothing is left: the samples take its place
        _advise_on_samples(recording, args)
        return 0
    folder = session.folder
    if args.deep:
        folder = _go_deep(recording, session, args)
    machine = f" --machine {shlex.quote(args.machine)}" if args.machine else ""
    output.write_messages(f"recorded into {folder}; gapwatch advise{machine} reads it again")
    study = advise.study_runs([folder], args, history_location.open_history(args))
    advise.deliver_advice(fill_commands(study.advice, [folder]), study.earlier, args)
    return 0


def _go_deep(recording: Recording, session: Session, args: argparse.Namespace) -> Path:
    """Make further passes over the program; returns the directory of all recordings, on the machine as probed."""
    from advisor.analysis import machines
    from advisor.cli.deep import DeepRun, make_passes
    from advisor.cli.services import HostServices

    folder = session.folder.parent
    if recording.code:
        output.write_messages("no further passes: the program failed")
        return folder
    first = advise.study_runs([session.folder], args, None).advice
    services = HostServices(user_folders.load_host())
    make_passes(
        DeepRun(
            recording.arguments,
            folder,
            first,
            services,
            int(args.limit),
            args.mpi,
            args.machine,
            tuple(args.skip),
            args.yes,
        )
    )
    args.machine = args.machine or (machines.HOST if user_folders.find_probed_model() else None)
    return folder


def _advise_on_samples(recording: Recording, args: argparse.Namespace) -> None:
    from advisor.collect import profiling_tools, table
    from advisor.collect.profile import build_profile
    from advisor.collect.sampled_run import analyze_recording

    found = analyze_recording(recording)
    recordable = args.from_outside  # else the recorder was tried, and failed
    command = profiling_tools.select_next_command(found, recordable=recordable)
    file = _write_profile(build_profile(found, command), args.profile)
    output.write_messages(f"samples saved to {file}; gapwatch advise reads it again")
    study = advise.study_runs([file], args, history_location.open_history(args))
    head = ""
    if args.form == "text":
        from advisor.output import report_text

        head = report_text.render_report(table.build_process_report(found), output.build_page(args)) + "\n"
    advise.deliver_advice(
        fill_commands(profiling_tools.localize_advice(study.advice, found, recordable=recordable), [file]),
        study.earlier, args, head,
    )  # fmt: skip


def _write_profile(profile: Profile, file: Path | None) -> Path:
    """Write the profile where the user wants it, else into this directory, else where temporary files are."""
    from advisor.formats import native_writer

    if file is not None:
        native_writer.write_profile(profile, file)
        return file
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", profile.program).lstrip("-.")[:_NAME_LIMIT] or "program"
    when = re.sub(r"[^0-9T]", "", (profile.started or "")[:19])
    path = Path(f"gapwatch-run-{name}-{when}.json")
    if path.exists():
        path = path.with_name(f"{path.stem}-{os.getpid()}.json")
    try:
        native_writer.write_profile(profile, path)
    except OSError:
        path = Path(tempfile.mkdtemp(prefix="gapwatch-")) / path
        native_writer.write_profile(profile, path)
    return path
