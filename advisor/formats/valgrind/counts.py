"""The events of valgrind by the names that counts have in a profile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from advisor.model.records import FloatArray

#: Which events make up a count; all of them are needed. Valgrind knows the first and the last cache only.
_MADE_OF: Final = {
    "instructions": ("Ir",),
    "compiled_ops.load": ("Dr",),
    "compiled_ops.store": ("Dw",),
    "compiled_ops.branch": ("Bc", "Bi"),
    "misses.L1": ("D1mr", "D1mw"),
    "misses.LL": ("DLmr", "DLmw"),
    "misses.L1I": ("I1mr",),
    "misses.LLI": ("ILmr",),
    "misses.branch": ("Bcm", "Bim"),
}
#: Other events that valgrind can count: data of which nothing is computed here.
_OTHERS: Final = frozenset({
    "Bc", "Bcm", "Bi", "Bim", "Dr", "Dw", "D1mr", "D1mw", "DLmr", "DLmw", "Ge", "sysCount", "sysTime", "sysCpuTime",
    "ILdmr", "DLdmr", "DLdmw", "AcCost1", "SpLoss1", "AcCost2", "SpLoss2",
})  # fmt: skip
#: What is counted in code that is not the program's own work has this before its name.
LIBRARY: Final = "library."


def name_counts(events: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return for each count the columns that make it up; events that no count knows keep their names."""
    column = {event: number for number, event in enumerate(events)}
    found = {name: tuple(column[e] for e in parts) for name, parts in _MADE_OF.items() if set(parts) <= set(column)}
    used = {number for columns in found.values() for number in columns}
    return found | {f"valgrind.{event}": (number,) for event, number in column.items() if number not in used}


def find_unknown_events(events: Sequence[str]) -> list[str]:
    """Return the events that valgrind does not count."""
    known = {event for parts in _MADE_OF.values() for event in parts}.union(_OTHERS)
    return [event for event in events if event not in known]


def sum_columns(table: FloatArray, parts: dict[str, tuple[int, ...]]) -> FloatArray:
    """Return a table (rows, events) as one of counts (rows, counts)."""
    return np.stack([table[:, list(numbers)].sum(axis=1) for numbers in parts.values()], axis=1)
