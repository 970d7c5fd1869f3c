"""Facts about the run as a whole."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.advice.facts.event_rows import HANDS_OVER, INTERPRETER
from advisor.advice.facts.source import UNOBSERVED, compute_share
from advisor.analysis.disturbance import (
    BOUND_CORES,
    BUSY,
    QUEUE_DELAY,
    count_idle_processors,
    disturbance_seconds,
    has_free_cores,
    taken_share,
)
from advisor.analysis.measures import GROUPS, IDLE_S, PARTS
from advisor.model.records import DEVICE_WAIT_S, OTHER_PROGRAMS
from advisor.support.grouping import iterate_groups

if TYPE_CHECKING:
    from advisor.advice.facts.source import Compute, FactSource
    from advisor.model.records import Profile

#: A process that gives up its core more often in a second does not look for messages all the time that it waits.
SLEEPING_PER_S: Final = 50
#: Of cores of which others had this share, fewer ranks would leave them more.
_HELD_BY_OTHERS: Final = 0.5


def _run_iterations(source: FactSource) -> float | None:
    if not len(source.seconds) or not source.profile.has_phases:
        return None
    return source.profile.phases[int(source.seconds.argmax())].iterations


def _outside_seconds(name: str, source: FactSource) -> float | None:
    outside = source.profile.outside
    if not outside:
        return None
    return float(outside[name].mean()) if name in outside else 0.0


def _idle_thread_share(source: FactSource) -> float | None:
    profile = source.profile
    if not profile.outside or any(note.name == UNOBSERVED for note in profile.notes):
        return None
    idle = float(profile.outside["idle"].sum()) if "idle" in profile.outside else 0.0
    return compute_share(idle, len(profile.processors) * profile.actual_s)


def _count_threads(source: FactSource) -> float:
    ranks = np.array([processor.rank for processor in source.profile.processors])
    return int(np.unique(ranks, return_counts=True)[1].max())


def _compute_oversubscription(source: FactSource) -> float | None:
    """Return the processors for each core, less the time in which they wait for work of others or for a turn.

    At most one where they were seen to want no more cores than there are.
    """
    cores, processors = source.profile.cores, float(len(source.profile.processors))
    if not cores:
        return None
    if has_free_cores(source.profile):
        processors = min(processors, float(cores))
    everything = float(source.seconds.sum())
    if source.events is not None and everything > 0:
        for trait in (HANDS_OVER, INTERPRETER):
            processors -= source.events.select_rows("wait", (), trait).seconds / everything
    return max(processors, 0.0) / cores


def _compute_contention(source: FactSource) -> float | None:
    """Return the processors that compute for each core; None where others held so many that it does not matter."""
    profile = source.profile
    if not profile.cores or (taken_share(profile) or 0.0) >= _HELD_BY_OTHERS:
        return None
    return (len(profile.processors) - count_idle_processors(profile)) / profile.cores


def _busy_cores(source: FactSource) -> float | None:
    """Return the largest share of the cores that can have been busy: all of them where no CPU times tell."""
    profile, cores = source.profile, source.profile.cores
    if not cores:
        return None
    if BUSY in profile.counts:
        return min(float(profile.counts[BUSY].sum()) / (profile.actual_s * cores), 1.0)
    inside = float(source.seconds.sum())
    spent = [source.totals.sum_measure("cpu_s", phase) for phase in range(len(profile.phases))]
    known = [seconds for seconds in spent if seconds is not None]
    if _polls(profile):  # who waits for messages holds its core
        for name in ("transfer_s", "wait_s", "sync_s"):
            known += [source.totals.sum_measure(name, phase) or 0.0 for phase in range(len(profile.phases))]
    queued = profile.counts.get(QUEUE_DELAY)
    if queued is not None and OTHER_PROGRAMS not in profile.outside:  # who waits for a core wants one
        known.append(float(queued.sum()))
    return min(sum(known) / (inside * cores), 1.0) if inside and None not in spent and known else 1.0


def _bound_threads(source: FactSource) -> float | None:
    """Return the threads of a process for each core that it may use, of the process with most.

    One that may use all cores of its node is bound to none of them: 0.
    """
    table, cores = source.profile.counts.get(BOUND_CORES), source.profile.cores
    if table is None:
        return None
    ranks = np.array([processor.rank for processor in source.profile.processors])
    bound = table.sum(axis=0)
    each = {int(rank): float(bound[ranks == rank].max()) for rank in np.unique(ranks[bound > 0])}
    tied = [np.count_nonzero(ranks == rank) / most for rank, most in each.items() if cores is None or most < cores]
    return float(max(tied, default=0.0)) if each else None


def _confined_seconds(source: FactSource) -> float | None:
    """Return what a process with one thread, which is bound to one core, would win with its part of the cores.

    In parallel regions, of the process with most of that.
    """
    profile, table = source.profile, source.profile.counts.get(BOUND_CORES)
    if table is None or not profile.cores:
        return None
    ranks = np.array([processor.rank for processor in profile.processors])
    each, threads = np.unique(ranks, return_counts=True)
    alone = np.isin(ranks, each[threads == 1]) & (table.sum(axis=0) == 1)
    cores = profile.cores // len(each)
    threaded = np.array([region.threaded for region in profile.regions], dtype=bool)
    seconds = np.zeros(len(ranks))
    for p in source.phases:
        phase = profile.phases[p]
        if "cpu_s" in phase.arrays:
            seconds += phase.arrays["cpu_s"].sum(axis=2)[threaded[phase.regions]].sum(axis=0)
    return float((seconds * alone).max()) * (1.0 - 1.0 / max(cores, 1))


def _polls(profile: Profile) -> bool:
    """Return whether processes hardly ever gave up their cores: they look for messages all the time that they wait."""
    given_up = profile.counts.get("switches.voluntary")
    return given_up is not None and float(given_up.max()) < SLEEPING_PER_S * profile.actual_s


def _has_paradigm(paradigm: str, source: FactSource) -> bool | None:
    used = {name.lower() for name in source.profile.paradigms}
    return paradigm in used if used else None


def _queue_share(source: FactSource) -> float | None:
    table = source.profile.counts.get(QUEUE_DELAY)
    profile = source.profile
    return None if table is None else compute_share(float(table.sum()), len(profile.processors) * profile.actual_s)


def _disturbance_share(source: FactSource) -> float | None:
    profile = source.profile
    known = QUEUE_DELAY in profile.counts
    return compute_share(disturbance_seconds(profile), profile.actual_s) if known else None


def _undivided_parts(source: FactSource) -> float | None:
    """Return how many times more groups of ranks could work on independent parts at the same time than do."""
    stated = (source.profile.parameters.get(name) for name in (PARTS, GROUPS))
    parts, groups = (float(value) if isinstance(value, int | float) else None for value in stated)
    if parts is None or groups is None or groups <= 0:
        return None
    ranks = len({processor.rank for processor in source.profile.processors})
    return max(min(parts, float(ranks)) / groups, 1.0)


def _find_device_overlap(source: FactSource) -> float:
    """Return the seconds of the host's own work, or of its waits for its device, the fewer; 0 if not timed."""
    waits = source.profile.counts.get(DEVICE_WAIT_S)
    waits_s = 0.0 if waits is None else float(waits.sum())
    return max(min(waits_s, source.profile.actual_s - waits_s), 0.0)


