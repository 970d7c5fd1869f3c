"""Settings of a run that need no change of the source: variables, compiler flags, and how ranks are started.

The names in a program's file say what it uses, and so which settings cannot matter.
"""

from __future__ import annotations

import mmap
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePath
from typing import Final, Literal

from advisor.support.child_process import run_child
from advisor.support.launchers import find_launcher_place, find_rank_option

#: What a setting is about; only one of each kind is part of a combination.
Kind = Literal["flags", "threads", "waiting", "schedule", "binding", "ranks", "mpi", "memory", "io", "device"]
#: The library of a launcher, as far as its options and variables are known.
Launcher = Literal["openmpi", "hydra", "slurm"]
_PATIENCE_S: Final = 10.0
#: What launchers of Open MPI call themselves: by the name ``mpirun``, and by others such as ``mpirun.openmpi``.
_OPEN_MPI: Final = ("Open MPI", "OpenRTE", "Open RTE", "PRRTE")
#: Names of functions that a program takes from its libraries, as its table of strings holds them.
_GCC_OPENMP: Final = re.compile(rb"\0GOMP_parallel")
_GCC_RUNTIME_LOOP: Final = re.compile(rb"\0GOMP_(?:parallel_)?loop_\w*runtime")
_LLVM_OPENMP: Final = re.compile(rb"\0__kmpc_fork_call\0")
_LLVM_DISPATCH: Final = re.compile(rb"\0__kmpc_dispatch_init_")
_FORTRAN_OUTPUT: Final = re.compile(rb"\0_gfortran_st_(?:write|read)\0")
_MPI_FILES: Final = re.compile(rb"\0(?:MPI_File_|mpi_file_)(?:i?write|i?read)")


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to run the command.

    ``variables`` are added to the environment, ``launch`` are words behind the launcher, ``ranks`` replaces their
    number, ``flags`` are the compiler's. ``stake_share`` is the share of the recorded run in the gaps that it may
    shrink, None where nothing is known of them, and ``actions`` those of the rules that it carries out.
    """

    name: str
    kinds: tuple[Kind, ...] = ()
    why: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    flags: str | None = None
    launch: tuple[str, ...] = ()
    ranks: int | None = None
    stake_share: float | None = None
    actions: tuple[str, ...] = ()

    @property
    def is_start(self) -> bool:
        """Whether this is the command as it is."""
        return not self.kinds

    def change_command(self, words: Sequence[str]) -> list[str]:
        """Return the command with the options of this setting."""
        changed = list(words)
        if self.launch and (place := find_launcher_place(words)) is not None:
            changed[place + 1 : place + 1] = self.launch
        if self.ranks is not None and (option := find_rank_option(changed)):
            changed = option.replace_ranks(changed, self.ranks)
        return changed


def combine_settings(settings: Iterable[Setting]) -> Setting:
    """Return the setting that is all of these at once; of one kind there is one."""
    parts = list(settings)
    variables = {name: value for one in parts for name, value in one.variables.items()}
    return Setting(
        " + ".join(one.name for one in parts),
        tuple(kind for one in parts for kind in one.kinds),
        "the winners together",
        variables,
        next((one.flags for one in parts if one.flags is not None), None),
        tuple(word for one in parts for word in one.launch),
        next((one.ranks for one in parts if one.ranks is not None), None),
        None,
        tuple(dict.fromkeys(action for one in parts for action in one.actions)),
    )


@cache
def identify_launcher(launcher: str) -> Launcher | None:
    """Return which launcher this is, as it says itself: Hydra is that of MPICH and its descendants; None for others."""
    if PurePath(launcher).name == "srun":
        return "slurm"
    said = run_child([launcher, "--version"], _PATIENCE_S).text
    if any(name in said for name in _OPEN_MPI):
        return "openmpi"
    return "hydra" if "HYDRA" in said.upper() else None


def describe_setting(setting: Setting, words: Sequence[str], build: str | None) -> list[str]:
    """Return the lines of a job script that run the command with a setting: those that build, exports, command."""
    lines = [] if setting.flags is None or build is None else [fill_flags_in_shell(build, setting.flags)]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in setting.variables.items()]
    return [*lines, shlex.join(setting.change_command(words))]


def fill_flags_in_shell(build: str, flags: str) -> str:
    """Return the line for a shell that builds with these flags."""
    return shlex.join(fill_flags(build, flags))


def fill_flags(build: str, flags: str) -> list[str]:
    """Return the words that build with these flags; where they are a word by themselves, each flag is one."""
    words = []
    for word in shlex.split(build):
        words += shlex.split(flags) if word == "{flags}" else [word.replace("{flags}", flags)]
    return words


def describe_environment(setting: Setting) -> str:
    """Return the variables of a setting as an environment file, ``NAME=value`` a line."""
    return "".join(f"{name}={value}\n" for name, value in setting.variables.items())


def count_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


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
