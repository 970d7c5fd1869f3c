"""The region of interest of a run: a function, what follows one, some of the program's files."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from advisor.collect.binaries.demangling import demangle
from advisor.support.runtime_libraries import is_communication_library, is_loader
from advisor_similarity.elf import find_functions

#: What the tracer is told, as in ``tracer/streams.h``.
_EVERYTHING, _WITHIN, _AFTER = range(3)
#: Parts that compilers add to the names of what they outline and clone.
_CLONES: Final = ("._omp_fn.", ".omp_outlined", ".isra.", ".part.", ".constprop.", ".cold", ".lto_priv.", ".extracted")


@dataclass(slots=True)
class Region:
    """Which part of a run is scheduled; what lies outside takes no time on the oracle machine.

    Only what ``function`` does and what it calls, or only what runs once ``after`` has returned for the first time; of
    that only the instructions in files named like one of ``objects`` (patterns of the shell), if any. Clones that
    compilers make of a function (``solve._omp_fn.0``) count as the function. ``communication`` keeps the instructions
    of MPI, of the libraries below it and of whatever these call, which wait by turning, and of the dynamic linker.
    """

    function: str = ""
    after: str = ""
    objects: tuple[str, ...] = ()
    communication: bool = True
    #: Files that define the function.
    defined_in: list[str] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """Whether all of the run is of interest."""
        return not (self.function or self.after or self.objects) and self.communication

    @property
    def options(self) -> dict[str, int]:
        """The options of the tracer."""
        where = _WITHIN if self.function else _AFTER if self.after else _EVERYTHING
        return {"region": where, "objects": int(bool(self.objects) or not self.communication)}

    @property
    def description(self) -> str:
        """A sentence on what was left out; empty where nothing was."""
        parts = []
        if self.function:
            parts.append(f"only what {self.function} does and calls")
        if self.after:
            parts.append(f"only what follows {self.after}")
        if self.objects:
            parts.append(f"only code in {', '.join(self.objects)}")
        if not self.communication:
            parts.append("nothing that MPI, the libraries below it and the dynamic linker do")
        if not parts:
            return ""
        return f"Scheduled: {', '.join(parts)}; what lies outside takes no time."

    def judge_file(self, path: str) -> tuple[int, tuple[int, ...]]:
        """Return whether a file's code is left out, and where in it the function begins, as offsets.

        0: it is of interest, 1: it is left out, 2: with all that it calls.
        """
        name = Path(path).name
        left_out = int(bool(self.objects) and not any(fnmatchcase(name, pattern) for pattern in self.objects))
        if not self.communication and (is_communication_library(path) or is_loader(path)):
            left_out = 2
        wanted = self.function or self.after
        if not wanted:
            return left_out, ()
        entries = find_functions(Path(path), lambda symbol: is_clone(symbol, wanted))
        if entries:
            self.defined_in.append(path)
        return left_out, entries


def is_clone(symbol: str, function: str) -> bool:
    """Return whether a symbol is a function, one that a compiler made of it, or MPI's profiling name of it.

    Functions of C++ are named without their arguments (``Mesh::refine``), those of Fortran with or without the
    underscore at the end.
    """
    if function.rsplit("::", 1)[-1] not in symbol:
        return False
    stem = min((symbol.split(part)[0] for part in _CLONES), key=len)
    readable = demangle(stem)
    return function in {stem, stem.rstrip("_"), stem.removeprefix("P"), readable, readable.split("(")[0]}
