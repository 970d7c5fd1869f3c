"""Collectives that bring each time what everybody has already, by what the recorder has seen of their data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.recording.call_rows import CallRows
from advisor.formats.recording.recorded_threads import calls_of
from advisor.trace.counts import REPEATED_SECONDS
from advisor.trace.recordings.layout import REPEATED

if TYPE_CHECKING:
    from advisor.formats.recording.contents import Recording
    from advisor.model.records import FloatArray, Profile

_BRINGING: Final = ("MPI_Bcast", "MPI_Allgather", "MPI_Bcast_c", "MPI_Allgather_c")


def count_repeated_data(profile: Profile, recording: Recording) -> dict[str, FloatArray]:
    """Return the seconds (R, Q) of collectives that bring the same data as the one before; nothing without any."""
    table = np.zeros((len(profile.regions), len(profile.processors)))
    rows = CallRows(profile, recording)
    for thread in recording.threads:
        calls = calls_of(thread, *_BRINGING)
        records = thread.records[calls]
        same = (records["tag"] == REPEATED) & (records["end_ns"] > records["start_ns"])
        row, q = rows.find_rows(thread, calls[same])
        lasted = (records["end_ns"][same].astype(np.int64) - records["start_ns"][same].astype(np.int64)) / 1e9
        np.add.at(table[:, q], row[row >= 0], lasted[row >= 0])
    return {REPEATED_SECONDS: table} if table.any() else {}
