"""The events that a profile was made of, for who wants both: a trace is read once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.trace.events import Trace


class _Latest:
    """What was read last."""

    path: Path | None = None
    trace: Trace | None = None


def keep_trace(path: Path, trace: Trace) -> Trace:
    """Return ``trace``, read from ``path``, and keep it until somebody takes it or another trace is kept."""
    _Latest.path, _Latest.trace = path, trace
    return trace


def take_trace(path: Path) -> Trace | None:
    """Return the trace that was kept of ``path`` and forget it; None, and forget whatever it is, for another one."""
    kept = _Latest.trace if path == _Latest.path else None
    _Latest.path = _Latest.trace = None
    return kept
