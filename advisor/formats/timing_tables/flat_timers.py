"""Timers of which a table does not tell which contain which: those that fit into the longest beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from advisor.model.lists import join_names
from advisor.model.records import Note

if TYPE_CHECKING:
    from advisor.formats.timing_tables.table import TimingRow

#: Times are printed with a few digits.
_SLACK: Final = 1.01
#: Timers left out that a note names.
_NAMED: Final = 3


def _shorten_row(row: TimingRow, factor: float) -> TimingRow:
    return replace(row, mean_s=row.mean_s * factor, least_s=row.least_s * factor, most_s=row.most_s * factor)


def nest_timers(
    rows: Sequence[TimingRow], wall_s: float | None = None
) -> tuple[float, tuple[TimingRow, ...], tuple[Note, ...]]:
    """Return the wall time, the timers that are told apart, and a note of those that are not.

    Without ``wall_s`` the longest timer is the run. From the shortest on, timers are told apart while they fit into the
    run beside each other; a timer that does not fit contains some of them, and is left out. What rounding makes them
    take longer than ``wall_s`` together is taken off from each alike.
    """
    ordered = sorted(rows, key=lambda row: row.mean_s)
    whole: TimingRow | None = None
    if wall_s is None and len(ordered) > 1:
        whole = ordered.pop()
        wall_s = max(whole.mean_s, whole.most_s) if whole.is_spread_known else whole.mean_s
    elif wall_s is None:
        wall_s = max((row.mean_s for row in ordered), default=0.0)
    kept: list[TimingRow] = []
    left: list[str] = []
    together = 0.0
    for row in ordered:
        if together + row.mean_s <= _SLACK * wall_s:
            together += row.mean_s
            kept.append(replace(row, parent=-1))
        else:
            left.append(row.name)
    if together > wall_s:
        kept = [_shorten_row(row, wall_s / together) for row in kept]
    order = {row.name: number for number, row in reversed(list(enumerate(rows)))}
    kept.sort(key=lambda row: order[row.name])
    if not left:
        return wall_s, tuple(kept), ()
    names = join_names(left[::-1], _NAMED)
    text = f"the table does not tell which timers contain which; left out, as others seem to be inside: {names}"
    return wall_s, tuple(kept), (Note("timers contain each other", text, 0.1),)
