"""What a program's file says that it uses, by the names in it: enough to know which settings can't matter."""

from __future__ import annotations

import mmap
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_GCC_OPENMP: Final = re.compile(rb"\0GOMP_parallel")
_GCC_RUNTIME_LOOP: Final = re.compile(rb"\0GOMP_(?:parallel_)?loop_\w*runtime")
_LLVM_OPENMP: Final = re.compile(rb"\0__kmpc_fork_call\0")
_LLVM_DISPATCH: Final = re.compile(rb"\0__kmpc_dispatch_init_")
_FORTRAN_OUTPUT: Final = re.compile(rb"\0_gfortran_st_(?:write|read)\0")
_MPI_FILES: Final = re.compile(rb"\0(?:MPI_File_|mpi_file_)(?:i?write|i?read)")


def can_choose_schedule(program: Path | None) -> bool:
    """Return whether a parallel loop of the program may take its schedule from ``OMP_SCHEDULE``.

    True as well where the file does not tell: it can't be read, or its parallel loops are in a library.
    """
    if _holds(program, _GCC_OPENMP):
        return _holds(program, _GCC_RUNTIME_LOOP)
    return _holds(program, _LLVM_DISPATCH) if _holds(program, _LLVM_OPENMP) else True


def uses_fortran_files(program: Path | None) -> bool:
    """Return whether the program reads or writes by the library of gfortran."""
    return _holds(program, _FORTRAN_OUTPUT)


def uses_mpi_files(program: Path | None) -> bool:
    """Return whether the program reads or writes by MPI-IO."""
    return _holds(program, _MPI_FILES)


def _holds(program: Path | None, pattern: re.Pattern[bytes]) -> bool:
    if program is None:
        return False
    try:
        with program.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return pattern.search(content) is not None
    except (OSError, ValueError):  # unreadable or empty
        return False
