"""Real programs under the tracer: counts that are known by hand, threads, children, MPI, and what can't be observed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from patience import PATIENCE_S

from advisor.model.errors import UsageError
from advisor.support.native_tools import find_compiler
from advisor_similarity import qemu_tracing
from advisor_similarity.executed_functions import GENERATED, collect_functions, count_rewritten
from advisor_similarity.parallelism import Observation, observe_program
from advisor_similarity.qemu_tracing import TracePlan, trace_program
from advisor_similarity.report import collect_notes

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[3]
WORKLOADS = ROOT / "examples" / "workloads"

needs_tracer = pytest.mark.skipif(
    find_compiler() is None or shutil.which("qemu-x86_64") is None or os.uname().machine != "x86_64",
    reason="needs a C compiler and qemu-x86_64: apt-get install gcc qemu-user",
)

#: A program without a C library: a loop of REPEAT rounds whose body is BODY.
BARE = """
.intel_syntax noprefix
.globl _start
_start:
    mov rbx, ROUNDS
1:
    BODY
    dec rbx
    jnz 1b
    mov eax, 60
    xor edi, edi
    syscall
.bss
.balign 64
buffer: .skip 256
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def run(cache: Path, tmp_path: Path) -> Callable[..., Observation]:
    def observed(*command: str | Path, smoothability: bool = False, **options: object) -> Observation:
        folder = tmp_path / f"run-{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        plan = replace(TracePlan(tuple(map(str, command)), quiet=True), **options)
        return observe_program(plan, cache, folder, smoothability)

    return observed


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    folder = tmp_path_factory.mktemp("programs")

    def built(source: str | Path, *flags: str, suffix: str = ".c") -> Path:
        if isinstance(source, str):
            path = folder / f"p{len(list(folder.iterdir()))}{suffix}"
            path.write_text(source)
        else:
            path = source
        out = folder / f"{path.stem}-{len(list(folder.iterdir()))}"
        subprocess.run(
            [str(find_compiler()), "-o", str(out), str(path), *flags],
            check=True,
            capture_output=True,
            timeout=PATIENCE_S,
        )
        return out

    return built


def bare(build: Callable[..., Path], body: str, rounds: int = 1000) -> Path:
    text = BARE.replace("BODY", body.replace(";", "\n    ")).replace("ROUNDS", str(rounds))
    return build(text, "-nostdlib", "-static", "-no-pie", suffix=".s")


@needs_tracer
@pytest.mark.parametrize(
    ("body", "cycles", "why"),
    [
        ("lea rcx, [rcx+1]", 1002, "one chain, beside that of the counter"),
        ("lea rcx, [rcx+1]; lea rcx, [rcx+1]", 2000, "a chain of two additions each round"),
        ("lea rcx, [rcx+1]; lea rdx, [rdx+1]; lea rsi, [rsi+1]", 1002, "independent chains take no longer"),
        ("add qword ptr [rip+buffer], 1", 3000, "load, add and store wait for each other"),
        ("add qword ptr [rip+buffer], 1; add qword ptr [rip+buffer+8], 1", 3000, "neighbours do not wait"),
        ("mov [rip+buffer], ecx; mov rcx, [rip+buffer]", 2000, "a wider load waits for a part of it"),
        ("mov [rip+buffer+7], cl; mov rcx, [rip+buffer]", 2000, "an unaligned part, too"),
        ("mov [rip+buffer+8], cl; mov rcx, [rip+buffer]", 1002, "the byte behind it does not count"),
        ("xor ecx, ecx; lea rcx, [rcx+1]", 1002, "a zero idiom needs nothing"),
        ("lea rcx, [rcx+1]; mov ch, 7; movzx edx, ch", 1002, "bits 8 to 15 are apart from the rest"),
        ("add cl, 1; movzx edx, cl; add rdx, rcx", 1003, "reading all of a register waits for its parts"),
        ("inc cl; setc dl; add dl, 1", 2001, "inc leaves the carry of the round before"),
        ("adc rcx, 0; adc rdx, 0", 2000, "two additions that hand on their carry"),
        ("addsd xmm0, xmm0; mulpd xmm1, xmm1", 1002, "scalar and packed chains"),
        ("movlpd xmm0, [rip+buffer]; movhpd xmm0, [rip+buffer+8]; addpd xmm1, xmm0", 1002, "halves of a register"),
    ],
)
def test_cycles_that_can_be_counted_by_hand(
    run: Callable[..., Observation], build: Callable[..., Path], body: str, cycles: int, why: str
) -> None:
    assert run(bare(build, body)).workload.cycles == pytest.approx(cycles, abs=3), why


