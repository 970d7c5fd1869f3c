"""Running a program and loading what was recorded of it: ``gapwatch run`` from Python."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.collect.binaries.executables import find_program
from advisor.collect.launch import INTERVAL_S, record_program
from advisor.collect.recorder.session import DEFAULT_LIMIT_B, Session, finish_session, prepare_session
from advisor.model.errors import AdvisorError, UsageError
from gapwatch.arguments import PathLike, split_command
from gapwatch.runs import Run, load

if TYPE_CHECKING:
    from advisor.collect.records import Recording
    from gapwatch.histories import History


def record(
    command: PathLike | Sequence[PathLike],
    *,
    folder: PathLike | None = None,
    from_outside: bool = False,
    limit_B: int = DEFAULT_LIMIT_B,
    interval_s: float = INTERVAL_S,
    history: History | None = None,
) -> Run:
    """Run a command, no shell between, and return the run with the advice on it.

    Text is split into words as a shell would; a path alone is a program without arguments. The recording stays in
    ``folder``, which must not exist (default: a new directory for temporary files). Where the program cannot be
    recorded, it is sampled from outside. Raises ``AdvisorError`` for a program that cannot be started, or that ends
    with another status than 0.
    """
    words = split_command(command)
    if limit_B <= 0 or interval_s <= 0:
        raise UsageError("limit_B and interval_s are above 0")
    target = Path(tempfile.mkdtemp(prefix="gapwatch-")) / "recording" if folder is None else Path(folder)
    _refuse_unwritable(target)
    session = None if from_outside else _prepare(words, target, limit_B)
    binary = find_program(words, Path())
    recording = record_program(words, interval_s, session.variables if session else None)
    if recording.code:
        how = f"status {recording.code}" if recording.code > 0 else f"signal {-recording.code}"
        raise AdvisorError(f"{words[0]} ended with {how}; nothing is advised on it")
    if session is not None and finish_session(session) is None:
        return load(session.folder, binary=binary, history=history)
    return load(_write_samples(recording, target), binary=binary, history=history)


def _refuse_unwritable(folder: Path) -> None:
    """Raise ``UsageError`` where no folder can be made, before the program runs for nothing."""
    if folder.exists():
        raise UsageError(f"{folder} exists; choose a folder that does not")
    try:
        folder.mkdir(parents=True)
        folder.rmdir()
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}") from error


def _prepare(words: Sequence[str], folder: Path, limit_B: int) -> Session | None:
    """Return the session that records the program, None where it can only be sampled."""
    try:
        return prepare_session(words, folder, limit_B)
    except AdvisorError:
        return None


def _write_samples(recording: Recording, folder: Path) -> Path:
    from advisor.collect import profiling_tools
    from advisor.collect.profile import build_profile
    from advisor.collect.sampled_run import analyze_recording
    from advisor.formats import native_writer

    found = analyze_recording(recording)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "samples.json"
    native_writer.write_profile(build_profile(found, profiling_tools.select_next_command(found)), file)
    return file
