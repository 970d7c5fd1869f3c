"""What the code of a program tells: how it was compiled, why its loops are scalar, and the seconds in such code."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from compiled_programs import compile_program
from profiles_of_code import profile_of, seconds_of

from advisor.collect.binaries import disassembly, executables
from advisor.collect.binaries.compilers import read_compilation
from advisor.collect.binaries.elf_files import read_elf
from advisor.collect.binaries.executables import attach_executable, find_executable, keep_program
from advisor.collect.binaries.hot_functions import analyze_function
from advisor.collect.binaries.inner_loops import find_inner_loops
from advisor.collect.binaries.program_code import describe_code
from advisor.collect.binaries.registers import whole_register
from advisor.model.errors import InputError
from advisor.trace.library_functions import classify_library_function

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.collect.binaries.hot_functions import FunctionCode

LOOPS = """\
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
void add(int n, double *restrict y, const double *restrict x) { for (int i = 0; i < n; i++) y[i] += x[i]; }
double sum(int n, const double *x) { double s = 0; for (int i = 0; i < n; i++) s += x[i]; return s; }
void power(int n, double *y, const double *x) { for (int i = 0; i < n; i++) y[i] = 2.0 * pow(x[i], 1.7); }
void column(int n, double *restrict y, const double *restrict x)
{
    for (int i = 0; i < n; i++)
        y[i] += 2.0 * x[512 * i];
}
void divide(int n, double *restrict y, const double *restrict x) { for (int i = 0; i < n; i++) y[i] = 1.0 / x[i]; }
void gather(int n, double *restrict y, const double *restrict x, const int *restrict at)
{
    for (int i = 0; i < n; i++)
        y[at[i]] = 2.0 * x[at[i]];
}
double MPI_Mine(double x) { return x + 1.0; }
double exchange(int n, double x) { for (int i = 0; i < n; i++) x = 0.5 * MPI_Mine(x); return x; }
typedef struct { double place, before, now, next; } Point;
void wave(unsigned n, double c, Point *p)
{
    for (unsigned i = 1; i <= n - 2; i++)
        p[i].next = c * (p[i + 1].now + p[i - 1].now) + 2.0 * (1.0 - c) * p[i].now - p[i].before;
}
typedef struct Node { double mass; struct Node *part[8]; } Node;
double walk(const Node *node, double x)
{
    double all = node->mass / x;
    for (int i = 0; i < 8; i++)
        if (node->part[i])
            all += 0.5 * walk(node->part[i], 1.5 * x);
    return all;
}
double orbit(int n, double x) { for (int i = 0; i < n; i++) x = 3.7 * x * (1.0 - x); return x; }
void sweep(int n, double *u) { for (int i = 1; i < n; i++) u[i] = 0.5 * (u[i - 1] + u[i + 1]); }
void thomas(int n, double b, double *restrict p, const double *restrict c)
{
    for (int i = 1; i < n; i++)
        p[i] = c[i] / (b + 0.5 * p[i - 1]);
}
void relax(int n, double h, double *u) { for (int i = 1; i < n; i++) u[i] = (u[i - 1] + u[i + 1]) / h; }
void update(int n, volatile long *place, const int *x) { for (int i = 0; i < n; i++) *place += x[i]; }
void shortest(int n, int *path, const int *row, int *through)
{
    for (int i = 0; i < n; i++)
        path[i] = path[i] < *through + row[i] ? path[i] : *through + row[i];
}
int largest(int n, const int *x) { int m = 0; for (int i = 0; i < n; i++) m = x[i] > m ? x[i] : m; return m; }
void running(int n, int *x) { for (int i = 1; i < n; i++) x[i] += x[i - 1]; }
unsigned hash(int n, const unsigned char *x)
{
    unsigned h = 5381;
    for (int i = 0; i < n; i++)
        h = 31 * h + x[i];
    return h;
}
int search(int n, const int *x, int wanted) { int i = 0; while (i < n && x[i] != wanted) i++; return i; }
void copy(int n, volatile int *y, const int *x) { for (int i = 0; i < n; i++) y[i] = x[i]; }
int main(int argc, char **argv)
{
    double y[9] = {argc}, x[5000] = {1};
    int at[9] = {0};
    long place = 0;
    add(argc, y, x), power(argc, y, x), column(argc, y, x), divide(argc, y, x), gather(argc, y, x, at);
    update(argc, &place, at), sweep(argc, y);
    x[1] = orbit(argc, 0.3), x[2] = exchange(argc, 0.3);
    printf("%s %g %g\\n", argv[0], sum(argc, y), y[0]);
    return 0;
}
"""
X86 = os.uname().machine == "x86_64"
pytestmark = pytest.mark.skipif(not X86, reason="the code of programs is looked into on x86-64")


def function(program: Path, name: str) -> FunctionCode:
    image = read_elf(program)
    symbol = next(one for one in image.functions if one.name == name)
    return analyze_function(image, symbol, read_compilation(image).find_unit(symbol.begin))


@pytest.fixture(scope="module")
def optimized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program(tmp_path_factory.mktemp("optimized"), "gcc", LOOPS, "-O3", "-g", "-fno-inline")


@pytest.fixture(scope="module")
def scalar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scalar")
    return compile_program(folder, "gcc", LOOPS, "-O2", "-g", "-fno-inline", "-fno-tree-vectorize")


@pytest.mark.parametrize(
    ("options", "level", "unoptimized"),
    [
        ((), "-O0", True),
        (("-O0",), "-O0", True),
        (("-O",), "-O1", False),
        (("-O2", "-O3"), "-O3", False),
        (("-O5",), "-O3", False),
    ],
)
def test_gcc_records_its_options(tmp_path: Path, options: tuple[str, ...], level: str, unoptimized: bool) -> None:
    program = compile_program(tmp_path, "gcc", LOOPS, "-g", "-march=x86-64-v2", *options)
    (unit,) = read_compilation(read_elf(program)).units
    assert (unit.level, unit.unoptimized, unit.language, unit.target) == (level, unoptimized, "c", "x86-64-v2")
    assert unit.compiler.startswith("GNU C")
    assert unit.fast_math is False


def test_fast_math_and_openmp_are_among_the_options(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "gcc", LOOPS, "-g", "-O2", "-ffast-math", "-fopenmp")
    unit = next(one for one in read_compilation(read_elf(program)).units if one.file.endswith("program.c"))
    assert unit.fast_math
    assert "-fopenmp" in unit.options


def test_clang_records_options_where_it_is_told_to(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "clang", LOOPS, "-g", "-O2")
    (unit,) = read_compilation(read_elf(program)).units
    assert "clang" in unit.compiler
    assert unit.level is None
    assert unit.fast_math is None
    program = compile_program(tmp_path, "clang", LOOPS, "-g", "-O2", "-grecord-command-line")
    (unit,) = read_compilation(read_elf(program)).units
    assert unit.level == "-O2"


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3"])
def test_code_without_optimization_is_recognized_by_its_stack(tmp_path: Path, compiler: str, level: str) -> None:
    program = compile_program(tmp_path, compiler, LOOPS, level, "-fno-inline")
    names = ("add", "sum", "power", "column", "divide", "gather", "update")
    assert {function(program, name).unoptimized for name in names} == {level == "-O0"}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("add", "overlap"),
        ("sum", "order"),
        ("power", "call"),
        ("column", "stride"),
        ("gather", "index"),
        ("orbit", "recurrence"),
        ("sweep", "recurrence"),
        ("thomas", "recurrence"),
        ("relax", "recurrence"),
        ("shortest", "overlap"),
        ("largest", "overlap"),
        ("running", None),
        ("hash", None),
        ("search", None),
        ("copy", None),
    ],
)
def test_the_reason_why_a_loop_is_scalar(scalar: Path, name: str, reason: str | None) -> None:
    (loop,) = function(scalar, name).loops
    assert loop.scalar_reason == reason


@pytest.mark.parametrize("name", ["add", "largest"])
def test_a_vectorized_loop_has_no_reason_and_its_remainder_is_none(optimized: Path, name: str) -> None:
    image = read_elf(optimized)
    code = function(optimized, name)
    assert any(loop.is_vector for loop in code.loops)
    lines = {place: (None, None) for loop in code.loops for place in loop.arithmetic}
    assert all(loop.scalar_reason is None for loop in code.without_remainders(lines).loops)
    assert image.machine == "EM_X86_64"


def test_strides_divisions_and_stores_to_one_place_are_told(scalar: Path) -> None:
    names = ("add", "column", "divide", "update", "gather", "thomas", "relax", "wave")
    shares = {name: function(scalar, name).loop_shares() for name in names}
    assert shares["column"]["strided"] == shares["column"]["far"] == 1.0
    assert shares["add"]["strided"] == shares["add"]["far"] == 0.0
    assert shares["divide"]["slow"] == 1.0
    assert shares["thomas"]["slow"] == 0.0, "each division waits for the one before: none can go"
    assert shares["relax"]["slow"] == 1.0, "its divisor stays the same"
    assert shares["add"]["slow"] == 0.0
    assert shares["update"]["fixed"] == 1.0
    assert shares["add"]["fixed"] == 0.0
    assert shares["gather"]["indexed"] == 1.0
    assert shares["wave"]["indexed"] == 0.0, "what its unsigned counter becomes advances by the size of an object"
    assert shares["wave"]["strided"] == 1.0


@pytest.mark.parametrize("debug", ["-g", "-g0"])
def test_compilers_that_may_put_reciprocals_leave_no_division_that_can_go(tmp_path: Path, debug: str) -> None:
    options = ("-O2", "-fno-inline", "-fno-tree-vectorize", debug)
    for more, slow in (((), 1.0), (("-ffast-math", "-mno-recip"), 0.0)):
        program = compile_program(tmp_path, "gcc", LOOPS, *options, *more)
        assert function(program, "divide").loop_shares()["slow"] == slow


def test_divisions_cost_nothing_where_a_loop_waits_for_memory(scalar: Path) -> None:
    code = function(scalar, "divide")
    waiting = replace(code, loops=tuple(replace(loop, streams=True) for loop in code.loops))
    assert (code.loop_shares()["slow"], waiting.loop_shares()["slow"]) == (1.0, 0.0)


def test_loops_behind_hundreds_of_jumps_back_are_weighed(scalar: Path) -> None:
    code = function(scalar, "add")
    deep = tuple(replace(loop, depth=400 + number) for number, loop in enumerate(code.loops))
    assert replace(code, loops=deep).loop_shares() == code.loop_shares()


def test_a_loop_that_communicates_is_no_computation(scalar: Path) -> None:
    assert function(scalar, "exchange").loops == ()


def test_a_walk_through_a_tree_calls_nothing_that_could_be_inlined(scalar: Path) -> None:
    code = function(scalar, "walk")
    assert [loop.scalar_reason for loop in code.loops] == ["call"]
    assert code.loop_shares()["call"] == 0.0
    assert function(scalar, "power").loop_shares()["call"] == 0.0, "a mathematical function"
    assert replace(code, recursing=frozenset()).loop_shares()["call"] == 1.0


def test_calls_are_named(scalar: Path) -> None:
    assert function(scalar, "power").called == {"pow"}
    assert function(scalar, "power").loop_shares()["math"] == 1.0


def test_objdump_says_the_same_as_capstone(scalar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("capstone")
    if shutil.which("objdump") is None:
        pytest.skip("objdump (binutils) is not installed")
    image = read_elf(scalar)
    symbols = [one for one in image.functions if one.name in ("add", "sum", "power", "column", "divide", "gather")]
    told = [find_inner_loops(disassembly.disassemble(image, one.begin, one.end)) for one in symbols]
    monkeypatch.setattr(disassembly, "_load_decoder", lambda: None)
    assert [find_inner_loops(disassembly.disassemble(image, one.begin, one.end)) for one in symbols] == told


def test_seconds_go_to_the_kinds_of_code(scalar: Path) -> None:
    profile = profile_of(("sum", "column", "__ieee754_pow_fma", "_int_malloc", "other"), (4.0, 3.0, 2.0, 1.0, 0.5))
    found = describe_code(profile, scalar)
    assert seconds_of(found, "all") == [4.0, 3.0, 2.0, 1.0, 0.5]
    assert seconds_of(found, "known") == [4.0, 3.0, 2.0, 1.0, 0.0]
    assert seconds_of(found, "order") == [4.0, 0.0, 0.0, 0.0, 0.0]
    assert seconds_of(found, "strided") == [0.0, 3.0, 0.0, 0.0, 0.0]
    assert seconds_of(found, "math") == [0.0, 0.0, 2.0, 0.0, 0.0]
    assert seconds_of(found, "allocation") == [0.0, 0.0, 0.0, 1.0, 0.0]
    assert seconds_of(found, "unoptimized") == [0.0] * 5
    assert (found.language, found.regions[0].line) == ("c", 5)
    assert found.regions[0].file is not None
    assert found.regions[0].file.endswith("program.c")
    assert any("with -O2" in note.text for note in found.notes)


def test_unoptimized_code_has_no_other_fault(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "gcc", LOOPS, "-g")
    found = describe_code(profile_of(("sum", "column"), (4.0, 3.0)), program)
    assert seconds_of(found, "unoptimized") == [4.0, 3.0]
    assert seconds_of(found, "order") == seconds_of(found, "strided") == [0.0, 0.0]


@pytest.mark.parametrize(("level", "seconds"), [("-O0", 5.0), ("-O2", 0.0)])
def test_of_a_run_without_functions_only_what_holds_of_all_is_said(tmp_path: Path, level: str, seconds: float) -> None:
    program = compile_program(tmp_path, "gcc", LOOPS, level)
    found = describe_code(profile_of(("the whole program",), (5.0,)), program)
    assert seconds_of(found, "unoptimized") == [seconds]
    assert {name for name in found.counts if name.startswith("code.")} == {
        "code.all_s", "code.known_s", "code.unoptimized_s",
    }  # fmt: skip


def test_the_program_is_found_by_its_path_or_the_command(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "gcc", LOOPS, "-O2").rename(tmp_path / "program")
    nowhere = profile_of(("sum",), (1.0,))
    assert find_executable(nowhere, [tmp_path]) is None
    assert find_executable(replace(nowhere, executable="./program"), [tmp_path]) == program
    command = {"command": "mpirun -n 2 ./program 100"}
    assert find_executable(replace(nowhere, parameters=command), [tmp_path]) == program
    assert find_executable(replace(nowhere, executable="./program.c"), [tmp_path]) is None


def test_a_program_that_changed_after_the_run_is_left_alone(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "gcc", LOOPS, "-O2")
    profile = profile_of(("sum",), (1.0,), executable=str(program), started="2020-01-01T00:00:00")
    found = attach_executable(profile, None, [tmp_path])
    assert not found.counts
    assert "was changed after this run" in found.notes[-1].text
    assert attach_executable(profile, program, [tmp_path]).counts, "the user says that it is the one"


@pytest.mark.parametrize("linked", [True, False])
def test_a_recording_keeps_its_program_through_the_next_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linked: bool
) -> None:
    program = compile_program(tmp_path, "gcc", LOOPS, "-O2")
    recording = tmp_path / "recording"
    recording.mkdir()
    if not linked:
        monkeypatch.setattr("os.link", lambda *_: (_ for _ in ()).throw(OSError("another file system")))
    keep_program(program, recording)
    keep_program(program, recording)  # as of every rank
    keep_program(tmp_path / "gone", recording)
    [kept] = recording.iterdir()
    assert kept.samefile(program) == linked
    started = datetime.fromtimestamp(program.stat().st_mtime, UTC).isoformat()
    profile = profile_of(("sum",), (1.0,), executable=str(program), started=started)
    expected = attach_executable(profile, None, [])
    program.unlink()
    assert attach_executable(profile, None, [], [recording]).counts.keys() == expected.counts.keys() != set()
    program.write_bytes(kept.read_bytes())
    os.utime(program, (2e9, 2e9))
    rebuilt = attach_executable(profile, None, [], [recording])
    assert rebuilt.counts.keys() == expected.counts.keys()
    assert rebuilt.executable == str(program), "commands name the user's file"
    os.utime(kept, (2e9, 2e9))
    assert "was changed after this run" in attach_executable(profile, None, [], [recording]).notes[-1].text


def test_of_two_programs_with_one_name_each_is_kept(tmp_path: Path) -> None:
    programs = []
    for folder, option in (("fast", "-O2"), ("slow", "-O0")):
        (tmp_path / folder).mkdir()
        programs.append(compile_program(tmp_path / folder, "gcc", LOOPS, option))
    recording = tmp_path / "recording"
    recording.mkdir()
    for program in programs:
        keep_program(program, recording)
    shares = []
    for program in programs:
        profile = profile_of(("sum",), (1.0,), executable=str(program))
        program.unlink()
        table = attach_executable(profile, None, [], [recording]).counts.get("code.unoptimized_s")
        shares.append(0.0 if table is None else float(table.sum()))
    assert shares[0] == 0.0 < shares[1]


def test_a_large_program_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = compile_program(tmp_path, "gcc", LOOPS, "-O2")
    (tmp_path / "recording").mkdir()
    monkeypatch.setattr("os.link", lambda *_: (_ for _ in ()).throw(OSError("another file system")))
    monkeypatch.setattr(executables, "_MOST_COPIED_B", program.stat().st_size - 1)
    keep_program(program, tmp_path / "recording")
    assert not list((tmp_path / "recording").iterdir())


def test_a_stated_file_that_is_no_program_is_a_mistake(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("no program")
    with pytest.raises(InputError, match="not an executable file"):
        attach_executable(profile_of(("sum",), (1.0,)), file, [])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("__ieee754_pow_fma", "math"), ("sin", "math"), ("__sincos_fma", "math"), ("atan2f", "math"),
        ("_ZGVeN8vv_pow_skx", "math"), ("_ZGVdN4v_sin_avx2", "math"), ("_ZGVbN4v_mine", None),
        ("fminf", "inlinable"), ("__floor_sse41", "inlinable"), ("lrint", "inlinable"), ("__fma_fma3", "inlinable"),
        ("floorplan", None), ("fminsearch", None),
        ("cexp", "math"), ("__muldc3", "math"), ("pow@plt", "math"), ("power", None), ("sinus", None),
        ("malloc", "memory"), ("_int_free", "memory"), ("operator new(unsigned long)", "memory"),
        ("__memmove_avx_unaligned_erms", "copy"), ("memset@plt", "copy"), ("memory", None),
        ("free_list", None), ("isoc99_fscanf", "text"), ("____strtod_l_internal", "text"), ("operator<<", None),
        ("std::basic_istream<char, std::char_traits<char> >& std::getline<char>(std::istream&, char)", "buffered"),
        ("std::istream::get(char&)", "buffered"), ("std::ostream::write(char const*, long)", "buffered"),
        ("std::istream& std::operator>>(std::istream&, char&)", "text"),
        ("std::ostream& std::ostream::_M_insert<double>(double)", "text"), ("_gfortran_transfer_real_write", "text"),
        ("print_grid", None), ("scanner", None), ("__GI__IO_fread", "buffered"), ("getc", "buffered"),
        ("_IO_file_xsgetn", "buffered"), ("fwrite@plt", "buffered"), ("__GI___printf_fp_l", "text"), ("getcwd", None),
        ("__assert_fail", "check"), ("__ubsan_handle_out_of_bounds", "check"), ("mcount", "check"),
        ("_gfortran_runtime_error_at", "check"), ("__stack_chk_fail", None), ("main", None), ("expand", None),
    ],
)  # fmt: skip
def test_functions_of_libraries_are_known_by_name(name: str, kind: str | None) -> None:
    assert classify_library_function(name) == kind


@pytest.mark.parametrize(
    ("name", "whole"), [("eax", "rax"), ("r8d", "r8"), ("sil", "rsi"), ("ymm3", "v3"), ("bpl", "rbp"), ("r15", "r15")]
)
def test_parts_of_registers_are_the_whole(name: str, whole: str) -> None:
    assert whole_register(name) == whole