@needs_tracer
def test_a_chain_has_parallelism_one_and_n_chains_have_n(
    run: Callable[..., Observation], build: Callable[..., Path]
) -> None:
    one = run(bare(build, "lea rcx, [rcx+1]", 2000)).workload
    five = run(bare(build, ";".join(f"lea r{n}, [r{n}+1]" for n in range(8, 13)), 2000)).workload
    # besides the chains a round holds dec and jnz
    assert one.parallelism == pytest.approx(3, abs=0.02)
    assert five.parallelism == pytest.approx(7, abs=0.02)


@needs_tracer
def test_smoothability_of_an_even_and_of_an_uneven_program(
    run: Callable[..., Observation], build: Callable[..., Path]
) -> None:
    even = run(bare(build, "lea rcx, [rcx+1]; lea rdx, [rdx+1]"), smoothability=True)
    assert even.slots == 4
    assert even.workload.smoothability == pytest.approx(1, abs=0.01)
    # 8 stores a round that wait for nothing, then a chain of one operation a cycle: half the work is in a few cycles
    uneven = run(
        bare(build, ";".join(["mov [rip+buffer], r8"] * 8) + ";lea rcx, [rcx+1];" * 8, 200), smoothability=True
    )
    assert uneven.workload.smoothability is not None
    assert 0.5 < uneven.workload.smoothability < 0.9


@needs_tracer
def test_without_the_stack_pointer_calls_do_not_wait_for_each_other(
    run: Callable[..., Observation], build: Callable[..., Path]
) -> None:
    program = bare(build, "push rcx; pop rdx; push rcx; pop rdx")
    assert run(program).workload.cycles > 4000
    assert run(program, follow_stack=False).workload.cycles < 1100


@needs_tracer
def test_repeated_string_instructions_move_side_by_side(
    run: Callable[..., Observation], build: Callable[..., Path]
) -> None:
    workload = run(bare(build, "lea rdi, [rip+buffer]; mov ecx, 200; rep stosb", 10)).workload
    assert workload.cycles < 30
    assert workload.fine["store"] * workload.cycles == pytest.approx(2000, abs=1)


@needs_tracer
def test_the_centroid_of_a_loop_is_its_mix(run: Callable[..., Observation], build: Callable[..., Path]) -> None:
    workload = run(bare(build, "mov rcx, [rip+buffer]; addsd xmm0, xmm1; rdtsc", 500)).workload
    share = {name: value * workload.cycles / 500 for name, value in workload.fine.items()}
    assert {name: round(value) for name, value in share.items() if round(value)} == {
        "load": 1, "fp add": 1, "control": 1, "int add": 1, "branch conditional": 1,
    }  # fmt: skip
    assert workload.centroid[3] == pytest.approx(workload.fine["control"])


THREADS = """
#include <pthread.h>
static void *work(void *n) { volatile long x = 0; for (long i = 0; i < (long)n; i++) x += i; return 0; }
int main(void) {
    pthread_t t[3];
    for (long i = 0; i < 3; i++) pthread_create(&t[i], 0, work, (void *)(1000 * (i + 1)));
    for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
    return 0;
}
"""


@needs_tracer
@pytest.mark.parametrize("flags", [("-static",), ("-pie", "-fPIE"), ("-no-pie",)], ids=["static", "pie", "dynamic"])
def test_threads_have_streams_of_their_own(
    run: Callable[..., Observation], build: Callable[..., Path], flags: tuple[str, ...]
) -> None:
    observed = run(build(THREADS, "-O1", "-pthread", *flags))
    streams = observed.image.streams
    assert len(streams) == 4
    cycles = sorted(stream.cycles for stream in streams)
    # each round loads, adds and stores: three cycles, whatever the main thread did before
    assert any(3000 <= one < 3300 for one in cycles)
    assert any(9000 <= one < 9300 for one in cycles)
    assert "work" in {place.name for place in collect_functions(observed.image, observed.traced.templates)}


@needs_tracer
def test_children_and_what_they_become_are_followed(cache: Path, tmp_path: Path, build: Callable[..., Path]) -> None:
    program = bare(build, "lea rcx, [rcx+1]", 5000)
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\n{program}\n{program} &\nwait\nexec {program}\n")
    script.chmod(0o700)
    folder = tmp_path / "run"
    folder.mkdir()
    traced = trace_program(TracePlan((str(script),), quiet=True), cache, folder)
    assert traced.exit_code == 0
    assert sum(5000 < image.streams[0].cycles < 5010 for image in traced.images) == 3


