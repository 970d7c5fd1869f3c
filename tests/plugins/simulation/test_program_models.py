"""Models made of programs without a hand: the code, the addresses that QEMU sees, and the model beside valgrind."""

from __future__ import annotations

import shutil
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from aml_models import model
from command_line import run
from compiled_programs import compile_program
from traced_models import make_model

from advisor.collect.binaries.elf_files import read_elf
from advisor_simulation.mds.coherence import KINDS
from advisor_simulation.mds.nests import build_nest_stream
from advisor_simulation.model.records import Parallel
from advisor_simulation.model.world import build_world
from advisor_simulation.program import address_trace
from advisor_simulation.program.address_trace import TracedThread, mark_iterations
from advisor_simulation.program.array_layout import ReferenceInLoops, lay_out_arrays
from advisor_simulation.program.code_loops import read_program_code
from advisor_simulation.program.data_objects import DataObject, read_static_objects
from advisor_simulation.program.fitting import LinearForm, fit_linear
from advisor_simulation.program.folded_phases import FoldedReference
from advisor_simulation.program.model_check import (
    Comparison,
    compare_loads,
    compare_misses,
    compare_references,
    compute_error,
    find_false_sharing,
    simulate_plain,
)
from advisor_simulation.program.model_writing import find_cycles, render_linear

if TYPE_CHECKING:
    from pathlib import Path

STENCIL = """\
#include <stdlib.h>
static void sweep(const double *from, double *to, int n) {
#pragma omp parallel for
  for (int i = 1; i < n - 1; i++)
    for (int j = 1; j < n - 1; j++)
      to[i * n + j] = from[(i - 1) * n + j] + from[(i + 1) * n + j] + from[i * n + j - 1] + from[i * n + j + 1];
}
int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 90;
  double *u = malloc(sizeof *u * n * n);
  double *v = calloc(n * n, sizeof *v);
#pragma omp parallel for
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) u[i * n + j] = i == 0;
  for (int t = 0; t < 3; t++) {
    sweep(u, v, n);
    sweep(v, u, n);
  }
  return u[n + 2] > 1e30;
}
"""
COUNTERS = """\
#include <omp.h>
#include <stdlib.h>
static struct { long count; char apart[APART]; } hits[64];
int main(void) {
  int n = 20000;
  int *key = malloc(sizeof *key * n);
  for (int i = 0; i < n; i++) key[i] = i * 7 % 13;
#pragma omp parallel
  {
    int me = omp_get_thread_num();
#pragma omp for
    for (int i = 0; i < n; i++)
      if (key[i] < 4) *(volatile long *)&hits[me].count += 1;
  }
  return hits[0].count == 0;
}
"""

#: Arrays from functions that only allocate; a loop in which only the first thread finds anything to read.
ALLOCATORS = """\
#include <stdlib.h>
static inline void *get_aligned(size_t size) {
  void *block = NULL;
  int failed = posix_memalign(&block, 64, size);
  if (failed) block = NULL;
  return block;
}
static void *get_zeroed(size_t n, size_t size) { return calloc(n, size); }
int main(void) {
  int n = 4000;
  double *mass = get_aligned(sizeof *mass * n);
  int *cell = get_zeroed(n, sizeof *cell);
  long seen = 0;
#pragma omp parallel for reduction(+ : seen)
  for (int i = 0; i < n; i++) {
    if (i < n / 4) mass[i] = cell[i];
    else for (int k = 0; k < 5; k++) seen += i % (k + 3);
  }
  return seen == 1;
}
"""


#: Every other iteration begins behind the loop's first instruction, and one leaves out where those begin.
SECOND_ENTRY = """\
#include <stdlib.h>
int main(int argc, char **argv) {
  int n = 300, t = 0;
  double *u = calloc(n, sizeof *u), *v = calloc(n, sizeof *v);
again:
  if (t == 4) goto late;
inside:
  for (int i = 0; i < n; i++) u[i] += v[i] + argc;
late:
  for (int i = 0; i < n; i++) v[i] = u[n - 1 - i];
  if (++t >= 8) return u[0] == 0.0;
  if (t % 2) goto inside;
  goto again;
}
"""
#: What a compiler makes calls of the C library of.
COPIES = """\
#include <stdlib.h>
#include <string.h>
int main(void) {
  int n = 30001;
  float *in = malloc(sizeof *in * n), *out = malloc(sizeof *out * n);
  for (int i = 0; i < n; i++) in[i] = i;
  for (int t = 0; t < 3; t++) {
    memset(out, 0, sizeof *out * n);
    memmove(out, in, sizeof *out * n);
    for (int i = 0; i < n; i++) in[i] += out[n - 1 - i];
  }
  return in[3] == 1;
}
"""


