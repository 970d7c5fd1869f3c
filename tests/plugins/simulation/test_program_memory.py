"""Models of programs with memory that is given back, nodes, recursion, collapsed loops, and counters on the stack."""

from __future__ import annotations

import shutil
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from aml_models import model
from traced_models import make_model

from advisor.model.reports import Code, Text
from advisor_simulation.model.world import build_world
from advisor_simulation.program.allocation_names import find_name_at
from advisor_simulation.program.folded_phases import FoldedStep
from advisor_simulation.program.folding_events import NO_LOOP, EventColumns, Events, count_rounds, split_steps
from advisor_simulation.program.model_check import (
    Comparison,
    compare_loads,
    compare_misses,
    compare_references,
    find_false_sharing,
    simulate_plain,
)
from advisor_simulation.program.model_report import _show_model
from advisor_simulation.program.model_writing import ModelPhase, ModelWriter
from advisor_simulation.program.phases import find_time_loop

if TYPE_CHECKING:
    from pathlib import Path

    from advisor_simulation.model.records import Model
    from advisor_simulation.program.program_model import FoldedProgram, TracedProgram


#: Sorts by merging, with memory that each call takes and gives back.
MERGE_SORT = """\
#include <stdlib.h>
static void sort(int *key, int n) {
  if (n < 2) return;
  int half = n / 2, i = 0, j = half, k = 0;
  sort(key, half);
  sort(key + half, n - half);
  int *merged = malloc(n * sizeof *merged);
  while (i < half && j < n) merged[k++] = key[i] <= key[j] ? key[i++] : key[j++];
  while (i < half) merged[k++] = key[i++];
  while (j < n) merged[k++] = key[j++];
  for (k = 0; k < n; k++) key[k] = merged[k];
  free(merged);
}
int main(void) {
  int n = 12000;
  int *key = malloc(n * sizeof *key);
  unsigned x = 5;
  for (int i = 0; i < n; i++) key[i] = (int)((x = x * 1664525u + 1013904223u) >> 8);
  sort(key, n);
  return key[0] > key[n - 1];
}
"""
#: The second array has the memory of the first, which nobody else has taken in between.
REUSED = """\
#include <stdlib.h>
int main(void) {
  int n = 4000;
  double sum = 0;
  double *before = malloc(n * sizeof *before);
  for (int i = 0; i < n; i++) before[i] = i;
  for (int i = 0; i < n; i++) sum += before[i];
  free(before);
  float *after = malloc(n * sizeof *after);
  for (int i = 0; i < n; i++) after[i] = sum;
  float last = after[n - 1];
  free(after);
  return last == 1;
}
"""
#: A list of nodes beside the vectors of an object.
NODES = """\
#include <cstdlib>
#include <memory>
#include <vector>
struct Node {
  double value[3] = {};
  std::unique_ptr<Node> next;
};
class Table {
public:
  explicit Table(int n) : size_(n), keys_(n), weights_(n, 0.5) {}
  double sum() const {
    double s = 0;
    for (int i = 0; i < size_; i++) s += keys_[i] * weights_[i];
    return s;
  }
private:
  int size_;
  std::vector<int> keys_;
  std::vector<double> weights_;
};
int main() {
  std::unique_ptr<Node> head;
  for (int i = 0; i < 2000; i++) {
    auto one = std::make_unique<Node>();
    one->value[0] = i;
    one->next = std::move(head);
    head = std::move(one);
  }
  Table table(6000);
  double s = table.sum();
  for (int t = 0; t < 3; t++)
    for (Node *n = head.get(); n; n = n->next.get()) s += n->value[0];
  while (head) head = std::move(head->next);
  return s == 1;
}
"""
TILES = """\
#include <stdlib.h>
int main(void) {
  int n = 90;
  double *a = calloc(n * n, sizeof *a), *b = calloc(n * n, sizeof *b);
#pragma omp parallel for collapse(2)
  for (int i = 0; i < n; i += 8)
    for (int j = 0; j < n; j += 8)
      for (int k = i; k < (i + 8 < n ? i + 8 : n); k++)
        for (int l = j; l < (j + 8 < n ? j + 8 : n); l++) b[l * n + k] = a[k * n + l];
  return b[3] == 1;
}
"""
ON_THE_STACK = """\
#include <omp.h>
int main(void) {
  struct { long hits; char apart[APART]; } of[8] = {{0}};
#pragma omp parallel
  {
    int me = omp_get_thread_num();
    for (int i = 0; i < 5000; i++) if (i % 3) ((volatile long *)&of[me].hits)[0]++;
  }
  return of[0].hits == 1;
}
"""
#: Each thread works on memory of its own, so that its loops are modelled by thread.
BY_THREAD = """\
#include <omp.h>
#include <stdlib.h>
int main(void) {
  int n = 3000;
  double total = 0;
#pragma omp parallel reduction(+ : total)
  {
    double *mine = malloc(n * (omp_get_thread_num() + 2) * sizeof *mine);
    for (int i = 0; i < n; i++) mine[i * (omp_get_thread_num() + 1)] = i;
    for (int i = 0; i < n; i++) total += mine[i * (omp_get_thread_num() + 1)];
    free(mine);
  }
  return total == 1;
}
"""
DEEP = "int a[1024];\nint main(void) {\n" + "".join(
    f"for (volatile int i{k} = 0; i{k} < 2; i{k}++) " for k in range(10)
) + "a[i0 + 2 * i9 + 512 * i4]++;\nreturn a[0] == 1;\n}\n"  # fmt: skip


