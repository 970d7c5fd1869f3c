"""The lines of perf stat, as CSV (``-x,``) and as JSON (``-j``): what was counted of each event."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from advisor.formats.perf.events import strip_modifiers
from advisor.model.errors import InputError
from advisor.support.limited_files import read_limited

_LIMIT: Final = 64 << 20
_UNKNOWN: Final = ("<not supported>", "<not counted>")
_NUMBER: Final = re.compile(r"\d{1,18}(\.\d{1,12})?")
_SEPARATOR: Final = re.compile(r"[,;|\t]")
_PLACE: Final = re.compile(r"CPU\d+|[SN]\d+(-D\d+)?(-C\d+)?|node\d+")
_PARTS: Final = ("cpu", "core", "die", "socket", "node", "cluster")
_STARTED: Final = re.compile(r"# started on (.*)")
#: Events that are times of the process, not counts: of its processors, and of the wall.
CLOCKS: Final = ("task-clock", "cpu-clock", "user_time", "system_time", "duration_time")
#: What perf adds to a clock: how many processors were busy on average.
_UTILIZED: Final = "CPUs utilized"


@dataclass(frozen=True, slots=True)
class CountRow:
    """One line: an event with its unit and value, None where it was not counted.

    ``enabled_share`` is the share of the time in which it was counted; ``interval`` the time since the start where perf
    printed several times; ``cpus_utilized`` the processors that were busy on average, where perf says so. ``is_system``
    tells that it is of a part of the machine, and not of the program alone.
    """

    event: str
    unit: str
    value: float | None
    enabled_share: float
    interval: float | None
    cpus_utilized: float | None
    is_system: bool


@dataclass(frozen=True, slots=True)
class CountTable:
    """A file: its rows, when perf started, as it says, and what it counted, where it says so.

    ``is_cut`` is whether the end of a table is missing, ``others`` how many more tables the file holds.
    """

    path: Path
    rows: tuple[CountRow, ...]
    started: str | None
    command: str = ""
    is_cut: bool = False
    others: int = 0


def read_table(path: Path, form: str) -> CountTable:
    """Return what the file at ``path`` says; raises ``InputError`` with the line of what is damaged."""
    text = read_limited(path, _LIMIT).decode("utf-8", "surrogateescape")
    started = None
    rows = []
    for number, line in _number_lines(text):
        found = _STARTED.fullmatch(line)
        started = found[1].strip() if found else started
        if line.startswith("#") or not line.strip():
            continue
        try:
            row = _parse_json_row(line) if form == "json" else _parse_csv_row(line)
        except ValueError as error:
            raise InputError(path, str(error), f"line {number}") from error
        if row is not None:
            rows.append(row)
    if not rows:
        raise InputError(path, "no event was counted")
    if not text.endswith("\n") and not _is_whole(text):
        raise InputError(path, "the last line is cut off", f"line {text.count(chr(10)) + 1}")
    return CountTable(path, tuple(rows), started)


def _number_lines(text: str) -> Iterator[tuple[int, str]]:
    return enumerate(text.split("\n"), 1)


def _is_whole(text: str) -> bool:
    """Return whether the last line is one of those that perf writes without a newline: of an event without metric."""
    return re.search(r"([,;|\t])\d+\.\d\d\1\1$", text) is not None


def _parse_csv_row(line: str) -> CountRow | None:
    """Return what a line says: ``[time,][place,[number,]]value,unit,event,[deviation,]ns,percent,metric,its unit``."""
    separator = _SEPARATOR.search(line)
    words = line.strip(" ").split(separator[0] if separator else ",")
    interval = None
    if (
        len(words) > 3
        and re.fullmatch(r"\d+\.\d{6,9}", words[0])
        and (_is_value(words[1]) or _PLACE.fullmatch(words[1]))
    ):
        interval, words = float(words[0]), words[1:]
    system = _PLACE.fullmatch(words[0]) is not None
    if system:
        words = words[2:] if len(words) > 2 and words[1].isdigit() and _is_value(words[2]) else words[1:]
    if words[:3] == ["", "", ""] or (len(words) > 5 and not any(words[:4])):
        return None  # another metric of the event before
    if len(words) < 5 or not _is_value(words[0]) or not words[2]:
        raise ValueError(f"is not a line of perf stat: {line[:80]!r}")
    rest = words[4:] if words[3].endswith("%") else words[3:]
    if len(rest) < 2 or not rest[0].isdigit():
        raise ValueError(f"is not a line of perf stat: {line[:80]!r}")
    utilized = _parse_number(rest[2]) if len(rest) > 3 and rest[3] == _UTILIZED else None
    return CountRow(
        words[2],
        find_unit(words[2], words[1], words[0]),
        _parse_value(words[0]),
        _parse_number(rest[1]) / 100,
        interval,
        utilized,
        system,
    )


def _parse_json_row(line: str) -> CountRow | None:
    try:
        found = json.loads(line.rstrip().removesuffix(","))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not a line of JSON: {error}") from error
    if not isinstance(found, dict):
        raise ValueError("is not a JSON object")
    event, value = found.get("event"), found.get("counter-value")
    if event is None and value is None:
        return None
    if not isinstance(event, str) or not event or not isinstance(value, str) or not _is_value(value):
        raise ValueError("expected an event and its counter-value")
    utilized = found.get("metric-value") if found.get("metric-unit") == _UTILIZED else None
    return CountRow(
        event,
        find_unit(event, str(found.get("unit", "")), value),
        _parse_value(value),
        _parse_number(found.get("pcnt-running", 100.0)) / 100,
        None if found.get("interval") is None else _parse_number(found["interval"]),
        None if utilized is None else _parse_number(utilized),
        any(key in found for key in _PARTS),
    )


def find_unit(event: str, unit: str, value: str) -> str:
    """Return the unit of a value; perf prints some clocks without it: whole nanoseconds, or milliseconds with decimals.

    The kernel counts nanoseconds (perf_event_open(2), PERF_COUNT_SW_TASK_CLOCK), and perf divides them or not.
    """
    if unit or strip_modifiers(event) not in CLOCKS:
        return unit
    return "ns" if value.isdigit() else "msec"


def _is_value(word: str) -> bool:
    return word in _UNKNOWN or _NUMBER.fullmatch(word) is not None


def _parse_value(word: str) -> float | None:
    return None if word in _UNKNOWN else float(word)


def _parse_number(value: object) -> float:
    """Return a number of a line; raises ``ValueError`` for one that can't be."""
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        raise ValueError(f"expected a number, found {value[:50]!r}")
    if not isinstance(value, int | float | str) or isinstance(value, bool):
        raise ValueError("expected a number")
    found = float(value)
    if not math.isfinite(found) or not 0 <= found < 1e18:
        raise ValueError(f"{found} is impossible")
    return found
