"""How much imbalance, transfer and waiting for locks is proven by CPU clocks, equal calls and counts of acquisitions.

They are evidence that does not depend on how busy the machine was: there a thread's calls last longer, and so do
phases, but not its CPU time. A processor that computes less than the slowest one and waits for it has less to do. One
that computes less and hardly waits was given less, as others held its core and work is handed out on demand: that
proves nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

import numpy as np

from advisor.analysis.bounds import compute_bound_seconds
from advisor.analysis.disturbance import SPEED_SHARE
from advisor.analysis.loads import summarize_loads
from advisor.model.records import FloatArray, Phase, Profile, find_adjacent_bounds
from advisor.trace.counts import IDLE_ENDS, UNDISTURBED_TRANSFER

#: The bounds below and above each gap of uneven work.
_GAPS: Final = {letter: find_adjacent_bounds(letter) for letter in ("L", "M'", "D")}
#: Counts by region and processor: acquisitions of locks by threads, what recording them took, and CPU seconds that were
#: spent inside of critical sections, of which each region has one lock.
ACQUISITIONS: Final = "lock.acquisitions"
RECORDING_SECONDS: Final = "lock.recording_s"
CRITICAL_SECONDS: Final = "lock.critical_s"
#: A lock that another core has just released comes over with its line of the cache and at least one of data behind it:
#: 40 to 110 ns for each line within a socket, more between sockets (David, Guerraoui and Trigonakis, Everything you
#: always wanted to know about synchronization but were afraid to ask, SOSP 2013); 150 ns for two.
HANDOVER_S: Final = 150e-9


def prove_imbalance(profile: Profile) -> dict[str, float]:
    """Return the seconds of L, M', D and W that CPU clocks prove; nothing where computation was not measured by them.

    W is waiting for critical sections (``prove_lock_waiting``). The others are the gaps of a run that did nothing but
    compute, as far as those who compute less waited: of the three together no more than the mean over the processors
    of min(longest computation - own, own waiting). Others on the same cores take caches and clock as well, so that
    ``SPEED_SHARE`` of the computation is left out.
    """
    if profile.status.get("cpu_s") != "measured" or len(profile.processors) < 2:
        return {}
    computing = replace(profile, phases=tuple(_compute_only(phase) for phase in profile.phases), outside={})
    found = compute_bound_seconds(summarize_loads(computing))
    if not {name for pair in _GAPS.values() for name in pair} <= found.keys():
        return {}
    gaps_s = {letter: max(found[upper] - found[lower], 0.0) for letter, (lower, upper) in _GAPS.items()}
    total_s = sum(gaps_s.values())
    proven_s = max(min(_waited_imbalance(profile), total_s) - SPEED_SHARE * found["I"], 0.0)
    part = proven_s / total_s if total_s > 0 else 0.0
    lock_s = prove_lock_waiting(profile, range(len(profile.phases)))
    return {letter: part * seconds for letter, seconds in gaps_s.items()} | {"W": lock_s}


def prove_transfer(profile: Profile) -> float:
    """Return the seconds of C' that equal calls prove, a mean over the processors: ``UNDISTURBED_TRANSFER``."""
    table = profile.counts.get(UNDISTURBED_TRANSFER)
    return 0.0 if table is None else float(table.sum()) / len(profile.processors)


def _compute_only(phase: Phase) -> Phase:
    """Return a phase in which nothing but computation takes time."""
    if "cpu_s" not in phase.arrays:
        return phase
    cpu_s = phase.arrays["cpu_s"]
    arrays = dict.fromkeys(phase.arrays, np.zeros_like(cpu_s))
    return replace(phase, arrays=arrays | {"wall_s": cpu_s, "cpu_s": cpu_s})


def _waited_imbalance(profile: Profile) -> float:
    """Return what processors compute less than the slowest one of a phase, and wait, a mean over the processors.

    Threads that have ended their parts of a parallel region wait outside of the phases for the last one.
    """
    idle = profile.counts.get(IDLE_ENDS)
    left = np.zeros(len(profile.processors)) if idle is None else idle.sum(axis=0)
    seconds = 0.0
    for phase in profile.phases:
        if phase.kind == "serial" or "cpu_s" not in phase.arrays:
            continue
        computed = phase.arrays["cpu_s"].sum(axis=0)
        missing = computed.max(axis=0) - computed
        waited = sum(
            (phase.arrays[name].sum(axis=0) for name in ("wait_s", "sync_s") if name in phase.arrays),
            np.zeros_like(computed),
        )
        # of all iterations of a phase together: waiting may come later than its cause
        fewer, inside = missing.sum(axis=1), waited.sum(axis=1)
        beyond = np.clip(fewer - inside, 0.0, left)
        left = left - beyond
        seconds += float(np.minimum(fewer, inside).sum() + beyond.sum())
    return seconds / len(profile.processors)


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
