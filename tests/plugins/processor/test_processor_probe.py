from __future__ import annotations

import math
import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from operation_counts import counted, table

from advisor.analysis import bounds, gaps, machine_rates, machines
from advisor.analysis.machines.records import Cache, Count, Machine, Memory, Number, NumberSource
from advisor.model.errors import UsageError
from advisor.model.reports import Table
from advisor_processor.probe import command, measure, model_document, tools
from advisor_processor.probe.machine_model import build_machine
from advisor_processor.probe.samples import Samples, describe_noise, parse_samples, round_cycles, round_rate

CYCLE = 4e-10
HOST = Machine(
    name="host",
    title="a machine",
    description="for tests",
    sources={"system": NumberSource("the system")},
    cores_per_socket=Count(2, "system"),
    caches={
        "L1": Cache(size=Number(32768, "system"), shared_by=Count(1, "system")),
        "L2": Cache(size=Number(1 << 20, "system"), shared_by=Count(1, "system")),
        "L3": Cache(size=Number(1 << 28, "system"), shared_by=Count(8, "system")),
    },
    memory=Memory(size=Number(1 << 34, "system")),
)


def samples(cycles: float, count: int = 5) -> Samples:
    return Samples((cycles * CYCLE,) * count, (CYCLE,) * count)


#: A core with two pipes for both additions and multiplications, as kernels would see it.
SEEN = {
    "clock": samples(1), "issue": samples(0.26), "fp_add.wide": samples(0.51), "fp_add.narrow": samples(0.5),
    "fp_add.latency": samples(3.7), "fp_mul.wide": samples(0.52), "fp_mul.narrow": samples(0.5),
    "fp_mul.latency": samples(4.05), "fp_fma.wide": samples(0.5), "fp_fma.narrow": samples(0.5),
    "fp_fma.latency": samples(4.02), "fp_div.wide": samples(8.05), "fp_div.narrow": samples(4.01),
    "mixed.latency": samples(7.7), "mixed.wide": samples(0.5),
    "mixed.narrow": samples(0.5), "load.wide": samples(0.5), "load.narrow": samples(0.5),
    "store.wide": samples(1.02), "store.narrow": samples(1.0), "int.narrow": samples(0.26),
    "forward": samples(9.1), "forward.moving": samples(8.6), "L1.latency": samples(5.02), "L1.read": samples(1 / 64),
    "memory.latency": samples(250), "memory.read": samples(0.2), "triad": samples(0.1), "barrier.1": samples(250),
    "barrier.4": samples(1250), "fork_join": samples(2500), "message": samples(800), "transfer": samples(0.3),
}  # fmt: skip


def model() -> Machine:
    return build_machine("seen", HOST, SEEN, measure.choose_working_sets(HOST), 256)


def test_rates_are_what_a_core_can_start_and_latencies_whole_cycles() -> None:
    units = model().units
    assert [(units[u].per_cycle, units[u].latency) for u in ("fp_add", "fp_mul", "fp_fma")] == [(2, 3), (2, 4), (2, 4)]
    assert (units["fp_div"].per_cycle, units["fp_div"].narrow_per_cycle) == (1 / 8, 1 / 4)
    assert (units["load"].latency, units["store"].latency, units["int"].per_cycle) == (5, 5, 4)


def test_additions_in_a_row_may_be_faster_than_after_something_else() -> None:
    units = build_machine(
        "seen", HOST, SEEN | {"fp_add.latency": samples(2.0)}, measure.choose_working_sets(HOST), 256
    ).units
    assert (units["fp_add"].latency, units["fp_add"].chained_latency) == (3, 2)
    assert model().units["fp_add"].chained_latency is None


def test_units_that_are_not_faster_together_share_their_pipes() -> None:
    assert {model().units[name].pipes for name in ("fp_add", "fp_mul", "fp_fma")} == {"floating point"}
    assert model().flops_per_cycle == 2 * 2 * 4
    apart = SEEN | {"mixed.wide": samples(0.25), "mixed.narrow": samples(0.25)}
    other = build_machine("seen", HOST, apart, measure.choose_working_sets(HOST), 256)
    assert other.units["fp_add"].pipes is None
    assert (other.flops_per_cycle or 0) >= 2 * 2 * 4 + 2 * 4


def test_the_cost_of_barriers_goes_through_that_of_one_and_of_all_threads() -> None:
    cost = machine_rates.barrier_s(model(), 4)
    assert cost == pytest.approx(1250 * CYCLE, rel=1e-3)
    synchronization = model().synchronization
    assert synchronization is not None
    assert synchronization.fork_join == pytest.approx(2500 * CYCLE, rel=1e-3)


def test_every_measured_number_says_how_often_and_how_well_it_was_measured() -> None:
    probed = [source.title for name, source in model().sources.items() if name.startswith("probe")]
    assert probed
    assert all("best of 5 samples, middle half within 0.0%" in title for title in probed)


def test_what_could_not_be_measured_is_absent() -> None:
    few = {name: SEEN[name] for name in ("clock", "issue", "fp_add.wide")}
    found = build_machine("seen", HOST, few, measure.choose_working_sets(HOST), 128)
    assert set(found.units) == {"fp_add"}
    assert (found.network, found.synchronization) == (None, None)
    assert found.caches["L1"].latency is None


def test_shared_caches_are_measured_near_the_cache_below() -> None:
    sizes = measure.choose_working_sets(HOST)
    assert sizes == {"L1": 16384, "L2": 1 << 19, "L3": 8 << 20, "memory": 1 << 29}


