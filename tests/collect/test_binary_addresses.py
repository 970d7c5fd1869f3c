"""Addresses of programs are mapped to functions, lines and inlined frames, and what a file lacks is said."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from compiled_programs import compile_program

from advisor.collect.binaries.addresses import Frame, resolve_addresses
from advisor.collect.binaries.demangling import demangle
from advisor.collect.binaries.elf_files import read_elf
from advisor.model.errors import InputError
from advisor.trace.library_functions import classify_library_function
from advisor.trace.recordings.places import CodePlace, select_own_frames

if TYPE_CHECKING:
    from pathlib import Path

C = """\
#include <stdio.h>
static inline __attribute__((always_inline)) double weigh(double x)
{
    return x * x + 1.0; /* line 4 */
}
__attribute__((noinline)) double relax(const double *v, int n)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        sum += weigh(v[i]); /* line 10 */
    return sum;
}
int main(int argc, char **argv)
{
    double v[200];
    for (int i = 0; i < 200; i++)
        v[i] = argc * i;
    printf("%s %g\\n", argv[0], relax(v, 99 + argc));
    return 0;
}
"""
CXX = """\
namespace grid {
struct Field {
    double v[64];
    __attribute__((noinline)) double relax(int n)
    {
        double sum = 0;
        for (int i = 0; i < n; ++i)
            sum += v[i] * 0.5; // line 8
        return sum;
    }
};
}
__attribute__((noinline)) static double local(grid::Field& f, int n) { return f.relax(n) / 2; }
int main(int argc, char**)
{
    grid::Field f{};
    return static_cast<int>(local(f, argc));
}
"""
FORTRAN = """\
module grid
contains
  subroutine sweep(a, n)
    integer, intent(in) :: n
    real(8), intent(inout) :: a(n)
    integer :: i
    do i = 2, n
      a(i) = 0.5d0 * (a(i) + a(i-1)) ! line 8
    end do
  end subroutine
end module
program test
  use grid
  real(8) :: a(100)
  a = 1d0
  call sweep(a, 100)
  call inner(a)
  print *, a(10)
contains
  subroutine inner(b)
    real(8), intent(inout) :: b(:)
    b = b * 2 ! line 22
  end subroutine
