"""What the tables of a file say twice, and which of them must be there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.likwid.events import RUNTIME
from advisor.model import policy
from advisor.model.units import format_seconds

if TYPE_CHECKING:
    from advisor.formats.likwid.tables import EventGroup, GroupTable
    from advisor.model.records import FloatArray, Processor

#: Numbers have four decimals or seven digits; runtimes of regions have six decimals.
_DIGITS: Final = 2e-6
_DECIMALS: Final = 1e-4
#: The group that is no group: events from the command line, from which nothing is derived.
_CUSTOM: Final = "Custom"


def find_contradictions(path: Path, tables: Sequence[GroupTable]) -> Iterator[str]:
    """Yield what two tables of the same group do not agree on."""
    for group in dict.fromkeys(table.group for table in tables):
        mine = {(table.kind, table.sums): table for table in tables if table.group == group}
        for kind in ("event", "metric"):
            single, sums = mine.get((kind, False)), mine.get((kind, True))
            if single is not None and sums is not None:
                yield from (f"{path.name}:{sums.line}: {text}" for text in _check_sums(single, sums))
        times = [_find_runtimes(table) for table in mine.values() if not table.sums]
        known = [time for time in times if time is not None]
        if any(not np.allclose(time, known[0], rtol=1e-4, atol=2 * _DECIMALS) for time in known[1:]):
            yield f"{path.name}: times of group {group.number} of {group.region or 'the program'} differ"


def find_missing_tables(path: Path, tables: Sequence[GroupTable]) -> Iterator[str]:
    """Yield which tables of a group are not there that likwid-perfctr always prints."""
    for group in dict.fromkeys(table.group for table in tables):
        mine = {(table.kind, table.sums): table for table in tables if table.group == group}
        several = any(len(table.columns) > 1 for table in mine.values() if not table.sums)
        for kind in ["event", *(["metric"] if group.name != _CUSTOM else [])]:
            for sums in (False, True) if several else (False,):
                if (kind, sums) not in mine:
                    of_all = " of all threads together" if sums else ""
                    yield f"{path.name}: {_format_group(group)} lacks {kind}s{of_all}"


def find_separate_processes(processors: Sequence[Processor], seconds: FloatArray) -> str | None:
    """Return why the ranks that took so many ``seconds`` (ranks,) from start to end are no ranks of one run; else None.

    Those of MPI end together, and files of several processes may be of any.
    """
    lengths: dict[int, float] = {}
    for processor, took in zip(processors, seconds.tolist(), strict=True):
        lengths[processor.rank] = max(lengths.get(processor.rank, 0.0), took)
    shortest, longest = min(lengths.values()), max(lengths.values())
    if longest <= policy.WHOLE_RANKS_UNLIKE * shortest:
        return None
    return (
        f"the processes ran for {format_seconds(shortest)} to {format_seconds(longest)}, and ranks of one run end "
        "together: they are runs of their own, and none waits for another"
    )


def _format_group(group: EventGroup) -> str:
    return f"group {group.number}" + ("" if group.region is None else f" of the region {group.region[:40]}")


def _check_sums(single: GroupTable, sums: GroupTable) -> Iterator[str]:
    if tuple(f"{name} STAT" for name in single.names) != sums.names:
        yield "other rows than in the table of threads"
        return
    for name, values, told in zip(single.names, single.values, sums.values, strict=True):
        known = values[~np.isnan(values)]
        if len(known) < len(values) or np.isnan(told).any():
            continue  # what is not known counts as zero there, or as the largest number
        expected = np.array([known.sum(), known.min(), known.max(), known.mean()])
        slack = len(known) * (_DECIMALS + _DIGITS * np.abs(known).max())
        if (np.abs(expected - told) > slack).any():
            yield f"sum, extremes or mean of {name} are not those of the threads"


def _find_runtimes(table: GroupTable) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]] | None:
    """Return the runtimes (columns,) in a table, None if it holds none."""
    names = {"info": "RDTSC Runtime [s]", "event": RUNTIME, "metric": RUNTIME}
    wanted = names[table.kind]
    return table.values[table.names.index(wanted)] if wanted in table.names else None
