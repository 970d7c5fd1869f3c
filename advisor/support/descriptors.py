"""Waiting for input on file descriptors of any number: ``select`` takes none from 1024 on."""

from __future__ import annotations

import select
from typing import Final

#: The longest wait that the system takes, seconds.
LONGEST_S: Final = (2**31 - 1) // 1000


def has_input(descriptor: int, seconds: float) -> bool:
    """Wait at most ``seconds``; return whether something can be read, an end of file included."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(min(max(seconds, 0.0), LONGEST_S) * 1000))
