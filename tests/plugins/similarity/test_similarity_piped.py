"""The scheduler for machines without a compiler, and valgrind's lackey as the independent witness of the tracer."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from patience import PATIENCE_S
from test_similarity_oracle import Stream, operate, slow, touching

from advisor.support.native_tools import find_compiler
from advisor_similarity.parallelism import observe_program
from advisor_similarity.qemu_tracing import TracePlan
from advisor_similarity.steps import Template, encode_template

kernel = pytest.importorskip("advisor_similarity.oracle_kernel", reason="needs numba: pip install 'gapwatch[fast]'")
WORKLOADS = Path(__file__).parents[3] / "examples" / "workloads"

needs_both = pytest.mark.skipif(
    any(shutil.which(tool) is None for tool in ("valgrind", "qemu-x86_64"))
    or find_compiler() is None
    or os.uname().machine != "x86_64",
    reason="needs valgrind, qemu-x86_64 and a C compiler: apt-get install valgrind qemu-user gcc",
)

#: lackey has one line for an instruction that reads and writes a place; ours are atomic ones with a single store.
streams = st.lists(st.one_of(operate, touching()), max_size=40)


@settings(deadline=None, max_examples=150)
@given(streams, st.integers(1, 9))
def test_the_scheduler_in_numba_equals_the_slow_one(stream: Stream, length: int) -> None:
    book = kernel.build_template_table([encode_template(Template("", steps)) for steps, _ in stream] or [b""])
    machine = kernel.OracleMachine()
    for start in range(0, len(stream), length):
        rows: list[tuple[int, int, int, int]] = []
        for number, (_, accesses) in enumerate(stream[start : start + length], start):
            rows.append((kernel.INSTRUCTION, number, 1, number))
            rows += [(kernel.WRITTEN if one.store else kernel.READ, one.address, one.size, 0) for one in accesses]
        columns = np.array(rows, dtype=np.int64).T
        machine.schedule_records(
            columns[0].astype(np.uint8), columns[1].copy(), columns[2].copy(), columns[3].copy(), book
        )
    expected = slow(stream)
    assert machine.cycles == expected.cycles
    assert machine.shift == 0
    found = machine.buckets[: machine.cycles].tolist()
    assert found == [[expected.operations[cycle + 1][k] for k in range(6)] for cycle in range(expected.cycles)]


def test_lines_of_lackey_are_read_and_others_are_not() -> None:
    text = b"==1== Lackey\nI  04001000,3\n L 1ffeFFfd58,8\n S 10,16\n M 00,4\n\nI  ab,15\nnonsense\n"
    kinds, addresses, sizes = np.zeros(20, np.uint8), np.zeros(20, np.int64), np.zeros(20, np.int64)
    found = kernel.parse_lackey(np.frombuffer(text, dtype=np.uint8), kinds, addresses, sizes)
    assert kinds[:found].tolist() == [0, 1, 2, 3, 0]
    assert addresses[:found].tolist() == [0x4001000, 0x1FFEFFFD58, 0x10, 0, 0xAB]
    assert sizes[:found].tolist() == [3, 8, 16, 4, 15]


def lackey(program: Path, size: str, tmp_path: Path) -> tuple[int, int]:
    """Return executed instructions and accesses to memory, counted in lackey's text."""
    log = tmp_path / f"lackey-{size}"
    command = ["valgrind", "--tool=lackey", "--basic-counts=no", "--trace-mem=yes", f"--log-file={log}"]
    subprocess.run([*command, str(program), size, "2"], check=True, capture_output=True, timeout=PATIENCE_S)
    text = b"\n" + log.read_bytes()
    log.unlink()
    accesses = text.count(b"\n L ") + text.count(b"\n S ") + 2 * text.count(b"\n M ")
    return text.count(b"\nI  "), accesses


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def build(name: str, folder: Path) -> Path:
    out = folder / name
    source = WORKLOADS / f"{name}.c"
    subprocess.run(
        [str(find_compiler()), "-O2", "-static", "-o", str(out), str(source), "-lm"], check=True, timeout=PATIENCE_S
    )
    return out


# All of these print as many digits at both sizes: the C library prints by other instructions under valgrind.
@needs_both
@pytest.mark.parametrize(
    ("name", "small", "large"),
    [("quicksort", "1500", "2500"), ("mergesort", "1500", "2500"), ("matmul", "20", "30"), ("triad", "1000", "2000")],
)
def test_counts_equal_those_of_lackey_in_the_difference_of_two_sizes(
    cache: Path, tmp_path: Path, name: str, small: str, large: str
) -> None:
    program = build(name, tmp_path)
    ours: list[tuple[int, int]] = []
    for size in (small, large):
        folder = tmp_path / size
        folder.mkdir()
        observed = observe_program(TracePlan((str(program), size, "2"), quiet=True), cache, folder, smoothability=False)
        [stream] = observed.image.streams
        ours.append((observed.workload.instructions, stream.loads + stream.stores))
    theirs = [lackey(program, size, tmp_path) for size in (small, large)]
    difference = [(larger - smaller) for smaller, larger in zip(*ours, strict=True)]
    expected = [(larger - smaller) for smaller, larger in zip(*theirs, strict=True)]
    assert difference == expected
    assert difference[0] > 10_000


@needs_both
def test_both_tracers_find_the_same_parallelism(cache: Path, tmp_path: Path) -> None:
    program = build("montecarlo", tmp_path)
    found = []
    for tracer in ("qemu", "valgrind"):
        folder = tmp_path / tracer
        folder.mkdir()
        plan = replace(TracePlan((str(program), "3000"), quiet=True), tracer=tracer)
        found.append(observe_program(plan, cache, folder, smoothability=False).workload)
    assert found[1].cycles == pytest.approx(found[0].cycles, rel=1e-3)
    assert found[1].centroid[2] == pytest.approx(found[0].centroid[2], rel=0.01)
