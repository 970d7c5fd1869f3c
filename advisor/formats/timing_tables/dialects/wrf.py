"""WRF: the times of steps, reading and writing in ``rsl.error.0000`` or ``rsl.out.0000``, of the first rank.

The time of a step of the outermost domain holds those of its nests and what was read and written before it
(``module_integrate.F``); what was read before the first step, and written after the last, stands alone.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.model.records import Note
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_TIMED: Final = re.compile(r"\s*(?:d\d\d \S+ )?Timing for (.+?):? +([\d.]+) elapsed seconds")
#: What is meant as such a line.
_TIMING: Final = re.compile(r".*(?:Timing for |elapsed seconds)")
_STEP: Final = re.compile(r"main: time (\S+)( \(dt= *[\d.]+\))? on domain +(\d{1,3})$")
_ANY_STEP: Final = re.compile(r".*(?:main|time|on domain) ")
_DATE: Final = "%Y-%m-%d_%H:%M:%S"
_FILE: Final = re.compile(
    r"(Writing|processing) (restart file|lateral boundary|wrfinput file|\S+) ?.*? ?for domain +\d+$"
)
_TASKS: Final = re.compile(r"\s*Ntasks in X +(\d{1,9}) *, ntasks in Y +(\d{1,9})")
_TILES: Final = re.compile(r"\s*WRF NUMBER OF TILES FROM OMP_GET_MAX_THREADS = +(\d{1,9})")
_END: Final = re.compile(r".*SUCCESS COMPLETE WRF")
_ROUNDING_S: Final = 1e-4
_NOT_ALL: Final = Note("not the whole run", "WRF times steps, reading and writing: what it did besides is not known")


def parse(text: PlainText) -> TimingTable:
    """Return steps, nests, reading and writing; raises ``InputError`` where there is no step, or a line is damaged."""
    inside: dict[str, float] = {}
    outside: dict[str, float] = {}
    waiting: list[tuple[str, float]] = []
    timed = [(line, *_parse_line(text, line)) for line in text.find_lines(_TIMING)]
    outermost = min(filter(None, (_find_domain(what) for _, what, _ in timed)), default=0)
    steps_s, steps = 0.0, 0
    times: list[datetime] = []
    for line, what, seconds in timed:
        domain = _find_domain(what)
        if domain != outermost:
            waiting.append((_name_part(what, domain), seconds))
            continue
        steps_s, steps = steps_s + seconds, steps + 1
        times += _find_model_time(text, line, what)
        for name, spent in reversed(waiting):  # what was done last is the likeliest to be part of the step
            into = inside if spent <= seconds + _ROUNDING_S else outside
            seconds -= spent if into is inside else 0.0
            into[name] = into.get(name, 0.0) + spent
        waiting.clear()
    for name, spent in waiting:
        outside[name] = outside.get(name, 0.0) + spent
    if not steps:
        raise InputError(text.path, "the output holds no step")
    rows = [TimingRow(f"steps of domain {outermost}", steps_s, role=Role.USER, calls=steps)]
    rows += [TimingRow(name, spent, parent=0, role=_classify(name)) for name, spent in inside.items()]
    rows += [TimingRow(name, spent, role=_classify(name)) for name, spent in outside.items()]
    notes = [_NOT_ALL, *_check_model_times(times)]
    if text.find_line(_END) is None:
        notes.append(Note("the log ends early", "WRF did not end regularly, or the output is cut off", 0.2))
    tasks, tiles = text.find_match(_TASKS), text.find_match(_TILES)
    return TimingTable(
        tool="WRF", program="wrf.exe", wall_s=steps_s + sum(outside.values()), rows=tuple(rows),
        ranks=int(tasks[1]) * int(tasks[2]) if tasks else 1, threads=max(int(tiles[1]), 1) if tiles else 1,
        hides_waiting=True, first_rank=True, language="fortran", notes=tuple(notes),
    )  # fmt: skip


def _parse_line(text: PlainText, line: int) -> tuple[str, float]:
    found = _TIMED.match(text.lines[line])
    if found is None or (_ANY_STEP.match(found[1]) and not (_STEP.match(found[1]) or _FILE.match(found[1]))):
        raise text.make_error(line, "no line of times")
    return found[1], text.parse_number(found[2], line)


def _find_model_time(text: PlainText, line: int, what: str) -> list[datetime]:
    """Return the time of the model after a step of constant length, nothing after others."""
    found = _STEP.match(what)
    if found is None or found[2]:
        return []
    try:
        return [datetime.strptime(found[1], _DATE).replace(tzinfo=UTC)]
    except ValueError:
        raise text.make_error(line, f"{found[1][:40]} is not a model time") from None


def _check_model_times(times: list[datetime]) -> list[Note]:
    """Return a note where the model's time does not go on by the same amount in each step."""
    steps = Counter(int((after - before).total_seconds()) for before, after in pairwise(times))
    usual = steps.most_common(1)[0][0] if steps else 0
    odd = sum(count for step, count in steps.items() if abs(step - usual) > 1)  # parts of seconds are cut
    if not odd:
        return []
    text = f"the model's time does not go on by {usual} s in {odd} steps: lines are missing, or are of several runs"
    return [Note("steps missing", text, 0.2)]


def _find_domain(what: str) -> int:
    """Return the domain of which ``what`` is a step, 0 where it is none."""
    found = _STEP.match(what)
    return int(found[3]) if found else 0


def _name_part(what: str, domain: int) -> str:
    if domain:
        return f"steps of domain {domain}"
    found = _FILE.match(what)
    if found is None:
        return what[:80]
    return "writing files" if found[1] == "Writing" else f"reading {found[2]}"


def _classify(name: str) -> Role:
    return Role.IO if name.startswith(("writing", "reading")) else Role.USER
