"""What ``go tool pprof -top`` and ``-tree`` print, and ``pprof --text`` of gperftools: own time of each function."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from advisor.formats.call_stacks.folded import CUT
from advisor.formats.call_stacks.pprof import ROUNDING, describe_added_threads, strip_folders
from advisor.formats.call_stacks.stacks import Frame, StackProfile, Unit
from advisor.formats.plain_text import PlainText, read_plain_text
from advisor.model.errors import InputError
from advisor.model.records import Note

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD: Final = re.compile(r" *flat +flat% +sum% +cum +cum%")
_TYPE: Final = re.compile(r"Type: (\S+)")
_PROGRAM: Final = re.compile(r"File: (\S.*)")
_DURATION: Final = re.compile(r"Duration: ([\d.]+)(\w+)")
_AMOUNT: Final = r"(\d{1,18}(?:\.\d{1,9})?)([a-zµ]{0,5})"
#: What the functions in the table took of all samples, in Go's words of today and of before 1.9.
_SHOWN: Final = re.compile(rf"(?:Showing nodes accounting for )?{_AMOUNT}(?:, [\d.]+%)? of {_AMOUNT} total")
#: All samples, in the words of gperftools.
_COUNTED: Final = re.compile(r"Total: (\d{1,18}) samples$")
_ROW: Final = re.compile(rf" *{_AMOUNT} +([\d.]+)% +[\d.]+% +{_AMOUNT} +[\d.]+%  ?(?: *\| )?(?P<name>\S.*)$")
_INLINED: Final = re.compile(r" \((?:partial-)?inline\)$")
_SECONDS: Final = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "mins": 60.0, "hrs": 3600.0,
}  # fmt: skip
_REST: Final = "functions that are not listed"
#: Shares are printed with four digits; sums may be off by as much of all.
_PRINTED: Final = 0.01
_TABLE: Final = Note("table of functions", "the table holds no calls, threads and callers", 0.0, "go tool pprof -proto")


class _Row(NamedTuple):
    """A function, its own time or samples, and what the last digit of that is worth."""

    name: str
    own: float
    digit: float


def parse(path: Path) -> StackProfile:
    """Return the functions of the first table; raises ``InputError`` with the line of what is damaged."""
    text = read_plain_text(path)
    kind = text.find_match(_TYPE)
    if kind is not None and kind[1] not in ("cpu", "samples", "wall"):
        raise InputError(path, f"holds {kind[1][:80]}, which does not tell where time passed; record a CPU profile")
    place, total, shown, unit = _find_total(text)
    duration_s = _find_duration(text)
    cores = total / duration_s if unit == "cpu_s" and total > ROUNDING * duration_s > 0 else 1.0
    rows = tuple(_read_rows(text, place, total))
    if not rows:
        raise text.make_error(place, "no function follows: the table is cut off")
    program = text.find_match(_PROGRAM)
    found = StackProfile(
        "pprof", unit, {}, max(duration_s, total / cores) if duration_s and unit == "cpu_s" else math.nan,
        program=strip_folders(program[1]) if program else "",
        language="go" if any(row.name.startswith("runtime.") for row in rows) else None,
        notes=(
            _TABLE,
            *((CUT,) if text.lines[-1] else ()),
            *(describe_added_threads(cores) if cores > 1 else ()),
        ),
    )  # fmt: skip
    for row in rows:
        if row.own:
            found.add_spent((Frame(row.name),), 0, row.own / cores)
    listed = sum(row.own for row in rows)
    if shown is not None and abs(listed - shown) > sum(row.digit for row in rows) / 2 + _PRINTED / 100 * total:
        raise text.make_error(place, f"the functions add up to {listed:g}, not to {shown:g}")
    if listed < total / ROUNDING:
        found.add_spent((Frame(_REST),), 0, (total - listed) / cores)
    return found


def _find_total(text: PlainText) -> tuple[int, float, float | None, Unit]:
    """Return the line of the sums, that of all samples and that of the table, in seconds unless they are counts."""
    for line, sums in text.find_matches(_SHOWN):
        shown, total = text.parse_number(sums[1], line), text.parse_number(sums[3], line)
        if not total:
            raise text.make_error(line, "there are no samples")
        if sums[4] not in _SECONDS:
            return line, total, shown, "samples"
        return line, total * _SECONDS[sums[4]], shown * _SECONDS.get(sums[2], 1.0), "cpu_s"
    for line, count in text.find_matches(_COUNTED):
        return line, text.parse_number(count[1], line) or math.nan, None, "samples"
    raise InputError(text.path, "does not state how many samples there are: the table is cut off")


def _find_duration(text: PlainText) -> float:
    """Return the seconds of the run, 0 where the table does not tell them."""
    found = text.find_match(_DURATION)
    return text.parse_number(found[1], 0) * _SECONDS.get(found[2], 0.0) if found else 0.0


def _read_rows(text: PlainText, place: int, total: float) -> Iterator[_Row]:
    """Yield the functions below the sum: in a table with callers, those that the lines about them are for."""
    head = text.find_line(_HEAD, place)
    for line, cells in text.find_matches(_ROW, place + 1 if head is None else head + 1):
        seconds = _SECONDS.get(cells[2], 1.0)
        own = text.parse_number(cells[1], line) * seconds
        last_digit = seconds * 10.0 ** -len(cells[1].partition(".")[2]) if own else 0.0
        if abs(100 * own / total - text.parse_number(cells[3], line)) > _PRINTED + 100 * last_digit / total:
            raise text.make_error(line, f"{cells[1]}{cells[2]} are not {cells[3]} % of all")
        yield _Row(_INLINED.sub("", cells["name"]), own, last_digit)
