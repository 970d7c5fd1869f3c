"""How a recorded program is run once more: under callgrind, with counters in its source, on one rank or thread."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final

from advisor.collect.binaries.compilers import read_compilation
from advisor.collect.binaries.dwarf_units import DAMAGE
from advisor.collect.binaries.elf_files import find_debug_file, read_elf
from advisor.model.errors import InputError
from advisor.support.child_process import read_tail, run_child, run_program
from advisor.support.system_sources import is_system_source

_SOURCES: Final = (".c", ".cc", ".cpp", ".cxx", ".C", ".f90", ".F90", ".f95", ".F95", ".f03", ".f08")
_FORTRAN: Final = (".f90", ".F90", ".f95", ".F95", ".f03", ".f08")


@dataclass(frozen=True, slots=True)
class PassResult:
    """How a command ended: exit status (negative: the signal), seconds, and the end of what it wrote."""

    code: int
    wall_s: float
    said: str


def rerun_program(
    words: Sequence[str], log: Path, variables: Mapping[str, str] | None = None, limit_s: float | None = None
) -> PassResult:
    """Run a command with its output in ``log``; a standard input that is a file is read from its beginning.

    What takes longer than ``limit_s`` is ended with all its processes.
    """
    with log.open("w+b") as output:
        run = run_program(words, output, limit_s, extra=variables, stdin=_reread_input())
        said = read_tail(output, 2000).strip()
    return PassResult(-signal.SIGTERM if run.status is None else run.status, run.seconds, said)


def _reread_input() -> int:
    """Return a standard input from which all is read again, else one without anything."""
    with suppress(OSError, ValueError, AttributeError):
        number = sys.stdin.fileno()
        os.lseek(number, 0, os.SEEK_SET)
        return number
    return subprocess.DEVNULL


def callgrind_command(words: Sequence[str], place: int, folder: Path, mpi: str) -> list[str]:
    """Return the command under callgrind, whose output goes into ``folder``; the program stands at ``place``."""
    rank = "%q{PMI_RANK}" if "mpich" in mpi.lower() or "intel" in mpi.lower() else "%q{OMPI_COMM_WORLD_RANK}"
    number = rank if mpi else "0"
    options = ("--dump-instr=yes", "--cache-sim=yes", f"--callgrind-out-file={folder}/callgrind.out.{number}")
    return [*words[:place], "valgrind", "--tool=callgrind", *options, *words[place:]]


def find_sources(program: Path) -> tuple[Path, ...]:
    """Return the sources of a program that its debug information names and that are there; empty for none."""
    try:
        image = read_elf(program)
        split = None if image.has_debug_info else find_debug_file(image)
        units = read_compilation(read_elf(split) if split else image).units
    except (InputError, *DAMAGE):
        return ()
    files = [Path(unit.file) for unit in units if unit.file and not is_system_source(unit.file)]
    return tuple(dict.fromkeys(file.resolve() for file in files if file.is_file() and file.suffix in _SOURCES))


@dataclass(frozen=True, slots=True)
class CountingPlan:
    """How the operations of a source are counted: in a copy of ``root``, built and run by these commands."""

    root: Path
    build: str
    command: tuple[str, ...]


def plan_counting(
    words: Sequence[str], place: int, program: Path, sources: Sequence[Path], mpicc: str | None, threaded: bool
) -> CountingPlan:
    """Return how to build and run a copy of a program with counters.

    The copy holds sources, program and the directory at hand. It is built as the Makefile beside the program says,
    if it knows the program, else by one compiler for all sources.
    """
    here = Path.cwd()
    root = Path(os.path.commonpath([here, program.parent, *(file.parent for file in sources)]))
    inside = program.relative_to(root)
    folder = here.relative_to(root)
    command = list(words)
    at = next(n for n in range(place, len(words)) if PurePath(words[n]).name == program.name)
    command[at] = os.path.relpath(inside, folder)
    if os.sep not in command[at]:
        command[at] = f"./{command[at]}"
    if folder != Path():
        command = ["env", f"--chdir={folder}", *command]
    return CountingPlan(root, _build_command(root, inside, sources, mpicc, threaded), tuple(command))


def _build_command(root: Path, inside: Path, sources: Sequence[Path], mpicc: str | None, threaded: bool) -> str:
    folder = root / inside.parent
    if shutil.which("make") and any((folder / name).is_file() for name in ("Makefile", "makefile", "GNUmakefile")):
        asked = run_child(["make", "-n", "-B", inside.name], None, folder=folder)
        if asked.status == 0 and asked.text.strip():
            return shlex.join(["make", "-B", "-C", str(inside.parent), inside.name])
    fortran = any(file.suffix in _FORTRAN for file in sources)
    cxx = not fortran and any(file.suffix != ".c" for file in sources)
    if mpicc:
        compiler = re.sub(r"cc(?=$|\.)", "fort" if fortran else "cxx" if cxx else "cc", mpicc)
    else:
        compiler = "gfortran" if fortran else "c++" if cxx else "cc"
    names = [str(file.relative_to(root)) for file in sources]
    options = ["-O1", *(["-fopenmp", "-pthread"] if threaded else []), *(["-cpp"] if fortran else [])]
    return shlex.join([*shlex.split(compiler), *options, *names, "-o", str(inside), "-lm"])
