"""A guest on other people's machines: low priority, few cores, and out of the way when the machine is busy."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from time import monotonic
from typing import Final

import psutil

#: More waiting files than these are a backlog.
FEW: Final = 20
#: After a part, so many times as long is rested as it took.
_REST: Final = 3.0
_LONGEST_S: Final = 10.0
#: For so long a message to the service manager waits for room (seconds).
_TOLD_S: Final = 0.2


def lower_priority(nice: int) -> None:
    """Let everything else run first: CPU time by ``nice``, and the disk only when it is idle."""
    with suppress(OSError):
        os.nice(max(nice - os.nice(0), 0))
    with suppress(OSError, AttributeError, psutil.Error):
        psutil.Process().ionice(psutil.IOPRIO_CLASS_IDLE)


def is_crowded(own: int, max_load: float) -> bool:
    """Return whether others want the cores, ``max_load`` processes for each; ``own`` processes of ours are running."""
    cores = psutil.cpu_count() or 1
    return psutil.getloadavg()[0] - own > max_load * cores


class BacklogThrottle:
    """How fast a backlog is read: where others need the machine, one part at a time, and a rest after each."""

    def __init__(self, max_load: float) -> None:
        self.max_load = max_load
        self.resting_until = 0.0
        self._begun: float | None = None
        self._slow = False

    def begin_part(self) -> bool:
        """Note that a part is being read from now on; return whether it is to be the only one."""
        self._begun = monotonic() if self._slow else None
        return self._slow

    def allows_part(self, busy: bool, own: int) -> bool:
        """Return whether another part may be read; ``busy`` while one is, with ``own`` processes of ours."""
        self._slow = is_crowded(own, self.max_load)
        if not self._slow:
            return True
        if busy:
            return False
        now = monotonic()
        if self._begun is not None:
            self.resting_until = now + min(_REST * (now - self._begun), _LONGEST_S)
            self._begun = None
        return now >= self.resting_until


def notify_service(state: str) -> None:
    """Tell systemd, if it started this process, how it is: ``READY=1``, ``WATCHDOG=1``, ``STOPPING=1``.

    A manager that does not listen for a while is not waited for.
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.settimeout(_TOLD_S)
        channel.connect("\0" + address[1:] if address.startswith("@") else address)
        channel.sendall(state.encode("utf-8"))
