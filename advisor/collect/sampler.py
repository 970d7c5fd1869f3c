"""One look after the other at every process of a tree."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

from advisor.collect import procfs
from advisor.collect.procfs import ProcessGone
from advisor.collect.records import UNKNOWN, BlockedCall, Process, Thread

_X86: Final = {
    "read": (0, 19), "pread": (17, 295, 327), "write": (1, 20), "pwrite": (18, 296, 328), "sendfile": (40,),
    "copy_file_range": (326,), "fsync": (74,), "fdatasync": (75,), "sync": (162, 306), "sync_file_range": (277,),
    "msync": (26,), "open": (2, 257, 437, 85), "close": (3,), "stat": (4, 6, 262, 332), "fstat": (5,),
    "unlink": (87, 263), "rename": (82, 264, 316), "mkdir": (83, 258), "readdir": (217,), "truncate": (76,),
    "ftruncate": (77,), "fallocate": (285,), "flock": (73,), "io_getevents": (208,), "io_uring_enter": (426,),
    "nanosleep": (35, 230), "futex": (202,), "poll": (7, 271), "epoll_wait": (232, 281), "select": (23, 270),
    "wait": (61, 247), "recv": (45, 47),
}  # fmt: skip
_GENERIC: Final = {
    "read": (63, 65), "pread": (67, 69, 286), "write": (64, 66), "pwrite": (68, 70, 287), "sendfile": (71,),
    "copy_file_range": (285,), "fsync": (82,), "fdatasync": (83,), "sync": (81, 267), "sync_file_range": (84,),
    "msync": (227,), "open": (56, 437), "close": (57,), "stat": (79, 291), "fstat": (80,), "unlink": (35,),
    "rename": (38, 276), "mkdir": (34,), "readdir": (61,), "truncate": (45,), "ftruncate": (46,), "fallocate": (47,),
    "flock": (32,), "io_getevents": (4,), "io_uring_enter": (426,), "nanosleep": (101, 115), "futex": (98,),
    "poll": (73,), "epoll_wait": (22,), "select": (72,), "wait": (260, 95), "recv": (207, 212),
}  # fmt: skip
_TABLES: Final = {"x86_64": _X86, "aarch64": _GENERIC, "riscv64": _GENERIC}
#: Calls in which a thread is blocked without doing input or output.
WAITING: Final = frozenset({"nanosleep", "futex", "poll", "epoll_wait", "select", "wait", "recv"})
#: Calls on an open file, which is their first argument.
ON_FILE: Final = frozenset(
    {"read", "pread", "write", "pwrite", "sendfile", "fsync", "fdatasync", "sync_file_range", "close", "fstat",
     "ftruncate", "fallocate", "flock", "copy_file_range"}
)  # fmt: skip
#: Calls whose first argument may be a pipe, a terminal or a socket as well as a file.
ON_STREAM: Final = frozenset({"read", "write", "pread", "pwrite", "sendfile"})

#: Threads are asked for their children, and counted anew, at every sample while there are no more of them than this.
_FEW_THREADS: Final = 200
_SELDOM: Final = 5
#: A sample stands for no more than this many intervals, however long the sampler was kept from looking.
_STRETCH: Final = 4.0
#: What is known of a blocked thread from its state alone.
_BY_STATE: Final = {"D": BlockedCall("file", UNKNOWN), "S": BlockedCall("other", UNKNOWN)}


class ProcessSampler:
    """Knows the processes that a program started; ``origin_s`` is the moment of its start (``time.monotonic``)."""

    def __init__(self, pid: int, origin_s: float, interval_s: float) -> None:
        self.root = pid
        self.origin_s = origin_s
        self.interval_s = interval_s
        self.samples = 0
        self.longest_s = 0.0
        self.sees_calls = procfs.can_see_calls()
        self.processes: list[Process] = []
        self.alive: dict[int, Process] = {}
        self._boot_s = time.clock_gettime(time.CLOCK_BOOTTIME) - (time.monotonic() - origin_s)
        self._calls = call_names()
        self._lists_children = procfs.kernel_lists_children()
        self._last_s = 0.0

    def take_sample(self) -> None:
        """Look at every process of the tree once."""
        now = time.monotonic() - self.origin_s
        apart = now - self._last_s
        self.longest_s = max(self.longest_s, apart)
        for pid in list(self._iterate_tree()):
            try:
                self._sample_process(pid, now, apart)
            except ProcessGone:
                self._close_process(pid, now)
        for pid in [pid for pid, process in self.alive.items() if process.main_thread.last_s < now]:
            self._close_process(pid, now)
        self.samples += 1
        self._last_s = now

    def _iterate_tree(self) -> Iterator[int]:
        """Yield the processes of the tree, also those that outlived the one that started them."""
        if not self._lists_children:
            yield from dict.fromkeys((self.root, *_find_descendants(self.root), *self.alive))
            return
        waiting, seen = [self.root, *self.alive], set()
        while waiting:
            pid = waiting.pop()
            if pid in seen:
                continue
            seen.add(pid)
            yield pid
            process = self.alive.get(pid)
            tids = list(process.threads) if process and self._asks_threads() else [pid]
            waiting += [child for tid in tids for child in procfs.list_children(pid, tid)]

    def _asks_threads(self) -> bool:
        total = sum(len(process.threads) for process in self.alive.values())
        return total <= _FEW_THREADS or self.samples % _SELDOM == 0

    def _sample_process(self, pid: int, now: float, apart: float) -> None:
        stat = procfs.read_stat(pid)
        process = self.alive.get(pid)
        if process is not None and process.started_s != stat.started_s:
            self._close_process(pid, now)
            process = None
        if process is None:
            if stat.state == "Z" and pid != self.root:
                return
            process = self._add_process(pid, stat, now)
        elif process.command != stat.name or process.main_thread.samples == 1:  # not all is there in the moment of exec
            _update_program(process, stat.name)
        if self.samples % _SELDOM == 1:  # launchers bind ranks after they have started them
            process.affinity = _read_affinity(pid) or process.affinity
        process.peak_B = max(process.peak_B, stat.resident_B)
        process.counters = procfs.read_io_counters(pid) or process.counters
        weight = min(apart, _STRETCH * self.interval_s)
        for tid in [pid] if stat.threads <= 1 else procfs.list_threads(pid):
            with suppress(ProcessGone):
                self._sample_thread(
                    process, tid, stat if stat.threads <= 1 else procfs.read_stat(pid, tid), now, weight
                )
        for thread in process.threads.values():
            if thread.end_s is None and thread.last_s < now:
                thread.end_s = (thread.last_s + now) / 2
        if stat.state == "Z" and stat.threads <= 1:
            self._close_process(pid, now)

    def _add_process(self, pid: int, stat: procfs.ProcessStat, now: float) -> Process:
        start_s = min(max(stat.started_s - self._boot_s, 0.0), now)
        rank, ranks = procfs.read_rank(pid, os.environ)
        process = Process(
            pid,
            stat.parent,
            stat.started_s,
            procfs.read_program_name(pid, stat.name),
            rank,
            ranks,
            _read_affinity(pid),
            stat.name,
        )
        process.threads[pid] = Thread(pid, start_s, start_s)
        self.alive[pid] = process
        self.processes.append(process)
        return process

    def _sample_thread(self, process: Process, tid: int, stat: procfs.ProcessStat, now: float, weight: float) -> None:
        start_s = min(max(stat.started_s - self._boot_s, 0.0), now)
        thread = process.threads.setdefault(tid, Thread(tid, start_s, start_s))
        ran = procfs.read_cpu_times(process.pid, tid) or (stat.user_s + stat.system_s, 0.0)
        if ran[0] != thread.cpu_s or thread.in_call is None:  # else it has not moved since
            thread.in_call = self._find_blocked_call(process.pid, tid, stat.state)
        thread.cpu_s, thread.delay_s = ran
        thread.system_s = min(stat.system_s, thread.cpu_s)
        thread.last_s = now
        thread.samples += 1
        thread.cpus.add(stat.cpu)
        if thread.in_call is not None:
            thread.blocked[thread.in_call] = thread.blocked.get(thread.in_call, 0.0) + weight
        if self.samples % _SELDOM == 0 or stat.state == "Z":
            thread.switches = procfs.read_switches(process.pid, tid) or thread.switches

    def _find_blocked_call(self, pid: int, tid: int, state: str) -> BlockedCall | None:
        """Return what a thread is blocked in; None where it runs.

        The state was read a moment before. Both count: a call of some 100 us is often over, or begins, in between.
        """
        found = procfs.read_system_call(pid, tid) if state not in "ZX" else None
        if found is None:
            return _BY_STATE.get(state)
        number, descriptor = found
        name = self._calls.get(number, "page fault" if number < 0 else UNKNOWN)
        if name in WAITING or (state != "D" and name in (UNKNOWN, "page fault")):
            return BlockedCall("other", name)
        if name == UNKNOWN:
            return _BY_STATE["D"]
        path = procfs.resolve_descriptor(pid, descriptor) if name in ON_FILE else None
        return _classify_call(name, path)

    def _close_process(self, pid: int, now: float) -> None:
        process = self.alive.pop(pid, None)
        if process is None:
            return
        last = process.main_thread.last_s
        process.end_s = now if last == now else (last + now) / 2
        for thread in process.threads.values():
            if thread.end_s is None:
                thread.end_s = max(process.end_s, thread.last_s)


def _classify_call(name: str, path: str | None) -> BlockedCall:
    """Return what a call on an open file waits for: to read from a pipe or a socket is to wait for who writes."""
    if path is None or path.startswith("/"):
        terminal = path is not None and path.startswith(("/dev/pts/", "/dev/tty"))
        return BlockedCall("file", name, "terminal" if terminal else path)
    kind = path.partition(":")[0]
    if name in ON_STREAM and name in ("read", "pread"):
        return BlockedCall("input", name, kind)
    return BlockedCall("other", name, kind) if kind == "socket" else BlockedCall("file", name, kind)


def _update_program(process: Process, command: str) -> None:
    """Take note that a process runs another program now, as after ``exec``."""
    process.command = command
    process.name = procfs.read_program_name(process.pid, command)
    rank, ranks = procfs.read_rank(process.pid, os.environ)
    process.rank, process.ranks = (rank, ranks) if rank is not None else (process.rank, process.ranks)
    process.affinity = _read_affinity(process.pid) or process.affinity


def _read_affinity(pid: int) -> frozenset[int]:
    try:
        return frozenset(os.sched_getaffinity(pid))
    except OSError:
        return frozenset()


def _find_descendants(pid: int) -> list[int]:
    import psutil

    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []


def call_names(machine: str = "") -> Mapping[int, str]:
    """Return the name of each system call of interest by its number; empty for processors not listed here."""
    table = _TABLES.get(machine or platform.machine(), {})
    return {number: name for name, numbers in table.items() for number in numbers}
