"""What keeps a process of ours, and all that it starts, within bounds: it ends with its parent, and reaches no network.

Everything here is asked of the system by numbers of its calls; where a system lacks one, the others hold.
"""

from __future__ import annotations

import builtins
import ctypes
import errno
import os
import resource
import signal
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from time import monotonic, sleep
from typing import Final, NamedTuple

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_SET_SECCOMP: Final = 22
_SECCOMP_MODE_FILTER: Final = 2
_OOM_FIRST: Final = "800"
#: By machine: how its kernel is told apart in a filter, the number of the call ``socket``, and those of io_uring_setup,
#: which makes sockets as well, ptrace, process_vm_readv and _writev, open_by_handle_at, mount, setns, bpf and keyctl.
_CALLS: Final = {
    "x86_64": (0xC000003E, 41, (425, 101, 310, 311, 304, 165, 308, 321, 250)),
    "aarch64": (0xC00000B7, 198, (425, 117, 270, 271, 265, 40, 268, 280, 219)),
}
#: Calls from here on are those of x86_64 by other numbers (x32).
_X32: Final = 0x40000000
#: Sockets that reach nothing outside of this machine.
_LOCAL_FAMILIES: Final = (0, 1, 16)
#: Limits that are as they were once a plugin has answered.
_GUARDED: Final = (resource.RLIMIT_AS, resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE)
#: A plugin may start so many processes, and take so much memory beside what is there (bytes) or this share of all.
_PROCESSES: Final = 64
_MEMORY_B: Final = 4 << 30
_MEMORY_SHARE: Final = 0.5
#: The processes that are there are counted this often (seconds).
_RECOUNT_S: Final = 5.0
#: How long it is tried to end processes that start others (seconds).
_PATIENCE_S: Final = 30.0


def die_with_parent() -> None:
    """End when the parent dies, be the first to go when memory runs out, and adopt what own children leave behind."""
    parent = os.getppid()
    _control_process(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    _control_process(_PR_SET_CHILD_SUBREAPER, 1)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write(_OOM_FIRST)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _control_process(option: int, value: int, more: object = 0) -> bool:
    return bool(ctypes.CDLL(None, use_errno=True).prctl(option, value, more, 0, 0) == 0)


def deny_network(*, local: bool = True) -> bool:
    """Refuse this process, and all that it starts, sockets that reach other machines; return whether that holds.

    Without ``local``, those that reach processes here, too. A filter of a few comparisons on each call of the system
    refuses (EACCES) ``socket`` with another family, the calls that get around it or reach into other processes, and all
    calls of programs for another machine, such as 32-bit ones.
    """
    architecture, call, others = _CALLS.get(os.uname().machine, (0, 0, ()))
    if not architecture:
        return False
    load, equal, at_least, answer = 0x20, 0x15, 0x35, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000 | errno.EACCES
    families = _LOCAL_FAMILIES if local else ()
    refused = len(families) + 2 + len(others)  # steps from the second comparison to the refusal
    steps = [
        (load, 0, 0, 4), (equal, 0, refused + 2, architecture),
        (load, 0, 0, 0), (at_least, refused, 0, _X32),
        *((equal, refused - 1 - n, 0, other) for n, other in enumerate(others)),
        (equal, 0, len(families) + 2, call),
        (load, 0, 0, 16), *((equal, len(families) - n, 0, family) for n, family in enumerate(families)),
        (answer, 0, 0, refuse), (answer, 0, 0, allow),
    ]  # fmt: skip
    code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *step) for step in steps))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))

    program = Program(len(steps), ctypes.cast(code, ctypes.c_void_p))
    return _control_process(_PR_SET_NO_NEW_PRIVS, 1) and _control_process(
        _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program)
    )


