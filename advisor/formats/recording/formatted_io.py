"""CPU time of calls that turn numbers into text and back: computation of the C library, and no waiting for files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.analysis.formatted_io import TEXT_SECONDS
from advisor.formats.recording.call_rows import CallRows
from advisor.formats.recording.recorded_threads import RecordedThread, calls_of
from advisor.trace.recordings.layout import CALL, STATE

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.formats.recording.contents import Recording
    from advisor.model.records import FloatArray, Profile

_FORMATTED: Final = re.compile(r"_*(?:isoc\d+_)?v?f?(?:print|scan)f(?:_chk)?")


def count_formatting(profile: Profile, recording: Recording) -> dict[str, FloatArray]:
    """Return the CPU seconds of formatted input and output, of each region (R, Q).

    A thread's CPU clock is read every 50 us at calls; between two readings it is taken to run evenly.
    """
    table = np.zeros((len(profile.regions), len(profile.processors)))
    rows = CallRows(profile, recording)
    for thread in recording.threads:
        names = [name for name in thread.process.functions.values() if _FORMATTED.fullmatch(name)]
        calls = calls_of(thread, *names)
        row, q = rows.find_rows(thread, calls)
        seconds = _compute_cpu(thread, thread.records[calls])
        np.add.at(table[:, q], row[row >= 0], seconds[row >= 0])
    return {TEXT_SECONDS: table}


def _compute_cpu(thread: RecordedThread, records: npt.NDArray[Any]) -> FloatArray:
    """Return the CPU seconds between begin and end of some calls, by the readings of the thread's CPU clock."""
    time, cpu = list_readings(thread)
    begin, end = records["start_ns"].astype(np.float64), records["end_ns"].astype(np.float64)
    ended = records["end_ns"] > 0
    used = np.interp(end, time, cpu) - np.interp(begin, time, cpu)
    return np.where(ended, np.clip(used, 0.0, np.maximum(end - begin, 0.0)), 0.0) / 1e9


def list_readings(thread: RecordedThread) -> tuple[FloatArray, FloatArray]:
    """Return when a thread's CPU clock was read, and what it said, nanoseconds."""
    records, samples = thread.records, thread.samples
    calls, states = records[records["kind"] == CALL], records[records["kind"] == STATE]
    pairs = [
        (calls["start_ns"], calls["cpu_start_ns"]),
        (calls["end_ns"], calls["cpu_end_ns"]),
        (states["start_ns"], states["cpu_start_ns"]),
        (samples["time_ns"], samples["cpu_ns"]),
    ]
    time = np.concatenate([one.astype(np.float64) for one, _ in pairs])
    cpu = np.concatenate([one.astype(np.float64) for _, one in pairs])
    known = (time > 0) & (cpu > 0)
    first = (float(thread.span.begin_ns), float(thread.span.begin_cpu_ns))
    time, cpu = np.r_[first[0], time[known]], np.r_[first[1], cpu[known]]
    order = np.argsort(time, kind="stable")
    return time[order], np.maximum.accumulate(cpu[order])