def _find_overlap_share(source: FactSource) -> float | None:
    return compute_share(_find_device_overlap(source), source.profile.actual_s)


def _times_threads(profile: Profile) -> bool:
    """Return whether CPU times of the threads of a rank are their own, and not a sum that was divided among them."""
    taken = profile.sum_by_region("cpu_s").sum(axis=0)
    ranks = np.array([processor.rank for processor in profile.processors])
    return any(not np.allclose(taken[team], taken[team[0]], rtol=1e-6) for _, team in iterate_groups(ranks))


def _used_share(source: FactSource) -> float | None:
    """Return how much of the time of their cores processors used, where only sums of CPU time tell; else all of it.

    Threads that were timed one by one need no core of their own: a thread that sleeps leaves its core to others.
    """
    profile = source.profile
    if IDLE_S in profile.counts:
        return 1.0 - float(profile.counts[IDLE_S].sum()) / (len(profile.processors) * profile.actual_s)
    if profile.has_measure("wall_s") or len(profile.processors) == 1:
        return 1.0
    if _times_threads(profile):
        return None
    return compute_share(source.sum_measure("cpu_s"), len(profile.processors) * profile.actual_s)


VALUES: Final[dict[str, Compute]] = {
    "run.wall_s": lambda source: source.profile.actual_s,
    "run.ranks": lambda source: len({processor.rank for processor in source.profile.processors}),
    "run.threads": _count_threads,
    "run.processors": lambda source: len(source.profile.processors),
    "run.cores": lambda source: source.profile.cores,
    "run.oversubscription": _compute_oversubscription,
    "run.contention": _compute_contention,
    "run.busy_cores": _busy_cores,
    "run.startup_s": partial(_outside_seconds, "start-up"),
    "run.shutdown_s": partial(_outside_seconds, "shutdown"),
    "run.iterations": _run_iterations,
    "run.bound_threads": _bound_threads,
    "omp.confined_s": _confined_seconds,
    "run.used_share": _used_share,
    "run.device_overlap_s": _find_device_overlap,
    "run.device_overlap_share": _find_overlap_share,
    "run.undivided_parts": _undivided_parts,
    "run.has_mpi": partial(_has_paradigm, "mpi"),
    "run.has_openmp": partial(_has_paradigm, "openmp"),
    "run.idle_threads_share": _idle_thread_share,
    "run.queue_share": _queue_share,
    "run.disturbance_share": _disturbance_share,
    "run.others_share": lambda source: taken_share(source.profile),
}
