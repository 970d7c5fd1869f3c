"""Where in the program's file samples lie, and what the registers held there."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.recordings.addresses import locate_addresses, sorted_objects
from advisor.trace.recordings.layout import PYTHON_BIT

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.formats.recording.contents import Recording
    from advisor.formats.recording.recorded_threads import RecordedThread
    from advisor.model.records import IntArray

#: Of one place the registers of so many samples are kept: enough to tell how much memory a load goes through.
_MOST_REGISTERS: Final = 400


def count_places(recording: Recording) -> tuple[tuple[int, int], ...]:
    """Return the places in the program's file at which samples lie, with their number; only those of compiled code."""
    found: Counter[int] = Counter()
    for thread in recording.threads:
        chosen, places = _find_places(recording, thread)
        for place, missed in zip(places.tolist(), thread.samples["missed"][chosen].tolist(), strict=True):
            found[place] += 1 + missed
    return tuple(sorted(found.items()))


def collect_registers(recording: Recording) -> dict[int, npt.NDArray[np.uint64]]:
    """Return the registers at samples by their place, each in the thread that has most samples there.

    Addresses of one process mean nothing in another one, and threads mostly work on memory of their own.
    """
    found: dict[int, npt.NDArray[np.uint64]] = {}
    for thread in recording.threads:
        chosen, places = _find_places(recording, thread)
        known = chosen < len(thread.registers)
        chosen, places = chosen[known], places[known]
        order = np.argsort(places, kind="stable")
        for place, rows in split_runs(places[order], chosen[order]):
            if len(rows) > len(found.get(place, ())):
                step = -(-len(rows) // _MOST_REGISTERS)
                found[place] = np.array(thread.registers[rows[::step]])
    return found


def _find_places(recording: Recording, thread: RecordedThread) -> tuple[IntArray, IntArray]:
    """Return the samples of a thread in compiled code of the program, and their places in its file."""
    program = recording.processes[0].program
    own = [at for at, one in enumerate(sorted_objects(thread.process)) if one.path == program]
    compiled = np.flatnonzero((thread.samples["callers"][:, 3] & PYTHON_BIT) == 0)
    located = locate_addresses(thread.process, thread.samples["address"][compiled])
    inside = np.isin(located[:, 0], own)
    return compiled[inside], located[inside, 1]


def split_runs(places: IntArray, rows: IntArray) -> list[tuple[int, IntArray]]:
    """Return the rows of each place; ``places`` are in order."""
    if not len(places):
        return []
    starts = np.flatnonzero(np.r_[True, places[1:] != places[:-1]])
    return list(zip(places[starts].tolist(), np.split(rows, starts[1:]), strict=True))
