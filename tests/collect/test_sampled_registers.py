"""What registers at samples tell: how far loads go, which branches were guessed wrong, steps and trips of loops."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pytest
from compiled_programs import compile_program

from advisor.collect.binaries.derived_steps import derive_steps, estimate_trips
from advisor.collect.binaries.disassembly import Instruction, disassemble
from advisor.collect.binaries.elf_files import read_elf
from advisor.collect.binaries.hot_functions import analyze_function
from advisor.collect.binaries.inner_loops import find_inner_loops
from advisor.collect.binaries.sampled_addresses import COLUMNS, estimate_reach_B, find_addresses, read_constants
from advisor.collect.binaries.sampled_instructions import read_samples
from advisor.support.grouping import iterate_groups

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from advisor.collect.binaries.elf_files import ElfImage, Symbol
    from advisor.collect.binaries.sampled_addresses import Registers

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the code of programs is looked into on x86-64")

SOURCE = """
int search(const int *a, int n, int key) {
  int low = 0, high = n - 1;
  while (low <= high) {
    int middle = (low + high) >> 1;
    if (a[middle] == key) return middle;
    if (a[middle] < key) low = middle + 1; else high = middle - 1; }
  return -1; }
unsigned long rest(unsigned long n) { unsigned long d = 2, c = 0; for (; d < n; d++) c += n % d == 0; return c; }
void hits(long n, const int *x, long *count)
  { for (long i = 0; i < n; i++) __atomic_fetch_add(&count[x[i]], 1, __ATOMIC_SEQ_CST); }
void scale(long n, double a, double *x, long step) { for (long i = 0; i < n; i++) x[i * step] *= a; }
void table(int n, int m, int *d)
  { for (int j = 1; j < m; j++) for (int i = 1; i < n; i++) d[i * m + j] = d[(i - 1) * m + j] + d[i * m + j - 1]; }