def check_misses(made: tuple[Model, TracedProgram, FoldedProgram, Path], folder: Path) -> dict[str, Comparison]:
    """Return the misses of arrays as modelled and as valgrind counts them."""
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    found, traced, folded, program = made
    scratch = folder / "scratch"
    scratch.mkdir()
    rows = compare_misses(found, folder, traced, folded, [str(program)], scratch, folder)
    return {row.name: row for row in rows}


@pytest.mark.parametrize("source", [MERGE_SORT, REUSED, DEEP], ids=["sort", "reused", "deep"])
def test_all_references_are_in_the_model(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, traced, folded, _ = make_model(tmp_path, monkeypatch, source, 1)
    names, log = simulate_plain(found, tmp_path, 1)
    compared = compare_references(names, log, traced, folded)
    assert compared.measured > 1000
    assert compared.error == 0
    assert not found.holes


def test_the_misses_of_a_recursive_program_are_those_of_valgrind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = check_misses(make_model(tmp_path, monkeypatch, MERGE_SORT, 1), tmp_path)
    assert {"key", "merged"} <= set(rows)
    assert max(abs(row.error) for row in rows.values()) < 0.05


def test_an_array_keeps_its_name_when_its_memory_is_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, traced, *_ = make_model(tmp_path, monkeypatch, REUSED, 1)
    before, after = (next(one for one in traced.objects[0] if one.name == name) for name in ("before", "after"))
    assert before.address == after.address
    assert (before.size, after.size) == (32000, 16000)
    assert found.arrays["before"].overlaps is not found.arrays["after"].overlaps, "one lies where the other did"
    world = build_world(found, tmp_path, 1)
    assert world.arrays["before"].base == world.arrays["after"].base


def test_nodes_are_one_array_and_members_are_named_after_their_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_model(tmp_path, monkeypatch, NODES, 1, compiler="g++")
    sizes = {one.name: one.size for one in made[1].objects[0] if one.allocated}
    assert sizes["table_keys"] == 24000
    assert sizes["table_weights"] == 48000
    assert sizes["Node"] > 2000 * 32
    rows = check_misses(made, tmp_path)
    assert abs(rows["Node"].error) < 0.1


def test_collapsed_loops_are_dealt_out_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, traced, folded, _ = make_model(tmp_path, monkeypatch, TILES, 3)
    step = next(step for phase in folded.folded for step in phase.steps if step.split)
    assert (len(step.owner), step.split, step.most) == (144, 12, (144, 12))
    assert found.processors is None
    assert "(i // 12)" in (tmp_path / "made.yaml").read_text()
    names, log = simulate_plain(found, tmp_path, 3)
    assert abs(compare_references(names, log, traced, folded).error) < 1e-3
    assert max(abs(row.error) for row in compare_loads(log, folded)) < 0.02


@pytest.mark.parametrize(("apart", "shares"), [(8, True), (120, False)])
def test_false_sharing_is_found_on_the_stack(
    apart: int, shares: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, traced, folded, _ = make_model(tmp_path, monkeypatch, ON_THE_STACK, 4, f"-DAPART={apart}")
    names, log = simulate_plain(found, tmp_path, 4)
    shared = [one.array for one in find_false_sharing(names, log, traced, folded)]
    assert shared == (["stack"] if shares else [])


def test_a_model_of_so_many_threads_is_compared_at_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_model(tmp_path, monkeypatch, BY_THREAD, 3)
    assert made[0].processors == 3
    rows = check_misses(made, tmp_path)
    assert abs(rows["mine"].error) < 0.05


OVERLAPPING = """\
aml: 1
name: overlapping
unit: cycle
domains: {rows: {size: 3}}
arrays:
  A: {shape: [100], at: 4096 B}
  B: {shape: [50], at: 4112 B, overlaps: true}
  C: {shape: [50], at: 4128 B}
control:
  - {parallel: sum, over: rows, reads: ["A[i]", "B[i]", "C[i]"]}
"""


def test_arrays_share_memory_only_where_they_say_so(tmp_path: Path) -> None:
    arrays = build_world(model(OVERLAPPING, tmp_path), tmp_path, 1).arrays
    assert [arrays[name].base for name in "ABC"] == [4096, 4112, 4128 + 4096]


def test_a_parallel_loop_that_the_first_processor_did_alone_stays_its_own(tmp_path: Path) -> None:
    step = FoldedStep(0, np.zeros(8, dtype=np.int64), np.full(8, 5.0), (), recovered=True)
    for parallel, kind in ((True, "kind: explicit"), (False, "kind: static")):
        writer = ModelWriter("program", 4, {}, False, tmp_path / "tables")
        text = writer.write_model([ModelPhase("one", parallel, (("one", step),), True)], [0], ())
        assert kind in text
        assert ("processors: 4" in text) is parallel, "a list of owners holds for no other number"


def test_processors_keep_the_weights_that_they_had(tmp_path: Path) -> None:
    step = FoldedStep(0, np.arange(4), np.array([100.0, 102.0, 101.0, 99.0]), (), recovered=False)
    writer = ModelWriter("program", 4, {}, False, tmp_path / "tables")
    text = writer.write_model([ModelPhase("one", True, (("one", step),), True)], [0], ())
    assert "values: [100, 102, 101, 99]" in text


def make_events(items: list[tuple[int, int, int]]) -> Events:
    """Return accesses of one processor: (instruction, turn of the loop around, turn of the loop within or -1)."""
    turns = np.array([(outer, max(inner, 0)) for _, outer, inner in items], dtype=np.int32)
    zeros = np.zeros(len(items), dtype=np.int64)
    number = np.array([one for one, _, _ in items], dtype=np.int64)
    columns = EventColumns(zeros, zeros, turns, number, zeros.astype(np.bool_), zeros, zeros, np.arange(len(items)))
    return Events(columns)


@pytest.mark.parametrize(
    ("items", "rounds"),
    [
        ([(1, 0, -1), (2, 0, -1), (1, 1, -1), (2, 1, -1)], None),
        ([(1, 0, -1), (3, 0, 0), (3, 0, 1), (2, 0, -1), (1, 1, -1)], None),
        ([(1, 0, -1), (2, 0, -1), (2, 1, -1), (1, 1, -1)], None),
        ([(1, 0, -1), (2, 0, -1), (1, 0, -1), (1, 1, -1)], [0, 0, 1, 0]),
        ([(3, 0, 0), (3, 0, 1), (3, 0, 0), (2, 0, -1)], [0, 0, 1, 1]),
        ([(1, 0, -1), (1, 0, -1), (1, 0, -1)], [0, 1, 2]),
    ],
    ids=["once a turn", "a loop within", "another order", "again", "a loop again", "one alone"],
)
def test_rounds_begin_where_something_comes_again(items: list[tuple[int, int, int]], rounds: list[int] | None) -> None:
    following = np.array([NO_LOOP if inner < 0 else 7 for _, _, inner in items])
    found = count_rounds(make_events(items), following, 1)
    assert (None if found is None else found.tolist()) == rounds


def test_loops_that_come_in_turns_are_steps_or_one_step() -> None:
    def split(tops: list[int]) -> list[tuple[int, int]]:
        events = make_events([(top, 0, -1) for top in tops])
        return [(step.top, len(step.rows)) for step in split_steps(events, np.array(tops))]

    assert split([4, 5, 5]) == [(4, 1), (5, 2)]
    assert split([4, 5, 4]) == [(4, 1), (5, 1), (4, 1)], "few are steps of their own"
    many = [4, 5] * 40
    assert split([3, *many, 6]) == [(3, 1), (NO_LOOP, 80), (6, 1)]


def test_the_loop_over_time_runs_least_of_those_around_most_messages() -> None:
    loops = [SimpleNamespace(parent=-1) for _ in range(3)]
    code: Any = SimpleNamespace(loops=loops, exits=())
    marks = []
    for _ in range(4):  # the loop over time, one over particles before each message, another behind it
        marks += [0, *[1] * 50, 3, *[2] * 9]
    words = np.array([1 << 63 | mark << 48 for mark in [*marks, 0]], dtype=np.uint64)
    assert find_time_loop(words, code) == 0


@pytest.mark.parametrize(
    ("text", "at", "name"),
    [
        ("  Grid(int n) : n_(n), data_(n * n, 0.0) {}", "data_", "data_"),
        ("  std::vector<double> even(n / 2), odd(n / 2);", ", odd", "even"),
        ("  std::vector<double> even(n / 2), odd(n / 2);", ";", "odd"),
        ("  *at = std::make_unique<Node>(key);", "(key", "Node"),
        ("  col_[r].push_back(c);", "push_back", "col_"),
        ("  if (i % 4 == 0) other[key]++;", "]", "other"),
        ("  double **u = new_matrix(n, n), **f = new_matrix(n, n);", "new_matrix", "u"),
        ("  rows[i] = (double *)malloc(n);", "malloc", "rows"),
        ("  double *x = new double[n];", "new", "x"),
        ("  head = new Node(3);", "new", "Node"),
        ("  int *x = new int[n * n];", ";", "x"),
        ("  rows = new int*[n];", ";", "rows"),
        ("  fill(3);", "fill", None),
        ("  return create(3);", "create", None),
    ],
)
def test_names_stand_at_the_column_of_an_allocation(text: str, at: str, name: str | None) -> None:
    column = text.index(at) + (0 if at in (", odd", ";") else 1)
    assert find_name_at(text, column) == name


def test_the_misses_of_small_arrays_are_a_share_of_all() -> None:
    assert Comparison("all other arrays", 15.0, 9.0, 600.0).error == pytest.approx(0.01)
    assert Comparison("u", 15.0, 10.0, 0.0).error == pytest.approx(0.5)


def test_a_long_model_is_not_shown(tmp_path: Path) -> None:
    assert isinstance(_show_model("a: 1\n", None), Code)
    long = "a: 1\n" * 20_000
    shown = _show_model(long, tmp_path / "m.yaml")
    assert isinstance(shown, Text)
    assert "20,000 lines" in shown.text
    assert "m.yaml" in shown.text
    assert "--save" in str(_show_model(long, None))