def test_a_stencil_is_modelled_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, *_ = make_model(tmp_path, monkeypatch, STENCIL, 3)
    text = (tmp_path / "made.yaml").read_text()
    assert not found.holes
    assert found.processors is None, "nothing in it holds for three threads only"
    assert "u: {shape: [90, 90], element: 8 B" in text
    for reference in ("u[i, j + 1]", "u[i + 2, j + 1]", "u[i + 1, j]", "u[i + 1, j + 2]"):
        assert f'{{read: "{reference}"}}' in text
    assert '{write: "v[i + 1, j + 1]"}' in text
    assert "{size: 88, decomposition: {kind: static}}" in text
    assert "times: 3" in text, "the loop over time is one"


def test_its_misses_are_those_of_valgrind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    found, traced, folded, program = make_model(tmp_path, monkeypatch, STENCIL, 2)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    rows = compare_misses(found, tmp_path, traced, folded, [str(program)], scratch, tmp_path)
    assert {row.name for row in rows} == {"u", "v"}
    assert max(abs(row.error) for row in rows) < 0.02
    loads = compare_loads(simulate_plain(found, tmp_path, 2)[1], folded)
    assert max(abs(row.error) for row in loads) < 0.02


@pytest.mark.parametrize(("apart", "shares"), [(8, True), (120, False)])
def test_false_sharing_is_found_where_it_is(
    apart: int, shares: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, traced, folded, _ = make_model(tmp_path, monkeypatch, COUNTERS, 4, f"-DAPART={apart}")
    names, log = simulate_plain(found, tmp_path, 4)
    assert log.transactions is not None
    counts = dict(zip(names, log.transactions.sum(axis=1), strict=True))
    lines = counts["hits"][KINDS.index("false sharing")]
    assert lines > 1000 if shares else lines == 0
    assert [one.array for one in find_false_sharing(names, log, traced, folded)] == (["hits"] if shares else [])


def test_arrays_are_named_where_what_was_allocated_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, traced, *_ = make_model(tmp_path, monkeypatch, ALLOCATORS, 4)
    sizes = {one.name: one.size for one in traced.objects[0] if one.allocated}
    assert sizes["mass"] == 32000
    assert sizes["cell"] == 16000


def test_a_loop_in_which_only_some_processors_access_arrays_keeps_its_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, traced, folded, _ = make_model(tmp_path, monkeypatch, ALLOCATORS, 4)
    names, log = simulate_plain(found, tmp_path, 4)
    assert compare_references(names, log, traced, folded).error == 0
    loads = compare_loads(log, folded)
    assert len(loads) == 4
    assert max(abs(row.error) for row in loads) < 0.02


def test_copies_of_what_libraries_hold_are_no_arrays_of_a_program(tmp_path: Path) -> None:
    source = "#include <iostream>\nint table[64];\nint main() { std::cout << table[3]; }\n"
    program = compile_program(tmp_path, "g++", source, "-O2", "-g", suffix=".cpp")
    assert [one.name for one in read_static_objects(program)] == ["table"]


def test_rows_hold_all_items_of_an_access() -> None:
    sweep = ReferenceInLoops(FoldedReference(0, 0, 8, False, LinearForm((128, 8, 0), 0), 512), (32, 16))
    beside = replace(sweep, reference=replace(sweep.reference, size=16, offset=LinearForm((128, 8, 0), 0)))
    block = DataObject("block", 4096, 4096)
    assert (lay_out_arrays([block], [[sweep]], 1)[0].items, lay_out_arrays([block], [[sweep]], 1)[0].rows) == (16, 32)
    crossed = lay_out_arrays([block], [[sweep, beside]], 1)[0]
    assert (crossed.items, crossed.flat) == (512, True), "the last access of a row reads on in the next one"
    known = lay_out_arrays([replace(block, row_B=128, element_B=8)], [[beside]], 1)[0]
    assert known.flat, "and also where a type says what a row is"


def test_loops_are_found_in_code_with_their_nesting(tmp_path: Path) -> None:
    code = read_program_code(read_elf(compile_program(tmp_path, "gcc", STENCIL, "-O2", "-g", "-fopenmp")))
    inner = [one for one in code.loops if "sweep._omp" in code.functions[one.function].name]
    assert {one.depth for one in inner} == {1, 2}
    assert any(one.parent >= 0 and code.loops[one.parent].function == one.function for one in inner)


def test_linear_functions_are_found_and_checked_by_all_values() -> None:
    columns = np.stack(np.meshgrid(np.arange(7), np.arange(5), indexing="ij"), axis=-1).reshape(-1, 2)
    values = 480 * columns[:, 0] - 8 * columns[:, 1] + 16
    assert fit_linear(columns, values) == LinearForm((480, -8), 16)
    values[11] += 1
    assert fit_linear(columns, values) is None


def test_what_repeats_becomes_loops() -> None:
    assert find_cycles([0, 1, 2, 1, 2, 1, 2, 3]) == [0, (3, [1, 2]), 3]
    assert find_cycles([5, 1, 1, 2, 1, 1, 2]) == [5, (2, [(2, [1]), 2])]


def test_linear_functions_as_text() -> None:
    assert render_linear((1, 0, -8), -1, ("i", "j", "p")) == "i - 8 * p - 1"
    assert render_linear((0,), 0, ("i",)) == "0"


def test_the_error_of_a_model_is_its_largest_one() -> None:
    rows = [Comparison("a", 99.0, 100.0), Comparison("b", 5.2, 5.0), Comparison("c", 0.0, 0.0)]
    assert compute_error(rows) == pytest.approx(0.04)
    assert compute_error([]) == 0.0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("model",), "which program?"),
        (("model", "some-run", "--", "true"), "which of the two"),
        (("model", "--", "./nothing-here"), "no program is in it"),
    ],
)
def test_what_is_to_be_modelled_must_be_clear(arguments: tuple[str, ...], told: str, tmp_path: Path) -> None:
    done = run(*arguments, home=tmp_path)
    assert done.returncode == 2
    assert told in done.stderr.decode()