int main(int argc, char **argv) { return argc + (argv == 0); }
"""
#: As gcc makes it of ``search``: the comparison, two branches, both ways, and the loop around them.
SEARCH = (
    Instruction(0x40, 3, "lea", ("ecx", "[rax+1]")),
    Instruction(0x43, 2, "cmp", ("esi", "ecx")),
    Instruction(0x45, 2, "jl", ("0x5e",), 0x5E),
    Instruction(0x47, 3, "lea", ("eax", "[rsi+rcx]")),
    Instruction(0x4A, 2, "sar", ("eax", "1")),
    Instruction(0x4C, 3, "movsxd", ("r8", "eax")),
    Instruction(0x4F, 4, "cmp", ("dword ptr [rdi+r8*4]", "edx")),
    Instruction(0x53, 2, "je", ("0x63",), 0x63),
    Instruction(0x55, 2, "jl", ("0x40",), 0x40),
    Instruction(0x57, 3, "lea", ("esi", "[rax-1]")),
    Instruction(0x5A, 2, "cmp", ("esi", "ecx")),
    Instruction(0x5C, 2, "jge", ("0x47",), 0x47),
    Instruction(0x5E, 5, "mov", ("eax", "0xffffffff")),
    Instruction(0x63, 1, "ret", ()),
)
#: Samples of it in a table of 8 KiB, as recorded, and in one of 128 MiB.
GUESSED = {0x40: 47, 0x43: 96, 0x47: 25, 0x4A: 11, 0x4C: 5, 0x55: 75, 0x57: 47, 0x5A: 74, 0x5E: 9, 0x63: 26}
LATE = {0x40: 11, 0x43: 19, 0x47: 2, 0x4A: 6, 0x55: 563, 0x57: 20, 0x5A: 23, 0x63: 5}


def registers_at(count: int, **values: Sequence[int]) -> Registers:
    """Return registers of some samples, those that are not named with zeros."""
    found = np.zeros((count, len(COLUMNS) - 1), dtype=np.uint64)
    for name, column in values.items():
        found[:, COLUMNS[name]] = np.resize(np.array(column, dtype=np.int64), count).astype(np.uint64)
    return found


def indices(count: int, below: int) -> list[int]:
    drawn: list[int] = np.random.default_rng(1).integers(0, below, count).tolist()
    return drawn


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program(tmp_path_factory.mktemp("registers"), "gcc", SOURCE, "-O2", "-fno-tree-vectorize")


def find_function(program: Path, name: str) -> tuple[ElfImage, Symbol, Sequence[Instruction]]:
    image = read_elf(program)
    symbol = next(one for one in image.functions if one.name == name)
    return image, symbol, disassemble(image, symbol.begin, symbol.end)


@pytest.mark.parametrize(("sampled", "elements", "kinds"), [(GUESSED, 2048, {"guess"}), (LATE, 32 << 20, {"scatter"})])
def test_a_branch_guessed_wrong_is_told_from_a_late_load(
    sampled: dict[int, int], elements: int, kinds: set[str]
) -> None:
    registers = {0x55: registers_at(75, rdi=[1 << 40], r8=indices(75, elements))}
    found = read_samples(SEARCH, sampled, registers)
    assert found is not None
    assert set(found.waits.values()) == kinds
    share = sum(sampled[address] for address in found.waits) / sum(sampled.values())
    assert share > 0.75


def test_without_registers_a_load_that_stands_out_is_late() -> None:
    found = read_samples(SEARCH, LATE)
    assert found is not None
    assert found.waits == {0x55: "scatter"}


def test_a_loop_that_counts_has_no_branch_to_guess() -> None:
    walk = (
        Instruction(0x80, 4, "add", ("rdx", "qword ptr [rdi+8]")),
        Instruction(0x84, 3, "mov", ("rdi", "qword ptr [rdi]")),
        Instruction(0x87, 4, "sub", ("rax", "1")),
        Instruction(0x8B, 2, "jae", ("0x80",), 0x80),
        Instruction(0x8D, 3, "mov", ("rax", "rdx")),
    )
    near = {0x84: registers_at(100, rdi=[4096 + 16 * place for place in indices(100, 500)])}
    found = read_samples(walk, {0x80: 60, 0x84: 267, 0x87: 1}, near)
    assert found is not None
    assert found.waits == {0x84: "pointer"}, "each load waits for the one before, wherever the list is"


@pytest.mark.parametrize("elements", [1000, 10_000_000])
def test_the_reach_of_loads_is_estimated_from_lines_that_come_twice(elements: int) -> None:
    load = Instruction(0, 4, "mov", ("eax", "dword ptr [rdi+rcx*8+64]"))
    registers = registers_at(500, rdi=[1 << 33], rcx=indices(500, elements))
    addresses = find_addresses(load, registers)
    assert addresses is not None
    assert (1 << 33) + 64 <= int(addresses.min()) < (1 << 33) + 64 + 8 * elements
    reach = estimate_reach_B([addresses])
    assert reach is not None
    assert 4 * elements <= reach <= 8 * elements + 64
    assert estimate_reach_B([addresses[:10]]) is None, "too few"


def test_the_reach_of_several_processes_is_that_of_each() -> None:
    places = 64 * np.random.default_rng(1).integers(0, 1 << 20, 30).astype(np.uint64)
    drawn = [places + np.uint64(base) for base in (0x55D0 << 32, 0x7F00 << 32)]
    reach = estimate_reach_B(drawn)
    assert reach is not None
    assert 56 << 20 <= reach <= 64 << 20, "too few for pages that come twice"


def test_divisions_of_integers_and_atomic_updates_are_named(program: Path) -> None:
    for name, mnemonic, kind in (("rest", "div", "quotient"), ("hits", "lock ", "fixed")):
        image, symbol, code = find_function(program, name)
        at = next(number for number, one in enumerate(code) if one.mnemonic.startswith(mnemonic))
        found = analyze_function(image, symbol, None, {code[at + 1].address: 90, code[0].address: 10})
        assert found.loop_shares()[kind] >= 0.9


def test_a_load_at_a_remainder_waits_for_the_division() -> None:
    ring = (
        Instruction(0x80, 2, "mov", ("eax", "ecx")),
        Instruction(0x82, 3, "add", ("ecx", "1")),
        Instruction(0x85, 2, "xor", ("edx", "edx")),
        Instruction(0x87, 2, "div", ("ebx",)),
        Instruction(0x89, 5, "addss", ("xmm0", "dword ptr [rdi+rdx*4]")),
        Instruction(0x8E, 4, "mulss", ("xmm0", "xmm1")),
        Instruction(0x92, 3, "cmp", ("ecx", "esi")),
        Instruction(0x95, 2, "jne", ("0x80",), 0x80),
    )
    near = {0x8E: registers_at(100, rdi=[4096] * 100, rdx=indices(100, 64))}
    found = read_samples(ring, {0x8E: 60, 0x80: 10}, near)
    assert found is not None
    assert found.waits == {0x8E: "quotient"}, "however near the number is"


def test_a_load_at_a_place_that_was_computed_of_a_remainder_waits_for_the_division() -> None:
    torus = (
        Instruction(0x80, 2, "mov", ("eax", "ecx")),
        Instruction(0x82, 3, "add", ("ecx", "1")),
        Instruction(0x85, 1, "cdq", ()),
        Instruction(0x87, 2, "idiv", ("ebx",)),
        Instruction(0x89, 2, "imul", ("edx", "ebx")),
        Instruction(0x8C, 3, "add", ("edx", "r9d")),
        Instruction(0x8F, 3, "movsxd", ("rdx", "edx")),
        Instruction(0x92, 5, "addss", ("xmm0", "dword ptr [rdi+rdx*4]")),
        Instruction(0x97, 4, "mulss", ("xmm0", "xmm1")),
        Instruction(0x9B, 3, "cmp", ("ecx", "esi")),
        Instruction(0x9E, 2, "jne", ("0x80",), 0x80),
    )
    found = read_samples(torus, {0x97: 60, 0x80: 10})
    assert found is not None
    assert found.waits == {0x97: "quotient"}


def test_all_of_an_update_by_compare_and_exchange_is_atomic() -> None:
    update = (
        Instruction(0x80, 3, "mov", ("rdx", "qword ptr [rdi]")),
        Instruction(0x83, 5, "movq", ("xmm0", "rdx")),
        Instruction(0x88, 3, "mov", ("rax", "rdx")),
        Instruction(0x8B, 4, "addsd", ("xmm0", "xmm3")),
        Instruction(0x8F, 5, "movq", ("rbx", "xmm0")),
        Instruction(0x94, 5, "lock cmpxchg", ("qword ptr [rdi]", "rbx")),
        Instruction(0x99, 2, "jne", ("0x80",), 0x80),
        Instruction(0x9B, 3, "add", ("rsi", "8")),
        Instruction(0x9E, 3, "cmp", ("rsi", "r10")),
        Instruction(0xA1, 2, "jne", ("0x80",), 0x80),
    )
    found = read_samples(update, {0x83: 40, 0x8F: 10, 0x99: 40, 0x9B: 4, 0xA1: 4})
    assert found is not None
    assert {0x83, 0x8F, 0x99} <= {place for place, kind in found.waits.items() if kind == "atomic"}
    assert found.waits.get(0xA1) != "atomic"


def test_a_step_that_is_known_at_run_time_only_is_read_from_samples(program: Path) -> None:
    _, _, code = find_function(program, "scale")
    (loop,) = find_inner_loops(code)
    assert loop.strided, "without samples, it may lead to other lines"
    at = next(one.address for one in code if loop.begin <= one.address < loop.end)
    dense = {at: np.full((30, len(COLUMNS) - 1), 8, dtype=np.uint64)}
    (loop,) = find_inner_loops(code, {at: 30}, dense)
    assert not loop.strided
    assert loop.unshaped
    far = {at: np.full((30, len(COLUMNS) - 1), 4096, dtype=np.uint64)}
    (loop,) = find_inner_loops(code, {at: 30}, far)
    assert loop.far


def test_an_index_that_is_multiplied_anew_has_a_step() -> None:
    body = (
        Instruction(0, 3, "movsxd", ("rdx", "ecx")),
        Instruction(3, 4, "imul", ("rdx", "r11")),
        Instruction(7, 3, "add", ("rdx", "r10")),
        Instruction(10, 4, "mov", ("r8d", "dword ptr [rdi+rdx*4]")),
        Instruction(14, 3, "add", ("rcx", "1")),
        Instruction(17, 3, "cmp", ("r12", "rcx")),
        Instruction(20, 2, "jne", ("0",), 0),
    )
    writes = {"rdx": 3, "r8": 1, "rcx": 1}
    assert derive_steps(body, 3, {"rcx": 1}, writes, {})["rdx"] == "r11"
    assert derive_steps(body, 3, {"rcx": 1}, writes, {"r11": 150})["rdx"] == 150
    registers = {14: registers_at(40, rcx=range(3), r12=[4], r11=[150])}
    assert read_constants(body, writes, registers)["r11"] == 150
    assert estimate_trips(body, {"rcx": 1}, writes, registers) == 5
    assert estimate_trips(body, {"rcx": 1}, writes, {}) is None


@pytest.mark.parametrize(("target", "trips"), [(60, 5), (7, None)])
def test_a_loop_may_be_left_in_its_midst(target: int, trips: int | None) -> None:
    """Compilers enter a loop in its midst where the code in front of it stands at its end."""
    body = (
        Instruction(0, 4, "add", ("rcx", "1")),
        Instruction(4, 3, "cmp", ("r12", "rcx")),
        Instruction(7, 2, "je", (str(target),), target),
        Instruction(9, 4, "comisd", ("xmm0", "xmm1")),
        Instruction(13, 2, "jae", ("0",), 0),
        Instruction(15, 4, "addsd", ("xmm0", "xmm2")),
        Instruction(19, 2, "jmp", ("0",), 0),
    )
    registers = {9: registers_at(40, rcx=range(3), r12=[4])}
    assert estimate_trips(body, {"rcx": 1}, {"rcx": 1}, registers) == trips


def test_a_matrix_whose_columns_an_inner_loop_goes_down_is_strided_though_it_multiplies(program: Path) -> None:
    _, _, code = find_function(program, "table")
    assert any(loop.strided for loop in find_inner_loops(code))


def test_samples_are_grouped_by_their_places() -> None:
    rows = np.array([5, 6, 1])
    groups = iterate_groups(np.array([3, 3, 8]))
    assert [(place, rows[at].tolist()) for place, at in groups] == [(3, [5, 6]), (8, [1])]
    none = np.zeros(0, dtype=np.int64)
    assert list(iterate_groups(none)) == [], "a thread may have no samples in the program"
