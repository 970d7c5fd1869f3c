"""Which functions belong to communication libraries, OpenMP's runtimes and the dynamic linker, by library and name.

MPI polls while it waits: instructions and CPU time spent there are no work of the program.
"""

from __future__ import annotations

import re
from typing import Final

#: Libraries of MPI implementations and what they communicate through, by the beginning of the file's name.
_COMMUNICATION: Final = re.compile(
    r"(lib("
    r"p?mpi(ch|cxx|fort|f|f90|_cxx|_mpifh|_usempi\w*|_java|i_rt)?|ompi\w*|open-(pal|rte)|oshmem|prrte|pmix|pmi2?|mca_\w+|"
    r"uc[pstm]|uct_\w+|fabric|psm[23x]?|mxm|hcoll|ocoms|sharp\w*|ibverbs|rdmacm|mlx[45]|efa|cxi|xpmem|"
    r"event(_core|_pthreads|_extra)?|hwloc"
    r")|mca_\w+)[-.\d_]*\.(so|dylib|a)[.\d]*"
)
_LOADER: Final = re.compile(r"ld(-linux)?[-\w.]*\.so[.\d]*")
#: Beginnings that no other software uses; ``MPI_Send`` and ``mpi_send_`` are told by ``trace.regions.classify``.
_INTERNAL: Final = re.compile(
    r"_*((ompi|opal|orte|prte|mca|pmix|PMIX|PMIx|OPAL|ucp|uct|ucs|ucm|psm2|MPIDI?|MPIR|MPIU|MPII|MPL|HYD|PMPI|MPI|"
    r"hwloc)_|MPIDI[A-Z]|MPIR[A-Z])\w+(\.\w+)*"
)
_OPENMP: Final = re.compile(r"_*(gomp|GOMP|goacc|kmp|kmpc)_\w+")
_LINKING: Final = re.compile(r"_+dl_\w+(\.\w+)*|do_lookup_x|check_match|do_lookup_unique")


def is_communication_library(path: str) -> bool:
    """Return whether the file at ``path`` belongs to MPI or a library below it."""
    return _COMMUNICATION.fullmatch(path.rsplit("/", 1)[-1]) is not None


def is_loader(path: str) -> bool:
    """Return whether the file at ``path`` is the dynamic linker."""
    return _LOADER.fullmatch(path.rsplit("/", 1)[-1]) is not None


def is_communication_function(name: str) -> bool:
    """Return whether ``name`` is that of a function of an MPI implementation."""
    return _INTERNAL.fullmatch(name) is not None


def is_openmp_function(name: str) -> bool:
    """Return whether ``name`` is that of a function of a runtime of OpenMP."""
    return _OPENMP.fullmatch(name) is not None


def is_linking_function(name: str) -> bool:
    """Return whether ``name`` is that of a function of the dynamic linker."""
    return _LINKING.fullmatch(name) is not None
