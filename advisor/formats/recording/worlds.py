"""The runs of MPI in one recording: a script may start several, and a run may start others by MPI_Comm_spawn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.trace.recordings.processes import Process


def split_worlds(processes: Iterable[Process]) -> list[list[Process]]:
    """Return the ranks of each MPI_COMM_WORLD, in their order; the worlds in the order in which they began.

    A world has each rank once, and as many ranks as each of them says. What one process has started on a host, the
    launcher or its part there, belongs together as far as that allows; of such parts the one that follows another
    completes it.
    """
    started: dict[tuple[str, int], list[Process]] = defaultdict(list)
    for process in processes:
        started[process.host, process.parent].append(process)
    parts = [part for siblings in started.values() for part in _join_parts([one] for one in siblings)]
    return [sorted(world, key=lambda one: (one.rank or 0, one.pid)) for world in _join_parts(parts)]


def _join_parts(parts: Iterable[list[Process]]) -> list[list[Process]]:
    """Return worlds made of these parts, each added to the latest one that lacks all of its ranks."""
    worlds: list[list[Process]] = []
    for part in sorted(parts, key=lambda part: min((one.real_s, one.rank or 0, one.pid) for one in part)):
        ranks = {one.rank for one in part}
        fitting = [
            world for world in worlds if world[0].ranks == part[0].ranks and ranks.isdisjoint(one.rank for one in world)
        ]
        if fitting:
            fitting[-1].extend(part)
        else:
            worlds.append(list(part))
    return worlds
