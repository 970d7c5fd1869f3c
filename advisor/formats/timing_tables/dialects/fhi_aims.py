"""FHI-aims: the detailed time accounting at the end of its output (``timing.f90``).

Wall times are those of the first task. CPU times are the most over the tasks: what they leave of the wall times, no
task had a core for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from advisor.formats.timing_tables.dates import check_dates
from advisor.formats.timing_tables.flat_timers import nest_timers
from advisor.formats.timing_tables.table import NOT_ON_CORE, TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_TITLE: Final = re.compile(r" +Detailed time accounting +: +max\(cpu_time\) +wall_clock\(cpu1\) *$")
_TASKS: Final = re.compile(r" +Using +(\d{1,9}) parallel tasks\.")
_DATE: Final = re.compile(r" +Date +: +(\d{4})(\d\d)(\d\d), Time +: +(\d\d)(\d\d)(\d\d)\.")
_ROW: Final = re.compile(r" +\| (\S.*?) *: *(\()? *(\d+\.\d+) s\)? +\(? *(\d+\.\d+) s\)? *$")
_BLANK: Final = re.compile(r" *$")
_END: Final = re.compile(r" +Have a nice day\.")
_WHOLE: Final = "Total time"
#: Steps of GW calculations that the table lists beside what contains them, by their beginnings.
_CONTAINED: Final = {
    "Transforming ovlp_3fn to ovlp_3KS": "Total time for GW calculation",
    "GW self-energy": "Total time for GW calculation",
    "Screened Coulomb matrix": "GW self-energy (analytic cont.)",
    "Polarisability matrix": "Screened Coulomb matrix W_mn(iw)",
    "Total time for polarizability of k space": "Total time for polarizability calc.",
}
_ROUNDING_S: Final = 2e-3
_OFF: Final = 1.02


def parse(text: PlainText) -> TimingTable:
    """Return the accounting; raises ``InputError`` where it is damaged, or the run did not get there."""
    titles = list(text.find_lines(_TITLE))
    if not titles or text.find_line(_END, titles[-1]) is None:
        raise InputError(text.path, "the output ends before the time accounting: the run did not get there")
    tasks = text.find_match(_TASKS, 0, titles[-1])
    if tasks is None:
        raise InputError(text.path, "the output does not tell how many tasks there were: its first lines are missing")
    rows, containers, cpu_s = _parse_rows(text, titles[-1])
    wall_s = rows.pop(_WHOLE).mean_s
    ranks = int(tasks[1])
    outer = [row for name, row in rows.items() if name not in containers]
    if ranks == 1 and wall_s - cpu_s > _ROUNDING_S:
        outer.append(TimingRow(NOT_ON_CORE, wall_s - cpu_s, role=Role.OS))
    _, nested, notes = nest_timers(outer, wall_s)
    dates = list(text.find_matches(_DATE))
    _check_dates(text, dates, wall_s)
    date = dates[0][1] if dates else None
    return TimingTable(
        tool="FHI-aims", program="aims", wall_s=wall_s, rows=_attach_contents(nested, rows, containers), ranks=ranks,
        hides_waiting=True, first_rank=True, cpu_s=min(cpu_s, wall_s), language="fortran", notes=notes,
        started="{}-{}-{} {}:{}:{}".format(*date.groups()) if date else None,
    )  # fmt: skip


def _check_dates(text: PlainText, dates: Sequence[tuple[int, re.Match[str]]], wall_s: float) -> None:
    """Raise ``InputError`` where the run took another time by its first and its last date than by its total."""
    if len(dates) < 2:
        return
    try:
        begin, end = (datetime.strptime("".join(found.groups()), "%Y%m%d%H%M%S") for _, found in (dates[0], dates[-1]))
    except ValueError:
        raise text.make_error(dates[-1][0], "no date") from None
    check_dates(text, dates[-1][0], begin, end, wall_s)


def _parse_rows(text: PlainText, title: int) -> tuple[dict[str, TimingRow], dict[str, str], float]:
    """Return the rows by name, the container of those that are in others, and the CPU time of the busiest task."""
    rows: dict[str, TimingRow] = {}
    containers: dict[str, str] = {}
    cpu_s, latest = 0.0, ""
    for line in range(title + 1, len(text.lines)):
        cells = _ROW.match(text.lines[line])
        if cells is None:
            if rows and _BLANK.match(text.lines[line]):
                break
            raise text.make_error(line, "no line of the time accounting")
        name, wall_s = cells[1], text.parse_number(cells[4], line)
        if not rows:
            cpu_s = text.parse_number(cells[3], line)
            if name != _WHOLE:
                raise text.make_error(line, f"the first line of the time accounting is not {_WHOLE!r}")
        elif wall_s > _OFF * rows[_WHOLE].mean_s + _ROUNDING_S:
            raise text.make_error(line, f"{name} takes longer than the run")
        if cells[2]:  # in brackets: in the line above that is not
            containers[name] = latest
        else:
            latest = name
        rows[name] = TimingRow(name, wall_s, role=Role.USER)
    if not rows:
        raise text.make_error(title, "the time accounting is empty")
    return rows, containers | _find_containers(rows), cpu_s


def _find_containers(rows: dict[str, TimingRow]) -> dict[str, str]:
    """Return the container of each step of a GW calculation that is shorter than it."""
    found = {}
    for begin, outer in _CONTAINED.items():
        inner = next((name for name in rows if name.startswith(begin)), None)
        if inner and outer in rows and rows[inner].mean_s <= rows[outer].mean_s + _ROUNDING_S:
            found[inner] = outer
    return found


def _attach_contents(
    outer: tuple[TimingRow, ...], rows: dict[str, TimingRow], containers: dict[str, str]
) -> tuple[TimingRow, ...]:
    """Return the rows that were told apart, each followed by nothing but what it contains, further down."""
    found = [row for row in outer if row.mean_s > 0]
    numbers = {row.name: number for number, row in enumerate(found)}
    for name, container in containers.items():
        if container in numbers and rows[name].mean_s > 0:
            numbers[name] = len(found)
            found.append(TimingRow(name, rows[name].mean_s, role=Role.USER, parent=numbers[container]))
    return tuple(found)
