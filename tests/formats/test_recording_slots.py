"""Threads that come one after the other, or while another one waits for them, are one processor."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from advisor.formats.recording.columns import thread_columns
from advisor.formats.recording.helper_threads import split_helper_threads
from advisor.formats.recording.naming import RegionTable
from advisor.formats.recording.recorded_threads import RecordedThread
from advisor.formats.recording.slots import assign_slots, join_columns
from advisor.trace.events import Kind
from advisor.trace.recordings.layout import CALL, RECORD
from advisor.trace.recordings.processes import ThreadSpan

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from advisor.trace.recordings.processes import Process

MS = 1_000_000
CREATE, JOIN, WRITE, PARALLEL, READ = "pthread_create", "pthread_join", "write", "omp_parallel", "pipe_read"
NAMES = dict(enumerate((CREATE, JOIN, WRITE, PARALLEL, READ), 1))
Call = tuple[str, float, float]


def process(functions: int = 3, pid: int = 1, parent: int = 0) -> Process:
    """Return a process that has called the first ones of the functions."""
    called = {number: name for number, name in NAMES.items() if number <= functions}
    told = {"host": "node", "pid": pid, "parent": parent}
    return cast("Process", SimpleNamespace(functions=called, python={}, objects={}, program="a.out", **told))


def thread(
    of: Process, number: int, begin: float, end: float | None, *calls: Call, created: float | None = None
) -> RecordedThread:
    """Return a thread that lives from ``begin`` to ``end``, with calls (function, from, to); all in milliseconds."""
    numbers = {name: number for number, name in NAMES.items()}
    records = np.zeros(len(calls), dtype=RECORD)
    for record, (function, since, until) in zip(records, calls, strict=True):
        record["kind"], record["function"] = CALL, numbers[function]
        record["start_ns"], record["end_ns"] = int(since * MS), int(until * MS)
    used = None if end is None else int((end - begin) * MS)
    span = ThreadSpan(number, int(begin * MS), 0, None if end is None else int(end * MS), used)
    span = span if created is None else replace(span, created_ns=int(created * MS))
    return RecordedThread(of, span, 0, records, cast("Any", records[:0]), np.zeros((0, 16), np.uint64), 0)


def slots_of(*threads: RecordedThread) -> list[int]:
    return [one.processor for one in assign_slots(threads)]


def steps(of: Process, count: int) -> list[RecordedThread]:
    """A first thread that creates two others in each step of 10 ms, waits for them, and computes 2 ms before that."""
    calls: list[Call] = []
    others = []
    for step in range(count):
        at = 10.0 * step
        calls += [
            (CREATE, at + 2, at + 2.1),
            (CREATE, at + 2.2, at + 2.3),
            (JOIN, at + 2.4, at + 8),
            (JOIN, at + 8.1, at + 9),
        ]
        others += [thread(of, 2 * step + 1, at + 2.05, at + 7.9), thread(of, 2 * step + 2, at + 2.25, at + 8.9)]
    return [thread(of, 0, 0.0, 10.0 * count, *calls), *others]


@pytest.mark.parametrize(("ends", "processors"), [(95.0, 1), (99.0, 1), (150.0, 2)])
def test_a_child_whose_output_is_read_takes_the_place_of_its_parent(ends: float, processors: int) -> None:
    """It may end a little behind its output; one that goes on beside its parent is a processor of its own."""
    first = thread(process(5), 0, 0.0, 200.0, (READ, 10.0, 20.0), (READ, 20.1, 96.0))
    child = replace(thread(process(5, pid=2, parent=1), 0, 12.0, ends), leads_worker=True)
    child = replace(child, span=replace(child.span, number=1))
    assert len(set(slots_of(first, child))) == processors


def test_threads_of_each_step_are_the_same_two_processors() -> None:
    assert slots_of(*steps(process(), 3)) == [0, 0, 2, 0, 2, 0, 2]


def test_threads_created_together_are_two_processors_though_one_ends_before_the_other_begins() -> None:
    of = process()
    first = thread(of, 0, 0, 20, (CREATE, 1, 1.1), (CREATE, 1.2, 1.3), (JOIN, 1.4, 5), (JOIN, 5.1, 9))
    assert slots_of(first, thread(of, 1, 1.05, 3, created=1), thread(of, 2, 4, 8.9, created=1.2)) == [0, 0, 2]


def test_threads_that_begin_in_another_order_than_they_were_created_keep_their_processors() -> None:
    first, *others = steps(process(), 3)
    swapped = [
        replace(one, span=replace(one.span, begin_ns=later.span.begin_ns + 1000, created_ns=int((10 * step + 2) * MS)))
        if step == 1
        else one
        for step, (one, later) in enumerate(zip(others[::2], others[1::2], strict=True))
    ]
    second = [replace(one, span=replace(one.span, created_ns=one.span.begin_ns - MS // 20)) for one in others[1::2]]
    assert slots_of(first, *swapped, *second) == [0, 0, 0, 0, 2, 2, 2]


def test_threads_created_one_after_the_other_are_one_processor() -> None:
    of = process()
    first = thread(of, 0, 0, 20, (CREATE, 1, 1.1), (JOIN, 1.4, 5), (CREATE, 5.2, 5.3), (JOIN, 5.4, 9))
    assert slots_of(first, thread(of, 1, 1.05, 4.9), thread(of, 2, 6, 8.9)) == [0, 0, 0]


def test_a_first_thread_that_works_beside_the_others_is_one_more() -> None:
    of = process()
    first = thread(of, 0, 0, 10, (CREATE, 1, 1.1), (JOIN, 7, 9))
    assert slots_of(first, thread(of, 1, 1.05, 8.9)) == [0, 1]


def test_a_first_thread_that_does_something_else_meanwhile_is_one_more() -> None:
    of = process()
    first = thread(of, 0, 0, 10, (CREATE, 1, 1.1), (WRITE, 1.2, 7), (JOIN, 7.1, 9))
    assert slots_of(first, thread(of, 1, 1.05, 8.9)) == [0, 1]


def test_a_team_of_openmp_leaves_its_processors_between_its_regions() -> None:
    of = process(4)
    first = thread(
        of, 0, 0, 20, (PARALLEL, 1, 5), (CREATE, 6, 6.1), (CREATE, 6.2, 6.3), (JOIN, 6.4, 12), (JOIN, 12.1, 13)
    )
    worker = thread(of, 1, 0.5, 20, (PARALLEL, 1.1, 5))
    assert slots_of(first, worker, thread(of, 2, 6.05, 11.9), thread(of, 3, 6.25, 12.9)) == [0, 1, 0, 1]


def test_teams_that_end_and_begin_anew_as_nested_ones_do_are_the_same_processors() -> None:
    of = process(2)
    first = thread(of, 0, 0, 30, (PARALLEL, 1, 5), (PARALLEL, 6, 10), (PARALLEL, 11, 15))
    teams = [thread(of, n, 5.0 * n - 4, 5.0 * n - 0.5, (PARALLEL, 5.0 * n - 3.9, 5.0 * n - 0.6)) for n in (1, 2, 3)]
    assert slots_of(first, *teams) == [0, 1, 1, 1]


def test_a_thread_that_was_killed_keeps_its_processor() -> None:
    of = process()
    first = thread(of, 0, 0, 30, (CREATE, 1, 1.1), (WRITE, 2, 28))
    assert slots_of(first, thread(of, 1, 1.05, None), thread(of, 2, 10, 12)) == [0, 1, 2]


def test_brief_threads_of_many_steps_are_no_helpers() -> None:
    threads = assign_slots(steps(process(), 200))
    assert split_helper_threads(threads) == (threads, [])


@pytest.mark.parametrize(("written_ms", "helps"), [(1.0, True), (20.0, False)])
def test_a_thread_that_only_writes_a_little_for_others_is_a_helper(written_ms: float, helps: bool) -> None:
    of = process(3)
    worker = thread(of, 1, 0.0, 100.0)
    writer = thread(of, 2, 0.0, 100.0, (WRITE, 50.0, 50.0 + written_ms))
    idle = replace(writer, span=replace(writer.span, end_cpu_ns=int(0.5 * MS)))
    _, helpers = split_helper_threads([worker, idle])
    assert helpers == ([idle] if helps else [])


def events_of(threads: Sequence[RecordedThread]) -> list[tuple[float, str, str]]:
    """Return the events of the first processor: when (ms), what, and the region."""
    regions = RegionTable({})
    mine = [
        thread_columns(one, regions, {}, cast("Any", Members()), alone=False) for one in threads if one.processor == 0
    ]
    found = join_columns(mine[0], mine[1:])
    return [
        (round(time / MS, 2), Kind(kind).name, regions.regions[region].name)
        for time, kind, region in zip(found["time_s"], found["kind"], found["region"], strict=True)
    ]


class Members:
    """No communicators."""

    def partner_ranks(self, _: object, records: npt.NDArray[np.void]) -> npt.NDArray[np.int64]:
        return np.full(len(records), -1)

    communicator_numbers = partner_ranks


def test_the_call_that_waits_ends_where_another_thread_begins() -> None:
    found = events_of(assign_slots(steps(process(), 1)))
    assert found == [
        (0.0, "ENTER", "program"),
        (2.0, "ENTER", "with other threads"),
        (2.0, "ENTER", "pthread_create"),
        (2.05, "LEAVE", "pthread_create"),
        (2.05, "ENTER", "thread"),
        (7.9, "LEAVE", "thread"),
        (7.9, "ENTER", "pthread_join"),
        (8.0, "LEAVE", "pthread_join"),
        (8.1, "ENTER", "pthread_join"),
        (9.0, "LEAVE", "pthread_join"),
        (9.0, "LEAVE", "with other threads"),
        (10.0, "LEAVE", "program"),
    ]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_events_nest_and_follow_each_other(count: int) -> None:
    found = events_of(assign_slots(steps(process(), count)))
    assert [time for time, _, _ in found] == sorted(time for time, _, _ in found)
    open_regions: list[str] = []
    for _, kind, region in found:
        if kind == "ENTER":
            open_regions.append(region)
        else:
            assert open_regions.pop() == region
    assert not open_regions
