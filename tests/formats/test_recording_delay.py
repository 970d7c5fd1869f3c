"""Threads of a recording: what delayed them, and which of them count."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from advisor.formats.recording.delay import _delay_in_io, _is_busy
from advisor.formats.recording.helper_threads import split_helper_threads
from advisor.formats.recording.recorded_threads import RecordedThread
from advisor.trace.recordings.layout import CALL, RECORD, STATE
from advisor.trace.recordings.processes import ThreadSpan

WRITE, SEND, FLUSH = 1, 2, 3
MS = 1_000_000


def thread(*rows: tuple[int, int, int, int]) -> RecordedThread:
    """Return a thread of calls (function, from, to, 0) and states (0, at, 0, delay so far), all in milliseconds."""
    records = np.zeros(len(rows), dtype=RECORD)
    for record, (function, start, end, queued) in zip(records, rows, strict=True):
        record["kind"] = CALL if function else STATE
        record["function"], record["start_ns"], record["end_ns"] = function, start * MS, end * MS
        record["size"] = queued * MS
    process = SimpleNamespace(functions={WRITE: "write", SEND: "MPI_Send", FLUSH: "fflush"})
    return RecordedThread(cast("Any", process), cast("Any", None), 0, records, records[:0], 0)


def delay_in_io(*rows: tuple[int, int, int, int]) -> float:
    one = thread(*rows)
    return _delay_in_io(one, one.records[one.records["kind"] == STATE])


def test_delay_counts_where_calls_for_output_were_under_way() -> None:
    states = [(0, 1, 0, 0), (0, 50, 0, 30), (0, 100, 0, 70)]
    assert delay_in_io(states[0], (WRITE, 10, 45, 0), states[1], (SEND, 60, 99, 0), states[2]) == pytest.approx(0.030)
    assert delay_in_io(states[0], (SEND, 10, 45, 0), states[1], (WRITE, 60, 65, 0), states[2]) == pytest.approx(0.005)
    assert delay_in_io(states[0], (SEND, 10, 45, 0), states[1], states[2]) == 0.0


def test_a_call_inside_of_another_counts_once_and_one_across_readings_in_both() -> None:
    states = [(0, 1, 0, 0), (0, 50, 0, 49), (0, 100, 0, 99)]
    rows = (states[0], (FLUSH, 10, 70, 0), (WRITE, 20, 60, 0), states[1], states[2])
    assert delay_in_io(*rows) == pytest.approx(0.060)


def lived(cpu_ms: int, queued_ms: int) -> RecordedThread:
    one = thread((0, 1, 0, 0), (0, 1000, 0, queued_ms))
    return replace(one, span=ThreadSpan(1, 0, 0, 1000 * MS, cpu_ms * MS))


def test_a_thread_that_waits_for_a_core_is_as_busy_as_one_that_has_one() -> None:
    assert _is_busy(lived(cpu_ms=30, queued_ms=0))
    assert _is_busy(lived(cpu_ms=10, queued_ms=300)), "it would compute if it were let"
    assert not _is_busy(lived(cpu_ms=10, queued_ms=5))


def test_threads_in_reserve_are_no_processors_but_those_that_work_or_write_are() -> None:
    names = {WRITE: "write", SEND: "MPI_Send", FLUSH: "pthread_cond_wait"}
    process = SimpleNamespace(functions=names)
    first = replace(lived(900, 0), process=cast("Any", process), span=ThreadSpan(0, 0, 0, 1000 * MS, 900 * MS))
    waits = replace(thread((FLUSH, 0, 999, 0)), process=cast("Any", process), span=ThreadSpan(1, 0, 0, 1000 * MS, MS))
    writes = replace(waits, records=thread((WRITE, 0, 999, 0)).records)
    works = replace(waits, span=ThreadSpan(3, 0, 0, 1000 * MS, 100 * MS))
    assert split_helper_threads([first, waits, writes, works]) == ([first, writes, works], [waits])
