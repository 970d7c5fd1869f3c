"""Iterations that nobody marked: steps of layers, with warm-up and exceptions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from advisor.trace.devices.builder import DeviceTraceBuilder, HostWork
from advisor.trace.devices.events import Activity, CallRole
from advisor.trace.devices.iterations import find_iterations
from advisor.trace.devices.periods import find_periods
from advisor.trace.devices.profile import profile_devices

if TYPE_CHECKING:
    from advisor.trace.devices.events import DeviceTrace

US = 1_000
HERE = Path("run.json")


class Run:
    """One device whose kernels run one behind the other."""

    def __init__(self) -> None:
        self.builder = DeviceTraceBuilder()
        self.builder.begin_process()
        self.now, self.link = 0, 0

    def launch(self, name: str, length: int = 20, kind: Activity = Activity.COMPUTE) -> None:
        self.link += 1
        self.builder.add_call(self.now, self.now + 5 * US, "main", CallRole.LAUNCH, "cudaLaunchKernel", self.link)
        self.builder.add_activity(
            self.now + 6 * US, self.now + (6 + length) * US, 0, 7, kind, name, link=self.link
        )  # fmt: skip
        self.now += (7 + length) * US

    def step(self, layers: int, *, meets: bool, more: int = 0) -> None:
        self.launch("Memcpy HtoD (Pinned -> Device)", 10, Activity.COPY)
        self.launch("embedding")
        for _ in range(layers):
            for name in ("norm", "gemm", "softmax", "gemm"):
                self.launch(name)
        for number in range(more):
            self.launch(f"metric_{number}")
        self.launch("adam", 40)
        if meets:
            self.launch("Memcpy DtoH (Device -> Pinned)", 2, Activity.COPY)

    def trace(self) -> DeviceTrace:
        self.builder.end_process(0, "node", 0, HERE)
        return self.builder.build_trace(HERE, "test", "test")


def test_steps_are_found_and_not_their_layers() -> None:
    run = Run()
    starts = []
    for _ in range(8):
        starts.append(run.now + 6 * US)
        run.step(12, meets=True)
    limits = find_periods(run.trace())
    assert (limits[:-1] * 1e9).round().tolist() == [start - starts[0] + 6 * US for start in starts]
    assert len(limits) == 9


@pytest.mark.parametrize("seed", range(5))
def test_warm_up_and_single_kernels_do_no_harm(seed: int) -> None:
    random = np.random.default_rng(seed)
    run = Run()
    for number in range(30):  # kernels are tuned
        run.launch(("gemm", f"tuned_{number}")[number % 2], int(random.integers(5, 50)))
    for number in range(12):
        run.step(6, meets=True, more=1 if number % 5 == 3 else 0)
    run.launch("norm")
    limits = find_periods(run.trace())
    assert len(limits) - 1 in (11, 12)
    assert np.ptp(np.diff(limits)[1:-1]) < 100e-6


def test_without_meetings_nothing_is_an_iteration() -> None:
    run = Run()
    for _ in range(8):
        run.step(12, meets=False)
    assert not len(find_periods(run.trace()))


def test_what_does_not_repeat_has_no_period() -> None:
    random = np.random.default_rng(1)
    run = Run()
    for number in random.integers(0, 5, 400).tolist():
        run.launch(f"kernel_{number}")
        if number == 0:
            run.launch("Memcpy DtoH (Device -> Pinned)", 10, Activity.COPY)
    assert not len(find_periods(run.trace()))


def test_profile_says_that_iterations_were_found() -> None:
    run = Run()
    for _ in range(8):
        run.step(12, meets=True)
    profile = profile_devices(run.trace(), HERE, "test")
    assert profile.devices is not None
    assert profile.devices.facts["iterations"] == 8
    assert profile.devices.iterations["compute"].shape == (1, 8)
    assert any(note.name == "iterations found" for note in profile.notes)


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["step 0", "step 1", "step 2", "step 3"], True),
        (["ProfilerStep#12", "ProfilerStep#13", "ProfilerStep#14"], True),
        (["advance"] * 5, True),
        (["aten::mm, op_id = 4", "aten::mm, op_id = 9", "aten::mm, op_id = 12"], False),
        (["FlashAttnFunc, seq = 3, op_id = 4"] * 4, False),
        (["FSDP::pre_forward (blocks.0)", "FSDP::pre_forward (blocks.1)", "FSDP::pre_forward (blocks.2)"], False),
        (["encoder.layer.0", "encoder.layer.1", "encoder.layer.2"], False),
        (["ncclAllReduce"] * 4, False),
    ],
)
def test_marked_ranges_that_are_iterations(names: list[str], found: bool) -> None:
    ranges = [(100 * at, 100 * at + 90, 1, name) for at, name in enumerate(names)]
    assert bool(find_iterations(ranges)) == found


def test_ranges_that_begin_now_and_then_are_no_iterations() -> None:
    starts = [0, 10, 290, 300, 580, 590, 900]
    now_and_then = [(at, at + 8, 1, "einsum") for at in starts]
    steps = [(at, at + 1, 1, f"step {at}") for at in range(0, 900, 100)]
    assert find_iterations(now_and_then) == []
    assert len(find_iterations(now_and_then + steps)) == 9


@pytest.mark.parametrize("optimizes", [True, False])
def test_steps_of_a_host_are_found_by_its_optimizer(optimizes: bool) -> None:
    builder = DeviceTraceBuilder()
    builder.begin_process()
    work, at = [], 0
    for _ in range(8):
        for name in ("aten::linear",) * 6 + ("aten::nll_loss",) + ("AddmmBackward0",) * 6:
            work.append(HostWork(at, at + 50 * US, Activity.COMPUTE, name))
            at += 60 * US
        if optimizes:
            builder.add_call(at, at + 40 * US, "main", CallRole.WORK, "Optimizer.step#SGD.step")
        at += 50 * US
    builder.end_process(0, "node", 0, HERE, work)
    limits = find_periods(builder.build_trace(HERE, "test", "test"))
    assert len(limits) == (9 if optimizes else 0)
