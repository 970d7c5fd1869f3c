"""How long tests wait for what must happen: a bound that only a hang reaches, however busy the machine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds.
PATIENCE_S = 600.0
_LOOK_S = 0.02


def has_ended(pid: int) -> bool:
    """Return whether a process runs no more, though whoever started it may not have taken note."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def wait_until(
    happened: Callable[[], bool],
    else_say: Callable[[], object] = lambda: "it never happened",
    patience_s: float = PATIENCE_S,
) -> None:
    """Wait until something is so; fail with what ``else_say`` returns where it never is."""
    end = time.monotonic() + patience_s
    while not happened():
        assert time.monotonic() < end, else_say()
        time.sleep(_LOOK_S)
