"""What is start-up of a run with devices: loading of code, captures of graphs, waits for what is not in the trace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from advisor.analysis import bounds
from advisor.trace.devices.builder import DeviceTraceBuilder
from advisor.trace.devices.events import Activity, CallRole
from advisor.trace.devices.facts import STARTED_S
from advisor.trace.devices.profile import profile_devices
from advisor.trace.devices.start_up import CAPTURE

if TYPE_CHECKING:
    from advisor.model.records import Profile

MS, US = 1_000_000, 1_000
HERE = Path("run.json")


def launch(builder: DeviceTraceBuilder, at: int, took: int, link: int, name: str, kernel: int, length: int) -> None:
    builder.add_call(at, at + took, "main", CallRole.LAUNCH, "cudaLaunchKernel", link)
    builder.add_activity(kernel, kernel + length, 0, 7, Activity.COMPUTE, name, link=link)


def build(builder: DeviceTraceBuilder) -> Profile:
    builder.end_process(0, "node", 0, HERE)
    profile = profile_devices(builder.build_trace(HERE, "test", "test"), HERE, "test")
    assert profile.devices is not None
    total = sum(float(each.mean()) for each in profile.devices.seconds.values())
    assert total == pytest.approx(profile.actual_s, rel=1e-12)
    return profile


def seconds(profile: Profile, level: str) -> float:
    assert profile.devices is not None
    return float(profile.devices.seconds[level].mean()) * 1e3


def new_builder() -> DeviceTraceBuilder:
    builder = DeviceTraceBuilder()
    builder.begin_process()
    return builder


def test_first_launch_that_loads_code_is_start_up() -> None:
    builder = new_builder()
    for number in range(20):
        at = 10 * MS * number
        took = 5 * MS if number == 10 else 5 * US
        name = "first" if number < 10 else "second"
        launch(builder, at, took, number, name, at + took + 5 * US, MS)
    profile = build(builder)
    assert seconds(profile, "startup") == pytest.approx(5.0, abs=0.2)
    assert seconds(profile, "launches") < 1.0


def test_second_slow_launch_of_a_kernel_loads_nothing() -> None:
    builder = new_builder()
    for number in range(20):
        at = 10 * MS * number
        took = 5 * MS if number == 10 else 5 * US
        launch(builder, at, took, number, "only", at + took + 5 * US, MS)
    assert seconds(build(builder), "startup") < 0.1


def test_capture_of_a_graph_is_start_up() -> None:
    builder = new_builder()
    launch(builder, 0, 5 * US, 1, "kernel", 20 * US, MS)
    builder.add_call(2 * MS, 2 * MS + US, "main", CallRole.RUNTIME, "cudaStreamBeginCapture_v10000")
    for number in range(30):
        at = 2 * MS + 10 * US + 100 * US * number
        builder.add_call(at, at + 5 * US, "main", CallRole.LAUNCH, "cudaLaunchKernel")
    builder.add_call(6 * MS, 6 * MS + US, "main", CallRole.START, "cudaStreamEndCapture_v10000")
    launch(builder, 6 * MS + 10 * US, 5 * US, 2, "kernel", 6 * MS + 20 * US, MS)
    profile = build(builder)
    assert seconds(profile, "startup") == pytest.approx(4.0, abs=0.1)
    assert any(cause.name == CAPTURE for cause in profile.devices.causes)  # type: ignore[union-attr]


def test_activity_that_waits_for_something_unseen_is_not_slow_to_launch() -> None:
    builder = new_builder()
    launch(builder, 0, 5 * US, 1, "kernel", 20 * US, MS)
    launch(builder, 100 * US, 5 * US, 2, "kernel", 41 * MS + 20 * US, MS)
    profile = build(builder)
    assert seconds(profile, "startup") == pytest.approx(40.0, abs=0.1)
    assert seconds(profile, "launches") < 0.1


def test_idle_devices_without_calls_are_not_explained() -> None:
    builder = new_builder()
    for number in range(4):
        builder.add_activity(10 * MS * number, 10 * MS * number + MS, 0, 7, Activity.COMPUTE, "kernel")
    profile = build(builder)
    unknown = [bound.name for bound in bounds.compute_bounds(profile) if bound.seconds is None]
    assert unknown == ["R", "KTCBL", "KTCBLS", "KTCBLSD", "KTCBLSDH"]


def test_time_before_the_first_activity_is_the_host_s_own_or_sets_the_device_up() -> None:
    builder = new_builder()
    builder.add_call(0, MS, "main", CallRole.RUNTIME, "cuModuleGetLoadingMode")
    builder.add_call(600 * MS, 660 * MS, "main", CallRole.ALLOCATE, "cudaMalloc")
    builder.add_call(660 * MS, 670 * MS, "main", CallRole.ALLOCATE, "cudaMallocHost")
    builder.add_call(670 * MS, 680 * MS, "main", CallRole.START, "cuModuleLoad")
    launch(builder, 680 * MS, 5 * US, 1, "kernel", 690 * MS, 310 * MS)
    profile = build(builder)
    assert profile.devices is not None
    facts = profile.devices.facts
    assert facts["lead_s"] == pytest.approx(0.599 + 0.01 - STARTED_S, abs=1e-4)
    assert facts["lead_share"] == pytest.approx(facts["lead_s"])
    assert facts["setup_s"] == facts["setup_share"] == pytest.approx(0.06)
    assert facts["loading_share"] == pytest.approx(0.01)


def test_start_of_a_process_is_nobody_s_lead_and_brief_calls_set_nothing_up() -> None:
    builder = new_builder()
    builder.add_call(0, MS, "main", CallRole.RUNTIME, "cuModuleGetLoadingMode")
    builder.add_call(180 * MS, 180 * MS + 45 * MS, "main", CallRole.ALLOCATE, "cudaMallocHost")
    launch(builder, 225 * MS, 5 * US, 1, "kernel", 226 * MS, 774 * MS)
    profile = build(builder)
    assert profile.devices is not None
    assert profile.devices.facts["lead_s"] == profile.devices.facts["setup_s"] == 0.0


@pytest.mark.parametrize(("context", "length_ms"), [(True, 2.0), (False, 103.0)])
def test_a_wait_for_what_was_issued_before_the_recording_is_no_part_of_the_run(context: bool, length_ms: float) -> None:
    """Without a call that returned at once before it, it may be what sets the device up."""
    builder = new_builder()
    builder.add_call(0, 103 * MS, "main", CallRole.WORK, "step")
    if context:
        builder.add_call(MS // 2, MS // 2 + 5 * US, "main", CallRole.SYNCHRONIZE, "cudaEventSynchronize")
    builder.add_call(MS, 101 * MS, "main", CallRole.SYNCHRONIZE, "cudaDeviceSynchronize")
    launch(builder, 101 * MS + 10 * US, 5 * US, 1, "kernel", 101 * MS + 20 * US, MS)
    builder.add_call(101 * MS + 30 * US, 103 * MS, "main", CallRole.SYNCHRONIZE, "cudaDeviceSynchronize")
    profile = build(builder)
    assert profile.actual_s * 1e3 == pytest.approx(length_ms)
    assert seconds(profile, "synchronizations") == pytest.approx(0.98, abs=0.01)
    assert ("earlier work" in [note.name for note in profile.notes]) == context
    assert profile.devices is not None
    assert profile.devices.facts["sync_calls"] == 1


def gain_of_allocating_once(first_ms: int) -> float:
    builder = new_builder()
    builder.add_call(0, first_ms * MS, "main", CallRole.ALLOCATE, "cudaMalloc")
    at = first_ms * MS
    for number in range(20):
        launch(builder, at + 10 * US, 5 * US, number, "kernel", at + 20 * US, MS)
        builder.add_call(at + 2 * MS, at + 6 * MS, "main", CallRole.ALLOCATE, "cudaMalloc")
        at += 6 * MS
    builder.add_call(at, at + 5 * US, "main", CallRole.LAUNCH, "cudaLaunchKernel", 99)
    builder.add_activity(at + 10 * US, at + MS, 0, 7, Activity.COMPUTE, "kernel", link=99)
    profile = build(builder)
    assert profile.devices is not None
    found = next(each for each in profile.devices.gains if each.change == "allocations")
    assert found.high_s <= profile.actual_s
    return found.expected_s * 1e3


def test_long_allocation_before_the_first_kernel_sets_up_and_stays() -> None:
    assert gain_of_allocating_once(400) == pytest.approx(80.0, abs=1.0)


def test_allocations_between_kernels_are_won_whatever_comes_first() -> None:
    assert gain_of_allocating_once(1) == pytest.approx(81.0, abs=1.0)
