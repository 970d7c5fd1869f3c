"""What both versions of HPCToolkit's databases come down to: frames of functions, threads, and values of both."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from advisor.model.records import FloatArray

NODE_LIMIT: Final = 5_000_000  # frames, loops and lines
#: Bytes of all values of a metric, (frames, threads).
SIZE_LIMIT: Final = 1 << 30
#: Names of metrics that are times, by what they measure, and seconds of their units.
_TIME: Final = re.compile(r"(REALTIME|WALLCLOCK|CPUTIME)\s*\((sec|usec|s|us)\)")
_UNITS: Final = {"sec": 1.0, "s": 1.0, "usec": 1e-6, "us": 1e-6}


@dataclass(slots=True)
class CallFrames:
    """The frames of functions, callers first, as columns; ``parent`` is -1 for those that nobody calls."""

    name: list[str] = field(default_factory=list)
    module: list[str] = field(default_factory=list)
    file: list[str | None] = field(default_factory=list)
    line: list[int | None] = field(default_factory=list)
    parent: list[int] = field(default_factory=list)

    def add_frame(self, name: str, module: str, file: str | None, line: int, parent: int) -> int:
        """Add a frame and return its number."""
        self.name.append(name)
        self.module.append(module)
        self.file.append(file)
        self.line.append(line if line > 0 and file else None)
        self.parent.append(parent)
        return len(self.name) - 1


@dataclass(frozen=True, slots=True)
class MeasuredThread:
    """One thread that was measured: its rank, its number within the rank, and the node it ran on."""

    rank: int
    number: int
    host: str | None


@dataclass(frozen=True, slots=True)
class Database:
    """One run. ``inclusive`` holds the seconds (frames, threads) of frames and what they call, by ``wall`` or ``cpu``.

    ``doubts`` says what contradicts something else, ``accelerator_streams`` how many streams of accelerators are not
    read.
    """

    program: str
    frames: CallFrames
    threads: tuple[MeasuredThread, ...]
    inclusive: dict[str, FloatArray]
    doubts: tuple[str, ...]
    accelerator_streams: int = 0


def parse_time_metric(name: str) -> tuple[str, float] | None:
    """Return ``wall`` or ``cpu`` and the seconds of one unit for the name of a metric, None where it is no time."""
    found = _TIME.match(name)
    if not found:
        return None
    return "cpu" if found[1] == "CPUTIME" else "wall", _UNITS[found[2]]
