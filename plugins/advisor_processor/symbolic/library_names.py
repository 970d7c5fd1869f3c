"""What functions and names of libraries mean to a walk of a program: what is allocated, changed, a constant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: Names with a value.
CONSTANTS: Final = {"MPI_PROC_NULL": -2, "mpi_proc_null": -2, "NULL": 0, "true": 1, "false": 0, "nullptr": 0}
#: Functions that make a number of a text.
NUMBERS: Final = frozenset({"atoi", "atol", "atoll", "strtol", "strtoll", "strtoul", "strtoull", "stoi", "stol"})
#: Functions that allocate, with the places of what is multiplied.
ALLOCATING: Final[Mapping[str, tuple[int, ...]]] = {
    "malloc": (0,), "calloc": (0, 1), "realloc": (1,), "aligned_alloc": (1,), "gapwatch_vector": (0, 1),
}  # fmt: skip
#: Arguments of calls of MPI that these only read, in Fortran, where any argument might be changed; else the second.
UNCHANGED: Final[Mapping[str, tuple[int, ...]]] = {
    "send": (0, 1, 3, 4), "isend": (0, 1, 3, 4), "recv": (1, 3, 4), "irecv": (1, 3, 4), "reduce": (0, 2, 5),
    "allreduce": (0, 2), "sendrecv": (0, 1, 3, 4, 6, 8, 9), "sendrecv_replace": (1, 3, 4, 5, 6),
    "alltoall": (0, 1, 4), "allgather": (0, 1, 4), "gather": (0, 1, 4, 6), "scatter": (0, 1, 4, 6),
}  # fmt: skip
#: Functions that change none of their arguments.
HARMLESS: Final = frozenset({"mpi_init", "free", "printf", "fprintf", "mpi_barrier", "mpi_finalize"})
