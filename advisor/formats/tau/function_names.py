"""What TAU's names say: function, place in the source, what it does, and the path of calls to it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from advisor.support.runtime_libraries import is_openmp_function
from advisor.trace.callpaths.records import CallPathNode
from advisor.trace.events import Role
from advisor.trace.regions import classify_region

#: TAU's own: the time outside all timers, main() as tau_exec wraps it, its barrier in front of collective calls.
ROOT: Final = ".TAU application"
_MAIN: Final = "taupreload_main"
COLLECTIVE_SYNC: Final = "MPI Collective Sync"
#: How the names of samples begin, and of the timer and the functions around them.
SAMPLE, CONTEXT = "[SAMPLE]", "[CONTEXT]"
_SAMPLING: Final = (SAMPLE, CONTEXT, "[UNWIND]", "[INTERMEDIATE]", "[SUMMARY]")
#: ``name [{file} {12,3}-{20,1}]``, with the type of a C function before it; samples have ``{12}`` or no line.
_PLACE: Final = re.compile(
    r"(.*?)(?: +C)? *\[\{([^{}]*)\}(?: *\{(\d{1,9})(?:, *\d+)?\}(?:-\{\d+(?:, *\d+)?\})?)?\]", re.DOTALL
)
_THROTTLED: Final = " [THROTTLED]"
_OPARI: Final = re.compile(r"(.+?) *\[OpenMP(?: location: file:(.*?) *<(\d{1,9})(?:, *\d+)?>)?\]")
#: What regions of OpenMP do; the first that fits decides.
_OPENMP: Final = (
    ("OpenMP_Thread_Type", Role.ROOT),
    ("OpenMP_Sync_Region_Task", Role.OMP_LOCK),
    ("OpenMP_Sync_Region", Role.OMP_BARRIER),
    ("OpenMP_Mutex_Waiting", Role.OMP_LOCK),
    ("OpenMP_Parallel", Role.OMP_PARALLEL),
    ("OpenMP_Implicit_Task", Role.OMP_PARALLEL),
)
#: Functions of the system's library in which OpenMP's runtimes let threads wait for work.
_WAITING: Final = re.compile(r"(?:__GI_)?_*(?:sched_yield|pthread_cond_(?:timed)?wait|futex_wait\w*|do_spin)(?:@.*)?")


def split_path(name: str) -> tuple[str, ...]:
    """Return the functions of a call path, from the outermost on; a name alone is a path of one."""
    return tuple(part.strip() for part in name.split(" => "))


def is_sampling(part: str) -> bool:
    """Return whether a part of a call path comes from samples and not from a timer."""
    return part.startswith(_SAMPLING)


def strip_sampling(part: str) -> str:
    """Return a part of a call path without what says that it was sampled."""
    return part.partition("] ")[2].strip() if is_sampling(part) else part


def build_node(part: str, groups: Iterable[str], parent: int) -> CallPathNode:
    """Return the node of the last part of a call path."""
    if is_sampling(part):
        return _build_sampled_node(strip_sampling(part), parent)
    text = part.removesuffix(_THROTTLED).rstrip()
    opari = _OPARI.fullmatch(text)
    if opari:
        return CallPathNode(opari[1], _opari_role(opari[1]), opari[2], _parse_line(opari[3]), parent)
    found = _PLACE.fullmatch(text)
    if found and found[1]:
        return _build_placed_node(found, frozenset(groups), parent)
    return _build_named_node(text, frozenset(groups), parent)


def _build_placed_node(found: re.Match[str], groups: frozenset[str], parent: int) -> CallPathNode:
    """Return the node of a function whose place is known: one of the program, unless it is a region of OpenMP."""
    name, role = found[1], _openmp_role(found[1], groups)
    if role is None:
        name, role = classify_region(name, paradigm="COMPILER")
    return CallPathNode(name, role, found[2] or None, _parse_line(found[3]), parent)


def _build_named_node(text: str, groups: frozenset[str], parent: int) -> CallPathNode:
    if text == ROOT:
        return CallPathNode(text, Role.ROOT, parent=parent)
    if text == _MAIN:
        return CallPathNode("main", Role.USER, parent=parent)
    if text == COLLECTIVE_SYNC:
        return CallPathNode(text, Role.ALL_TO_ALL, parent=parent)
    role = _openmp_role(text, groups)
    if role is not None:
        return CallPathNode(text, role, parent=parent)
    name, found = classify_region(text, "FUNCTION", "MPI" if "MPI" in groups else "USER")
    if groups & {"TAU_IO", "IO"}:
        return CallPathNode(name.removesuffix("()"), Role.IO, parent=parent)
    return CallPathNode(name, found, parent=parent)


def _build_sampled_node(text: str, parent: int) -> CallPathNode:
    """Return the node of a sampled function; samples of all its lines are one.

    As of the program as a whole, time in which threads wait for work is idleness of all but the first.
    """
    found = _PLACE.fullmatch(text)
    name, file = (found[1], found[2]) if found and found[1] else (text, None)
    function = name.partition("(")[0].strip()
    role = Role.ROOT if is_openmp_function(function) or _WAITING.fullmatch(function) else Role.USER
    return CallPathNode(name.strip() or text, role, file or None, None, parent)


def _openmp_role(name: str, groups: frozenset[str]) -> Role | None:
    if not name.startswith("OpenMP_") and "TAU_OPENMP" not in groups:
        return None
    return next((role for begin, role in _OPENMP if name.startswith(begin)), Role.OMP_WORK)


def _opari_role(name: str) -> Role:
    """Return what a region does that the source instrumenter for OpenMP named, such as ``for enter/exit``."""
    if "barrier" in name:
        return Role.OMP_BARRIER
    if "enter/exit" in name and name.startswith(("critical", "atomic", "ordered")):
        return Role.OMP_LOCK
    return Role.OMP_PARALLEL if name.startswith("parallel") else Role.OMP_WORK


def _parse_line(digits: str | None) -> int | None:
    return int(digits) if digits and int(digits) > 0 else None
