"""AArch64 programs on the oracle machine: cycles that can be counted by hand, and a program of another machine."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from patience import PATIENCE_S

from advisor.model.errors import UsageError
from advisor.support.native_tools import find_compiler
from advisor_similarity.executed_functions import collect_functions
from advisor_similarity.parallelism import observe_program
from advisor_similarity.qemu_tracing import TracePlan

pytest.importorskip("capstone", reason="needs capstone: pip install 'gapwatch[processor]'")
from advisor_similarity.instructions import make_decoder
from advisor_similarity.steps import LOAD, OPERATE, STORE

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor_similarity.parallelism import Observation

CROSS = "aarch64-linux-gnu-gcc"
WORKLOADS = Path(__file__).parents[3] / "examples" / "workloads"
needs_cross = pytest.mark.skipif(
    find_compiler() is None or shutil.which("qemu-aarch64") is None or shutil.which(CROSS) is None,
    reason="needs qemu-aarch64 and a cross compiler: apt-get install gcc qemu-user gcc-aarch64-linux-gnu",
)

BARE = """
.globl _start
_start:
    mov x19, #1000
    adrp x20, buffer
    add x20, x20, :lo12:buffer
1:
    BODY
    sub x19, x19, #1
    cbnz x19, 1b
    mov x8, #93
    mov x0, #0
    svc #0
.bss
.balign 64
buffer: .skip 256
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def run(cache: Path, tmp_path: Path) -> Callable[..., Observation]:
    def observed(program: Path, *arguments: str) -> Observation:
        folder = tmp_path / "run"
        folder.mkdir()
        return observe_program(TracePlan((str(program), *arguments), quiet=True), cache, folder, smoothability=False)

    return observed


def build(source: Path, out: Path, *flags: str) -> Path:
    subprocess.run([CROSS, "-o", str(out), str(source), *flags], check=True, capture_output=True, timeout=PATIENCE_S)
    return out


@needs_cross
@pytest.mark.parametrize(
    ("body", "cycles", "why"),
    [
        ("add x1, x1, #1", 1003, "one chain, beside that of the counter"),
        ("add x1, x1, #1; add x1, x1, #1", 2000, "a chain of two additions each round"),
        ("add x1, x1, #1; add x2, x2, #1; add x3, x3, #1", 1003, "independent chains take no longer"),
        ("ldr x1, [x20]; add x1, x1, #1; str x1, [x20]", 3000, "load, add and store wait for each other"),
        ("str w1, [x20]; ldr x1, [x20]", 2000, "a wider load waits for a part of it"),
        ("str x1, [x20]; ldr x1, [x20, #8]", 1006, "the bytes behind it do not count"),
        ("ldp x1, x2, [x20]; add x1, x1, x2; str x1, [x20, #8]", 3000, "a pair waits for both"),
        ("adds x1, x1, #1; adc x2, x2, xzr", 1004, "the carry goes to an addition of another chain"),
        ("ldr x1, [x20], #0; add x20, x20, #0", 2000, "moving the base along is an addition"),
        ("fadd d1, d1, d2; fmul d3, d3, d2", 1003, "chains of scalar numbers"),
        ("fadd v1.2d, v1.2d, v2.2d; fmov d1, d3", 1003, "writing the lower half clears the upper one"),
        ("ldadd x1, x1, [x20]", 2000, "an atomic addition loads and stores"),
    ],
)
def test_cycles_that_can_be_counted_by_hand(
    run: Callable[..., Observation], tmp_path: Path, body: str, cycles: int, why: str
) -> None:
    source = tmp_path / "bare.s"
    source.write_text(BARE.replace("BODY", body.replace(";", "\n    ")))
    program = build(source, tmp_path / "bare", "-nostdlib", "-static", "-march=armv8.2-a")
    assert run(program).workload.cycles == pytest.approx(cycles, abs=5), why


@needs_cross
def test_a_whole_program_is_named_counted_and_classified(run: Callable[..., Observation], tmp_path: Path) -> None:
    program = build(WORKLOADS / "triad.c", tmp_path / "triad", "-O2", "-static", "-lm")
    observed = run(program, "2000", "10")
    workload = observed.workload
    assert workload.architecture == "aarch64"
    assert collect_functions(observed.image, observed.traced.templates)[0].name == "main"
    # ten rounds of 2000: one multiply-add each, two loads and a store
    assert workload.fine["fp multiply-add"] * workload.cycles == pytest.approx(20_000, abs=1)
    assert workload.fine["load"] * workload.cycles == pytest.approx(40_000, rel=0.2)


@needs_cross
def test_a_program_whose_libraries_are_not_here_is_told_how_to_name_them(
    run: Callable[..., Observation], tmp_path: Path
) -> None:
    program = build(WORKLOADS / "triad.c", tmp_path / "triad", "-O2", "-lm")
    if Path("/lib/ld-linux-aarch64.so.1").exists():
        pytest.skip("this machine has the libraries of AArch64 in their place")
    with pytest.raises(UsageError, match=r"--sysroot .*apt-get install libc6-arm64-cross"):
        run(program)


@pytest.mark.parametrize(
    ("code", "kinds", "reads", "writes"),
    [
        ("20000091", [OPERATE], (1,), (0,)),  # add x0, x1, #0
        ("200040f9", [LOAD], (1,), (0,)),  # ldr x0, [x1]
        ("200000f9", [STORE], (1, 0), ()),  # str x0, [x1]
        ("208440f8", [LOAD, OPERATE], (1,), (0,)),  # ldr x0, [x1], #8
        ("200040fd", [LOAD], (1,), (32, 64)),  # ldr d0, [x1]
        ("3f0002eb", [OPERATE], (1, 2), (96, 97, 98)),  # cmp x1, x2
    ],
)
def test_what_an_instruction_reads_and_writes(
    code: str, kinds: list[int], reads: tuple[int, ...], writes: tuple[int, ...]
) -> None:
    template = make_decoder("aarch64").decode_instruction(bytes.fromhex(code))
    assert [step.kind for step in template.steps] == kinds
    assert template.steps[0].reads == reads
    assert template.steps[0].writes == writes
    assert template.is_known


def test_bytes_that_mean_nothing_are_unknown() -> None:
    assert not make_decoder("aarch64").decode_instruction(b"\xff\xff\xff\xff").is_known
    assert not make_decoder("x86_64").decode_instruction(b"\x06\x06").is_known
