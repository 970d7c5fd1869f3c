"""PyTorch's profiler: the table of operators that ``key_averages().table()`` prints (``profiler_util.py``).

``Self CPU`` is the time of an operator without those it calls, on the thread that called it; all of them add up to the
total below the table, which lists as many rows as it was asked for. Beside a device the host waits in calls of its own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor.analysis.quality import RECORD_DEVICES
from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.formats.timing_tables.templates import parse_time
from advisor.model.errors import InputError
from advisor.model.records import DEVICES_UNSEEN, Note
from advisor.model.units import format_seconds
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_HEAD: Final = re.compile(r" *Name +Self CPU % +Self CPU +CPU total % ")
_RULE: Final = re.compile(r"-{10,}(?: +-+)* *$")
_TOTAL: Final = re.compile(r"Self CPU time total: *(\d+(?:\.\d+)?[mun]?s) *$")
_DEVICE_TOTAL: Final = re.compile(r"(?:Self )?(?:CUDA|XPU|HIP|MTIA) time total: *(\d+(?:\.\d+)?[mun]?s) *$")
_SPACES: Final = re.compile(r" {2,}")
_CALLS: Final = ("# of Calls", "Number of Calls")
#: In which the host waits for a device, or for the processes that load its data.
_WAITS: Final = re.compile(r"(?:cuda|hip)\w*Synchronize|enumerate\(DataLoader\)")
#: Shares are printed with two digits, times with three: a row may be off by this.
_SLACK: Final = 2e-4
_SHARE: Final = 0.02
_SOON: Final = 4


def parse(text: PlainText) -> TimingTable:
    """Return the operators of the longest table of the longest run; raises ``InputError`` where one is damaged."""
    tables = [_parse_table(text, head) for head in text.find_lines(_HEAD)]
    if not tables:
        raise InputError(text.path, "holds no table of operators")
    wall_s, rows, device_s = max(tables, key=lambda table: (table[0], len(table[1])))
    notes: tuple[Note, ...] = ()
    if device_s > 0:
        said = (
            f"the program computed on a device for {format_seconds(device_s)} in all, and the table does not tell when"
        )
        notes = (Note(DEVICES_UNSEEN, f"{said}: what the host does meanwhile counts as its own", 0.3, RECORD_DEVICES),)
    return TimingTable(tool="PyTorch", program="", wall_s=wall_s, rows=rows, ranks=1, language="python", notes=notes)


def _parse_table(text: PlainText, head: int) -> tuple[float, tuple[TimingRow, ...], float]:
    """Return the seconds of the host, the rows, and the seconds of the device."""
    titles = _SPACES.split(text.lines[head].strip())
    calls = next((titles.index(title) for title in _CALLS if title in titles), None)
    end = next((line for line in text.find_lines(_RULE, head + 2)), None)
    total = None if end is None else text.find_match(_TOTAL, end, end + _SOON)
    if end is None or total is None or calls is None or text.lines[-1].startswith("Self CPU"):  # that line has no end
        raise text.make_error(head, "the table of operators ends before the total of its times")
    wall_s = parse_time(text, total[1], end)
    rows = []
    for line in range(head + 1, end):
        if _RULE.match(text.lines[line]):
            continue
        cells = _SPACES.split(text.lines[line].strip())
        if len(cells) != len(titles) or not cells[1].endswith("%"):
            raise text.make_error(line, f"{len(cells)} cells below {len(titles)} titles")
        seconds = parse_time(text, cells[2], line)
        percent = text.parse_number(cells[1].rstrip("%"), line)
        if abs(seconds - percent / 100 * wall_s) > _SLACK * wall_s + _SHARE * seconds:
            raise text.make_error(line, f"{cells[2]} are not {cells[1]} of {total[1]}")
        waits = bool(_WAITS.match(cells[0]))
        count = text.parse_number(cells[calls], line)
        rows.append(TimingRow(cells[0], seconds, role=Role.WAIT if waits else Role.USER, calls=count, for_device=waits))
    if sum(row.mean_s for row in rows) > (1 + _SHARE) * wall_s:
        raise text.make_error(end, f"the operators add up to more than the {total[1]} of the total")
    device = text.find_match(_DEVICE_TOTAL, end, end + _SOON)
    return (
        wall_s,
        tuple(row for row in rows if row.mean_s > 0),
        0.0 if device is None else parse_time(text, device[1], end),
    )