@contextmanager
def limit_plugin(*, hurried: bool) -> Iterator[None]:
    """Let what runs meanwhile start few processes (root: any) and take some memory, if ``hurried``.

    What it does to this process in passing is undone afterwards: names of Python itself, directory, mask, streams
    and whether they block, limits, alarms. Copies of this process that it leaves behind end with its answer.
    """
    process = os.getpid()
    names = dict(vars(builtins))
    before = {which: resource.getrlimit(which) for which in _GUARDED}
    here, mask, streams = _current_folder(), os.umask(0o77), (sys.stdout, sys.stderr)
    blocking = _list_blocking()
    os.umask(mask)
    for which, most in (_compute_limits() if hurried else {}).items():
        least = min(one for one in (most, *before[which]) if one != resource.RLIM_INFINITY)
        resource.setrlimit(which, (least, before[which][1]))
    try:
        yield
    finally:
        if os.getpid() != process:
            os._exit(0)
        vars(builtins).update(names)
        for which, limits in before.items():
            with suppress(OSError, ValueError):
                resource.setrlimit(which, limits)
        with suppress(OSError):
            if here is not None:
                os.chdir(here)
        os.umask(mask)
        sys.stdout, sys.stderr = streams
        for stream, blocks in blocking.items():
            with suppress(OSError):
                os.set_blocking(stream, blocks)
        for clock in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
            signal.setitimer(clock, 0.0)


def _list_blocking() -> dict[int, bool]:
    """Return which of the standard streams wait where they can't be read or written; others share that."""
    found = {}
    for stream in (0, 1, 2):
        with suppress(OSError):
            found[stream] = os.get_blocking(stream)
    return found


def _current_folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


def _compute_limits() -> dict[int, int]:
    size_B = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    total_B = os.sysconf("SC_PHYS_PAGES") * resource.getpagesize()
    wanted = {resource.RLIMIT_AS: size_B + max(_MEMORY_B, int(_MEMORY_SHARE * total_B))}
    if os.getuid():
        wanted[resource.RLIMIT_NPROC] = _count_own_processes(int(monotonic() / _RECOUNT_S)) + _PROCESSES
    return wanted


@lru_cache(maxsize=1)
def _count_own_processes(_when: int) -> int:
    """Return how many processes and threads the user has, as counted once at a time."""
    count, user = 0, os.getuid()
    for entry in os.scandir("/proc"):
        with suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid == user:
                count += len(os.listdir(f"/proc/{entry.name}/task"))
    return count


def kill_tree(top: int) -> None:
    """Kill a child and everything that it started, also what left its session; the child is not waited for."""
    with suppress(ProcessLookupError):
        os.kill(top, signal.SIGSTOP)  # it adopts its orphans, as long as it is there
    _kill_below(top)
    for kill in (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            kill(top, signal.SIGKILL)


def kill_descendants() -> None:
    """Kill all that this process started, also what left its session: it adopts its orphans (``die_with_parent``)."""
    _kill_below(os.getpid())


def _kill_below(top: int) -> None:
    """Stop all processes below one, then kill them.

    Killed one by one, processes that start others would start them faster than they are found. A signal reaches a whole
    group at once, and one that is stopped starts nothing and keeps its place among the processes that a user may have.
    """
    end, own = monotonic() + _PATIENCE_S, os.getpgid(0)
    for number, spared in ((signal.SIGSTOP, "TtDZX"), (signal.SIGKILL, "ZX")):
        while monotonic() < end and (found := [one for one in _find_descendants(top) if one.state not in spared]):
            for group in {one.group for one in found} - {own}:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(group, number)
            for process in (one.number for one in found if one.group == own):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(process, number)
            sleep(0.002)


class _Process(NamedTuple):
    """A process as /proc shows it: ``R``, ``S``, ``T`` (stopped), ``Z`` (ended) …, and its group."""

    number: int
    state: str
    group: int


def _find_descendants(top: int) -> list[_Process]:
    """Return the processes below one."""
    below: dict[int, list[_Process]] = {}
    for entry in os.listdir("/proc"):
        with suppress(OSError, ValueError):
            if entry.isdigit():
                text = Path("/proc", entry, "stat").read_bytes()
                state, parent, group = text[text.rindex(b")") + 2 :].split()[:3]
                below.setdefault(int(parent), []).append(_Process(int(entry), state.decode("ascii"), int(group)))
    found: list[_Process] = []
    rest = [top]
    while rest:
        children = below.get(rest.pop(), [])
        found += children
        rest += [child.number for child in children]
    return found
