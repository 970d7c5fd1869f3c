"""Optimized code that runs out of registers is told from code without optimization; kinds of functions by name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from compiled_programs import compile_program

from advisor.collect.binaries.disassembly import Instruction, disassemble
from advisor.collect.binaries.elf_files import read_elf
from advisor.collect.binaries.hot_functions import analyze_function
from advisor.collect.binaries.live_in_registers import share_of_live_in_pieces
from advisor.collect.binaries.registers import free_frame_pointer, has_frame_pointer
from advisor.trace.library_functions import classify_library_function

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the code of programs is looked into on x86-64")

SUMS = 40
#: A loop with more sums than there are registers: each is loaded from the frame and stored there.
CROWDED = "\n".join([
    "double crowded(int n, const double *x) {",
    *(f"    double s{k} = {k}.5;" for k in range(SUMS)),
    "    for (int i = 0; i < n; i++) {",
    "        double v = x[i];",
    *(f"        s{k} = s{k} * v + s{(k + 7) % SUMS};" for k in range(SUMS)),
    "    }",
    f"    return {' + '.join(f's{k}' for k in range(SUMS))};",
    "}",
    "int main(int argc, char **argv) { double x[2] = {0.5, argc}; return (int)crowded(2, x) + (argv == 0); }",
])  # fmt: skip


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("level", ["-O0", "-Og", "-O2", "-O3"])
def test_a_loop_without_enough_registers_is_optimized(tmp_path: Path, compiler: str, level: str) -> None:
    program = compile_program(tmp_path, compiler, CROWDED, level, "-fno-inline")
    image = read_elf(program)
    symbol = next(one for one in image.functions if one.name == "crowded")
    code = analyze_function(image, symbol, None)
    assert code.on_stack >= SUMS // 2
    assert code.unoptimized is (level == "-O0")


def test_code_without_jumps_is_told_by_its_frame(tmp_path: Path) -> None:
    source = "double twice(double x) { return 2.0 * x; }\nint main(void) { return (int)twice(0.0); }\n"
    shares = {}
    for level in ("-O0", "-O2"):
        image = read_elf(compile_program(tmp_path, "gcc", source, level, "-fno-inline", "-fcf-protection=none"))
        symbol = next(one for one in image.functions if one.name == "twice")
        shares[level] = share_of_live_in_pieces(disassemble(image, symbol.begin, symbol.end))
    assert shares == {"-O0": 0.0, "-O2": 1.0}


def test_the_frame_pointer_is_a_register_where_it_points_to_no_frame() -> None:
    load = Instruction(0, 4, "movsd", ("xmm0", "qword ptr [rbp+rax*8]"))
    count = Instruction(4, 3, "add", ("ebp", "1"))
    assert free_frame_pointer((load, count)) == (
        Instruction(0, 4, "movsd", ("xmm0", "qword ptr [r16+rax*8]")),
        Instruction(4, 3, "add", ("r16d", "1")),
    )
    framed = (Instruction(0, 3, "mov", ("rbp", "rsp")), load)
    assert has_frame_pointer(framed)
    assert free_frame_pointer(framed) == framed


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("rand", "random"), ("__random", "random"), ("__random_r", "random"), ("drand48", "random"),
        ("_gfortran_random_r8", "random"), ("_gfortran_arandom_r4", "random"), ("_gfortran_random_init", None),
        ("for_random_number", "random"),
        ("lrand48", "random"), ("__drand48_iterate", "random"), ("random_walk", None), ("operand", None),
        ("rand_r", None),
        ("qsort", "sort"), ("qsort_r@@GLIBC_2.8", "sort"), ("msort_with_tmp.part.0", "sort"), ("_quicksort", "sort"),
        ("heapsort_r", "sort"), ("quicksort_rows", None), ("sort", None),
        ("std::sort", "sort"), ("std::__introsort_loop<double*, long>", "sort"), ("std::__1::__sort<int*>", "sort"),
        ("std::__unguarded_partition<...>", "sort"), ("std::__adjust_heap<...>", None), ("std::sorted_view<int>", None),
        ("libgfortran.so.5.0.0", "text"), ("libgfortran.so.5", "text"), ("_gfortran_matmul_r8", None),
    ],
)  # fmt: skip
def test_shared_generators_and_nameless_output_have_kinds(name: str, kind: str | None) -> None:
    assert classify_library_function(name) == kind
