"""Processes that do the work of one program together: children of fork, and copies of it that run side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final

from advisor.support.launchers import is_interpreter
from advisor.trace.recordings.processes import Members, Process, process_files, read_process, share_members

#: What a child of fork has as its parent had it, and what it only adds to.
_SAME: Final = (
    "program", "arguments", "clock", "real_s", "monotonic_s", "mpi", "cores", "interpreter", "samples_per_s",
    "cycle_s", "subnormal_ratio", "prices",
)  # fmt: skip
_ADDED_TO: Final = ("functions", "files", "python", "objects")
_NEVER: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Family:
    """A program's first process, and its workers in the order in which they began."""

    root: Process
    workers: tuple[Process, ...] = ()

    @property
    def used_s(self) -> float:
        """The CPU seconds of all of them."""
        return sum(one.used_s for one in (self.root, *self.workers))


def read_processes(folder: Path) -> list[Process]:
    """Return the processes of a recording, in the order of their files; raises ``InputError`` for a damaged one."""
    lists: dict[Members, Members] = {}
    return complete_children([share_members(read_process(file), lists) for file in process_files(folder)])


def complete_children(processes: list[Process]) -> list[Process]:
    """Return the processes after giving children of fork what their files leave to those of their parents."""
    known = {(one.host, one.pid): one for one in processes}
    for child in sorted(processes, key=lambda one: one.forked_ns or 0):
        parent = known.get((child.host, child.parent))
        if child.forked_ns is None or parent is None or parent is child:
            continue
        for name in _SAME:
            setattr(child, name, getattr(parent, name))
        for name in _ADDED_TO:
            setattr(child, name, {**getattr(parent, name), **getattr(child, name)})
    return processes


def name_program(process: Process) -> str:
    """Return the name of the program, for an interpreter that of its script."""
    script = next((word for word in process.arguments[1:] if word.endswith((".py", ".jl", ".R", ".pl"))), None)
    return PurePath(script).name if script and is_interpreter(process.program) else PurePath(process.program).name


def gather_families(processes: Iterable[Process]) -> list[Family]:
    """Return the families of processes without ranks of their own.

    A child of fork belongs to its parent's family, and so does a copy of the program that it starts, such as a worker
    that Python spawns. Copies that something else starts side by side, as ``xargs -P`` does, are a family, too.
    """
    everyone = [one for one in processes if one.rank is None]
    known = {(one.host, one.pid): one for one in everyone}
    workers: dict[int, list[Process]] = defaultdict(list)
    roots = []
    for one in sorted(everyone, key=_begin_ns):
        root, parent = one, known.get((one.host, one.parent))
        while parent is not None and parent is not root and _is_worker(root, parent):
            root, parent = parent, known.get((parent.host, parent.parent))
        if root is one:
            roots.append(one)
        else:
            workers[id(root)].append(one)
    return [_join_copies(copies, workers) for copies in _find_copies(roots)]


def find_workers(rank: Process, processes: Iterable[Process]) -> tuple[Process, ...]:
    """Return the workers of a rank of MPI: its children of fork, and theirs."""
    children: dict[tuple[str, int], list[Process]] = defaultdict(list)
    for one in processes:
        if one.rank is None and one.forked_ns is not None:
            children[one.host, one.parent].append(one)
    found: list[Process] = []
    parents = [rank]
    while parents:
        one = parents.pop()
        mine = children.pop((one.host, one.pid), [])
        found += mine
        parents += mine
    return tuple(sorted(found, key=_begin_ns))


def _is_worker(child: Process, parent: Process) -> bool:
    """Return whether a process goes on in its parent's program: an interpreter without a script of its own does."""
    if child.forked_ns is not None:
        return True
    name = name_program(child)
    return child.program == parent.program and name in (name_program(parent), PurePath(child.program).name)


def _find_copies(roots: list[Process]) -> Iterator[list[Process]]:
    """Yield the roots, those together that are copies of a program, have one parent, and run side by side."""
    alike: dict[tuple[str, int, str, str], list[Process]] = defaultdict(list)
    for one in roots:
        alike[one.host, one.parent, one.program, name_program(one)].append(one)
    for mine in alike.values():
        copies, until = [mine[0]], _end_ns(mine[0])
        for one in mine[1:]:
            if _begin_ns(one) >= until:
                yield copies
                copies, until = [], 0
            copies.append(one)
            until = max(until, _end_ns(one))
        yield copies


def _join_copies(copies: list[Process], workers: dict[int, list[Process]]) -> Family:
    others = [*copies[1:], *(one for copy in copies for one in workers[id(copy)])]
    return Family(copies[0], tuple(sorted(others, key=_begin_ns)))


def _begin_ns(process: Process) -> int:
    return min((span.begin_ns for span in process.threads.values()), default=0)


def _end_ns(process: Process) -> int:
    ends = [span.end_ns for span in process.threads.values()]
    return max((end for end in ends if end is not None), default=_NEVER)
