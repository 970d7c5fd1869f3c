"""Seconds of devices by level, on small runs whose every second is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from advisor.analysis import bounds, gaps, quality
from advisor.model.devices import DEVICE_GAPS
from advisor.model.errors import InputError
from advisor.trace.devices import naming, replay, run_graph
from advisor.trace.devices.builder import DeviceTraceBuilder
from advisor.trace.devices.events import Activity, CallRole
from advisor.trace.devices.intervals import find_covering, merge_intervals
from advisor.trace.devices.profile import profile_devices
from advisor.trace.devices.replay import GraphTimer

if TYPE_CHECKING:
    from advisor.model.records import Profile

MS = 1_000_000
HERE = Path("run.json")


def add_step(builder: DeviceTraceBuilder, at: int, length: int, link: int, name: str = "kernel") -> None:
    """Launch a kernel at ``at`` ms (10 us on the host) that begins at once and takes ``length`` ms."""
    builder.add_call(at * MS, at * MS + 10_000, "main", CallRole.LAUNCH, "cudaLaunchKernel", link)
    begin = at * MS + 10_000
    kind = naming.classify_activity(name)
    group = name if kind == Activity.COMMUNICATION else ""
    builder.add_activity(begin, begin + length * MS, 0, 7, kind, name, link=link, group=group)


def build(*ranks: DeviceTraceBuilder) -> Profile:
    (builder,) = ranks
    return profile_devices(builder.build_trace(HERE, "test", "test"), HERE, "test")


def seconds_of(profile: Profile) -> dict[str, list[float]]:
    assert profile.devices is not None
    rounded = {name: np.round(each * 1e3, 6) for name, each in profile.devices.seconds.items()}
    return {name: each.tolist() for name, each in rounded.items() if each.any()}


def check_closure(profile: Profile) -> None:
    use = profile.devices
    assert use is not None
    total = np.sum(list(use.seconds.values()), axis=0)
    assert np.abs(total - profile.actual_s).max() <= 1e-9 * profile.actual_s
    known = bounds.compute_bounds(profile)
    found = gaps.attribute_gaps(profile, known)
    first = next(bound.seconds for bound in known if bound.seconds is not None)
    assert first + sum(gap.seconds for gap in found) == pytest.approx(profile.actual_s, rel=1e-9)
    for gap in found:
        for shares in (gap.regions, gap.processors, gap.iterations):
            assert sum(share.seconds for share in shares) == pytest.approx(gap.seconds, abs=1e-12)


def test_host_work_between_kernels_is_the_hosts() -> None:
    builder = DeviceTraceBuilder()
    builder.begin_process()
    add_step(builder, 0, 10, 1)
    add_step(builder, 30, 10, 2)
    builder.end_process(0, "node", 0, HERE)
    profile = build(builder)
    check_closure(profile)
    # 10 us before the first kernel is start-up; the second launch's 10 us are part of the launches
    assert seconds_of(profile) == {"compute": [20.0], "launches": [0.01], "host": [19.99], "startup": [0.01]}


def test_idle_time_after_a_wait_is_the_waits() -> None:
    builder = DeviceTraceBuilder()
    builder.begin_process()
    add_step(builder, 0, 10, 1)
    builder.add_call(1 * MS, 10 * MS + 20_000, "main", CallRole.SYNCHRONIZE, "cudaDeviceSynchronize")
    builder.add_call(10 * MS + 120_000, 10 * MS + 130_000, "main", CallRole.LAUNCH, "cudaLaunchKernel", 2)
    builder.add_activity(10 * MS + 130_000, 20 * MS, 0, 7, Activity.COMPUTE, "kernel", link=2)
    builder.end_process(0, "node", 0, HERE)
    profile = build(builder)
    check_closure(profile)
    assert seconds_of(profile) == {
        "compute": [19.87], "synchronizations": [0.12], "startup": [0.01],
    }  # fmt: skip


def test_late_device_makes_the_others_wait_in_communication() -> None:
    builder = DeviceTraceBuilder()
    for rank, length in ((0, 10), (1, 16)):
        builder.begin_process()
        builder.add_call(0, 10_000, "main", CallRole.LAUNCH, "cudaLaunchKernel", 1)
        builder.add_activity(0, length * MS, 0, 7, Activity.COMPUTE, "kernel", link=1)
        builder.add_call(20_000, 30_000, "main", CallRole.LAUNCH, "cudaLaunchKernel", 2)
        name = "ncclDevKernel_AllReduce_Sum_f32"
        builder.add_activity(length * MS, 20 * MS, 0, 9, Activity.COMMUNICATION, name, link=2, group="world")
        builder.end_process(rank, "node", 0, HERE)
    profile = build(builder)
    check_closure(profile)
    assert seconds_of(profile) == {"compute": [10.0, 16.0], "communication": [4.0, 4.0], "imbalance": [6.0, 0.0]}
    (gain,) = [gain for gain in profile.devices.gains if gain.change == "imbalance"]  # type: ignore[union-attr]
    assert gain.expected_s == pytest.approx(0.003)


def test_communication_without_partners_is_not_told_from_imbalance() -> None:
    builder = DeviceTraceBuilder()
    builder.begin_process()
    builder.ranks_expected = 8
    add_step(builder, 0, 10, 1)
    add_step(builder, 10, 10, 2, "ncclDevKernel_AllReduce_Sum_f32")
    builder.end_process(0, "node", 0, HERE)
    profile = build(builder)
    check_closure(profile)
    known = bounds.compute_bounds(profile)
    assert [bound.name for bound in known if bound.seconds is None] == ["R", "KTC"]
    merged = next(gap for gap in gaps.attribute_gaps(profile, known) if gap.name == "communication+imbalance")
    assert merged.seconds == pytest.approx(0.01, rel=1e-2)
    grade = quality.grade_profile(profile, known, ())
    assert grade.letter == "B"
    assert any(note.name == "ranks missing" for note in grade.notes)


@pytest.mark.parametrize("computes", [True, False])
def test_what_lies_between_communications_alone_is_not_known(computes: bool) -> None:
    builder = DeviceTraceBuilder()
    builder.begin_process()
    for number in range(3):
        add_step(builder, 40 * number, 10, number, "ncclDevKernel_AllReduce_Sum_f32")
    if computes:
        add_step(builder, 20, 10, 7)
    builder.end_process(0, "node", 0, HERE)
    assert ("kernels missing" in [note.name for note in build(builder).notes]) != computes


def test_clocks_that_differ_are_aligned_by_communication() -> None:
    builder = DeviceTraceBuilder()
    for rank, ahead in ((0, 0), (1, 50 * MS)):
        builder.begin_process()
        builder.add_activity(ahead, ahead + 10 * MS, 0, 7, Activity.COMPUTE, "kernel")
        for number in range(4):
            begin = ahead + (10 + 4 * number) * MS
            builder.add_activity(begin, begin + 2 * MS, 0, 9, Activity.COMMUNICATION, "ncclAllReduce", group="world")
        builder.end_process(rank, f"node{rank}", 0, HERE)
    profile = build(builder)
    check_closure(profile)
    assert profile.actual_s == pytest.approx(0.024)
    assert any(note.name == "clocks aligned" for note in profile.notes)
    assert "imbalance" not in seconds_of(profile)


def test_two_traces_of_one_rank_are_refused() -> None:
    builder = DeviceTraceBuilder()
    for _ in range(2):
        builder.begin_process()
        add_step(builder, 0, 10, 1)
        if _ == 0:
            builder.end_process(0, "node", 0, HERE)
    with pytest.raises(InputError, match="another trace of rank 0"):
        builder.end_process(0, "node", 0, HERE)


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("cudaLaunchKernel", CallRole.LAUNCH),
        ("hipGraphLaunch", CallRole.LAUNCH),
        ("cuLaunchKernelEx", CallRole.LAUNCH),
        ("cudaStreamSynchronize", CallRole.SYNCHRONIZE),
        ("hipEventSynchronize", CallRole.SYNCHRONIZE),
        ("cudaMemcpyAsync", CallRole.COPY),
        ("hipMalloc", CallRole.ALLOCATE),
        ("cudaFree", CallRole.ALLOCATE),
        ("cuModuleLoadData", CallRole.START),
        ("cudaEventQuery", CallRole.RUNTIME),
        ("MPI_Allreduce", CallRole.COMMUNICATE),
        ("MPI_Init", CallRole.START),
        ("MPI_Comm_rank", CallRole.WORK),
        ("main", CallRole.WORK),
        ("current", CallRole.WORK),
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", CallRole.LOAD_DATA),
        ("fread", CallRole.INPUT_OUTPUT),
    ],
)
def test_calls_are_told_by_their_names(name: str, role: CallRole) -> None:
    assert naming.classify_call(name) == role


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Memcpy HtoD (Pageable -> Device)", Activity.COPY), ("[CUDA memcpy DtoH]", Activity.COPY),
        ("Memset (Device)", Activity.COPY), ("ncclDevKernel_AllReduce_Sum_f32", Activity.COMMUNICATION),
        ("volta_sgemm_128x64_nn", Activity.COMPUTE), ("memory_bound_kernel", Activity.COMPUTE),
    ],
)  # fmt: skip
def test_activities_are_told_by_their_names(name: str, kind: Activity) -> None:
    assert naming.classify_activity(name) == kind


def test_intervals() -> None:
    merged = merge_intervals(np.array([5.0, 0.0, 1.0, 7.0]), np.array([6.0, 2.0, 3.0, 7.0]))
    assert (merged.start_s.tolist(), merged.end_s.tolist()) == ([0.0, 5.0], [3.0, 6.0])
    assert merged.hold_moments(np.array([-1.0, 0.0, 2.9, 3.0, 5.5])).tolist() == [False, True, True, False, True]
    starts, ends = np.array([0.0, 1.0, 4.0, 9.0]), np.array([8.0, 3.0, 5.0, 10.0])
    assert find_covering(starts, ends, np.array([0.5, 2.0, 3.5, 4.5, 8.5, 9.5])).tolist() == [0, 1, 0, 2, -1, 3]


def test_all_gaps_have_words() -> None:
    from advisor.output import wording

    assert set(DEVICE_GAPS) <= set(wording.GAPS)


def test_replay_gives_recorded_times_where_calls_take_none() -> None:
    """Traces in whole microseconds hold calls and kernels without a length, and several at one moment."""
    builder = DeviceTraceBuilder()
    builder.begin_process()
    random = np.random.default_rng(11)
    at, free = 0, 0
    for link in range(400):
        at += int(random.integers(0, 3)) * 1000
        length = int(random.integers(0, 2)) * 1000
        builder.add_call(at, at + length, "main", CallRole.LAUNCH, "cudaLaunchKernel", link)
        start = max(at + length, free if link % 3 else 0)
        free = start + int(random.integers(0, 4)) * 1000
        builder.add_activity(start, free, 0, link % 3, Activity.COMPUTE, "kernel", link=link)
        at += length
    builder.end_process(0, "node", 0, HERE)
    trace = builder.build_trace(HERE, "test", "test")
    graph = run_graph.build_graph(trace, trace.activities.start_s)
    assert GraphTimer(graph).time_graph(graph) == pytest.approx(trace.end_s, rel=1e-9)


def test_compiled_steps_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba", reason="numba is not installed")
    builder = DeviceTraceBuilder()
    for rank in range(2):
        builder.begin_process()
        for step in range(50):
            add_step(builder, 12 * step + rank, 10, step)
        builder.end_process(rank, "node", 0, HERE)
    trace = builder.build_trace(HERE, "test", "test")
    graph = run_graph.build_graph(trace, trace.activities.start_s)
    plain = GraphTimer(graph).time_graph(graph)
    monkeypatch.setattr(replay, "is_worth_compiling", lambda size, **limits: True)
    assert GraphTimer(graph).time_graph(graph) == plain == pytest.approx(trace.end_s)


@pytest.mark.parametrize(("apart", "refused"), [(5 * MS, False), (500 * MS, True)])
def test_recordings_of_several_runs_are_no_ranks_of_one(apart: int, refused: bool) -> None:
    builder = DeviceTraceBuilder()
    for rank in range(2):
        builder.begin_process()
        for at in (0, 10):
            start = rank * apart + at * MS
            builder.add_activity(start, start + 5 * MS, 0, 7, Activity.COMPUTE, "gemm")
        builder.end_process(rank, "node", 0, Path("run.json"))
    trace = builder.build_trace(Path("run.json"), "test", "test")
    if not refused:
        profile_devices(trace, Path("run.json"), "test")
        return
    with pytest.raises(InputError, match="several runs"):
        profile_devices(trace, Path("run.json"), "test")