NESTED = """\
aml: 1
name: nested
unit: cycle
tables: {steps: {values: [[1, 0, 1], [2], [3, 0]]}}
domains: {rows: {size: 3}}
arrays: {A: {shape: [4, 4]}}
control:
  - parallel: sum
    over: rows
    body:
      - {write: "A[i, 0]"}
      - {for: j, times: "steps_count[i]", body: [{read: "A[steps, j]"}]}
"""


def test_lists_are_read_on_by_an_entry_at_each_execution(tmp_path: Path) -> None:
    made = model(NESTED, tmp_path)
    world = build_world(made, tmp_path, 1)
    step = made.control[0]
    assert isinstance(step, Parallel)
    stream = build_nest_stream(world, step.body, world.names, "i", np.arange(3), np.zeros(3, dtype=np.int64), 8)
    base = world.arrays["A"].base // 8
    seen = [(int(word) - base, bool(write)) for word, write in zip(stream.word, stream.write, strict=True)]
    rows = [[1, 0, 1], [2], [3, 0]]
    expected = [
        place
        for i, row in enumerate(rows)
        for place in [(4 * i, True), *((4 * row[j] + j, False) for j in range(len(row)))]
    ]
    assert seen == expected


@pytest.mark.parametrize(
    ("command", "free_B", "words"),
    [
        ("./app", 6 << 30, 10_737_418),
        ("mpirun -n 4 ./app", 6 << 30, 2_684_354),
        ("./app", 1 << 20, 1 << 20),
        ("./app", 1 << 50, 1 << 27),
    ],
)
def test_a_trace_is_no_longer_than_memory_can_fold(
    monkeypatch: pytest.MonkeyPatch, command: str, free_B: int, words: int
) -> None:
    """Folding takes 300 B a word: half of the free memory is for all processes together."""
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=free_B))
    assert address_trace.choose_limit(command.split()) == words


def test_iterations_that_leave_out_the_header_are_iterations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, traced, folded, _ = make_model(tmp_path, monkeypatch, SECOND_ENTRY, 1)
    assert traced.code.entries, "the compiler kept the second entry"
    names, log = simulate_plain(found, tmp_path, 1)
    compared = compare_references(names, log, traced, folded)
    assert compared.measured >= 300 * (3 * 7 + 2 * 8) / 8, "vectors of eight at most"
    assert compared.error == 0


def test_marks_of_jumps_become_marks_of_headers() -> None:
    mark, low = 1 << 63, 77
    jump, target, header = mark | 5 << 48 | low, mark | 6 << 48 | low, mark | 2 << 48 | low
    access = 9 << 48 | 4096
    words = np.array([header, access, jump, target, access, jump, access, target, access], dtype=np.uint64)
    told = np.array([[4, 0, 1, 0, 0, 0], [9, 0, 1, 0, 0, 0]])
    made = mark_iterations(TracedThread(words, told), 5, (2,), 1)
    assert made.words.tolist() == [header, access, header, access, access, access]
    assert made.told[:, 0].tolist() == [3, 6]


def test_copies_of_the_library_are_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    found, traced, folded, program = make_model(tmp_path, monkeypatch, COPIES, 1)
    assert set(found.arrays) == {"in_", "out"}, "a word of expressions is no name"
    names, log = simulate_plain(found, tmp_path, 1)
    compared = compare_references(names, log, traced, folded)
    pieces = -(-30001 * 4 // 8)
    assert compared.error == 0
    assert compared.measured >= 3 * 3 * pieces
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    rows = compare_misses(found, tmp_path, traced, folded, [str(program)], scratch, tmp_path)
    assert {row.name for row in rows} == {"in_", "out"}
    assert max(abs(row.error) for row in rows) < 0.05
