"""What ``perf report --stdio`` prints: the share of each function in the samples, of the event with most of them."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Final, NamedTuple

from advisor.formats.call_stacks.stacks import Frame, StackProfile
from advisor.formats.plain_text import PlainText, read_plain_text
from advisor.formats.sampled_cycles import note_clock_rate, read_clock_rate
from advisor.model.errors import InputError
from advisor.model.records import Note
from advisor.support.managed_runtimes import find_language

_SAMPLES: Final = re.compile(r"# Samples: ([\d.]+)([KMG]?) +of event '?([^']*[^'\s])'?\s*$")
#: What a row begins with, by its columns: shares, and how many samples there are.
_SHARES_OF: Final = {
    "Children": r" {1,6}(?:\d{1,3}\.\d\d%)? +(?P<own>\d{1,3}\.\d\d)% +(?:\d+ +)?",
    "Overhead": r" {1,6}(?P<own>\d{1,3}\.\d\d)% +(?:\d+ +)?",
}
_HEAD: Final = re.compile(
    r"# (?P<shares>Children|Overhead)(?: +Self)?(?: +Samples)?(?P<command> +Command)?(?P<file> +Shared Object)?"
    r"(?:(?P<name> +Symbol)(?P<more> +\S.*)?)?\s*$"
)
#: No two spaces stand inside a command: so a line can be read in one way only, however long it is.
_COMMAND: Final = r"(?P<command>\S+(?: \S+)*)"
_FILE: Final = r"(?P<file>\S+(?: +\S+)*?)"
_NAME: Final = r"\[[^\]]\] (?P<name>.*\S)"
#: A name that other columns follow.
_NAME_BEFORE: Final = r"\[[^\]]\] (?P<name>\S+(?: \S+)*)(?: {2,}.*)?$"
_COUNT: Final = re.compile(r"# Event count \(approx\.\): (\d+)\s*$")
#: Events that pass with time, and those that count its nanoseconds.
_TIME: Final = re.compile(r"cycles|clock")
_CLOCK: Final = re.compile(r"(?:cpu|task)-clock")
#: Cycles of any kind of core: ``cycles:P``, ``cpu_core/cycles/u``. Bus cycles and stalls are none.
_CYCLES: Final = re.compile(r"(?:\w{1,40}/)?(?:cpu-|ref-)?cycles(?:[:/].*)?$")
_PROCESSOR: Final = re.compile(r"# cpudesc : (.*)")
#: Shares of fewer samples are those of chance.
_FEWEST: Final = 100
_POWER: Final = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}
#: What is not listed of the samples is a row of its own from this per cent on.
_LEAST: Final = 0.5
#: Shares are rounded to so many per cent.
_ROUNDED: Final = 0.005
_REST: Final = "functions that are not listed"
_SHARES: Final = Note(
    "report of shares",
    "the report holds shares of samples: threads, time and calls are not in it",
    0.1,
    "perf script --header > perf.txt",
)


class _Table(NamedTuple):
    """A table of the report: its line, the event, how many samples there are, and what these count together."""

    line: int
    event: str
    samples: float
    counted: float

    @property
    def counts_time(self) -> bool:
        """Whether what was sampled passes with time."""
        return _TIME.search(self.event) is not None

    def seconds_per_count(self, processor: str) -> float | None:
        """Return the seconds of a nanosecond or a cycle that was counted; None where neither was, or hardly any."""
        if self.counted <= self.samples or self.samples < _FEWEST:  # older versions count samples as events
            return None
        if _CLOCK.match(self.event):
            return 1e-9
        return 1 / read_clock_rate(processor) if _CYCLES.match(self.event) else None

    def note_event(self, processor: str) -> tuple[Note, ...]:
        """Return what must be known of what was sampled."""
        if not self.counts_time:
            text = f"{self.event} was sampled: its shares are not shares of the time"
            return (Note("no samples of time", text, 0.1),)
        known = _CLOCK.match(self.event) or self.seconds_per_count(processor) is None
        return () if known else (note_clock_rate(processor),)


def parse(path: Path) -> StackProfile:
    """Return the functions of the table of a clock or of cycles, else of that with most samples.

    Raises ``InputError`` where there is none.
    """
    text = read_plain_text(path)
    tables = []
    for line, found in text.find_matches(_SAMPLES):
        count = text.find_match(_COUNT, line, line + 3)
        counted = text.parse_number(count[1], line) if count else 0.0
        tables.append(_Table(line, found[3], text.parse_number(found[1], line) * _POWER[found[2]], counted))
    if not tables:
        raise InputError(path, "does not state how many samples there are: the report is cut off")
    table = max(tables, key=lambda each: (each.counts_time, each.samples))
    ends = [each.line for each in tables if each.line > table.line]
    return _read_table(text, table, min(ends, default=len(text.lines)))


def _find_row(text: PlainText, line: int, end: int) -> re.Pattern[str]:
    """Return what matches a row of a table; raises ``InputError`` where its columns are none of those known."""
    head = text.find_match(_HEAD, line, end)
    if head is None or not (head["command"] or head["file"] or head["name"]):
        raise text.make_error(line, "the table is not by command, shared object or symbol: perf report --stdio > FILE")
    parts = [part for part, column in ((_COMMAND, head["command"]), (_FILE, head["file"])) if column]
    if head["name"]:
        parts.append(_NAME_BEFORE if head["more"] else _NAME)
    gap = r" {2,}" if head["command"] else r" +"
    rest = gap.join(parts[:2]) + "".join(f" +{part}" for part in parts[2:])
    return re.compile(_SHARES_OF[head["shares"]] + rest + (r"" if head["name"] else r"\s*$"))


def _read_table(text: PlainText, table: _Table, end: int) -> StackProfile:
    row = _find_row(text, table.line, end)
    named = text.find_match(_PROCESSOR)
    processor = named[1] if named else ""
    each_s = table.seconds_per_count(processor)
    notes = (_SHARES, *table.note_event(processor))
    found = StackProfile("perf report", "samples" if each_s is None else "cpu_s", {}, math.nan, notes=notes)
    whole = table.samples if each_s is None else table.counted * each_s
    commands: dict[str, float] = {}
    languages = set()
    total, rows = 0.0, 0
    for line, cells in text.find_matches(row, table.line, end):
        own = text.parse_number(cells["own"], line)
        total += own
        rows += 1
        told = cells.groupdict(default="")
        command, file = told.get("command", ""), told.get("file", "")
        name = told.get("name", "") or f"[{file or command}]"  # of a report by library or program
        commands[command] = commands.get(command, 0.0) + own
        languages.add(find_language(name, file))
        if own:
            found.add_spent((Frame(name),), 0, own / 100 * whole)
    if not found.spent:
        raise text.make_error(table.line, "no function follows: the report is cut off")
    if total > 100 + max(_LEAST, _ROUNDED * rows):
        raise text.make_error(table.line, f"the shares of its functions add up to {total:.1f} %")
    if total < 100 - _LEAST:
        found.add_spent((Frame(_REST),), 0, (1 - total / 100) * whole)
    known = languages - {None}
    return StackProfile(
        found.tool, found.unit, found.spent, found.wall_s, program=max(commands, key=lambda name: commands[name]),
        language=known.pop() if len(known) == 1 else None, notes=found.notes,
    )  # fmt: skip
