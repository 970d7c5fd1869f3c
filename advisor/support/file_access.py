"""Landlock: which files a process, and all that it starts, may change (Linux 5.13 and later; elsewhere nothing holds).

Numbers and structures are those of ``linux/landlock.h``. A kernel that knows more rights than are named here leaves
these as they are; one that knows fewer is asked for those that it knows.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from advisor.support.disk_cache import system_folder
from advisor.support.private_files import make_private_folder

#: The system calls, the same on all machines: make a set of rules, add one, obey it from now on.
_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_ASK_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_SET_NO_NEW_PRIVS: Final = 38
#: Rights to change files, by the version of Landlock that knows them: write, remove, make; move; cut; drive devices.
_WRITE: Final = 1 << 1
_CHANGE: Final = sum(1 << bit for bit in range(4, 13))
_MOVE: Final = 1 << 13
_CUT: Final = 1 << 14
_CONTROL_DEVICES: Final = 1 << 15
_SINCE: Final = ((1, _WRITE | _CHANGE), (2, _MOVE), (3, _CUT), (5, _CONTROL_DEVICES))
#: What may be done to a file, as opposed to a directory.
_OF_FILES: Final = _WRITE | _CUT | _CONTROL_DEVICES
#: TCP ports that are bound or connected to (version 4); signals and abstract sockets of others (version 6).
_TCP: Final = (4, 0b11)
_SCOPES: Final = (6, 0b11)
#: What everybody may write to.
_SINKS: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")


@cache
def landlock_version() -> int:
    """Return the version of Landlock that the kernel has, 0 where it has none or it is switched off."""
    return max(_call_system(_CREATE_RULESET, None, 0, _ASK_VERSION), 0) if os.uname().sysname == "Linux" else 0


def confine_process(places: Iterable[Path] = ()) -> bool:
    """Let this process change the user's caches and data of gapwatch, temporary files of its own, and ``places`` only.

    Temporary files lie in a directory of the user's below ``TMPDIR``, which what runs here is told by that variable.
    Returns whether that holds.
    """
    if not landlock_version():
        return False
    own = [system_folder("cache"), system_folder("data")]
    temporary = Path(os.environ.get("TMPDIR") or "/tmp", f"gapwatch-{os.geteuid()}")
    for folder in (*own, temporary):
        with suppress(OSError):
            if folder.is_symlink():
                continue
            make_private_folder(folder)
            if folder == temporary:
                own.append(temporary)
                os.environ["TMPDIR"] = str(temporary)
    return restrict_writes((*own, *places))


def restrict_writes(places: Iterable[Path]) -> bool:
    """Let this process, and all that it starts, change files at and below ``places`` only; return whether that holds.

    Reading stays as it is. Files that are open already stay open. As far as the kernel knows how, TCP, signals to
    processes outside and abstract sockets of theirs are refused, too. Places that are not there are left out.
    """
    version = landlock_version()
    if not version:
        return False
    rights = sum(mask for since, mask in _SINCE if version >= since)
    tcp, scopes = (mask if version >= since else 0 for since, mask in (_TCP, _SCOPES))
    wanted = struct.pack("QQQ", rights, tcp, scopes)[: 8 if version < 4 else 16 if version < 6 else 24]
    ruleset = _call_system(_CREATE_RULESET, wanted, len(wanted), 0)
    if ruleset < 0:
        return False
    try:
        for place in (*map(Path, _SINKS), *places):
            with suppress(OSError):
                _allow_changes(ruleset, place, rights)
        allowed = ctypes.CDLL(None, use_errno=True).prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
        return bool(allowed and _call_system(_RESTRICT_SELF, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def _allow_changes(ruleset: int, place: Path, rights: int) -> None:
    descriptor = os.open(place, os.O_PATH | os.O_CLOEXEC)
    try:
        rights = rights if os.path.isdir(place) else rights & _OF_FILES
        _call_system(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, descriptor), 0)
    finally:
        os.close(descriptor)


def _call_system(number: int, *values: object) -> int:
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    return int(call(ctypes.c_long(number), *(ctypes.c_long(v) if isinstance(v, int) else v for v in values)))
