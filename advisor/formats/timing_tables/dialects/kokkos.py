"""Kokkos Tools: the report of space-time-stack (``kp_space_time_stack.cpp``), regions and kernels as a tree.

Kernels compute and nothing else; regions hold whatever the program does in them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor.formats.timing_tables.row_roles import classify_row
from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_BEGIN: Final = re.compile(r"BEGIN KOKKOS PROFILING REPORT:$")
_END: Final = re.compile(r"END KOKKOS PROFILING REPORT\.$")
_TOTAL: Final = re.compile(r"TOTAL TIME: (\S+) seconds$")
_DOWN: Final = re.compile(r"TOP-DOWN TIME TREE:$")
_UP: Final = re.compile(r"BOTTOM-UP TIME TREE:$")
_ROW: Final = re.compile(
    r"((?:\|   |    )*)\|-> (\d\.\d+e[+-]\d+) sec ([\d.]+)% ([-\d.na]+)% ([-\d.na]+)% "
    r"(?:------|[-\d.na]+% \S+) (\d+) (.*) \[(for|reduce|scan|region|copy|fence)\]$"
)
_INDENT: Final = 4
#: By how much a ratio of two numbers of three digits may miss a whole one.
_WHOLE: Final = 0.02


def parse(text: PlainText) -> TimingTable:
    """Return the tree of the last report in the file; raises ``InputError`` where it is damaged."""
    begins = list(text.find_lines(_BEGIN))
    if not begins:
        raise InputError(text.path, "holds no report of space-time-stack")
    start = begins[-1]
    total, down, up, end = (text.find_line(pattern, start) for pattern in (_TOTAL, _DOWN, _UP, _END))
    if total is None or down is None or up is None or end is None:
        raise text.make_error(start, "the report ends before its last line")
    found = _TOTAL.match(text.lines[total])
    wall_s = text.parse_number(found[1] if found else "", total)
    rows, differ = _parse_tree(text, down, up)
    return TimingTable(
        tool="Kokkos Tools",
        program="",
        wall_s=wall_s,
        rows=tuple(rows),
        ranks=_find_ranks(text, up, end, rows, differ),
        hides_waiting=True,
        language="cxx",
    )


def _parse_tree(text: PlainText, start: int, stop: int) -> tuple[list[TimingRow], bool]:
    """Return the rows of the tree, and whether ranks differ in any of them."""
    rows: list[TimingRow] = []
    open_rows: list[int] = []
    differ = False
    for line in range(start + 3, stop):
        if not text.lines[line].strip():
            break
        found = _ROW.match(text.lines[line])
        depth = len(found[1]) // _INDENT if found else 0
        if found is None or depth > len(open_rows):
            raise text.make_error(line, "no line of the tree")
        del open_rows[depth:]
        mean, imbalance = text.parse_number(found[2], line), text.parse_number(found[5].lstrip("-"), line) / 100
        differ |= imbalance > 0
        kernel = found[8] != "region"
        role = classify_row(found[7]) if not kernel else Role.OS if found[8] == "fence" else Role.USER
        rows.append(
            TimingRow(
                found[7],
                mean,
                most_s=mean * (1 + imbalance),
                parent=open_rows[-1] if open_rows else -1,
                role=role,
                calls=text.parse_number(found[6], line),
            )
        )
        open_rows.append(len(rows) - 1)
    return rows, differ


def _find_ranks(text: PlainText, start: int, stop: int, rows: list[TimingRow], differ: bool) -> int | None:
    """Return the number of ranks: the second tree holds sums over them where the first one has means.

    A release that prints means there as well leaves the number open where ranks differ.
    """
    for line in text.find_lines(_ROW, start, stop):
        found = _ROW.match(text.lines[line])
        same = [row.mean_s for row in rows if found and row.name == found[7]]
        if found is None or found[1] or found[8] == "region" or len(same) != 1 or not same[0] > 0:
            continue
        ratio = text.parse_number(found[2], line) / same[0]
        whole = round(ratio)
        if whole >= 1 and abs(ratio - whole) <= _WHOLE * whole and not (whole == 1 and differ):
            return whole
        return None
    return None
