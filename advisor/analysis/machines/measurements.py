"""A number of a machine that a benchmark measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path


class Measurement(NamedTuple):
    """A number of a machine model: its field, the value in seconds or bytes per second, and what measured it where."""

    field: str
    value: float
    tool: str
    path: Path
