"""Builds the kernels with the user's compiler and runs them."""

from __future__ import annotations

import os
import shutil
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from advisor.model.errors import UsageError
from advisor.support.child_process import run_child

if TYPE_CHECKING:
    from pathlib import Path

#: Options from the best to what every compiler knows.
_OPTIONS: Final = (
    ("-O2", "-march=native", "-ffp-contract=fast", "-fopenmp"),
    ("-O2", "-march=native", "-ffp-contract=fast"),
    ("-O2",),
)
_BUILD_S: Final = 60.0
_COMPILERS: Final = ("cc", "gcc", "clang")


def find_compiler() -> str:
    """Return the user's C compiler, ``$CC`` if set; raises ``UsageError`` where there is none."""
    named = os.environ.get("CC", "").split()
    for name in (*named[:1], *_COMPILERS):
        if found := shutil.which(name):
            return found
    raise UsageError("no C compiler was found (cc, gcc, clang or $CC); on Debian: apt install gcc")


def build_kernels(folder: Path) -> tuple[Path, tuple[str, ...]]:
    """Return the program of all kernels, built in ``folder``, and the options; raises ``UsageError``."""
    source = folder / "kernels.c"
    source.write_text(_load_source("kernels.c"), encoding="utf-8")
    target, cc = folder / "kernels", find_compiler()
    for options in _OPTIONS:
        done = run_child([cc, *options, str(source), "-o", str(target)], _BUILD_S)
        if done.status == 0:
            return target, options
    raise UsageError(f"{cc} can't build the kernels: {(done.failure or done.error_text).strip()[-300:]}")


def build_messages(folder: Path) -> Path | None:
    """Return the program that sends messages, None where there is no MPI to build it with."""
    if not shutil.which("mpicc") or not shutil.which("mpirun"):
        return None
    source, target = folder / "messages.c", folder / "messages"
    source.write_text(_load_source("messages.c"), encoding="utf-8")
    return target if run_child(["mpicc", "-O2", str(source), "-o", str(target)], _BUILD_S).status == 0 else None


def _load_source(name: str) -> str:
    return (files("advisor_processor.probe") / name).read_text(encoding="utf-8")
