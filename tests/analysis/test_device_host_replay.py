"""Processes whose own threads compute in place of devices: the graph of their operators and of gloo's communication."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from advisor.trace.devices.builder import DeviceTraceBuilder, HostWork
from advisor.trace.devices.collectives import find_waiting, match_operations
from advisor.trace.devices.events import Activity, DeviceTrace
from advisor.trace.devices.profile import profile_devices
from advisor.trace.devices.replay import GraphTimer
from advisor.trace.devices.run_graph import build_graph

US, MS = 1_000, 1_000_000
Work = tuple[int, int, Activity, str]


def build_trace(ranks: list[list[Work]]) -> DeviceTrace:
    """Return the trace of processes that did this work, times in nanoseconds."""
    builder = DeviceTraceBuilder()
    for rank, work in enumerate(ranks):
        builder.begin_process()
        builder.end_process(
            rank, None, 0, Path("x"), [HostWork(*each) for each in sorted(work, key=lambda each: each[0])]
        )
    return builder.build_trace(Path("x"), "", "test")


def replay(trace: DeviceTrace) -> float:
    graph = build_graph(trace, find_waiting(trace, match_operations(trace)))
    return GraphTimer(graph).time_graph(graph)


def find_gains(trace: DeviceTrace) -> dict[str, float]:
    use = profile_devices(trace, Path("x"), "test").devices
    assert use is not None
    return {gain.change: gain.expected_s * 1e3 for gain in use.gains}


def make_steps(slow: int, late: int, steps: int = 10) -> list[list[Work]]:
    """Return the work of a rank that computes 10 ms a step and of one that computes longer.

    The thread that communicates notes its end ``late`` nanoseconds after the process of the first rank goes on.
    """
    first: list[Work] = []
    second: list[Work] = []
    for step in range(steps):
        at = step * (slow + 2 * MS)
        first.append((at, at + 10 * MS, Activity.COMPUTE, "aten::mm"))
        second.append((at, at + slow, Activity.COMPUTE, "aten::mm"))
        done = at + slow + 2 * MS
        first.append((at + 10 * MS, done + late, Activity.COMMUNICATION, "gloo:all_reduce"))
        second.append((at + slow, done, Activity.COMMUNICATION, "gloo:all_reduce"))
    return [first, second]


@pytest.mark.parametrize("late", [0, 3 * MS])
def test_a_process_waits_for_a_communication_whose_end_is_noted_late(late: int) -> None:
    gains = find_gains(build_trace(make_steps(50 * MS, late)))
    assert gains["imbalance"] == pytest.approx(10 * 20, rel=0.03)


def test_a_communication_behind_computation_is_not_waited_for() -> None:
    work: list[Work] = []
    for step in range(10):
        at = step * 12 * MS
        work.append((at, at + 5 * MS, Activity.COMPUTE, "aten::mm"))
        work.append((at + 5 * MS, at + 11 * MS, Activity.COMPUTE, "aten::mm"))
        work.append((at + 1 * MS, at + 12 * MS, Activity.COMMUNICATION, "gloo:all_reduce"))
    trace = build_trace([work, work])
    graph = build_graph(trace, find_waiting(trace, match_operations(trace)))
    assert graph.end_s[trace.activities.kind == Activity.COMMUNICATION] == pytest.approx(
        [step * 0.012 + 0.012 for step in range(10) for _ in range(2)]
    )


def test_operations_that_were_matched_wrongly_do_not_stop_the_replay() -> None:
    """Two threads communicate concurrently: the order of two operations differs between the processes."""
    ranks: list[list[Work]] = [[], []]
    for step in range(40):
        at = step * 5 * MS
        for work in ranks:
            work.extend((at + n * 3 * US, at + n * 3 * US + 2 * US, Activity.COMPUTE, "aten::add_") for n in range(400))
        swapped = step == 20
        ranks[0].append((at + 1300 * US, at + (1400 if swapped else 4000) * US, Activity.COMMUNICATION, "gloo:a"))
        ranks[1].append((at + (1500 if swapped else 1300) * US, at + 4000 * US, Activity.COMMUNICATION, "gloo:a"))
    trace = build_trace(ranks)
    assert replay(trace) == pytest.approx(trace.length_s, rel=1e-9)


def test_threads_of_a_process_communicate_concurrently() -> None:
    ranks: list[list[Work]] = [[], []]
    for step in range(20):
        at = step * 5 * MS
        for work in ranks:
            work.extend((at + n * 20 * US, at + n * 20 * US + 15 * US, Activity.COMPUTE, "aten::mm") for n in range(99))
            work.extend(
                (at + n * 20 * US, at + n * 20 * US + MS, Activity.COMMUNICATION, "gloo:all_reduce") for n in range(99)
            )
    trace = build_trace(ranks)
    assert replay(trace) == pytest.approx(trace.length_s, rel=1e-9)


def test_small_communications_that_were_held_up_count_as_small() -> None:
    ranks: list[list[Work]] = [[], []]
    at = 0
    for number in range(200):
        took = 5 * MS if number % 10 == 9 else 400 * US
        for work in ranks:
            work.append((at, at + 100 * US, Activity.COMPUTE, "aten::mm"))
            work.append((at + 100 * US, at + 100 * US + took, Activity.COMMUNICATION, "gloo:all_reduce"))
        at += 100 * US + took
    gains = find_gains(build_trace(ranks))
    assert gains["buckets"] == pytest.approx(0.8 * (180 * 0.4 + 20 * 5), rel=0.05)
    assert np.isfinite(gains["communication"])


def test_fewer_communications_are_asked_for_less_often() -> None:
    work: list[Work] = []
    for step in range(200):
        at = step * 600 * US
        work.append((at, at + 100 * US, Activity.COMPUTE, "aten::mm"))
        work.append((at + 100 * US, at + 300 * US, Activity.COMPUTE, "c10d::allreduce_"))
        work.append((at + 300 * US, at + 600 * US, Activity.COMMUNICATION, "gloo:all_reduce"))
    gains = find_gains(build_trace([work, work]))
    assert gains["buckets"] == pytest.approx(0.8 * 200 * (0.2 + 0.3), rel=0.02)


def test_fewer_communications_wait_less_often() -> None:
    """Now one process is late and now the other: with five pieces in one they wait once for five of them."""
    ranks: list[list[Work]] = [[], []]
    at = 0
    for number in range(200):
        for work, delay in zip(ranks, (0, MS) if number % 2 else (MS, 0), strict=True):
            work.append((at, at + MS + delay, Activity.COMPUTE, "aten::mm"))
            work.append((at + MS + delay, at + 2 * MS + 100 * US, Activity.COMMUNICATION, "gloo:all_reduce"))
        at += 2 * MS + 100 * US
    gains = find_gains(build_trace(ranks))
    assert 16 + 100 * 0.4 < gains["buckets"] < 16 + 100


def test_elements_of_tensors_are_read_at_once() -> None:
    work: list[Work] = []
    at = 0
    for _ in range(10):
        work.append((at, at + 2 * MS, Activity.COMPUTE, "aten::linear"))
        at += 2 * MS
        for _ in range(100):  # an element is selected and taken, Python adds it up
            work.append((at + 3 * US, at + 5 * US, Activity.COMPUTE, "aten::select"))
            work.append((at + 6 * US, at + 7 * US, Activity.COMPUTE, "aten::item"))
            at += 8 * US
        work.append((at, at + 5 * US, Activity.COMPUTE, "aten::select"))  # a row, of which no element is taken
        at += 5 * US
    trace = build_trace([work])
    use = profile_devices(trace, Path("x"), "test").devices
    assert use is not None
    assert use.facts["element_share"] == pytest.approx(10 * 0.8 / (10 * 2.805), rel=0.03)
    assert find_gains(trace)["elements"] == pytest.approx(0.95 * 10 * 0.8, rel=0.03)
