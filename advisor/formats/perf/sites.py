"""What a stack of functions tells: which region the sample belongs to, and what is done there.

The region is the innermost function that is not the kernel's. Below an MPI call, an I/O call or the OpenMP runtime it
is that call instead. Without a call graph nothing but the innermost function is known; then a function inside a library
of MPI tells that there is communication, but not in which call.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from advisor.support.runtime_libraries import is_communication_function, is_communication_library, is_openmp_function
from advisor.trace.events import Role
from advisor.trace.regions import classify_region

if TYPE_CHECKING:
    from advisor.formats.perf.lines import StackFrame

#: Communication of which the call is not known.
MPI_LIBRARY: Final = "MPI library"
KERNEL: Final = "kernel"
UNKNOWN: Final = "unknown code"
_MPI: Final = tuple(role for role in Role if Role.INIT <= role <= Role.LOCAL)
_THREAD_LIBRARY: Final = re.compile(r"lib(gomp|omp|iomp5|omp5|nvomp)[-.\d]*\.so[.\d]*")
#: What starts the body of a parallel region: the function next to it on the stack.
_FORK: Final = re.compile(r"GOMP_parallel\w*|gomp_thread_start|__kmp_invoke_microtask|__kmp_fork_call|__kmpc_fork_call")
_BODY: Final = re.compile(r".*(\._omp_fn\.\d+|\.omp_outlined\w*(\.\d+)?|_omp_outlined\w*)")
_LOCK: Final = re.compile(r".*(critical|lock|mutex|atomic|ordered).*")
#: System calls and functions of libc that read and write, without what libc puts around their names.
_DECORATION: Final = re.compile(
    r"(__GI_)?_*(x64_sys_|arm64_sys_|ksys_|libc_|IO_|new_)?([a-z]+?\d*)(_nocancel|_time64|2)?(@.*)?"
)
_NO_IO: Final = frozenset({"select", "poll", "pipe", "dup", "dup2", "dup3", "stat", "fstat", "lstat", "access"})
_LIBC: Final = re.compile(r"(libc|libpthread|ld-linux|ld-musl|libc-)[-.\w]*")


@dataclass(frozen=True, slots=True)
class CodeRegion:
    """A function with its role, the function that calls it if that matters, and the library it is in."""

    name: str
    role: Role = Role.USER
    parent: CodeRegion | None = None


def find_site(stack: Sequence[StackFrame]) -> tuple[CodeRegion, bool]:
    """Return the region of a sample with this stack, innermost first, and whether it was taken in the kernel."""
    in_kernel = bool(stack) and stack[0].kernel
    user = [frame for frame in stack if not frame.kernel]
    for find in (_find_mpi_call, _find_communication, _find_thread_runtime):
        found = find(user)
        if found is not None:
            return found, in_kernel
    return _find_io_call(stack, user) or _find_working_region(user), in_kernel


def has_communication(frames: Sequence[StackFrame]) -> bool:
    """Return whether any of these functions is one of MPI, or in a library of it."""
    return any(_is_communication(frame) or classify_region(frame.symbol or "")[1] in _MPI for frame in frames)


def _find_mpi_call(user: Sequence[StackFrame]) -> CodeRegion | None:
    """Return the outermost call of MPI."""
    for place in range(len(user) - 1, -1, -1):
        name, role = classify_region(user[place].symbol or "")
        if role in _MPI:
            return CodeRegion(name, role, _find_caller(user[place + 1 :]))
    return None


def _find_communication(user: Sequence[StackFrame]) -> CodeRegion | None:
    """Return communication in the innermost function of the user's, or anywhere above it."""
    for place in range(len(user) - 1, -1, -1):
        if _is_communication(user[place]):
            return CodeRegion(MPI_LIBRARY, Role.COMM_OTHER, _find_caller(user[place + 1 :]))
    return None


def _is_communication(frame: StackFrame) -> bool:
    named = frame.symbol is not None and is_communication_function(frame.symbol)
    return named or (frame.object is not None and is_communication_library(frame.object))


def _find_thread_runtime(user: Sequence[StackFrame]) -> CodeRegion | None:
    """Return the OpenMP runtime where it is the innermost: it waits, locks, or starts threads."""
    if not user or not _is_runtime(user[0]):
        return None
    name = user[0].symbol or "OpenMP runtime"
    if _FORK.fullmatch(name):
        return CodeRegion(name, Role.THREAD, _find_caller(user[1:]))
    return CodeRegion(name, Role.OMP_LOCK if _LOCK.fullmatch(name) else Role.OMP_BARRIER, _find_caller(user[1:]))


def _is_runtime(frame: StackFrame) -> bool:
    if frame.object is not None and _THREAD_LIBRARY.fullmatch(frame.object.rsplit("/", 1)[-1]):
        return True
    return frame.symbol is not None and is_openmp_function(frame.symbol)


def _find_io_call(stack: Sequence[StackFrame], user: Sequence[StackFrame]) -> CodeRegion | None:
    """Return the outermost call that reads or writes; of the kernel's only where the user's function is not known."""
    for frames in (user, stack if not user or user[0].symbol is None else ()):
        for place in range(len(frames) - 1, -1, -1):
            frame = frames[place]
            bare = _DECORATION.fullmatch(frame.symbol or "")
            name = bare[3] if bare else ""
            of_libc = frame.object is None or frame.kernel or _LIBC.match(frame.object.rsplit("/", 1)[-1])
            if name and name not in _NO_IO and of_libc and classify_region(name)[1] == Role.IO:
                return CodeRegion(name, Role.IO, _find_caller(frames[place + 1 :]))
    return None


def _find_caller(above: Sequence[StackFrame]) -> CodeRegion | None:
    """Return the innermost function of the program's own among those ``above``."""
    for place, frame in enumerate(above):
        if not frame.kernel and frame.symbol is not None and not _is_communication(frame) and not _is_runtime(frame):
            return _build_region(above[place:])
    return None


def _find_working_region(user: Sequence[StackFrame]) -> CodeRegion:
    return _build_region(user) if user else CodeRegion(KERNEL)


def _build_region(frames: Sequence[StackFrame]) -> CodeRegion:
    """Return the innermost function of ``frames``, inside the body of a parallel region if it is called there."""
    name = _name_frame(frames[0])
    if _is_body(frames, 0):
        return CodeRegion(name, Role.OMP_PARALLEL)
    body = next((place for place in range(1, len(frames)) if _is_body(frames, place)), None)
    parent = None if body is None else CodeRegion(_name_frame(frames[body]), Role.OMP_PARALLEL)
    return CodeRegion(name, Role.USER, parent)


def _is_body(frames: Sequence[StackFrame], place: int) -> bool:
    symbol = frames[place].symbol
    if symbol is None or _FORK.fullmatch(symbol):
        return False
    above = frames[place + 1].symbol if place + 1 < len(frames) else None
    return _BODY.fullmatch(symbol) is not None or (above is not None and _FORK.fullmatch(above) is not None)


def _name_frame(frame: StackFrame) -> str:
    if frame.symbol is not None:
        return frame.symbol
    return UNKNOWN if frame.object is None else f"{UNKNOWN} in {frame.object.rsplit('/', 1)[-1]}"
