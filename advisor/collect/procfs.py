"""What the kernel tells about a process under ``/proc``, one file at a time (proc(5)).

A process may end at any moment: ``ProcessGone`` says so. What may not be read is None. Nothing is kept of an
environment but the numbers of ranks.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import PurePath
from typing import Final, NamedTuple

_TICK_S: Final = 1.0 / os.sysconf("SC_CLK_TCK")
_PAGE_B: Final = os.sysconf("SC_PAGE_SIZE")
#: Environment variables that hold the number of a rank, and of all ranks, as launchers set them.
RANK_KEYS: Final = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "PALS_RANKID",
                    "SLURM_PROCID")  # fmt: skip
SIZE_KEYS: Final = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS")
_INTERPRETERS: Final = ("python", "perl", "ruby", "julia", "Rscript", "bash", "dash", "sh")
_ENVIRONMENT_LIMIT: Final = 1 << 20


class ProcessGone(Exception):
    """The process or thread has ended."""


class ProcessStat(NamedTuple):
    """Of ``/proc/PID/stat``: CPU times in seconds, ``started_s`` after the machine did, resident memory in bytes."""

    name: str
    state: str
    parent: int
    user_s: float
    system_s: float
    threads: int
    started_s: float
    resident_B: int
    cpu: int


class IoCounters(NamedTuple):
    """Of ``/proc/PID/io``: bytes and calls of reading and writing."""

    read_B: int
    written_B: int
    reads: int
    writes: int


def _read_file(path: str) -> bytes | None:
    try:
        with open(path, "rb", buffering=0) as stream:
            return stream.read()
    except (FileNotFoundError, ProcessLookupError) as error:
        raise ProcessGone(path) from error
    except OSError:
        return None


def _read_words(path: str) -> bytes:
    """Return arguments or an environment; nothing of a process that has ended and was not waited for yet."""
    try:
        return _read_file(path) or b""
    except ProcessGone:
        return b""


def read_stat(pid: int, tid: int | None = None) -> ProcessStat:
    """Return the state of a process, or of one of its threads."""
    content = _read_file(f"/proc/{pid}/stat" if tid is None else f"/proc/{pid}/task/{tid}/stat")
    if content is None:
        raise ProcessGone(str(pid))
    head, _, tail = content.rpartition(b")")
    fields = tail.split()
    return ProcessStat(
        name=head.partition(b"(")[2].decode("utf-8", "backslashreplace"),
        state=fields[0].decode("ascii"),
        parent=int(fields[1]),
        user_s=int(fields[11]) * _TICK_S,
        system_s=int(fields[12]) * _TICK_S,
        threads=int(fields[17]),
        started_s=int(fields[19]) * _TICK_S,
        resident_B=int(fields[21]) * _PAGE_B,
        cpu=int(fields[36]),
    )


def list_threads(pid: int) -> list[int]:
    """Return the threads of a process."""
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError as error:
        raise ProcessGone(str(pid)) from error


def read_cpu_times(pid: int, tid: int) -> tuple[float, float] | None:
    """Return the seconds that a thread ran and that it waited for a processor; None where the kernel does not count."""
    content = _read_file(f"/proc/{pid}/task/{tid}/schedstat")
    fields = content.split() if content else []
    return (int(fields[0]) * 1e-9, int(fields[1]) * 1e-9) if len(fields) == 3 else None


def read_io_counters(pid: int) -> IoCounters | None:
    """Return what a process has read and written so far; None where that may not be read."""
    content = _read_file(f"/proc/{pid}/io")
    rows = dict(row.split(b": ") for row in content.splitlines()) if content else {}
    keys = (b"rchar", b"wchar", b"syscr", b"syscw")
    return IoCounters(*(int(rows[key]) for key in keys)) if all(key in rows for key in keys) else None


def read_system_call(pid: int, tid: int) -> tuple[int, int] | None:
    """Return the number and the first argument of the system call in which a thread is blocked.

    The number is -1 outside of system calls. None: it runs, or what it does may not be read.
    """
    fields = (_read_file(f"/proc/{pid}/task/{tid}/syscall") or b"running").split()
    if fields[0] == b"running":
        return None
    return int(fields[0]), int(fields[1], 16) if len(fields) > 3 else -1


def can_see_calls() -> bool:
    """Return whether the kernel tells in which system call a thread is."""
    try:
        return bool(_read_file("/proc/self/syscall"))
    except ProcessGone:
        return False


def resolve_descriptor(pid: int, descriptor: int) -> str | None:
    """Return the path of an open file, or ``pipe:[…]``, ``socket:[…]`` and the like; None where it is not known."""
    try:
        return os.readlink(f"/proc/{pid}/fd/{descriptor}")
    except OSError:
        return None


def kernel_lists_children() -> bool:
    """Return whether the kernel lists the processes that a thread has started (``CONFIG_PROC_CHILDREN``)."""
    return os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def list_children(pid: int, tid: int) -> list[int]:
    """Return the processes that a thread has started and that have not ended."""
    try:
        return [int(child) for child in (_read_file(f"/proc/{pid}/task/{tid}/children") or b"").split()]
    except ProcessGone:
        return []


def read_switches(pid: int, tid: int) -> tuple[int, int] | None:
    """Return how often a thread gave up its processor by itself, and how often it was taken from it."""
    content = _read_file(f"/proc/{pid}/task/{tid}/status") or b""
    rows = [row.split()[1] for row in content.splitlines() if b"ctxt_switches:" in row]
    return (int(rows[0]), int(rows[1])) if len(rows) == 2 else None


def read_program_name(pid: int, name: str) -> str:
    """Return the name of the program that a process runs, for an interpreter that of the script; else ``name``."""
    arguments = [os.fsdecode(part) for part in _read_words(f"/proc/{pid}/cmdline").split(b"\0")[:3]]
    if not arguments[0]:
        return name
    called = PurePath(arguments[0]).name.lstrip("-") or name
    script = arguments[1] if len(arguments) > 1 else ""
    if called.startswith(_INTERPRETERS) and script and not script.startswith("-"):
        called = PurePath(script).name
    return called.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def read_rank(pid: int, inherited: Mapping[str, str]) -> tuple[int | None, int | None]:
    """Return the rank of a process and the number of ranks, as far as its launcher has told it.

    What is ``inherited`` says nothing about this process: a batch script has a rank of its own.
    """
    found = _select_numbers(_read_words(f"/proc/{pid}/environ"), {*RANK_KEYS, *SIZE_KEYS} - set(inherited))
    of_rank = next((found[key] for key in RANK_KEYS if key in found), None)
    return of_rank, next((found[key] for key in SIZE_KEYS if key in found), None)


def _select_numbers(environment: bytes, wanted: Collection[str]) -> dict[str, int]:
    """Return the variables that are wanted and hold numbers; of the others nothing is decoded or kept."""
    found = {}
    environment = b"\0" + environment[:_ENVIRONMENT_LIMIT]
    for key in wanted:
        value = environment.partition(b"\0" + key.encode() + b"=")[2].partition(b"\0")[0]
        if value.isdigit() and len(value) < 10:
            found[key] = int(value)
    return found