end program
"""


def chains(program: Path) -> set[tuple[tuple[str | None, str, int | None], ...]]:
    """Return the frames of all addresses of a program, with the names of the files only."""
    image = read_elf(program)
    addresses = [address for begin, data in image.code for address in range(begin, begin + len(data))]
    places = resolve_addresses(program, addresses).places
    assert len(places) == len(addresses)
    return {tuple((f.function, (f.file or "").rpartition("/")[2], f.line) for f in place.frames) for place in places}


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("debug", ["-gdwarf-2", "-gdwarf-3", "-gdwarf-4", "-gdwarf-5", "-g", "-g -gz"])
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_an_inlined_function_stands_before_the_one_that_holds_its_code(
    tmp_path: Path, compiler: str, debug: str, level: str
) -> None:
    found = chains(compile_program(tmp_path, compiler, C, level, *debug.split()))
    assert (("weigh", "program.c", 4), ("relax", "program.c", 10)) in found
    assert any(chain[-1][0] == "main" and chain[0][2] in (16, 17, 18) for chain in found)


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("debug", ["-gdwarf-4", "-gdwarf-5"])
def test_names_of_cxx_are_demangled(tmp_path: Path, compiler: str, debug: str) -> None:
    found = chains(compile_program(tmp_path, compiler, CXX, "-O1", debug, suffix=".cpp"))
    assert (("grid::Field::relax(int)", "program.cpp", 8),) in found
    assert any(chain[-1][0] == "local(grid::Field&, int)" for chain in found)


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_procedures_of_fortran_and_those_inside_others_are_found(tmp_path: Path, level: str) -> None:
    options = (level, "-g", "-fno-inline", "-fno-ipa-cp")
    found = chains(compile_program(tmp_path, "gfortran", FORTRAN, *options, suffix=".f90"))
    assert any(chain[-1][0] in ("sweep", "grid::sweep") and chain[0][2] == 8 for chain in found)
    assert any(chain[-1][0] == "inner" and chain[0][2] == 22 for chain in found)


def test_offsets_into_the_file_are_the_addresses_as_linked(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "gcc", C, "-g", "-no-pie")
    image = read_elf(program)
    main = next(one for one in image.functions if one.name == "main")
    offset, address, _ = next(each for each in image.segments if each[1] <= main.begin < each[1] + each[2])
    assert address != offset, "a program at a fixed address"
    found = resolve_addresses(program, [main.begin - address + offset, 1 << 40], kind="file offset").places
    assert found[0].address == main.begin
    assert found[0].frames[-1].function == "main"
    assert found[1].frames == (Frame(None),)


def test_without_debug_information_the_symbols_name_the_functions(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "gcc", C, "-O1")
    main = next(one.begin for one in read_elf(program).functions if one.name == "relax")
    found = resolve_addresses(program, [main + 4, 0])
    assert found.places[0].frames == (Frame("relax"),)
    assert found.places[1].frames == (Frame(None),)
    assert "no debug information (compile with -g)" in found.missing[0]


def test_a_stripped_program_is_called_so(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "gcc", C, "-O1", "-s")
    found = resolve_addresses(program, [read_elf(program).code[0][0]])
    assert "it is stripped" in found.missing[0]


def test_calls_into_libraries_have_the_name_of_the_function(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "gcc", C, "-O1", "-g")
    image = read_elf(program)
    if image.machine != "EM_X86_64":
        pytest.skip("stubs of the dynamic linker are read on x86-64")
    stub = next(address for address, name in image.stubs.items() if name == "printf")
    assert resolve_addresses(program, [stub]).places[0].frames[-1].function == "printf@plt"


def test_debug_information_that_was_split_off_is_found_beside_the_program(tmp_path: Path) -> None:
    if shutil.which("objcopy") is None:
        pytest.skip("objcopy (binutils) is not installed")
    program = compile_program(tmp_path, "gcc", C, "-O1", "-g")
    relax = next(one.begin for one in read_elf(program).functions if one.name == "relax")
    split = tmp_path / "program.debug"
    for words in (
        ["--only-keep-debug", program.name, split.name],
        ["--strip-all", f"--add-gnu-debuglink={split.name}", program.name],
    ):
        subprocess.run(["objcopy", *words], check=True, cwd=tmp_path)
    found = resolve_addresses(program, [relax])
    assert found.places[0].frames[-1].function == "relax"
    assert found.places[0].frames[-1].line in (7, 8, 9, 10)
    assert not found.missing
    split.unlink()
    assert "split off to program.debug, which is not at hand" in resolve_addresses(program, [relax]).missing[0]


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_of_split_dwarf_lines_are_known_and_the_rest_is_said(tmp_path: Path, compiler: str) -> None:
    program = compile_program(tmp_path, compiler, C, "-O2", "-g", "-gsplit-dwarf")
    relax = next(one.begin for one in read_elf(program).functions if one.name == "relax")
    found = resolve_addresses(program, [relax])
    assert found.places[0].frames[-1].function == "relax"
    assert found.places[0].frames[-1].line
    assert "compiled with -gsplit-dwarf" in found.missing[0]


def test_damaged_debug_information_leaves_the_symbols(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "gcc", C, "-O1", "-g")
    image = read_elf(program)
    relax = next(one.begin for one in image.functions if one.name == "relax")
    content = bytearray(program.read_bytes())
    begin = content.index(image.sections[".debug_info"])
    dice = random.Random(1)
    for _ in range(300):
        damaged = bytearray(content)
        for _ in range(3):
            damaged[begin + dice.randrange(len(image.sections[".debug_info"]))] = dice.randrange(256)
        program.write_bytes(damaged)
        assert resolve_addresses(program, [relax]).places[0].frames
    for length in range(0, len(content), 97):
        program.write_bytes(content[:length])
        with suppress(InputError):
            resolve_addresses(program, [relax])


def test_what_is_no_program_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "script.sh"
    file.write_text("#!/bin/sh\n")
    with pytest.raises(InputError, match="not an executable file"):
        resolve_addresses(file, [0])


@pytest.mark.parametrize("debug", ["-gdwarf-4", "-gdwarf-5"])
def test_lines_are_those_of_addr2line(tmp_path: Path, debug: str) -> None:
    if shutil.which("addr2line") is None:
        pytest.skip("addr2line (binutils) is not installed")
    program = compile_program(tmp_path, "gcc", C, "-O2", debug)
    image = read_elf(program)
    relax = next(one for one in image.functions if one.name == "relax")
    addresses = list(range(relax.begin, relax.end))
    words = ["addr2line", "-e", str(program), *map(hex, addresses)]
    said = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split("\n")
    theirs = [int(found[1]) for line in said if (found := re.search(r":(\d+)", line))]
    places = resolve_addresses(program, addresses).places
    assert [place.frames[0].line for place in places] == theirs


def test_names_are_made_readable() -> None:
    assert demangle("__grid_MOD_sweep") == "grid::sweep"
    assert demangle("relax.constprop.0") == "relax"
    assert demangle("main._omp_fn.0") == "main._omp_fn.0"
    assert demangle("_Znot_mangled") == "_Znot_mangled"
    assert demangle("_ZN4part8triangle17h07026a8836279bc0E") == "part::triangle"
    write = "_$LT$std..io..Adapter$LT$T$GT$$u20$as$u20$core..fmt..Write$GT$"
    writer = f"_ZN{len(write)}{write}9write_str17h57974097eab5c953E"
    assert demangle(writer) == "<std::io::Adapter<T> as core::fmt::Write>::write_str"


@pytest.mark.skipif(shutil.which("c++filt") is None, reason="needs c++filt (binutils)")
def test_new_names_of_rust_are_read_without_the_hashes_of_crates() -> None:
    unlock = "_RNvMNtNtNtNtCsjrHSEGnQ3l9_3std3sys4sync5mutex5futexNtB2_5Mutex6unlock"
    assert demangle(unlock) == "<std::sys::sync::mutex::futex::Mutex>::unlock"


def test_inlined_functions_of_system_headers_are_time_of_what_holds_them() -> None:
    header = CodePlace("memcmp", "/usr/include/c++/12/bits/char_traits.h", 385)
    own = CodePlace("add", "/home/me/words.cpp", 12)
    assert select_own_frames((header, own)) == (replace(own, inlined=("memcmp",)),)
    assert select_own_frames((header,)) == (header,)
    assert classify_library_function("memcmp") == "string"
    assert classify_library_function("__memcpy_avx_unaligned_erms") == "copy"


def test_calls_have_columns_where_the_compiler_tells_them(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "gcc", C, "-O2", "-g")
    image = read_elf(program)
    relax = next(one for one in image.functions if one.name == "relax")
    columns = {
        (frame.line, frame.column)
        for place in resolve_addresses(program, range(relax.begin, relax.end)).places
        for frame in place.frames
        if frame.line == 10
    }
    text = C.splitlines()[9]
    assert (10, text.index("weigh") + 1) in columns, "where the inlined function is called"
    assert Frame("f", "a.c", 3, 7) == Frame("f", "a.c", 3), "a column makes no other frame"
