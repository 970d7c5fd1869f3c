"""Changes to small runs with devices whose gain is known, and the facts that ask for them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from advisor.trace.devices.builder import DeviceTraceBuilder, HostWork
from advisor.trace.devices.events import Activity, CallRole, Direction
from advisor.trace.devices.profile import profile_devices

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.model.devices import DeviceUse

MS, US = 1_000_000, 1_000
HERE = Path("run.json")


class Run:
    """One process and one device: the clock of the host, and when the stream is free."""

    def __init__(self) -> None:
        self.builder = DeviceTraceBuilder()
        self.builder.begin_process()
        self.now, self.free, self.link = 0, 0, 0

    def call(self, name: str, role: CallRole, took: int, link: int = -1) -> None:
        self.builder.add_call(self.now, self.now + took, "main", role, name, link)
        self.now += took

    def launch(self, name: str, length: int, *, prepare: int = 0, took: int = 5 * US, grid: float = -1.0) -> None:
        self.now += prepare
        self.link += 1
        self.call("cudaLaunchKernel", CallRole.LAUNCH, took, self.link)
        start = max(self.now + 5 * US, self.free)
        self.free = start + length
        self.builder.add_activity(
            start, self.free, 0, 7, Activity.COMPUTE, name, link=self.link, blocks_per_sm=grid, occupancy=0.5
        )

    def copy(self, way: Direction, length: int, size: int) -> None:
        """Copy as cudaMemcpy does: the host waits."""
        self.link += 1
        start = max(self.now + 5 * US, self.free)
        self.free = start + length
        self.builder.add_activity(
            start, self.free, 0, 7, Activity.COPY, f"memcpy {way.name}", link=self.link, size=size, direction=way,
            pageable=False,
        )  # fmt: skip
        self.call("cudaMemcpy", CallRole.COPY, self.free + 5 * US - self.now, self.link)

    def use(self) -> DeviceUse:
        self.call("cudaDeviceSynchronize", CallRole.SYNCHRONIZE, max(self.free - self.now, 0) + 5 * US)
        self.builder.end_process(0, "node", 0, HERE)
        found = profile_devices(self.builder.build_trace(HERE, "test", "test"), HERE, "test").devices
        assert found is not None
        return found


def gains(use: DeviceUse) -> Mapping[str, float]:
    return {gain.change: gain.expected_s * 1e3 for gain in use.gains}


def test_code_loaded_before_the_run_takes_none_of_its_time() -> None:
    run = Run()
    for number in range(20):
        run.launch(f"kernel {number // 10}", MS, took=30 * MS if number == 10 else 5 * US)
    use = run.use()
    assert gains(use)["startup"] == pytest.approx(30 - 9.9, abs=0.3)
    assert use.facts["loading_share"] == pytest.approx(0.75, abs=0.1)


def test_optimizer_that_launches_once() -> None:
    run = Run()
    for _ in range(5):
        run.launch("gemm", MS)
        run.now = max(run.now, run.free)
        begin = run.now
        for _ in range(100):
            run.launch("vectorized_elementwise_kernel", 2 * US, prepare=20 * US)
        run.builder.add_call(begin, run.now, "main", CallRole.WORK, "Optimizer.step#Adam.step")
    use = run.use()
    assert use.facts["optimizer_launches"] == 100
    assert use.facts["prepare_share"] == pytest.approx(0.8, abs=0.01)
    assert gains(use)["optimizer"] == pytest.approx(10.0, rel=0.05)


def test_data_that_stay_on_the_device() -> None:
    run = Run()
    for _ in range(10):
        run.copy(Direction.TO_DEVICE, 2 * MS, 1 << 24)
        run.launch("advance", MS)
        run.copy(Direction.TO_HOST, 2 * MS, 1 << 24)
    use = run.use()
    assert use.facts["round_trips_per_kernel"] == 1.0
    assert gains(use)["resident"] == pytest.approx(0.8 * 32, rel=0.05)


def test_values_that_are_not_read() -> None:
    run = Run()
    for _ in range(10):
        run.launch("advance", MS)
        run.copy(Direction.TO_HOST, 2 * US, 8)
        run.now += 200 * US
    use = run.use()
    assert use.facts["value_reads"] == 10
    assert gains(use)["reads"] == pytest.approx(2.0, rel=0.3)


def test_kernels_that_do_not_fill_the_device() -> None:
    run = Run()
    for _ in range(10):
        run.launch("solver", MS, grid=0.25)
        run.launch("gemm_sgemm", MS, grid=4.0)
    use = run.use()
    assert use.facts["small_grid_share"] == pytest.approx(0.5)
    assert use.facts["plain_matrix_share"] == pytest.approx(0.5)

    assert use.peak_s is not None
    assert float(use.peak_s[0]) * 1e3 == pytest.approx(2.5 + 5.0)
    assert gains(use)["grids"] == pytest.approx(0.5 * 7.5, rel=0.01)
    assert gains(use)["matrix_units"] == pytest.approx(0.55 * 10, rel=0.01)


def test_products_of_types_that_only_matrix_units_know_are_not_plain() -> None:
    run = Run()
    run.launch("ampere_sgemm_128x64_nn", MS)
    run.launch("void cutlass::device_kernel<grouped_gemm::fp8_ptp128c::GemmKernel>(...)", MS)
    run.launch("nvjet_hsh_128x256_64x4_gemm", MS)
    run.launch("gemm_kernel<__nv_bfloat16, float>", MS)
    assert run.use().facts["plain_matrix_share"] == pytest.approx(0.25)


def test_kernels_by_element_that_one_could_do() -> None:
    run = Run()
    for _ in range(10):
        run.launch("attention", MS, grid=4.0)
        run.launch("elementwise_kernel<mul>", MS, grid=4.0)
        run.launch("elementwise_kernel<add>", MS, grid=4.0)
    use = run.use()
    assert use.facts["fusible_share"] == pytest.approx(1 / 3)
    assert gains(use)["fusion"] == pytest.approx(5.0, rel=0.01)


def test_frames_that_are_compiled_again() -> None:
    run = Run()
    for number in range(4):
        run.builder.add_call(run.now, run.now + MS, "main", CallRole.WORK, f"Torch-Compiled Region: 0/{number}")
        run.now += MS
        run.launch("kernel", MS)
    assert run.use().facts["recompilations"] == 3


def test_graphs_are_not_launched_from_graphs() -> None:
    run = Run()
    for _ in range(10):
        run.link += 1
        run.call("cudaGraphLaunch", CallRole.LAUNCH, 500 * US, run.link)
        for _ in range(5):
            start = max(run.now, run.free)
            run.free = start + 20 * US
            run.builder.add_activity(start, run.free, 0, 7, Activity.COMPUTE, "kernel", link=run.link)
    use = run.use()
    assert use.facts["graph_kernel_share"] == 1.0
    assert gains(use).get("launches", 0.0) == 0.0


def test_small_communications_put_together() -> None:
    run = Run()
    for _ in range(5):
        run.launch("gemm", MS)
        for _ in range(20):
            run.link += 1
            run.call("cudaLaunchKernel", CallRole.LAUNCH, 5 * US, run.link)
            start = max(run.now, run.free)
            run.free = start + 100 * US
            run.builder.add_activity(
                start, run.free, 0, 7, Activity.COMMUNICATION, "ncclAllReduce", link=run.link, size=4096
            )
    assert gains(run.use())["buckets"] == pytest.approx(0.8 * 10, rel=0.02)


def test_code_compiled_before_work_of_a_host() -> None:
    builder = DeviceTraceBuilder()
    builder.begin_process()
    builder.add_call(0, 20 * MS, "main", CallRole.START, "compile_fx")
    work = [HostWork(at * MS, (at + 5) * MS, Activity.COMPUTE, "aten::mm") for at in (20, 25, 30)]
    builder.end_process(0, "node", 0, HERE, work)
    use = profile_devices(builder.build_trace(HERE, "test", "test"), HERE, "test").devices
    assert use is not None
    assert sum(seconds.sum() for seconds in use.seconds.values()) == pytest.approx(0.035, abs=1e-9)


def test_copies_to_the_device_are_hidden_as_far_as_it_computes() -> None:
    run = Run()
    for _ in range(20):
        run.link += 1
        start = max(run.now + 5 * US, run.free)
        run.free = start + 10 * MS
        run.builder.add_activity(
            start, run.free, 0, 7, Activity.COPY, "weights", link=run.link, size=1 << 26,
            direction=Direction.TO_DEVICE, pageable=False,
        )  # fmt: skip
        run.call("cudaMemcpyAsync", CallRole.COPY, 5 * US, run.link)
        run.launch("gemm", 1 * MS)
    use = run.use()
    gains = {gain.change: gain.expected_s for gain in use.gains}
    assert gains["copies"] == pytest.approx(0.020, abs=0.003)
    assert gains["resident"] == pytest.approx(0.8 * 0.180, rel=0.05)
    assert use.facts["upload_ratio"] == pytest.approx(9.5, rel=0.01)


def test_launches_that_wait_for_room_in_the_queue_wait_for_the_device() -> None:
    run = Run()
    for number in range(60):
        took = 5 * US
        if number >= 20:  # the queue is full
            took = max(run.free - 20 * MS - run.now, 5 * US)
        run.launch("gemm", 1 * MS, took=took)
    gains = {gain.change: gain.expected_s for gain in run.use().gains}
    assert gains.get("launches", 0.0) == pytest.approx(0.0, abs=1e-4)


def test_copies_of_managed_memory_move_with_the_kernel_that_faults() -> None:
    """They have no call: at their recorded times they would hold up a run whose kernel takes half as long."""
    run = Run()
    run.launch("kernel", 200 * MS, grid=0.1)
    for at in range(10, 240, 5):
        way = Direction.TO_DEVICE if at < 200 else Direction.TO_HOST
        run.builder.add_activity(
            at * MS,
            (at + 1) * MS,
            0,
            9,
            Activity.COPY,
            "memcpy managed memory",
            size=1 << 16,
            direction=way,
            pageable=False,
        )
    use = run.use()
    assert use.facts["longest_kernel_share"] == 1.0
    assert gains(use)["grids"] == pytest.approx(0.5 * 0.9 * 200, rel=0.02)
