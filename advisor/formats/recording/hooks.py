"""Recordings of ``gapwatch run``, in the format ``gapwatch/trace/1`` (see ``docs/formats/recording.md``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.extension.hookspecs import hookimpl

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.model.records import Profile
    from advisor.trace.events import Trace


def read_trace(path: Path) -> Trace:
    """Return the events of the recording in the directory ``path``; raises ``InputError`` for what is damaged."""
    from advisor.formats.recording.assembly import assemble_trace
    from advisor.formats.recording.contents import read_recording

    return assemble_trace(read_recording(path))


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for a directory with process files of the recorder."""
    if not path.is_dir():
        return None
    from advisor.trace.recordings.layout import MAGIC
    from advisor.trace.recordings.processes import process_files

    files = process_files(path)
    if not files:
        return None
    with files[0].open("rb") as file:
        return 1.0 if file.read(len(MAGIC)) == MAGIC.encode() else None


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the run that was recorded into the directory; raises ``InputError`` for what is damaged."""
    from advisor.formats.recording.assembly import assemble_trace
    from advisor.formats.recording.completion import complete_profile
    from advisor.formats.recording.contents import read_recording
    from advisor.trace import handover
    from advisor.trace.profile import from_trace

    recording = read_recording(path)
    trace = handover.keep_trace(path, assemble_trace(recording))
    return complete_profile(from_trace(trace, path, "recording"), recording)


@hookimpl
def advisor_trace(path: Path) -> Trace:
    """Return the events of the recording; raises ``InputError`` for what is damaged."""
    return read_trace(path)
