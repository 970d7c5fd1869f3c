"""ESMF and NUOPC (CESM, UFS, ACCESS): ``ESMF_Profile.summary``, with ``ESMF_RUNTIME_PROFILE_OUTPUT=SUMMARY``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_HEAD: Final = re.compile(r"Region +PETs +PEs +Count +Mean \(s\) +Min \(s\) +Min PET +Max \(s\) +Max PET")
_ROW: Final = re.compile(
    r"( +)(\S.*?) +(\d{1,9}) +(\d{1,9}) +(\d{1,18}) +(\d+\.\d+) +(\d+\.\d+) +(\d{1,9}) +(\d+\.\d+) +(\d{1,9}) *$"
)
#: What moves fields from one component to another, and waits for the one that is not there yet.
_CONNECTOR: Final = re.compile(r"\[\S+-TO-\S+\]")
_INDENT: Final = 2


def parse(text: PlainText) -> TimingTable:
    """Return the regions of the profile; raises ``InputError`` where it is damaged."""
    head = text.find_line(_HEAD)
    if head is None:
        raise InputError(text.path, "holds no summary of ESMF's regions")
    cells = []
    for line in range(head + 1, len(text.lines)):
        found = _ROW.match(text.lines[line])
        if found is None:
            if text.lines[line].strip():
                raise text.make_error(line, "no line of ESMF's regions")
            break
        cells.append((line, found))
    else:
        raise text.make_error(len(text.lines) - 1, "the last line has no end")
    if not cells:
        raise text.make_error(head, "no regions follow")
    line, first = cells[0]
    ranks, wall_s = int(first[3]), text.parse_number(first[9], line)
    rows: list[TimingRow] = []
    open_rows: list[int] = []
    for line, found in cells[1:]:
        depth = len(found[1]) // _INDENT - 2
        if not 0 <= depth <= len(open_rows):
            raise text.make_error(line, "a region below none")
        del open_rows[depth:]
        rows.append(_parse_row(text, line, found, ranks, open_rows[-1] if open_rows else -1))
        open_rows.append(len(rows) - 1)
    return TimingTable(
        tool="ESMF", program="", wall_s=wall_s, shortest_s=text.parse_number(first[7], cells[0][0]),
        rows=tuple(rows), ranks=ranks, hides_waiting=True, language="fortran",
    )  # fmt: skip


def _parse_row(text: PlainText, line: int, found: re.Match[str], ranks: int, parent: int) -> TimingRow:
    """Return a region: means are over the ranks that enter it, all others spend nothing in it."""
    on = int(found[3])
    mean, least, most = (text.parse_number(found[n], line) for n in (6, 7, 9))
    if not 1 <= on <= ranks or max(int(found[8]), int(found[10])) >= ranks:
        raise text.make_error(line, f"more ranks than the {ranks} of the run")
    if not least <= mean <= most:
        raise text.make_error(line, "the mean is not between the least and the most")
    whole = on == ranks
    return TimingRow(
        found[2], mean * on / ranks, least if whole else 0.0, most, int(found[8]) if whole else -1, int(found[10]),
        parent, Role.COMM_OTHER if _CONNECTOR.match(found[2]) else None, text.parse_number(found[5], line) * on / ranks,
    )  # fmt: skip
