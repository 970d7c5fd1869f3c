"""How often calls that wait for other processes are given something new: not for each piece, and not for each look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.recording.recorded_threads import WAITS_FOR_CHILDREN, RecordedThread, count_calls

if TYPE_CHECKING:
    from advisor.model.records import IntArray

#: Calls that move bytes between processes, calls that look whether there are any, and what says nothing of either.
_MOVING: Final = ("pipe_read", "pipe_write")
_LOOKING: Final = ("poll", "ppoll", "select", "pselect", "epoll_wait", "epoll_pwait")
_BESIDE: Final = ("python_gil", *WAITS_FOR_CHILDREN)
#: What is written at once comes at once up to this size (PIPE_BUF of Linux); more comes in pieces.
_PIECE_B: Final = 4096


def count_hand_overs(thread: RecordedThread, calls: IntArray) -> IntArray:
    """Return for how many calls each record stands; 0 for one in which nothing new was handed over.

    An object of a megabyte passes through a pipe in pieces of at most 64 KiB: a read or write behind one of a piece, on
    the same file, goes on with it. A look that is followed by the next one found nothing, and one that is followed by
    the reading is counted there.
    """
    records = thread.records[calls]
    often = count_calls(records)
    kind = np.zeros(len(calls), dtype=np.int8)
    for number, names in enumerate((_MOVING, _LOOKING, _BESIDE), 1):
        kind[np.isin(records["function"], [f for f, name in thread.process.functions.items() if name in names])] = (
            number
        )
    told = np.flatnonzero(kind < 3)
    if len(told) < 2 or not kind.any():
        return often
    before, after = told[:-1], told[1:]
    same = (records["function"][before] == records["function"][after]) & (
        records["partner"][before] == records["partner"][after]
    )
    often[after[(kind[after] == 1) & same & (records["size"][before] >= _PIECE_B)]] = 0
    often[before[(kind[before] == 2) & np.isin(kind[after], (1, 2))]] = 0
    return often
