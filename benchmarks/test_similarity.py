"""What an executed instruction costs on the oracle machine: four kernels of 45 to 90 million, start-up apart.

Beside its time each benchmark holds: ns an instruction of wall time, and of the tracer's CPU time; how many times as
long as the program itself that is, and how much of it in CPU time is the tracer (the emulator that reports every
access) and the scheduler; and the memory. The paper's tools took 400 to 600 times as long as the program.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from advisor.support.native_tools import find_compiler, find_plugin_version, find_qemu
from advisor_similarity.parallelism import observe_program
from advisor_similarity.qemu_tracing import TracePlan

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture

ROOT = Path(__file__).resolve().parents[1]
WORKLOADS = ROOT / "examples" / "workloads"
REPORTING = "reporting.so"
KERNELS = {"matmul": ("200",), "triad": ("1000000", "10"), "cg": ("100", "60"), "quicksort": ("300000",)}
SMALL = {"matmul": ("5",), "triad": ("5", "1"), "cg": ("5", "1"), "quicksort": ("5",)}
MOST_MB = 256
pytestmark = pytest.mark.skipif(
    find_compiler() is None or shutil.which("qemu-x86_64") is None or os.uname().machine != "x86_64",
    reason="needs a C compiler and qemu-x86_64: apt-get install gcc qemu-user",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("programs")
    subprocess.run(["make", "-s", "-C", str(WORKLOADS), f"TO={out}"], check=True, timeout=120)
    headers = ROOT / "plugins" / "advisor_similarity" / "tracer"
    version = f"-DQEMU_PLUGIN_API={find_plugin_version(find_qemu('x86_64'))}"
    source = str(ROOT / "benchmarks" / "reporting.c")
    command = [
        str(find_compiler()),
        "-O3",
        "-shared",
        "-fPIC",
        version,
        f"-I{headers}",
        source,
        "-o",
        str(out / REPORTING),
    ]
    subprocess.run(command, check=True, timeout=60)
    return out


def cpu_s(run: Callable[[], object]) -> float:
    """Return the CPU time of the processes that ended in ``run``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def wall_s(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def instructions(program: Path, arguments: tuple[str, ...], cache: Path) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        plan = TracePlan((str(program), *arguments), quiet=True)
        return observe_program(plan, cache, Path(scratch), smoothability=False).workload.instructions


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_on_the_oracle_machine(benchmark: BenchmarkFixture, folder: Path, name: str) -> None:
    program = folder / name
    instructions(program, SMALL[name], folder)  # compiles the tracer, and keeps what was decoded
    counted = instructions(program, KERNELS[name], folder)
    start_s = min(wall_s(lambda: instructions(program, SMALL[name], folder)) for _ in range(3))
    start_cpu_s = min(cpu_s(lambda: instructions(program, SMALL[name], folder)) for _ in range(3))
    benchmark.pedantic(instructions, (program, KERNELS[name], folder), rounds=3)
    quiet = {"stdout": subprocess.DEVNULL, "check": True, "timeout": 60}
    command = [str(program), *KERNELS[name]]
    native_s = min(wall_s(lambda: subprocess.run(command, **quiet)) for _ in range(30))
    empty = [find_qemu("x86_64"), "-cpu", "max", "-plugin", str(folder / REPORTING), *command]
    reporting_s = min(cpu_s(lambda: subprocess.run(empty, **quiet)) for _ in range(3))
    whole_cpu_s = min(cpu_s(lambda: instructions(program, KERNELS[name], folder)) for _ in range(3))
    wall = benchmark.stats.stats.min
    benchmark.extra_info |= {
        "instructions": counted,
        "ns an instruction, wall": round((wall - start_s) / counted * 1e9, 1),
        "ns an instruction, CPU": round((whole_cpu_s - start_cpu_s) / counted * 1e9, 1),
        "start-up s": round(start_s, 3),
        "times the program": round(wall / native_s, 1),
        "of it tracer": round(reporting_s / native_s, 1),
        "of it scheduler": round((whole_cpu_s - reporting_s) / native_s, 1),
        "resident MB": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024,
    }
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss <= MOST_MB << 10
