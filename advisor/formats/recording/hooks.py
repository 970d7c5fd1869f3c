"""Recordings of ``gapwatch run``, in the format ``gapwatch/trace/1`` (see ``docs/formats/recording.md``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.extension.hookspecs import hookimpl

if TYPE_CHECKING:
    from advisor.model.records import Profile
    from advisor.trace.events import Trace


#: Names and endings of the files of a recording.
_NAMES: Final = ("command", "passes.json", "places")
_ENDINGS: Final = (".process", ".records", ".samples", ".registers", ".program")


def read_trace(path: Path) -> Trace:
    """Return the events of the recording at ``path``; raises ``InputError`` for what is damaged."""
    from advisor.formats.recording.assembly import assemble_trace
    from advisor.formats.recording.contents import read_recording

    return assemble_trace(read_recording(_find_folder(path)))


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for a directory with process files of the recorder, and for the files of a recording that is complete.

    The places of its addresses are written last: until then the program may run, and who watches has to wait.
    """
    if path.is_dir():
        return 1.0 if _is_recording(path) else None
    if path.name not in _NAMES and path.suffix not in _ENDINGS:
        return None
    complete = (path.parent / "places").is_file() and _is_recording(path.parent)
    return 1.0 if complete else None


def _is_recording(folder: Path) -> bool:
    from advisor.trace.recordings.layout import MAGIC
    from advisor.trace.recordings.processes import process_files

    files = process_files(folder)
    if not files:
        return False
    with files[0].open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC.encode()


def _find_folder(path: Path) -> Path:
    """Return the directory of the recording that a file of it, or the directory itself, names."""
    return path if path.is_dir() else path.parent


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the run that was recorded into the directory; raises ``InputError`` for what is damaged."""
    from advisor.formats.recording.assembly import assemble_trace
    from advisor.formats.recording.completion import complete_profile
    from advisor.formats.recording.contents import read_recording
    from advisor.trace import events
    from advisor.trace.profile import from_trace

    folder = _find_folder(path)
    recording = read_recording(folder)
    trace = events.keep_trace(folder, assemble_trace(recording))
    return complete_profile(from_trace(trace, folder, "recording"), recording)


@hookimpl
def advisor_trace(path: Path) -> Trace:
    """Return the events of the recording; raises ``InputError`` for what is damaged."""
    return read_trace(path)
