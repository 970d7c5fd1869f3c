"""The statistics that line_profiler keeps (``kernprof -l``, ``.lprof``): seconds of each line, without its text.

Which line calls another function of the statistics is not in the file. A function counts as called by a line that ran
as often as it was entered and took at least as long. Where only the time would allow it, the function is left out: its
seconds may be those of another line once more.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.formats.call_stacks.line_profiler import SHARE, TimedFunction, TimedLine, build_line_profile
from advisor.formats.call_stacks.pickle_reader import read_pickle
from advisor.formats.plain_text import read_content
from advisor.model.errors import InputError
from advisor.model.lists import join_names
from advisor.model.records import Note

if TYPE_CHECKING:
    from advisor.formats.call_stacks.stacks import StackProfile

_MOST: Final = 1e15


def parse(path: Path) -> StackProfile:
    """Return the lines of all functions; raises ``InputError`` for what is damaged, or ran no line."""
    match read_pickle(path, read_content(path)):
        case {"timings": dict(timings), "unit": float(unit)} if 0 < unit <= 1:
            functions = [_check_function(path, key, rows, unit) for key, rows in timings.items()]
        case _:
            raise InputError(path, "no statistics of line_profiler")
    ran = sorted((one for one in functions if one.total_s > 0), key=lambda one: -one.total_s)
    if not ran:
        raise InputError(path, "no line of the functions that line_profiler was told to time was run")
    callers: dict[str, dict[tuple[int, int], None]] = {}
    kept: list[TimedFunction] = []
    left_out = []
    for one in ran:
        fits = [
            (row, n) for n, other in enumerate(kept) for row in other.lines if row.seconds >= one.total_s * (1 - SHARE)
        ]
        matching = [(row.seconds, n, row.line) for row, n in fits if one.lines and row.hits == one.lines[0].hits]
        if fits and not matching:
            left_out.append(one.name)
            continue
        if matching:
            _, number, line = min(matching)
            callers.setdefault(one.last_name, {})[number, line] = None
        kept.append(one)
    return build_line_profile(kept, callers, _describe_left_out(path, left_out))


def _describe_left_out(path: Path, names: list[str]) -> tuple[Note, ...]:
    if not names:
        return ()
    listed = join_names(names, 3)
    text = f"{listed}: lines of other functions may call them, and the file does not tell; they are left out"
    return (Note("functions left out", text, 0.1, f"python -m line_profiler {path.name} > lines.txt"),)


def _check_function(path: Path, key: object, rows: object, unit_s: float) -> TimedFunction:
    """Return a function with its lines; raises ``InputError`` for what is none."""
    match key, rows:
        case (str(file), int(line), str(name)), list(entries) if 0 <= line < 1 << 31:
            lines = []
            for entry in entries:
                match entry:
                    case (int(number), int(hits), int(ticks)) if (
                        0 <= number < 1 << 31 and 0 < hits < _MOST and 0 <= ticks < _MOST
                    ):
                        lines.append(TimedLine(number, float(hits), ticks * unit_s, 0.0, ""))
                    case _:
                        raise InputError(path, "damaged: a line without its number, hits and time", f"{name[:80]}")
        case _:
            raise InputError(path, "damaged: an entry is no function of lines")
    if [one.line for one in lines] != sorted({one.line for one in lines}):
        raise InputError(path, "damaged: the lines are not in order", f"{name[:80]}")
    return TimedFunction(name, file, math.fsum(one.seconds for one in lines), tuple(lines))
