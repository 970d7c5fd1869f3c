"""Programs that are compiled, run under the recorder, and read again."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command_line import run

if TYPE_CHECKING:
    from collections.abc import Sequence

SOURCES = Path(__file__).parent / "recorder_programs"
#: Compilers of C and Fortran and the launcher of each MPI library, with the Debian package that brings them.
LIBRARIES = {
    "Open MPI": ("mpicc.openmpi", "mpifort.openmpi", ("mpirun.openmpi", "--oversubscribe"), "libopenmpi-dev"),
    "MPICH": ("mpicc.mpich", "mpifort.mpich", ("mpirun.mpich",), "libmpich-dev"),
}
_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
#: UCX, below newer versions of Open MPI, warns on standard output of what a container lacks.
_UCX = {"UCX_LOG_FILE": "stderr"}


def compile_program(folder: Path, command: Sequence[str], source: str, *libraries: str) -> Path:
    """Return the program made of a source; skips where the compiler is missing."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"needs {command[0]}")
    program = folder / Path(source).stem
    words = [command[0], "-g", "-O1", *command[1:], str(SOURCES / source), "-o", str(program), *libraries]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{command[0]} can't compile here: {done.stderr[-200:]}")
    return program


def record_run(folder: Path, *command: str, options: Sequence[str] = (), **variables: str) -> tuple[Path, str, str]:
    """Return the recording of a run, and what it and gapwatch wrote to standard output and standard error."""
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    cache = {"XDG_CACHE_HOME": _shared_cache()}
    arguments = ("run", "--profile", "recording", "-o", "advice.txt", *options, "--", *command)
    done = run(*arguments, home=home, **_ROOT, **_UCX, **cache, **variables)
    return home / "recording", done.stdout.decode(), done.stderr.decode()


def _shared_cache() -> str:
    """Return the cache of this process's home, so that the recorder is built once for all tests."""
    from advisor.support.disk_cache import user_folder

    return str(user_folder("XDG_CACHE_HOME", "~/.cache").parent)
