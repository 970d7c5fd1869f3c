"""What in Caliper's records does not fit together, and what they leave open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.caliper.cells import OTHER, RecordCells
from advisor.formats.caliper.times import add_children
from advisor.model.records import RANKS_ADDED_UP, FloatArray, Note
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.trace.callpaths.records import CallPathNode

#: Sums of rounded numbers may differ by this share, and by this much for each record.
_SHARE: Final = 1e-5
_ROUNDING_S: Final = 1e-6
_SLOT: Final = "aggregate.slot"
_ANEW: Final = "copy the file anew, or record again"
_SPREAD: Final = Note(
    RANKS_ADDED_UP,
    "the file holds least, mean and most over the ranks: the imbalance shown is the least that these allow, and which "
    "rank takes longest is not known",
    0.2,
    "record the ranks apart: CALI_CONFIG=hatchet-region-profile,profile.mpi",
)
_SUMMED: Final = Note(
    RANKS_ADDED_UP,
    "the file holds sums or means over all ranks: how the work is spread over them cannot be told",
    1.0,
    "record the ranks apart: CALI_CONFIG=hatchet-region-profile,profile.mpi",
)


def build_notes(
    cells: Sequence[RecordCells], nodes: Sequence[CallPathNode], wall_s: FloatArray, summed: bool, spread: bool = False
) -> tuple[Note, ...]:
    """Return the doubts about the records in ``cells`` and the own seconds (nodes, processors) made of them.

    ``summed`` is whether ranks were added up, ``spread`` whether least, mean and most of them are known all the same.
    """
    found = [note for each in cells for note in each.table.notes]
    if summed:
        found.append(_SPREAD if spread else _SUMMED)
    if any(node.name == OTHER for node in nodes):
        text = f"the profile has too many regions; from number {len(nodes) - 1:,} on they are put together"
        found.append(Note("too many regions", text, 0.1))
    for each in cells:
        found += [
            *_check_unit(each),
            *_check_slots(each),
            *_check_averages(each),
            *_check_inclusive_times(each, nodes, wall_s),
        ]
    return tuple({note.name: note for note in reversed(found)}.values())[::-1]


def _check_unit(cells: RecordCells) -> Iterator[Note]:
    if cells.choice.time_metric is not None and not cells.choice.time_metric.unit_stated:
        name = cells.choice.time_metric.name
        text = f"no unit is stated for {name}; taken as microseconds, Caliper's own choice before 2.10"
        yield Note("unit of times unknown", text, 0.2)


def _check_slots(cells: RecordCells) -> Iterator[Note]:
    """Yield a note where numbers of records are left out, by rank."""
    slots = cells.table.values.get(_SLOT)
    if slots is None:
        return
    for rank in np.unique(cells.table.rank).tolist():
        mine = slots[(cells.table.rank == rank) & ~np.isnan(slots)]
        missing = int(mine.max(initial=-1)) + 1 - len(np.unique(mine))
        if missing > 0:
            text = f"{missing} of {int(mine.max()) + 1} records of {cells.table.file.name} were left out or lost"
            yield Note("records missing", text, 0.2, _ANEW)
            return


def _check_averages(cells: RecordCells) -> Iterator[Note]:
    """Yield a note where sum, mean and number of values do not agree."""
    count, choice = cells.table.values.get("count"), cells.choice
    if count is None or choice.wall is None or choice.wall.depth != 1 or choice.average is None:
        return
    total, mean = cells.to_seconds(choice.wall), cells.to_seconds(choice.average)
    least = cells.to_seconds(choice.shortest)
    slack = _SHARE * total + count * choice.wall.unit_s + _ROUNDING_S * (choice.wall.unit_s == 1.0)
    bad = np.flatnonzero((abs(mean * count - total) > slack) | (least * count > total + slack))
    if len(bad):
        text = f"sum, mean and number of values do not agree in record {bad[0] + 1} of {cells.table.file.name}"
        yield Note("contradictory records", text, 0.3, _ANEW)


def _check_inclusive_times(cells: RecordCells, nodes: Sequence[CallPathNode], wall_s: FloatArray) -> Iterator[Note]:
    """Yield a note where a region took more or less than itself and what it called."""
    choice = cells.choice
    if choice.wall is None or choice.inclusive is None:
        return
    stated = cells.sum_cells(cells.select_ended(cells.to_seconds(choice.inclusive)))
    added = add_children(cells.sum_cells(cells.to_seconds(choice.wall)), nodes)
    records = add_children(cells.sum_cells(np.ones(len(cells.cell))), nodes)
    # Outside of all regions there is no region whose end would state what is in it: the value there is the row's own.
    added[[node.role == Role.ROOT for node in nodes]] = 0.0
    stated[[node.role == Role.ROOT for node in nodes]] = 0.0
    bad = np.argwhere((stated > 0) & (abs(stated - added) > _SHARE * stated + _ROUNDING_S * np.maximum(records, 1)))
    if len(bad):
        node, processor = bad[0].tolist()
        text = f"{nodes[node].name} took {stated[node, processor]:g} s in all, its parts {added[node, processor]:g} s"
        yield Note("contradictory times", text, 0.3, _ANEW)
