"""Which language a program is written in, as its source files and the names of its calls tell it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Endings of source files; headers are left out, since C++ includes those of C.
_SUFFIXES: Final = {
    "c": (".c",),
    "cxx": (".cc", ".cpp", ".cxx", ".c++", ".C"),
    "fortran": tuple(
        f".{name}" for word in ("f", "for", "ftn", "f90", "f95", "f03", "f08") for name in (word, word.upper())
    ),
}
_LANGUAGES: Final = {suffix: name for name, suffixes in _SUFFIXES.items() for suffix in suffixes}
#: Compilers of Fortran call MPI by names in one case, with underscores at the end.
_FORTRAN_CALL: Final = re.compile(r"(mpi_[a-z0-9_]*[a-z0-9]|MPI_[A-Z0-9_]*[A-Z0-9])__?")


def detect_language(files: Iterable[str | None], calls: Iterable[str]) -> str | None:
    """Return ``c``, ``cxx`` or ``fortran``: what most of the source ``files`` are in.

    If no file tells, Fortran where MPI was called by names that only compilers of Fortran make; else None, since C and
    C++ call it by the same names.
    """
    found = Counter(_LANGUAGES.get(PurePath(file).suffix) for file in files if file)
    del found[None]
    if found:
        return found.most_common(1)[0][0]
    return "fortran" if any(_FORTRAN_CALL.fullmatch(call) for call in calls) else None
