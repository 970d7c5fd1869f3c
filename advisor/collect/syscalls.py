"""System calls by number: which do input and output, and which tell what else a thread is blocked in.

The numbers are those of the kernel's tables ``arch/x86/entry/syscalls/syscall_64.tbl`` and
``include/uapi/asm-generic/unistd.h`` (Arm, RISC-V). Calls that differ only in how they are given their arguments share
one name, that of the C library.
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

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


def call_names(machine: str = "") -> Mapping[int, str]:
    """Return the name of each system call of interest by its number; empty for processors not listed here."""
    table = _TABLES.get(machine or platform.machine(), {})
    return {number: name for name, numbers in table.items() for number in numbers}
