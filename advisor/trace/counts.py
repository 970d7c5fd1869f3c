"""Counts of calls, messages, bytes, collectives and file operations by region and processor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.support.grouping import group_rows, sum_by_group
from advisor.trace.events import GOES_ON, SENDS, Kind, Trace
from advisor.trace.nesting import Calls, select_recorded

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray

#: What is counted, what its bytes are called, and the kinds of its events.
COUNTED: Final = (
    ("messages", "bytes", SENDS),
    ("collectives", None, (Kind.COLLECTIVE,)),
    ("io_operations", "io_bytes", (Kind.IO,)),
)


#: Counts by row and location: the seconds that calls would have transferred if each had taken no longer than the
#: quickest 0.5 % of its equals.
UNDISTURBED_TRANSFER: Final = "transfer.undisturbed_s"
#: Counts by row and location: the seconds for which threads of a team had ended their parts of parallel regions before
#: the last one did. They are in no call then, and in no phase.
IDLE_ENDS: Final = "threads.idle_ends_s"
#: Counts by row and location: messages, and their bytes, that go to the first rank.
TO_FIRST, BYTES_TO_FIRST = "messages.to_first", "messages.to_first_B"
#: Counts by row and location: seconds of waiting for what a loop asks for one after the other.
ANSWER_SECONDS: Final = "wait.answer_s"
#: Counts by row and location: seconds of collectives that bring what the one before at their place has brought.
REPEATED_SECONDS: Final = "comm.repeated_s"
#: Counts by row and location: seconds that recording tasks took while threads created them.
TASK_RECORDING: Final = "tasks.recording_s"
#: Counts by row and location: seconds in functions of the program that a library calls to compare what it sorts.
COMPARISON_SECONDS: Final = "compared_s"
#: Counts by row and location: seconds of waiting in loops of the program that ask memory again and again.
SPIN_SECONDS: Final = "wait.spin_s"
#: Fewer equal calls show none that nobody disturbed.
_EQUALS: Final = 8
_QUICK: Final = 0.005


def find_quick_seconds(group: IntArray, seconds: FloatArray) -> FloatArray:
    """Return how long the quickest 0.5 % of each group takes at most, (groups,); infinity where they are few.

    Where other programs take the cores most of the time, a call lasts until its partner has a core again. But there are
    always some during which both have one, and what these take is what network and library need. Of hundreds of
    calls beside two others on each core it is less than a fiftieth.
    """
    often = np.bincount(group)
    place = np.cumsum(often) - often + (_QUICK * (often - 1)).astype(np.int64)
    enough = often >= _EQUALS
    quick = np.full(len(often), np.inf)
    quick[enough] = seconds[np.lexsort((seconds, group))][place[enough]]
    return quick


def sum_undisturbed_transfer(cell: IntArray, size: IntArray, seconds: FloatArray, cells: int) -> FloatArray:
    """Return what calls transfer at least, (cells,): calls of one cell and size class are equal; few prove nothing."""
    group, _ = group_rows((cell, np.frexp(size.clip(0).astype(np.float64))[1].astype(np.int64)))
    quick = find_quick_seconds(group, seconds)[group]
    return sum_by_group(cell, np.where(np.isfinite(quick), np.minimum(seconds, quick), 0.0), cells)


def count_to_first(trace: Trace, calls: Calls, row_of_call: IntArray, rows: int) -> dict[str, FloatArray]:
    """Return how many messages (rows, locations), and how many bytes, others send to rank 0; nothing without any."""
    events, call = select_recorded(calls, *SENDS)
    first = trace.partner[events] == 0
    events, call = events[first], call[first]
    shape = rows, len(trace.locations)
    cell = row_of_call[call] * shape[1] + calls.location[call]
    moved = np.maximum(trace.size[events], 0).astype(np.float64)
    both = {TO_FIRST: np.ones(len(events)), BYTES_TO_FIRST: moved}
    return {
        name: sum_by_group(cell, each, rows * shape[1]).reshape(shape) for name, each in both.items() if len(events)
    }


def sum_call_bytes(trace: Trace, calls: Calls, kinds: tuple[Kind, ...]) -> IntArray:
    """Return the bytes that events of these kinds record for each call, -1 where none does."""
    events, call = select_recorded(calls, *kinds)
    known = trace.size[events] >= 0
    events, call = events[known], call[known]
    total = sum_by_group(call, trace.size[events].astype(np.float64), len(calls.region)).astype(np.int64)
    total[np.bincount(call, minlength=len(total)) == 0] = -1
    return total


def count_repeats(trace: Trace, events: IntArray) -> FloatArray:
    """Return how many calls or file operations each of some enters or ``Kind.IO`` events stands for; 0: goes on."""
    tag = trace.tag[events]
    return np.where(tag == GOES_ON, 0.0, 1.0 + np.maximum(tag, 0))


def count_events(
    trace: Trace,
    calls: Calls,
    row_of_call: IntArray,
    rows: int,
    continued: npt.NDArray[np.bool_],
    *,
    compiled: bool = False,
) -> dict[str, FloatArray]:
    """Return the counts (rows, locations) that a trace shows; those that never occur are left out.

    ``continued`` calls began before the trace: they were counted there. ``compiled`` says whether a compiled loop
    counts the others.
    """
    columns = len(trace.locations)
    cell = row_of_call * columns + calls.location
    entered = np.where(continued, 0.0, count_repeats(trace, calls.enter))
    result = {"calls": sum_by_group(cell, entered, rows * columns)}
    result |= (_count_by_loop if compiled else _count_columns)(trace, calls, cell, rows * columns)
    return {name: values.reshape(rows, columns) for name, values in result.items()}


def _count_columns(trace: Trace, calls: Calls, cell_of_call: IntArray, cells: int) -> dict[str, FloatArray]:
    """Return what the events inside of calls show, by cell."""
    result: dict[str, FloatArray] = {}
    for name, amount, kinds in COUNTED:
        events, call = select_recorded(calls, *kinds)
        if not len(events):
            continue
        cell = cell_of_call[call]
        often = count_repeats(trace, events) if name == "io_operations" else np.ones(len(events))
        result[name] = sum_by_group(cell, often, cells)
        if amount:
            result[amount] = sum_by_group(cell, np.maximum(trace.size[events], 0).astype(np.float64), cells)
    return result


def _count_by_loop(trace: Trace, calls: Calls, cell_of_call: IntArray, cells: int) -> dict[str, FloatArray]:
    """Return what ``_count_columns`` does, by a compiled loop."""
    from advisor.trace import compiled_attribution_loops

    names = [name for count, amount, _ in COUNTED for name in (count, amount) if name]
    counts, occurring = np.zeros((len(names), cells)), np.zeros(len(names), dtype=np.bool_)
    inner = calls.inner_events, calls.inner_kind, calls.inner_call
    compiled_attribution_loops.count_events(inner, (trace.size, trace.tag), cell_of_call, counts, occurring)
    return {name: values for name, values, occurs in zip(names, counts, occurring, strict=True) if occurs}
