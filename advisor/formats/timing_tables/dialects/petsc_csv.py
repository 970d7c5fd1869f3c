"""PETSc: ``-log_view :FILE:ascii_csv``, the events of each rank (``logdefault.c``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.formats.timing_tables.dialect_list import PETSC_COLUMNS
from advisor.formats.timing_tables.dialects.petsc_events import classify_event, is_containing, is_exchange
from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.model.records import Note

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText
    from advisor.trace.events import Role

_CELLS: Final = 9
_PRODUCT: Final = "MatMult"

Seconds = dict[str, dict[int, float]]


def parse(text: PlainText) -> TimingTable:
    """Return the events of all ranks; raises ``InputError`` with the line of what is damaged."""
    first = next((n for n, line in enumerate(text.lines) if line.startswith(PETSC_COLUMNS.decode())), None)
    if first is None:
        raise InputError(text.path, "holds no events of PETSc")
    last = text.lines[first].rsplit(",", 1)[-1]
    if text.lines[-1]:
        raise text.make_error(len(text.lines) - 1, "the last line has no end")
    times: Seconds = {}
    totals: dict[int, float] = {}
    counts = {"messages": 0.0, "bytes": 0.0}
    for number in range(first + 1, len(text.lines)):
        cells = text.lines[number].split(",")
        if cells == [""]:
            continue
        if len(cells) < _CELLS:
            raise text.make_error(number, f"{len(cells)} cells, expected {_CELLS} or more")
        rank = int(text.parse_number(cells[2], number))
        seconds, messages, moved = (text.parse_number(cells[n], number) for n in (4, 5, 6))
        if cells[1] == "summary":
            totals[rank] = totals.get(rank, 0.0) + seconds
            counts["messages"] += messages / 2  # PETSc counts what is sent and what is received
            counts["bytes"] += moved / 2
        else:
            each = times.setdefault(cells[1], {})
            each[rank] = each.get(rank, 0.0) + seconds
    ranks = len(totals)
    if not ranks or sorted(totals) != list(range(ranks)):
        raise InputError(text.path, "the summaries of the stages do not name all ranks from 0 on")
    for name, each in times.items():
        if len(each) < ranks:
            raise InputError(text.path, f"{name} has lines of {len(each)} of {ranks} ranks: the file is cut off")
    wall_s = max(totals.values())
    rows, notes = _nest_events(times, ranks, wall_s)
    if last.strip().isdigit() and int(last) != ranks:
        raise text.make_error(first, f"the head states {last} ranks, the file holds {ranks}")
    return TimingTable(
        tool="PETSc", program="", wall_s=wall_s, rows=rows, ranks=ranks, counts=counts, notes=notes,
    )  # fmt: skip


def _nest_events(times: Seconds, ranks: int, wall_s: float) -> tuple[tuple[TimingRow, ...], tuple[Note, ...]]:
    """Return the events that contain no others, exchanges inside the products of matrices and vectors if they fit."""
    columns = {name: tuple(each.get(q, 0.0) for q in range(ranks)) for name, each in times.items()}
    plain = {name: values for name, values in columns.items() if any(values) and not is_containing(name)}
    product = plain.get(_PRODUCT)
    exchanged = [sum(values[q] for name, values in plain.items() if is_exchange(name)) for q in range(ranks)]
    fits = product is not None and all(e <= 1.01 * p + 1e-6 for e, p in zip(exchanged, product, strict=True))
    rows: list[TimingRow] = []
    room = [wall_s] * ranks
    left = []
    order = sorted(plain, key=lambda name: (name != _PRODUCT, sum(plain[name])))
    for name in order:
        inside = fits and is_exchange(name)
        if not inside and any(value > 1.01 * free + 1e-6 for value, free in zip(plain[name], room, strict=True)):
            left.append(name)
            continue
        if not inside:
            room = [free - value for free, value in zip(room, plain[name], strict=True)]
        parent = next((n for n, row in enumerate(rows) if row.name == _PRODUCT), -1) if inside else -1
        rows.append(_build_row(name, plain[name], parent))
    if not left:
        return tuple(rows), ()
    text = f"these events contain others, and are left out: {', '.join(left[:5])}"
    return tuple(rows), (Note("timers contain each other", text, 0.1, "-log_view :log.xml:ascii_xml"),)


def _build_row(name: str, each: tuple[float, ...], parent: int) -> TimingRow:
    role: Role = classify_event(name)
    return TimingRow(name, sum(each) / len(each), min(each), max(each), parent=parent, role=role, ranks_s=each)