def put_in_path(folder: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a script stand for a tool: what it prints was recorded from the tool."""
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_caches_are_those_that_lstopo_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Path(__file__).parents[2] / "profiles" / "hwloc" / "two-cores.xml"
    put_in_path(tmp_path, "lstopo-no-graphics", f"cat {shown}", monkeypatch)
    found = tools.add_caches(HOST)
    sizes = {level: (cache.size, cache.shared_by) for level, cache in found.caches.items()}
    assert sizes == {
        "L1": (Number(49152, "lstopo"), Count(1, "lstopo")),
        "L2": (Number(2 << 20, "lstopo"), Count(1, "lstopo")),
        "L3": (Number(260 << 20, "lstopo"), Count(2, "lstopo")),
    }
    assert found.cores_per_socket == HOST.cores_per_socket
    put_in_path(tmp_path, "lstopo-no-graphics", "echo '<topology'", monkeypatch)
    assert tools.add_caches(HOST) == HOST


def test_the_memory_as_likwid_bench_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "Time:\\t\\t\\t1.321522e+00 sec\\nMByte/s:\\t\\t6198.91\\nCycles per update:\\t2.710100\\n"
    put_in_path(tmp_path, "likwid-bench", f'echo "$@" >> {tmp_path}/asked; printf "{said}"', monkeypatch)
    found = tools.measure_bandwidth("load", 256_000_000, 1, 256)
    assert found is not None
    assert 1 / found.best_s == pytest.approx(6198.91e6)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == ["-t load_avx -w N:256MB:1"] * 4
    seen = SEEN | {"read by likwid-bench": found}
    assert SEEN["memory.read"].best_s < found.best_s
    best = build_machine("seen", HOST, seen, measure.choose_working_sets(HOST), 256)
    assert best.memory == model().memory, "the faster of both ways counts"
    put_in_path(tmp_path, "likwid-bench", "echo unknown kernel; exit 1", monkeypatch)
    assert tools.measure_bandwidth("load", 256_000_000, 1, 256) is None


@pytest.mark.parametrize("name", [name for name in machines.list_model_names() if name != "host"])
def test_a_written_model_is_read_back(name: str, tmp_path: Path) -> None:
    machine = machines.load_machine(name)
    file = tmp_path / f"{name}.yaml"
    file.write_text(model_document.render_machine(machine))
    again = machines.to_document(machines.load_machine(file))
    assert rounded(again) == rounded(machines.to_document(machine))


def rounded(value: object) -> object:
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items() if key != "text"}
    return float(f"{value:.4g}") if isinstance(value, float) else value


@given(st.floats(0.02, 1000), st.sampled_from([0.5, 1.0]))
def test_rounding_keeps_times_lower_bounds(cycles: float, step: float) -> None:
    assert round_rate(cycles) >= min(1 / cycles - 0.21, 1 / cycles * 0.9)
    assert step <= round_cycles(cycles, step) <= max(cycles + 0.21 * step, step)


@pytest.mark.parametrize("text", ["", "1\n", "1 nan\n", "0 1\n", "a b\n", "1 2\n3\n"])
def test_what_a_failing_kernel_prints_is_no_sample(text: str) -> None:
    with pytest.raises(ValueError, match=r"no samples|could not convert"):
        parse_samples(text)


def test_noise_is_noticed() -> None:
    noisy = Samples((1e-9, 1.1e-9, 2e-9, 3e-9, 4e-9), (CYCLE,) * 5)
    assert describe_noise([("quiet", samples(1)), ("noisy", noisy)]) == [
        f"noisy: middle half of the samples within {noisy.spread:.0%}"
    ]
    assert math.isclose(noisy.cycles, 1.1e-9 / CYCLE)
    assert math.isclose(noisy.fewest_cycles, 2.5)


@pytest.mark.parametrize("name", ["../x", "host", "", "a b"])
def test_a_model_is_called_as_a_file_can_be(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be called"):
        command.run_probe(name, tmp_path, lambda words, total: nullcontext(lambda done: None))


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    if not any(shutil.which(name) for name in ("cc", "gcc", "clang")):
        pytest.skip("needs a C compiler: apt install gcc")
    folder = tmp_path_factory.mktemp("models")
    steps: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "ROUNDS", 1)
        patch.setattr(measure, "_LARGEST", 1 << 26)
        report = command.run_probe("here", folder, lambda words, total: nullcontext(steps.append))
    assert steps == sorted(steps)
    assert any(isinstance(part, Table) and len(part.rows) > 20 for part in report.parts)
    return machines.load_machine(folder / "here.yaml")


def test_this_machine_can_be_measured(probed: Machine) -> None:
    assert 0.3e9 < (machine_rates.clock_hz(probed) or 0) < 10e9
    assert (machine_rates.peak_flops_per_s(probed, 1) or 0) > 1e8
    assert {"fp_add", "fp_mul", "load", "store", "int"} <= set(probed.units)
    latencies = [probed.caches[level].latency or math.inf for level in sorted(probed.caches)]
    assert latencies == sorted(latencies)


def test_the_peak_is_no_less_than_any_mix_of_units_reaches(probed: Machine) -> None:
    for mix in ({"fp_add": 1e9}, {"fp_fma": 1e9}, {"fp_add": 1e9, "fp_fma": 1e9}, {"fp_add": 1e9, "fp_mul": 1e9}):
        counts = {f"source_ops.{unit}": table(number, number) for unit, number in mix.items()}
        profile = replace(counted(), counts=counts)
        found = {
            gap.name: gap for gap in gaps.attribute_gaps(profile, bounds.compute_bounds(profile, probed), None, probed)
        }
        assert found["A"].seconds >= -1e-12
