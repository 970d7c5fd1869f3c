"""Where in the program's file samples lie, and what the registers held there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.support.grouping import iterate_groups
from advisor.trace.recordings.addresses import locate_addresses, sorted_objects
from advisor.trace.recordings.layout import PYTHON_BIT

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.formats.recording.contents import Recording
    from advisor.formats.recording.recorded_threads import RecordedThread
    from advisor.model.records import IntArray

#: Two samples this many bytes of code apart, or less, can lie in one loop.
_NEAR_B: Final = 4096
#: Of one place the registers of so many samples are kept: enough to tell how much memory a load goes through.
_MOST_REGISTERS: Final = 400


@dataclass(frozen=True, slots=True)
class ProgramSamples:
    """The samples of a thread in compiled code of the program: their rows, and their places in its file (n,)."""

    thread: RecordedThread
    rows: IntArray
    places: IntArray


def find_program_samples(recording: Recording) -> list[ProgramSamples]:
    """Return the samples of each thread in compiled code of the program."""
    program = recording.processes[0].program
    found = []
    for thread in recording.threads:
        own = [at for at, one in enumerate(sorted_objects(thread.process)) if one.path == program]
        compiled = np.flatnonzero((thread.samples["callers"][:, 3] & PYTHON_BIT) == 0)
        located = locate_addresses(thread.process, thread.samples["address"][compiled])
        inside = np.isin(located[:, 0], own)
        found.append(ProgramSamples(thread, compiled[inside], located[inside, 1]))
    return found


def count_places(samples: Sequence[ProgramSamples]) -> tuple[tuple[int, int], ...]:
    """Return the places in the program's file at which samples lie, with their number."""
    found: Counter[int] = Counter()
    for one in samples:
        for place, missed in zip(one.places.tolist(), one.thread.samples["missed"][one.rows].tolist(), strict=True):
            found[place] += 1 + missed
    return tuple(sorted(found.items()))


def count_by_processor(samples: Sequence[ProgramSamples], columns: Mapping[tuple[int, int], int]) -> IntArray:
    """Return the places with the processor and its samples there (n, 3); ``columns`` are processors by rank, thread."""
    parts = [
        np.c_[one.places, np.full(len(one.places), column), 1 + one.thread.samples["missed"][one.rows].astype(np.int64)]
        for one in samples
        if (column := columns.get((one.thread.rank, one.thread.processor))) is not None
    ]
    rows = np.concatenate([np.zeros((0, 3), dtype=np.int64), *parts])
    keys, group = np.unique(rows[:, :2], axis=0, return_inverse=True)
    counts = np.bincount(group.ravel(), weights=rows[:, 2], minlength=len(keys)).astype(np.int64)
    return np.column_stack((keys, counts))


def collect_registers(samples: Sequence[ProgramSamples]) -> dict[int, npt.NDArray[np.uint64]]:
    """Return the registers at samples by their place, each in the thread that has most samples there.

    Addresses of one process mean nothing in another one, and threads mostly work on memory of their own.
    """
    found: dict[int, npt.NDArray[np.uint64]] = {}
    for one in samples:
        known = one.rows < len(one.thread.registers)
        rows = one.rows[known]
        for place, at in iterate_groups(one.places[known]):
            if len(at) > len(found.get(place, ())):
                step = -(-len(at) // _MOST_REGISTERS)
                found[place] = np.array(one.thread.registers[rows[at[::step]]])
    return found


def collect_progress(samples: Sequence[ProgramSamples]) -> dict[int, npt.NDArray[np.uint64]]:
    """Return samples with the next one of their thread, where that lies near, by the place of the first.

    (pairs, 2, 18): registers, CPU time in cycles, place. Nothing where the processor's clock is not known.
    """
    parts = []
    for one in samples:
        cycle_ns = 1e9 * one.thread.process.cycle_s
        if not cycle_ns:
            continue
        known = one.rows < len(one.thread.registers)
        rows, places = one.rows[known], one.places[known]
        near = np.flatnonzero((np.diff(rows) == 1) & (np.abs(np.diff(places)) <= _NEAR_B))
        for at in (near, near + 1):
            cycles = (one.thread.samples["cpu_ns"][rows[at]] / cycle_ns).astype(np.uint64)
            parts.append(np.column_stack((one.thread.registers[rows[at]], cycles, places[at].astype(np.uint64))))
    first, second = (np.concatenate(parts[half::2] or [np.zeros((0, 18), dtype=np.uint64)]) for half in (0, 1))
    pairs = np.stack((first, second), axis=1)
    return {place: _thin_out(pairs[at]) for place, at in iterate_groups(pairs[:, 0, -1].astype(np.int64))}


def _thin_out(rows: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    return rows[:: -(-len(rows) // _MOST_REGISTERS)]


def pair_registers(samples: Sequence[ProgramSamples]) -> dict[int, npt.NDArray[np.uint64]]:
    """Return the registers at samples of the two threads of a process that have most of them, (2, samples, 16).

    Both have as many at each place: what they store, they may store to the same lines of the cache.
    """
    threads = sorted(samples, key=lambda one: -int((one.rows < len(one.thread.registers)).sum()))
    first = next(iter(threads), None)
    second = next(
        (one for one in threads[1:] if first is not None and one.thread.process is first.thread.process), None
    )
    if first is None or second is None:
        return {}
    ours, theirs = _rows_by_place(first), _rows_by_place(second)
    found: dict[int, npt.NDArray[np.uint64]] = {}
    for place in ours.keys() & theirs.keys():
        pair = [ours[place], theirs[place]]
        count = min(*map(len, pair), _MOST_REGISTERS)
        chosen = [rows[np.linspace(0, len(rows) - 1, count).astype(np.int64)] for rows in pair]
        found[place] = np.stack([one.thread.registers[rows] for one, rows in zip((first, second), chosen, strict=True)])
    return found


def _rows_by_place(samples: ProgramSamples) -> dict[int, IntArray]:
    """Return the samples of a thread whose registers are known, by their place."""
    known = samples.rows < len(samples.thread.registers)
    rows = samples.rows[known]
    return {place: rows[at] for place, at in iterate_groups(samples.places[known])}
