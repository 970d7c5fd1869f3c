"""Threads of a recording: what delayed them, and which of them count."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import advice_samples
import numpy as np
import pytest

from advisor.analysis.disturbance import TAKEN
from advisor.formats.recording import delay
from advisor.formats.recording.delay import _delay_in_io, are_crowded
from advisor.formats.recording.helper_threads import split_helper_threads
from advisor.formats.recording.recorded_threads import RecordedThread
from advisor.model.records import OTHER_PROGRAMS
from advisor.trace.recordings.layout import CALL, RECORD, SAMPLE, STATE
from advisor.trace.recordings.processes import MappedObject, ThreadSpan

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
    return RecordedThread(
        cast("Any", process), cast("Any", None), 0, records, records[:0], np.zeros((0, 16), np.uint64), 0
    )


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


def computing(*cpu_ms: int, ready: bool = False) -> RecordedThread:
    """Return a thread whose CPU clock was read every 100 ms: what it used by then; else it waited, or was ``ready``."""
    ends = [100 * (number + 1) for number in range(len(cpu_ms))]
    one = thread(*((0, end, 0, end - used if ready else 0) for end, used in zip(ends, cpu_ms, strict=True)))
    one.records["cpu_start_ns"] = np.array(cpu_ms) * MS + 1
    samples = np.zeros(0, dtype=SAMPLE)
    return replace(one, samples=samples, span=ThreadSpan(1, 0, 1, 100 * MS * len(cpu_ms), cpu_ms[-1] * MS))


def test_threads_are_crowded_where_more_compute_at_a_time_than_there_are_cores() -> None:
    steady = [computing(*(30 * step for step in range(1, 11)), ready=True) for _ in range(3)]
    assert are_crowded(steady, 2)
    assert not are_crowded(steady, 3)
    assert not are_crowded(steady[:2], 2)


def test_threads_that_wait_or_come_one_after_the_other_take_no_cores() -> None:
    workers = [computing(*(30 * step for step in range(1, 11)), ready=True) for _ in range(2)]
    waiting = computing(*range(1, 11))
    assert not are_crowded([*workers, waiting], 2), "it hands out work, and waits"
    first = [computing(*[min(60 * step, 300) for step in range(1, 11)]) for _ in range(2)]
    later = [computing(*[max(60 * (step - 5), 1) for step in range(1, 11)]) for _ in range(2)]
    assert not are_crowded([*first, *later], 2)
    turns = [computing(*(30 * step for step in range(1, 11))) for _ in range(3)]
    assert not are_crowded(turns, 2), "one at a time has the interpreter"


def test_threads_in_reserve_are_no_processors_but_those_that_work_or_write_are() -> None:
    names = {WRITE: "write", SEND: "MPI_Send", FLUSH: "pthread_cond_wait"}
    process = SimpleNamespace(functions=names)
    lived = thread((0, 1, 0, 0), (0, 1000, 0, 0))
    first = replace(lived, process=cast("Any", process), span=ThreadSpan(0, 0, 0, 1000 * MS, 900 * MS))
    waits = replace(thread((FLUSH, 0, 999, 0)), process=cast("Any", process), span=ThreadSpan(1, 0, 0, 1000 * MS, MS))
    writes = replace(waits, records=thread((WRITE, 0, 999, 0)).records)
    works = replace(waits, span=ThreadSpan(3, 0, 0, 1000 * MS, 100 * MS))
    assert split_helper_threads([first, waits, writes, works]) == ([first, writes, works], [waits])


@pytest.mark.parametrize(
    ("address", "caller", "helps"),
    [
        (0x9000, 0, True),  # in a library that nobody of the program called
        (0x1800, 0, False),
        (0x9000, 0x1800, False),
        (0x9000, 1 << 47 | 3, False),  # in Python
        (0x5800, 0, False),  # in a library that comes with the program
        (0x7800, 0, True),
        (None, 0, False),
    ],
)
def test_a_thread_that_spins_in_a_library_before_it_sleeps_is_a_helper(
    address: int | None, caller: int, helps: bool
) -> None:
    names = {FLUSH: "pthread_cond_wait"}
    paths = ("/home/me/bin/app", "/home/me/lib/libsolve.so", "/usr/lib/libblas.so")
    objects = {begin: MappedObject(begin, begin + 0x1000, 0, path)
               for begin, path in zip((0x1000, 0x5000, 0x7000), paths, strict=True)}  # fmt: skip
    process = cast("Any", SimpleNamespace(functions=names, program=paths[0], objects=objects))
    samples = np.zeros(0 if address is None else 3, dtype=SAMPLE)
    samples["address"], samples["callers"][:, 2] = address or 0, caller
    lived = thread((0, 1, 0, 0), (0, 1000, 0, 0))
    first = replace(lived, process=process, span=ThreadSpan(0, 0, 0, 1000 * MS, 900 * MS))
    spins = replace(
        thread((FLUSH, 0, 999, 0)), process=process, span=ThreadSpan(1, 0, 0, 1000 * MS, 30 * MS), samples=samples
    )
    assert split_helper_threads([first, spins])[1] == ([spins] if helps else [])
    busy = replace(spins, span=ThreadSpan(1, 0, 0, 1000 * MS, 60 * MS))
    assert split_helper_threads([first, busy])[1] == ([busy] if helps else []), "at one place, before its first wait"
    late = replace(busy, samples=samples.copy())
    late.samples["time_ns"] = 500 * MS
    assert not split_helper_threads([first, late])[1], "it works in between"
    around = replace(busy, samples=samples.copy())
    around.samples["address"][-1:] += 0x400
    assert not split_helper_threads([first, around])[1], "it works at several places"
    long = replace(busy, span=ThreadSpan(1, 0, 0, 1000 * MS, 300 * MS))
    assert not split_helper_threads([first, long])[1]


@pytest.mark.parametrize(("program", "helps"), [("/opt/py/bin/python3.11", True), ("/opt/py/bin/app", False)])
def test_packages_beside_an_interpreter_are_no_code_of_the_program(program: str, *, helps: bool) -> None:
    blas = MappedObject(0x5000, 0x6000, 0, "/opt/py/lib/site-packages/numpy.libs/libopenblas.so")
    names = {FLUSH: "pthread_cond_wait"}
    process = cast("Any", SimpleNamespace(functions=names, program=program, objects={0: blas}))
    samples = np.zeros(3, dtype=SAMPLE)
    samples["address"] = 0x5800
    lived = thread((0, 1, 0, 0), (0, 1000, 0, 0))
    first = replace(lived, process=process, span=ThreadSpan(0, 0, 0, 1000 * MS, 900 * MS))
    spins = replace(
        thread((FLUSH, 0, 999, 0)), process=process, span=ThreadSpan(1, 0, 0, 1000 * MS, 30 * MS), samples=samples
    )
    assert split_helper_threads([first, spins])[1] == ([spins] if helps else [])


@pytest.mark.parametrize(("taken_s", "is_told"), [(0.09 * 47.0 * 4, True), (0.049 * 47.0 * 4, False)])
def test_what_others_took_of_shared_cores_is_told(taken_s: float, *, is_told: bool) -> None:
    """The run took 47 s on four cores of one host."""
    table = np.zeros((2, 4))
    table[0, 0] = taken_s
    notes = delay._note_taken(replace(advice_samples.profile(), counts={TAKEN: table}, cores=None), 4)
    assert [note.name for note in notes] == [OTHER_PROGRAMS] * is_told
    assert not is_told or notes[0].text.startswith("other programs had 9.0 % of the cores")
