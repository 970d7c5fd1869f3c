"""What a function of an interpreter does, by its name: built-in functions wait, read and write; others work."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor.trace.events import Role
from advisor.trace.regions import classify_region

if TYPE_CHECKING:
    from advisor.formats.call_stacks.stacks import Frame

_BUILT_IN: Final = re.compile(r"[{<](?:built-in )?method '?([\w.]+)'?(?: of '([\w.]+)' objects)?[}>]$")
_MPI: Final = re.compile(r"mpi4py\.")
_LOCK: Final = re.compile(r"(_thread\.|threading\.)?(lock|RLock|_RLock|Condition|Event)$")
_SLEEP: Final = frozenset({"sleep"})
_IO: Final = frozenset({
    "read", "readinto", "readline", "readlines", "write", "writelines", "flush", "open", "close", "fsync", "fdatasync",
    "recv", "recv_into", "send", "sendall", "connect", "accept", "pread", "pwrite", "stat", "listdir", "scandir",
})  # fmt: skip
_POLL: Final = frozenset({"poll", "select", "epoll_wait", "waitpid", "wait4"})
#: Files that pyinstrument and cProfile name for functions that have none.
_NO_FILE: Final = frozenset({"~", "<built-in>", ""})


def classify_frame(frame: Frame) -> Role:
    """Return what the function does: calls of MPI, locks, sleeping and I/O by the names of built-in functions."""
    found = _BUILT_IN.match(frame.name)
    if found is None and frame.file not in _NO_FILE:
        return Role.USER if frame.file else classify_region(frame.name)[1]
    name, owner = (found[1].rsplit(".", 1)[-1], found[2] or found[1]) if found else (frame.name.rsplit(".", 1)[-1], "")
    if _MPI.match(owner):
        return classify_region(f"MPI_{name}", paradigm="MPI")[1]
    if name in ("acquire", "wait") and (not owner or _LOCK.search(owner)):
        return Role.OMP_LOCK
    if name in _SLEEP or name in _POLL:
        return Role.OS
    return Role.IO if name in _IO else Role.USER
