"""GPTL (E3SM, CESM and others): the statistics over all ranks that ``GPTLpr_summary`` writes (``gptl.c``).

The statistics do not tell which timers contain which. The file that a rank writes beside them does, by indentation;
without one only the parts of the driver of E3SM and CESM are known to follow each other, and of programs that time the
run as a whole those timers are told apart that fit into it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from advisor.formats.plain_text import PlainText, read_head, read_plain_text
from advisor.formats.timing_tables.flat_timers import nest_timers
from advisor.formats.timing_tables.row_roles import classify_row
from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.model.records import Note
from advisor.trace.events import Role

_TITLE: Final = re.compile(r"\s*\*+ GLOBAL STATISTICS \( *(\d{1,9}) MPI TASKS\) \*+")
_HEAD: Final = re.compile(r"name +(?:on +)?processes +threads +count +walltotal +wallmax \(proc +thrd +\)")
_PLACE: Final = r"\( *(?P<{}>\d{{1,9}}) +\d{{1,6}}\)"
_NAME: Final = r'(?:"(?P<quoted>[^"]{1,200})"|(?P<plain>\S{1,200}))'
_ROW: Final = re.compile(
    rf"{_NAME} +(?:[-y] +)?(?P<ranks>\d{{1,9}}) +(?P<threads>\d{{1,9}})"
    rf" +(?P<count>\S+) +(?P<total>\S+) +(?P<most>\S+) +{_PLACE.format('most_at')} +(?P<least>\S+)"
    rf" +{_PLACE.format('least_at')}"
)
#: Two places, as all lines of timers have; a line of brackets is passed through once.
_ANY_PLACES: Final = re.compile(r"\([^()\d]*\d[^()]*\)[^(]*\(")
#: What the run as a whole is called, and what the driver of E3SM and CESM does, one after the other.
_WHOLE: Final = "Total"
_DRIVER: Final = ("CPL:INIT", "CPL:RUN_LOOP", "CPL:FINAL")
_BARRIER: Final = re.compile(r".*(?:_?barrier|_sync\d?(?:_tprf)?)$", re.IGNORECASE)
_PIO: Final = re.compile(r"(?:\w+:)*pio\w*(?::|_|$)", re.IGNORECASE)
_BETWEEN_RANKS: Final = re.compile(r".*(?:swapm|rearr|repro_sum_allr|alltoall)", re.IGNORECASE)
#: Seconds are printed with three digits behind the point.
_ROUNDING_S: Final = 1.1e-3
_SLACK: Final = 1.01

# the file of a rank
_FILES: Final = ("model_timing.0*", "*timing.0*")
_MOST_FILES: Final = 1000
_RANK_TITLE: Final = b" PROCESS "
_STATS: Final = re.compile(r"Stats for thread 0:")
_TIMER: Final = re.compile(rf"(?P<many>\*?)(?P<indent> +){_NAME} +(?:[-y] +)?\S+ +\S+ +(?P<wall>\d+\.\d+)")
#: So many of the seconds of a rank are in timers between least and most of all ranks where the files are of one run.
_ALIKE: Final = 0.9


def parse(text: PlainText) -> TimingTable:
    """Return the timers of all ranks; raises ``InputError`` where the table is damaged."""
    title, head = text.find_match(_TITLE), text.find_line(_HEAD)
    if title is None or head is None:
        raise InputError(text.path, "the statistics of GPTL lack their title or their columns")
    if text.lines[-1].strip():
        raise text.make_error(len(text.lines) - 1, "the last line has no end: the file is cut off")
    ranks = int(title[1])
    timers = _parse_timers(text, head, ranks)
    nesting = _find_nesting(text.path, timers)
    driver = [timers[name] for name in _DRIVER if name in timers]
    whole = timers.get(_WHOLE)
    notes: tuple[Note, ...] = ()
    if nesting:
        rows, notes = _nest_timers(timers, nesting)
    elif len(driver) == len(_DRIVER):
        rows = tuple(driver)
        how = "keep the file of a rank (model_timing.0000) beside it"
        notes = (Note("timers contain each other", "the table does not tell which timers contain which", 0.1, how),)
    elif whole is not None:
        _, rows, notes = nest_timers([timer for timer in timers.values() if timer is not whole], whole.most_s)
    else:
        reason = "does not tell which timers contain which; the file of a rank (timing.000000) beside it would"
        raise InputError(text.path, reason)
    roots = driver if len(driver) == len(_DRIVER) else [row for row in rows if row.parent < 0]
    if whole is not None and not nesting and not driver:
        roots = [whole]
    return TimingTable(
        tool="GPTL", program="", wall_s=sum(row.most_s for row in roots), rows=rows, ranks=ranks, hides_waiting=True,
        language="fortran", notes=notes,
    )  # fmt: skip


def _parse_timers(text: PlainText, head: int, ranks: int) -> dict[str, TimingRow]:
    timers: dict[str, TimingRow] = {}
    for line in range(head + 1, len(text.lines)):
        cells = _ROW.match(text.lines[line])
        if cells is not None and cells["ranks"] != "0":  # 0: never stopped
            timer = _parse_timer(text, line, cells, ranks)
            timers[timer.name] = timer
        elif cells is None and _ANY_PLACES.search(text.lines[line]):
            raise text.make_error(line, "no line of the timers")
        elif cells is None:  # other output may follow at once
            break
    if not timers:
        raise text.make_error(head, "no timer follows")
    return timers


def _parse_timer(text: PlainText, line: int, cells: re.Match[str], ranks: int) -> TimingRow:
    """Return a timer: a mean over its threads, spread over all ranks; those it does not run on spend nothing in it."""
    total, most, least, calls = (text.parse_number(cells[name], line) for name in ("total", "most", "least", "count"))
    on, threads = int(cells["ranks"]), int(cells["threads"])
    if not 1 <= on <= min(ranks, threads):
        raise text.make_error(line, f"{on} processes and {threads} threads of {ranks} processes")
    mean, slack = total / threads, _ROUNDING_S + 1e-6 * most
    if not least - slack <= mean <= most + slack:
        raise text.make_error(line, "total, most and least contradict each other")
    name = cells["quoted"] or cells["plain"]
    waits = bool(_BARRIER.match(name))
    return TimingRow(
        name, mean * on / ranks, least if on == ranks else 0.0, max(most, mean), role=_find_role(name),
        calls=calls / ranks, most_at=int(cells["most_at"]), least_at=int(cells["least_at"]) if on == ranks else -1,
        only_waits=waits,
    )  # fmt: skip


def _find_role(name: str) -> Role:
    """Return what a timer of these models does: PIO reads, writes, and rearranges data between ranks for it."""
    if _BARRIER.match(name) or _BETWEEN_RANKS.match(name):
        return Role.COMM_OTHER
    return Role.IO if _PIO.match(name) else classify_row(name)


def _find_nesting(path: Path, timers: Mapping[str, TimingRow]) -> tuple[tuple[str, int], ...]:
    """Return timers in the order of the file of a rank beside ``path``, each with its depth there; empty without.

    A timer that several others call is left out, with what is below it: its seconds stay in its callers. A file of
    which the seconds are not between the least and the most of all ranks is of another run.
    """
    beside = sorted({file for pattern in _FILES for file in path.parent.glob(pattern)})[:_MOST_FILES]
    file = next((file for file in beside if file != path and _RANK_TITLE in read_head(file)), None)
    if file is None:
        return ()
    text = read_plain_text(file)
    start = text.find_line(_STATS)
    found: list[tuple[str, int]] = []
    alike_s = all_s = 0.0
    left_out: int | None = None
    for line in range(len(text.lines) if start is None else start + 2, len(text.lines)):
        cells = _TIMER.match(text.lines[line])
        if cells is None:
            break
        depth, name = len(cells["many"] + cells["indent"]), cells["quoted"] or cells["plain"]
        if name in timers:
            wall_s = text.parse_number(cells["wall"], line)
            all_s += wall_s
            if timers[name].least_s - _ROUNDING_S <= wall_s <= timers[name].most_s + _ROUNDING_S:
                alike_s += wall_s
        if left_out is not None and depth > left_out:
            continue
        left_out = depth if cells["many"] or name not in timers else None
        if left_out is None:
            found.append((name, depth))
    return tuple(found) if alike_s >= _ALIKE * all_s else ()


def _nest_timers(
    timers: Mapping[str, TimingRow], nesting: tuple[tuple[str, int], ...]
) -> tuple[tuple[TimingRow, ...], tuple[Note, ...]]:
    """Return the timers below those that contain them, and a note of those that are left out.

    The children of a timer that do not fit into it, since they run on other ranks as well, are left out.
    """
    rows: list[TimingRow] = []
    room: list[float] = []
    above: list[tuple[int, int]] = []  # depth, row; -1: left out
    for name, depth in nesting:
        while above and above[-1][0] >= depth:
            above.pop()
        timer, parent = timers[name], above[-1][1] if above else -1
        fits = not above or (parent >= 0 and timer.mean_s <= _SLACK * room[parent] + _ROUNDING_S)
        above.append((depth, len(rows) if fits else -1))
        if fits:
            rows.append(replace(timer, parent=parent))
            room.append(timer.mean_s)
            if parent >= 0:
                room[parent] -= timer.mean_s
    left = len(timers) - len(rows)
    text = f"{left} of {len(timers)} timers have several callers, or run on other ranks; their callers hold their time"
    return tuple(rows), (Note("timers left out", text),) if left else ()
