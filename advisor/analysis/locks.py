"""What locks cost by evidence that does not depend on how busy the machine was: acquisitions, and CPU time inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection

    from advisor.model.records import FloatArray, Profile

#: Counts by region and processor: acquisitions of locks by threads, and CPU seconds that were spent inside of critical
#: sections, of which each region has one lock.
ACQUISITIONS: Final = "lock.acquisitions"
CRITICAL_SECONDS: Final = "lock.critical_s"
#: A lock that another core has just released comes over with its line of the cache and at least one of data behind it:
#: 40 to 110 ns for each line within a socket, more between sockets (David, Guerraoui and Trigonakis, Everything you
#: always wanted to know about synchronization but were afraid to ask, SOSP 2013); 150 ns for two.
HANDOVER_S: Final = 150e-9


def predict_handovers(profile: Profile) -> FloatArray | None:
    """Return the seconds (R, Q) that locks take to pass from core to core when all threads run at the same time.

    These are ``HANDOVER_S`` for each acquisition in regions where several threads of a process take locks. Where other
    programs hold the cores threads seldom run at the same time, and less of this is measured. None if nothing is
    known of acquisitions.
    """
    taken = profile.counts.get(ACQUISITIONS)
    if taken is None:
        return None
    rank = np.array([processor.rank for processor in profile.processors])
    shared = np.zeros(taken.shape, dtype=np.bool_)
    for one in np.unique(rank):
        mine = rank == one
        shared[:, mine] = ((taken[:, mine] > 0).sum(axis=1) > 1)[:, None]
    return np.where(shared, taken, 0.0) * HANDOVER_S


def prove_lock_waiting(profile: Profile, phases: Collection[int]) -> float:
    """Return the waiting for critical sections in some phases that CPU clocks prove, a mean over the processors.

    What threads do inside of one section they do one after the other: a phase with H seconds of it in a process takes
    at least as long. Its P processors compute for C/P seconds on average, and wait for the other H - C/P.
    """
    inside = profile.counts.get(CRITICAL_SECONDS)
    if inside is None or profile.causes is None or profile.status.get("cpu_s") != "measured":
        return 0.0
    rank = np.array([processor.rank for processor in profile.processors])
    causes = profile.causes
    waited = 0.0
    for row in np.flatnonzero(inside.any(axis=1)).tolist():
        mine = (causes.call == row) & (causes.phase >= 0)
        often = np.bincount(causes.phase[mine], causes.count[mine], minlength=len(profile.phases))
        if not often.any():
            continue
        for number in {*np.flatnonzero(often).tolist()} & {*phases}:
            arrays = profile.phases[number].arrays
            computed = arrays["cpu_s"].sum(axis=(0, 2)) if "cpu_s" in arrays else np.zeros(len(rank))
            for one in np.unique(rank):
                team = rank == one
                serial = float(inside[row, team].sum()) * often[number] / often.sum()
                waited += max(serial * team.sum() - float(computed[team].sum()), 0.0)
    return waited / len(rank)