@needs_tracer
def test_one_rank_of_a_parallel_program_is_observed(
    run: Callable[..., Observation], build: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("mpirun") is None or shutil.which("mpicc") is None:
        pytest.skip("needs MPI: apt-get install openmpi-bin libopenmpi-dev")
    source = """
    #include <mpi.h>
    #include <stdlib.h>
    int main(int argc, char **argv) {
        int rank, sum; MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        volatile long x = 0; for (long i = 0; i < 300000 * rank; i++) x += i;
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Finalize(); return sum != 1;
    }
    """
    wrapped = subprocess.run(["mpicc", "--showme:compile"], capture_output=True, text=True, check=True).stdout.split()
    linked = subprocess.run(["mpicc", "--showme:link"], capture_output=True, text=True, check=True).stdout.split()
    program = build(source, *wrapped, *linked)
    monkeypatch.setenv("OMPI_MCA_btl", "self,vader")
    monkeypatch.setenv("OMPI_MCA_pml", "ob1")
    launcher = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
    observed = run(*launcher, program, rank=1)
    work = {place.name: place for place in collect_functions(observed.image, observed.traced.templates)}
    assert observed.traced.exit_code == 0
    assert work["main"].instructions > 1_500_000
    assert observed.workload.name == program.name


@needs_tracer
def test_sampling_tells_its_error(run: Callable[..., Observation], build: Callable[..., Path]) -> None:
    program = build(WORKLOADS / "triad.c", "-O2", "-static", "-lm")
    exact = run(program, "5000", "20").workload
    observed = run(program, "5000", "20", window=2000, period=10000)
    assert observed.sampled is not None
    assert observed.sampled.windows > 50
    assert observed.workload.instructions == pytest.approx(exact.instructions, abs=500)
    mix = [value / sum(observed.workload.centroid) for value in observed.workload.centroid]
    expected = [value / sum(exact.centroid) for value in exact.centroid]
    assert mix == pytest.approx(expected, abs=0.03)
    assert all(0 <= error < 0.2 * max(observed.workload.centroid) for error in observed.sampled.errors)


@needs_tracer
def test_generated_code_belongs_to_no_function(run: Callable[..., Observation], build: Callable[..., Path]) -> None:
    source = """
    #include <string.h>
    #include <sys/mman.h>
    int main(void) {
        unsigned char code[] = {0x48, 0xff, 0xc0, 0x48, 0xff, 0xcf, 0x75, 0xf8, 0xc3};
        void *at = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memcpy(at, code, sizeof code);
        ((void (*)(long))at)(50000);
        return 0;
    }
    """
    observed = run(build(source, "-O1", "-static"))
    made = [place for place in collect_functions(observed.image, observed.traced.templates) if place.name == GENERATED]
    assert [place.instructions for place in made] == [150001]
    assert count_rewritten(observed.image) == 0


@needs_tracer
def test_code_that_rewrites_itself_is_told(run: Callable[..., Observation], build: Callable[..., Path]) -> None:
    source = """
    #include <string.h>
    #include <sys/mman.h>
    int main(void) {
        unsigned char *at = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        int sum = 0;
        for (int i = 0; i < 5; i++) {
            unsigned char code[] = {0xb8, i, 0, 0, 0, 0xc3};
            memcpy(at, code, sizeof code);
            sum += ((int (*)(void))at)();
        }
        return sum != 10;
    }
    """
    observed = run(build(source, "-O1", "-static"))
    assert observed.traced.exit_code == 0
    assert count_rewritten(observed.image) == 1
    assert any("they were rewritten later on" in note for note in collect_notes(observed))


@needs_tracer
def test_avx512_is_told(run: Callable[..., Observation], build: Callable[..., Path]) -> None:
    with pytest.raises(UsageError, match=r"AVX-512.*x86-64-v3"):
        run(bare(build, "vaddpd zmm0, zmm1, zmm2"))


@needs_tracer
def test_an_instruction_that_nobody_knows_is_told(run: Callable[..., Observation], build: Callable[..., Path]) -> None:
    with pytest.raises(UsageError, match="SIGILL"):
        run(bare(build, "ud2"))


@needs_tracer
def test_a_killed_program_is_told(run: Callable[..., Observation], build: Callable[..., Path]) -> None:
    with pytest.raises(UsageError, match="killed by signal 11"):
        run(bare(build, "mov rcx, [0]"))


def test_a_missing_tracer_is_told_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UsageError, match="apt-get install qemu-user"):
        qemu_tracing.find_qemu("x86_64")


def test_a_missing_program_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such program"):
        trace_program(TracePlan((str(tmp_path / "nothing"),)), tmp_path, tmp_path)


def test_programs_for_other_processors_are_refused(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF\x01\x01" + bytes(60))
    program.chmod(0o700)
    with pytest.raises(UsageError, match="only 64-bit programs for x86_64 and aarch64"):
        trace_program(TracePlan((str(program),)), tmp_path, tmp_path)


def test_other_files_are_of_no_architecture(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    assert qemu_tracing.find_architecture(script) is None
    if os.uname().machine == "x86_64":
        assert qemu_tracing.find_architecture(Path(sys.executable).resolve()) == "x86_64"
