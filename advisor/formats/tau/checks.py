"""What a profile says twice: contradictions are damage, or a program that stopped while its timers ran."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.tau.function_names import is_sampling
from advisor.formats.tau.sheet import CALLS, EXCL, INCL, SUBRS, ProfileSheet, UserEvent
from advisor.formats.tau.table import SEPARATOR, MetricTable

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.formats.tau.tree import CallTree
    from advisor.model.records import FloatArray

#: Numbers are printed with up to 16 digits, by other tools with six.
_ROUNDING: Final = 1e-5


def find_whole_functions(names: Sequence[bytes]) -> npt.NDArray[np.bool_]:
    """Return which names (names,) are functions as a whole, neither call paths nor samples."""
    return np.array(
        [SEPARATOR not in name and not is_sampling(name[:20].decode("latin-1")) for name in names], dtype=bool
    )


def check_table(table: MetricTable, whole: npt.NDArray[np.bool_]) -> Iterator[tuple[int, str]]:
    """Yield processor and text of each contradiction between the functions of a processor."""
    values = table.values if whole.all() else table.values[:, whole]
    # Some tools write this format without knowing who calls whom.
    nested = (values[INCL] > values[EXCL]).any(axis=0)
    total, longest = values[EXCL].sum(axis=0), values[INCL].max(axis=0, initial=0.0)
    for p in np.flatnonzero(nested & _values_differ(total, longest)).tolist():
        yield p, f"functions take {total[p]:g} {table.metric} in all, the outermost {longest[p]:g}"
    calls, subrs = values[CALLS].sum(axis=0), values[SUBRS].sum(axis=0)
    for p in np.flatnonzero((subrs > 0) & (calls != subrs + 1)).tolist():
        yield p, f"there are {calls[p]:g} calls of functions, {subrs[p]:g} are from others"
    below = values[INCL] < values[EXCL] * (1 - _ROUNDING)
    for p in np.flatnonzero(below.any(axis=0)).tolist():
        yield p, "a function takes less with those that it calls than without"


def check_paths(tree: CallTree, table: MetricTable) -> Iterator[tuple[int, str]]:
    """Yield processor and text where the call paths of a function hold more than the function."""
    if not (tree.whole >= 0).any():
        return
    for what in (EXCL, CALLS):
        left, size = tree.subtract_paths(table.values[what]), np.maximum(table.values[what].max(axis=0), 1.0)
        for p in np.flatnonzero((left < -_ROUNDING * size).any(axis=0)).tolist():
            yield p, f"call paths hold more {'calls' if what == CALLS else table.metric} than their function"


def check_calls(first: MetricTable, other: MetricTable) -> Iterator[tuple[int, str]]:
    """Yield processor and text where two metrics disagree about the number of calls."""
    for p in np.flatnonzero((first.values[CALLS] != other.values[CALLS]).any(axis=0)).tolist():
        yield p, f"{first.metric} and {other.metric} were recorded with different numbers of calls"


def check_events(sheet: ProfileSheet, other: ProfileSheet | None) -> Iterator[str]:
    """Yield the contradictions of the user events of a processor, also with the same ones beside another metric."""
    for event in sheet.events or ():
        if event.number and not _is_possible(event):
            yield f"the user event {_shorten_name(event)} has an impossible mean"
    if other is not None and other.events != sheet.events:
        yield f"user events beside {sheet.metric} and {other.metric} differ"


def _is_possible(event: UserEvent) -> bool:
    """Return whether mean, extremes and sum of squares of an event can be those of the same numbers."""
    slack = _ROUNDING * max(abs(event.most), abs(event.least))
    # Products, as they may be infinite, where a power of so large a number is an error.
    least = event.number * event.mean * event.mean
    most = event.number * max(event.most * event.most, event.least * event.least)
    return bool(
        event.least - slack <= event.mean <= event.most + slack
        and least * (1 - _ROUNDING) <= event.squares <= most * (1 + _ROUNDING)
    )


def _shorten_name(event: UserEvent) -> str:
    return event.name.decode("utf-8", "surrogateescape")[:60]


def _values_differ(one: FloatArray, other: FloatArray) -> npt.NDArray[np.bool_]:
    unequal: npt.NDArray[np.bool_] = np.abs(one - other) > _compute_slack(one, other)
    return unequal


def _compute_slack(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return how far values may be apart by rounding; whole numbers are exact."""
    whole = (one == np.floor(one)).all() and (other == np.floor(other)).all()
    slack: FloatArray = np.where(whole, 0.0, 1e-6 * np.maximum(one, other))
    return slack
