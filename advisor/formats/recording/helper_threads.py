"""Threads that a library keeps in reserve and never uses: no processors of the run.

Libraries start a pool when they are loaded (OpenBLAS in every Python program that imports NumPy, runtimes of languages,
progress of messages). Counted as processors, such threads turn a serial program into one with idle cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

import numpy as np

from advisor.formats.recording.recorded_threads import RecordedThread, teams_of
from advisor.support.launchers import is_interpreter
from advisor.trace.events import Role
from advisor.trace.recordings.layout import CALL, PYTHON_BIT
from advisor.trace.regions import classify_region

#: A thread that uses less of the CPU time of its process's busiest one works for nobody, …
LEAST_USED: Final = 0.01
#: … and so does one that uses less than this, none of it in the program itself: some spin before they sleep.
LEAST_USED_IN_LIBRARIES: Final = 0.05
#: Some spin for longer in one function of a library when they begin (OpenBLAS for a tenth of a second), and only then.
LONGEST_SPIN_S: Final = 0.25
#: Calls other than waiting that take less of that time are no work of its own either.
LEAST_SERVED: Final = 0.05
#: Code of one loop that looks for work lies within so many bytes.
_ONE_FUNCTION_B: Final = 512
#: What such a thread does besides: it waits to be asked, and may do a little else when it is, such as write results.
_WAITS: Final = frozenset({Role.OMP_LOCK, Role.OMP_BARRIER, Role.OS, Role.THREAD, Role.LOCAL})
#: Where the libraries of other programs lie, too.
_SYSTEM_FOLDERS: Final = frozenset({"/", "/usr", "/usr/local", "."})
#: What a program's folder may be called beside which its libraries lie.
_PROGRAM_FOLDERS: Final = frozenset({"bin", "sbin", "libexec"})


def split_helper_threads(threads: Sequence[RecordedThread]) -> tuple[list[RecordedThread], list[RecordedThread]]:
    """Return the threads that work, and those beside the first one of their process that only wait to be asked.

    A thread of an OpenMP team is no helper however little it does: the program asked for it.
    """
    used: dict[tuple[int, int], int] = {}
    for one in threads:
        slot = (one.rank, one.processor)
        used[slot] = used.get(slot, 0) + (_used_ns(one) or 0)
    busiest = {one.rank: 0 for one in threads}
    for (rank, _), seconds in used.items():
        busiest[rank] = max(busiest[rank], seconds)
    helpers = [one for one in threads if _is_helper(one, used[one.rank, one.processor], busiest[one.rank])]
    left_out = {id(one) for one in helpers}
    return [one for one in threads if id(one) not in left_out], helpers


def _used_ns(thread: RecordedThread) -> int | None:
    span = thread.span
    return None if span.end_cpu_ns is None else span.end_cpu_ns - span.begin_cpu_ns


def _is_helper(thread: RecordedThread, used_ns: int, busiest_ns: int) -> bool:
    if _used_ns(thread) is None:
        return False
    if used_ns >= LEAST_USED_IN_LIBRARIES * busiest_ns and not _spins_only(thread):
        return False
    if used_ns >= LEAST_USED * busiest_ns and (not len(thread.samples) or _computes_in_program(thread)):
        return False
    if thread.span.number == 0 or len(teams_of(thread)):
        return False
    calls = thread.records[(thread.records["kind"] == CALL) & (thread.records["end_ns"] > 0)]
    functions, place = np.unique(calls["function"], return_inverse=True)
    names = (thread.process.functions.get(number, "") for number in functions.tolist())
    serves = np.array([classify_region(name)[1] not in _WAITS for name in names], dtype=np.bool_)
    served_ns = (calls["end_ns"] - calls["start_ns"])[serves[place]].sum() if len(calls) else 0
    return bool(served_ns < LEAST_SERVED * busiest_ns)


def _spins_only(thread: RecordedThread) -> bool:
    """Return whether a thread computes before its first call and no later, at one place in a library."""
    samples, calls = thread.samples, thread.records[thread.records["kind"] == CALL]
    if not len(samples) or thread.used_s > LONGEST_SPIN_S:
        return False
    first_ns = calls["start_ns"].min() if len(calls) else samples["time_ns"].max()
    at = samples["address"]
    near = at.max() - at.min() <= _ONE_FUNCTION_B
    return bool(near and (samples["time_ns"] <= first_ns).all()) and not _computes_in_program(thread)


def _computes_in_program(thread: RecordedThread) -> bool:
    """Return whether a sample of a thread lies in the code of the program, or in what that or Python called.

    Libraries that come with the program, below its folder or beside that (``bin`` and ``lib``), are code of it; not so
    those beside an interpreter, where its packages lie.
    """
    samples = thread.samples
    addresses = np.concatenate([samples["address"], samples["callers"].ravel()])
    program = PurePath(thread.process.program)
    home = program.parent.parent if program.parent.name in _PROGRAM_FOLDERS else program.parent
    comes_along = str(home) not in _SYSTEM_FOLDERS and not is_interpreter(thread.process.program)
    own = [
        one
        for one in thread.process.objects.values()
        if PurePath(one.path) == program or (comes_along and PurePath(one.path).is_relative_to(home))
    ]
    inside = any(((addresses >= one.begin) & (addresses < one.end)).any() for one in own)
    return inside or bool(((samples["callers"] & PYTHON_BIT) != 0).any())
