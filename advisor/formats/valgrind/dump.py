"""What one output file of callgrind or cachegrind says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class CodePlace:
    """Where events were counted: object file, source file (of inlined code another than ``own``), function.

    ``own`` is the source file of the function itself. Unknown names are ``???`` in the file and stay so here.
    """

    object: str
    file: str
    function: str
    own: str


@dataclass(frozen=True, slots=True)
class HotLines:
    """Counts by source line: file (index into ``files``), line, and the counts (lines, events), unordered."""

    files: tuple[str, ...]
    file: IntArray
    line: IntArray
    counts: FloatArray


@dataclass(frozen=True, slots=True)
class ValgrindDump:
    """One file: a process, or a thread or a part of one.

    ``counts`` (places, events) are exclusive: what was counted in callees is not in here. ``calls`` (places,) tells how
    often the functions were called, None where that is not recorded; ``line`` (places,) is the first line in which
    something was counted, 0 for none. ``totals_deviation`` is how far the file's own totals are from the sum of its
    lines.
    """

    path: Path
    command: str
    pid: int | None
    thread: int | None
    part: int
    caches: tuple[str, ...]
    events: tuple[str, ...]
    places: tuple[CodePlace, ...]
    counts: FloatArray
    calls: IntArray | None
    line: IntArray
    lines: HotLines
    totals_deviation: float
