"""Locks of OpenMP in a recording: how often they were taken, and for how long they were held."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.proven_imbalance import ACQUISITIONS, CRITICAL_SECONDS, RECORDING_SECONDS
from advisor.formats.recording.call_rows import CallRows
from advisor.formats.recording.recorded_threads import RecordedThread, calls_of, count_calls
from advisor.model.records import FloatArray, IntArray, Note, Profile
from advisor.model.units import format_seconds
from advisor.trace.recordings.layout import COUNTED

if TYPE_CHECKING:
    from advisor.formats.recording.contents import Recording
    from advisor.trace.recordings.processes import Prices

#: Calls that take a lock, of which each place has one: the lock of a critical section or of atomic updates.
_CRITICAL: Final = ("omp_critical", "omp_atomic")
_LOCKS: Final = (*_CRITICAL, "omp_lock")


def count_locks(profile: Profile, recording: Recording) -> dict[str, FloatArray]:
    """Return acquisitions of locks, what recording them took, and CPU seconds inside of critical sections.

    Each by region and processor (R, Q); nothing for a run without any.
    """
    rows = CallRows(profile, recording)
    shape = (len(profile.regions), len(profile.processors))
    found = {name: np.zeros(shape) for name in (ACQUISITIONS, RECORDING_SECONDS, CRITICAL_SECONDS)}
    for thread in recording.threads:
        for name in _LOCKS:
            calls = calls_of(thread, name)
            row, q = rows.find_rows(thread, calls)
            calls, row = calls[row >= 0], row[row >= 0]
            records = thread.records[calls]
            np.add.at(found[ACQUISITIONS][:, q], row, count_calls(records))
            np.add.at(found[RECORDING_SECONDS][:, q], row, price_locks(thread.process.prices, records["tag"]))
            if name in _CRITICAL:
                np.add.at(found[CRITICAL_SECONDS][:, q], row, np.maximum(records["size"], 0) / 1e9)
    return found if found[ACQUISITIONS].any() else {}


def select_locks(thread: RecordedThread) -> IntArray:
    """Return the calls of a thread that take a lock."""
    return calls_of(thread, *_LOCKS)


def price_locks(prices: Prices, more: IntArray) -> FloatArray:
    """Return what it took to record acquisitions, seconds: one and so many ``more`` by record, most only counted."""
    counted = np.maximum(more.astype(np.int64) - COUNTED, 0)
    return prices.record_s + (more - counted) * prices.folded_s + counted * prices.counted_s


def note_locks(recording: Recording) -> Iterator[Note]:
    """Yield how often locks were taken, and how often another thread held them."""
    taken = contended = 0
    held_s = waited_s = 0.0
    for thread in recording.threads:
        records = thread.records[select_locks(thread)]
        records = records[records["end_ns"] > 0]
        calls, busy = count_calls(records), records["request"] > 0
        taken += int(calls.sum())
        contended += int(calls[busy].sum())
        held_s += float(np.maximum(records["size"], 0).sum()) / 1e9
        waited_s += float((records["end_ns"] - records["start_ns"])[busy].sum()) / 1e9
    if taken:
        text = (
            f"locks of OpenMP were taken {taken} times, and held for {format_seconds(held_s)} of CPU time; {contended} "
            f"times another thread had them, and {format_seconds(waited_s)} passed until they were free"
        )
        yield Note("locks", text)
