"""HPL (HPLinpack, also Intel's and the one in HPC Challenge): the longest of its tests (``HPL_pdtest.c``).

Seconds, rate and size are printed of each test, and must agree. Built with ``-DHPL_DETAILED_TIMING`` it prints what the
slowest process took for the panels, the update and the solution at the end.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from advisor.analysis.quality import HIDDEN
from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.model.records import Note
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_TEST: Final = re.compile(
    r"(W[RC]\S{6,8}) +(\d{1,9}) +(\d{1,9}) +(\d{1,9}) +(\d{1,9}) +(\d+\.\d+) +(\d\.\d+e[+-]\d+)(?: .*)?$"
)
_STARTED: Final = re.compile(r"HPL_pdgesv\(\) start time +(.+?) *$")
_DETAIL: Final = re.compile(r"((?:\+ )*)Max aggregated wall time (\S.*?)[ .]*: +(\d+\.\d+) *$")
_FAILED: Final = re.compile(r".* \.{6} FAILED *$")
_PARTS: Final = {
    "rfact": "factorization of panels", "pfact": "factorization of a panel's columns", "mxswp": "search of pivots",
    "update": "update of the trailing matrix", "laswp": "exchange of rows", "up tr sv": "solution of the triangle",
}  # fmt: skip
#: The parts in which processes wait for each other: the maximum of a column, and rows of others.
_EXCHANGES: Final = ("mxswp", "laswp")
#: Part of the factorization of columns, beside which it is listed.
_INNERMOST: Final = "mxswp"
#: Gflop/s are printed with five digits, older releases print four.
_DIGITS: Final = 2e-3
_ROUNDING_S: Final = 6e-3
#: No more lines tell of a test.
_SOON: Final = 20


def parse(text: PlainText) -> TimingTable:
    """Return the longest test; raises ``InputError`` where a test is damaged or none came to its end."""
    tests = list(text.find_matches(_TEST))
    if not tests:
        raise InputError(text.path, "no test of HPL came to its end")
    for line, cells in tests:
        _check_test(text, line, cells)
    line, cells = max(tests, key=lambda test: float(test[1][6]))
    stop = min([line + _SOON, *(other for other, _ in tests if other > line)])
    size, block, rows, columns = (int(cells[n]) for n in range(2, 6))
    wall_s = float(cells[6])
    parts = _parse_details(text, line, stop, wall_s)
    started = text.find_match(_STARTED, line, stop)
    rate = float(cells[7])
    text_of_rate = (
        f"{rate:.4g} Gflop/s, {rate / (rows * columns):.4g} of a process; HPL does not tell how many threads it ran, "
        "and what they wait for each other counts as work"
    )
    notes = [Note(HIDDEN, text_of_rate, 0.1)]
    notes += [Note("several runs in a log", f"{len(tests)} tests; the longest is shown")] if len(tests) > 1 else []
    if text.find_match(_FAILED, line, stop):
        notes.append(Note("failed", "the residual of the test is too large", 0.1))
    whole = TimingRow("HPL_pdgesv", wall_s, role=Role.USER)
    return TimingTable(
        tool="HPL", program="xhpl", wall_s=wall_s, rows=tuple(parts) or (whole,),
        ranks=rows * columns, hides_waiting=True, language="c", notes=tuple(notes),
        started=started[1] if started else None,
        parameters={"N": float(size), "NB": float(block), "P": float(rows), "Q": float(columns)},
    )  # fmt: skip


def _count_operations(size: int) -> float:
    """Return the operations that HPL counts for a matrix of this order."""
    return size**2 * (2 * size / 3 + 1.5)


def _check_test(text: PlainText, line: int, cells: re.Match[str]) -> None:
    size, wall_s, rate = int(cells[2]), text.parse_number(cells[6], line), text.parse_number(cells[7], line)
    if not wall_s > 0 or not int(cells[4]) * int(cells[5]):
        raise text.make_error(line, "a test without time or processes")
    if abs(rate * wall_s * 1e9 - _count_operations(size)) > (_DIGITS * wall_s + _ROUNDING_S) * rate * 1e9:
        raise text.make_error(line, f"{rate:g} Gflop/s for {wall_s:g} s are not those of N = {size}")


def _parse_details(text: PlainText, test: int, stop: int, wall_s: float) -> list[TimingRow]:
    """Return the parts of a test inside each other, as the slowest process took for each; empty without."""
    rows: list[TimingRow] = []
    open_parts: list[tuple[int, int]] = []  # marks in front of a part, and its row
    for line, cells in text.find_matches(_DETAIL, test, stop):
        depth, seconds = len(cells[1]) + (cells[2] == _INNERMOST), text.parse_number(cells[3], line)
        open_parts = [part for part in open_parts if part[0] < depth]
        parent = open_parts[-1][1] if open_parts else -1
        if seconds > (rows[parent].mean_s if parent >= 0 else wall_s) + _ROUNDING_S:
            raise text.make_error(line, f"{cells[2]} takes longer than what contains it")
        role = Role.COMM_OTHER if cells[2] in _EXCHANGES else Role.USER
        open_parts.append((depth, len(rows)))
        rows.append(TimingRow(_PARTS.get(cells[2], cells[2]), seconds, role=role, parent=parent))
    together_s = sum(row.mean_s for row in rows if row.parent < 0)
    if together_s > wall_s:  # the slowest process is not the same in each
        rows = [replace(row, mean_s=row.mean_s * wall_s / together_s) for row in rows]
    return rows if together_s > 0 else []
