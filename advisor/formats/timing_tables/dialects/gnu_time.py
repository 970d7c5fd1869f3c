"""GNU time: what ``/usr/bin/time -v`` prints of a command, elapsed and CPU time (``time.c``).

CPU times are those of all threads and child processes together, of how many at a time is not known. Where they exceed
the elapsed time, the share of the system is that of the cores that were in use; else what is left had no core. Of a
command that launches ranks, the launcher's own is all that is sure to be in them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.model.records import Note
from advisor.support.launchers import find_launched_program
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_COMMAND: Final = re.compile(r'.*?Command being timed: "(.*)"\s*$')
_LINE: Final = re.compile(r"\s*(?:\([^()]*\) )?([A-Z][^:]*(?:\(h:mm:ss or m:ss\))?): (\S+)\s*$")
_CLOCK: Final = re.compile(r"(?:(\d{1,6}):)?(\d{1,4}):(\d{1,2}(?:\.\d+)?)$")
_ELAPSED: Final = "Elapsed (wall clock) time (h:mm:ss or m:ss)"
_END: Final = "Exit status"
_MOST_LINES: Final = 40
_ROUNDING_S: Final = 0.02
#: The share of a core is cut to whole per cents.
_PERCENT: Final = 1.01


def parse(text: PlainText) -> TimingTable:
    """Return the longest of the commands that were timed; raises ``InputError`` where a time is damaged or missing."""
    tables = [_parse_command(text, line, found[1]) for line, found in text.find_matches(_COMMAND)]
    if not tables:
        raise InputError(text.path, "the command that was timed is missing")
    longest = max(tables, key=lambda table: table.wall_s)
    if len(tables) > 1:
        note = Note("several runs in a log", f"{len(tables)} commands were timed; the longest is shown")
        longest = replace(longest, notes=(*longest.notes, note))
    return longest


def _parse_command(text: PlainText, start: int, command: str) -> TimingTable:
    fields: dict[str, tuple[int, str]] = {}
    for line, found in text.find_matches(_LINE, start + 1, start + _MOST_LINES):
        fields[found[1]] = line, found[2]
        if found[1] == _END:
            break
    names = ("User time (seconds)", "System time (seconds)", "Percent of CPU this job got", _ELAPSED, _END)
    for name in names:
        if name not in fields:
            raise text.make_error(start, f"no line {name!r} follows")
    user_s, system_s = (text.parse_number(fields[name][1], fields[name][0]) for name in names[:2])
    wall_s = _parse_clock(text, *fields[_ELAPSED])
    if not wall_s > 0:
        raise text.make_error(fields[_ELAPSED][0], "the command took no time")
    percent = text.parse_number(fields[names[2]][1].rstrip("%").replace("?", "0"), fields[names[2]][0])
    cpu_s = user_s + system_s
    words = command.split() or ["command"]
    launched = find_launched_program(words)
    if wall_s > 1 and abs(100 * cpu_s / wall_s - percent) > _PERCENT + 100 * cpu_s * _ROUNDING_S / wall_s**2:
        raise text.make_error(fields[names[2]][0], f"{cpu_s:.2f} s of {wall_s:.2f} s are not {percent:g} %")
    size = fields.get("Maximum resident set size (kbytes)")
    table = TimingTable(
        tool="GNU time",
        program=PurePath(words[launched or 0]).name,
        wall_s=wall_s,
        rows=(TimingRow("the command", wall_s, role=Role.USER, calls=1),),
        ranks=None,
        first_rank=True,
        hides_waiting=True,
        cpu_s=user_s / max(cpu_s / wall_s, 1.0) if launched is None else math.nan,
        command=command,
        parameters={"memory_bytes": 1024 * text.parse_number(size[1], size[0])} if size else {},
    )
    return replace(table, notes=tuple(_describe_command(table, cpu_s, fields[_END][1])))


def _describe_command(table: TimingTable, cpu_s: float, status: str) -> Iterator[Note]:
    used = f"{cpu_s / table.wall_s:.3g} cores were in use in the mean"
    text = f"{used}, by all threads and processes of the command together"
    if math.isnan(table.cpu_s):
        text = f"{text}, as far as the launcher waited for them: ranks on other nodes or of a daemon are not in it"
    yield Note("cores in use", text, 0.0, table.record_command)
    if status != "0":
        yield Note("failed", f"the command ended with status {status}", 0.1)


def _parse_clock(text: PlainText, line: int, cell: str) -> float:
    found = _CLOCK.match(cell)
    if found is None:
        raise text.make_error(line, f"{cell[:40]!r} is not a time")
    return 3600 * float(found[1] or 0) + 60 * float(found[2]) + float(found[3])
