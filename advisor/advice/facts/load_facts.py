"""Facts about the work of the processors and its distribution, from one pass over the arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.advice.facts.count_facts import sum_counts
from advisor.advice.facts.places import is_significant
from advisor.advice.facts.source import UNOBSERVED, Compute, FactSource, compute_share
from advisor.analysis.disturbance import taken_share, undisturbed_seconds
from advisor.analysis.loads.computation import compute_alone, cores_per_processor
from advisor.analysis.measures import COMMUNICATION_S
from advisor.model.records import DEVICES_UNSEEN
from advisor.support.grouping import iterate_groups
from advisor.trace.regions import BLOCKED_NAME, OFF_CORE_NAME, is_sleep

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray

#: By how much a processor must be faster than the slowest to be told from it.
NOTICEABLE: Final = 0.02
#: Who does at least this share of a region does it alone.
ALONE: Final = 0.95
#: A site whose slowest processor works less than this share of its time is empty.
EMPTY: Final = 0.01
#: Networks that nobody computes on are slower: what a message takes at most (seconds), and its bytes in a second.
SLOW_LATENCY_S: Final = 1e-3
SLOW_RATE: Final = 1e8
#: What a profile counts where calls that read and write were seen.
_OPERATIONS: Final = "io_operations"


def _rank_work(source: FactSource, statistic: Callable[[FloatArray], float]) -> FloatArray:
    """Return a statistic of the loads of each rank's threads (ranks,)."""
    master, work = source.loads.team.master, source.work
    return np.array([statistic(work[team]) for _, team in iterate_groups(master)])


def _max_to_mean(values: FloatArray) -> float | None:
    mean = float(values.mean())
    return float(values.max()) / mean if mean > 0 else None


def _compute_median(values: FloatArray) -> float:
    """Return the median; numpy's own loads masked arrays, which takes longer than many a run's whole analysis."""
    ordered, count = np.sort(values, axis=None), values.size
    return float(ordered[(count - 1) // 2 : count // 2 + 1].mean())


def _work_imbalance(source: FactSource) -> float | None:
    return _max_to_mean(source.work) if source.is_work_known else None


def _rank_imbalance(source: FactSource) -> float | None:
    return _max_to_mean(_rank_work(source, np.mean)) if source.is_work_known else None


def _first_rank_ratio(source: FactSource) -> float | None:
    """Return how the work of the first rank compares with that of the others; of these a quarter may have got little.

    Where a quarter of them have as little as the first one, nothing sets it apart.
    """
    work = _rank_work(source, np.mean) if source.is_work_known else np.zeros(0)
    rank = [source.profile.processors[team[0]].rank for _, team in iterate_groups(source.loads.team.master)]
    others = work[np.array(rank) > 0] if len(work) else work
    if not len(others) or len(others) == len(work) or others.mean() <= 0:
        return None
    little = float(np.sort(others)[(len(others) - 1) // 4])
    return float(work[np.array(rank) == 0].mean()) / little if little > 0 else 1.0


def _thread_imbalance(source: FactSource) -> float | None:
    if not source.is_work_known or any(note.name == UNOBSERVED for note in source.profile.notes):
        return None
    most, mean = _rank_work(source, np.max), _rank_work(source, np.mean)
    worst = int((most - mean).argmax())
    return float(most[worst] / mean[worst]) if mean[worst] > 0 else None


def _dynamic_ratio(source: FactSource) -> float | None:
    if not source.is_work_known or source.work.max() <= 0:
        return None
    return float(source.peaks.sum() / source.work.max())


def _slowest_persistence(source: FactSource) -> float | None:
    if not source.is_work_known:
        return None
    deciders = np.concatenate([source.loads.phases[p].decider for p in source.phases])
    master = source.loads.team.master
    if (master == master[0]).all():
        master = np.arange(len(master))
    return float((master[deciders] == master[int(source.work.argmax())]).mean())


def _slowest_differs(source: FactSource) -> bool | None:
    kinds = {source.profile.phases[p].kind for p in source.phases}
    if not source.is_work_known or kinds != {"parallel"}:
        return None
    work, everywhere = source.work, source.loads.parallel_work
    return bool(work[int(everywhere.argmax())] < (1 - NOTICEABLE) * work.max())


def _alone_share(source: FactSource) -> float | None:
    """Return which part of the imbalance of ranks, files aside, would go with the regions that one rank does alone.

    Where nothing tells what devices did, a rank that seems to work alone may wait for its own.
    """
    if not source.is_work_known or any(note.name == DEVICES_UNSEEN for note in source.profile.notes):
        return None
    ranks, number = np.unique(source.loads.team.master, return_inverse=True)
    by_region = np.zeros((len(source.profile.regions), len(ranks)))
    for p in source.phases:
        phase = source.profile.phases[p]
        for name, sign in (*source.loads.quantities.work.terms, ("io_s", -1.0)):
            if name in phase.arrays:
                seconds = sign * phase.arrays[name].sum(axis=2)
                np.add.at(by_region, (phase.regions[:, None], number[None, :]), seconds)
    alone = by_region[by_region.max(axis=1) >= ALONE * by_region.sum(axis=1)].sum(axis=0)
    work = by_region.sum(axis=0)
    excess, left = (float(each.max() - each.mean()) for each in (work, work - alone))
    return min(max(1.0 - left / excess, 0.0), 1.0) if len(ranks) > 1 and excess > 0 else 0.0


def _largest_work(source: FactSource) -> float | None:
    return float(source.work.max()) if source.is_work_known else None


def _work_between_syncs(source: FactSource) -> float | None:
    divided = source.is_work_known and source.profile.has_phases
    return _compute_median(source.peaks) if divided else None


def _most_iterations(source: FactSource) -> float | None:
    return max((source.profile.phases[p].iterations for p in source.phases), default=None)


def _phase_share(source: FactSource) -> float | None:
    seconds, whole_s = float(source.seconds[list(source.phases)].sum()), undisturbed_seconds(source.profile)
    return compute_share(min(seconds, whole_s), whole_s)


def _shareable_seconds(source: FactSource) -> float | None:
    """Return what a rank wins at most if all of its threads that have cores share what its first one computes alone.

    Text, memory and files are left out: they are read, taken and written by one.
    """
    profile = source.profile
    ranks = np.array([processor.rank for processor in profile.processors])
    threads = np.array([np.count_nonzero(ranks == rank) for rank in ranks])
    if threads.max() < 2 or any("cpu_s" not in profile.phases[p].arrays for p in source.phases):
        return None
    alone, sequential = zip(*(compute_alone(profile, p) for p in source.phases), strict=True)
    left = sum((one - part).sum(axis=1) for one, part in zip(alone, sequential, strict=True))
    helping = np.maximum(threads * cores_per_processor(profile), 1.0)
    return float((left * (1.0 - 1.0 / helping)).max())


def _divisible_seconds(source: FactSource) -> float | None:
    """Return what a program of one thread wins at most if the cores that nobody uses share its computation.

    Text, memory and files are left out, as above. A run of MPI or OpenMP has as many processors as it was given, and
    threads do not share what Python computes.
    """
    profile = source.profile
    if len(profile.processors) != 1 or profile.paradigms or not profile.cores or profile.language == "python":
        return None
    alone, sequential = zip(*(compute_alone(profile, p) for p in source.phases), strict=True)
    left = sum(float((one - part).sum()) for one, part in zip(alone, sequential, strict=True))
    free = profile.cores * (1.0 - (taken_share(profile) or 0.0))
    return left * (1.0 - 1.0 / max(free, 1.0))


def _closed_by(source: FactSource) -> str | None:
    return source.profile.phases[source.phases[0]].closed_by


def _is_serial(source: FactSource) -> bool | None:
    return source.profile.phases[source.phases[0]].kind == "serial" if source.profile.has_phases else None


def _parallel_phases(source: FactSource) -> float | None:
    if not source.profile.has_phases:
        return None
    pairs = zip(source.profile.phases, source.seconds, strict=True)
    run = source.profile
    return sum(
        phase.kind == "parallel" and is_significant(float(s), run.actual_s, simulated=run.is_simulated)
        for phase, s in pairs
    )


def _is_empty_phase(source: FactSource) -> bool | None:
    timed = all(source.profile.phases[p].duration_s is not None for p in source.phases)
    if not source.is_work_known or not timed:
        return None
    return float(source.peaks.sum()) < EMPTY * float(source.seconds[list(source.phases)].sum())


def _share_of_wall(measure: str, source: FactSource) -> float | None:
    return compute_share(source.sum_measure(measure), source.sum_measure("wall_s"))


def _os_share(source: FactSource) -> float | None:
    """Return what the system takes but for what it does unasked, such as fetching pages: no wait that could end."""
    wall, taken = source.sum_measure("wall_s"), source.sum_measure("os_s")
    others = [source.sum_measure(name) for name in ("cpu_s", "transfer_s", "wait_s", "sync_s", "io_s")]
    if taken is None and wall is not None and None not in others:
        taken = wall - sum(seconds for seconds in others if seconds is not None)
    elif taken is not None:
        taken -= _seconds_off_core(source, np.array([one.name == BLOCKED_NAME for one in source.profile.regions]))
    return compute_share(taken, wall)


def _seconds_off_core(source: FactSource, mine: npt.NDArray[np.bool_]) -> float:
    """Return what some regions spend without a core, seconds."""
    phases = [source.profile.phases[p] for p in source.phases]
    return sum(float(one.arrays["os_s"][mine[one.regions]].sum()) for one in phases if "os_s" in one.arrays)


def _untold_io(source: FactSource) -> float | None:
    """Return the share of input and output of which no call was seen: nothing where they were counted or have sizes."""
    calls = None if source.events is None else source.events.select_rows("io")
    seen = calls is not None and (_OPERATIONS in source.profile.counts or bool(calls.causes.bytes[calls.rows].any()))
    return 0.0 if seen else _share_of_wall("io_s", source)


def _is_whole(source: FactSource) -> bool:
    """Return whether the run was seen as a whole, not as phases."""
    return all(source.profile.phases[phase].kind == "whole" for phase in source.phases)


def _untold_os(source: FactSource) -> float | None:
    """Return the share without a core of which nobody knows what for: nothing where phases were recorded.

    That is what CPU clocks leave of wall clocks, in a row of its own or in regions that compute as well. A call in
    which a program waits has a name, and does not compute.
    """
    if not _is_whole(source):
        return 0.0
    taken = 0.0
    unnamed = np.array([region.name == OFF_CORE_NAME for region in source.profile.regions])
    for phase in (source.profile.phases[number] for number in source.phases):
        if not {"os_s", "wall_s"} <= phase.arrays.keys():
            return None
        off_s, wall_s = (phase.arrays[name].sum(axis=(1, 2)) for name in ("os_s", "wall_s"))
        taken += float(off_s[unnamed[phase.regions] | (off_s < wall_s)].sum())
    return compute_share(taken, source.sum_measure("wall_s"))


def _whole_communication(source: FactSource) -> float | None:
    """Return the share of communication and of waiting in it where the run was not seen as phases, else 0.

    Where calls take longer than what they move takes on a slow network, ranks wait for partners that work.
    """
    if not _is_whole(source):
        return 0.0
    spent = [source.sum_measure(measure) for measure in ("transfer_s", "wait_s", "sync_s")]
    known = [seconds for seconds in spent if seconds is not None]
    whole = sum(known) if len(known) == len(spent) else sum_counts(source, COMMUNICATION_S)
    late = _seconds_beyond_data(source) if len(known) == len(spent) else 0.0
    return compute_share(whole if whole is None else whole - late, source.sum_measure("wall_s"))


def _seconds_beyond_data(source: FactSource) -> float:
    """Return the seconds in barriers and in messages of known size beyond what a slow network needs for these."""
    counts, regions = source.profile.counts, source.profile.regions
    none = np.zeros((len(regions), 1))
    messages, moved, times = (counts.get(name, none) for name in ("messages", "bytes", "collectives"))
    barrier = np.array([region.name == "MPI_Barrier" for region in regions])
    sized = messages.any(axis=1) & moved.any(axis=1)
    needed = np.where(barrier[:, None], times, messages) * SLOW_LATENCY_S + moved / SLOW_RATE
    late = 0.0
    for phase in (source.profile.phases[number] for number in source.phases):
        rows = (barrier | sized)[phase.regions]
        spent = sum(phase.arrays[name].sum(axis=2) for name in ("transfer_s", "wait_s", "sync_s"))
        late += float(np.maximum(spent - needed[phase.regions], 0.0)[rows].sum())
    return late


def _untold_imbalance(source: FactSource) -> float | None:
    """Return the imbalance of ranks where no call tells who waited for whom; 1 where calls or phases were recorded."""
    return _rank_imbalance(source) if source.events is None and _is_whole(source) else 1.0


def _sleep_share(source: FactSource) -> float | None:
    sleeping = np.array([is_sleep(region.name) for region in source.profile.regions])
    if not sleeping.any():
        return 0.0 if source.sum_measure("os_s") is not None else None
    return compute_share(_seconds_off_core(source, sleeping), source.sum_measure("wall_s"))


VALUES: Final[dict[str, Compute]] = {
    "phase.imbalance": _work_imbalance,
    "phase.rank_imbalance": _rank_imbalance,
    "phase.first_rank_ratio": _first_rank_ratio,
    "phase.untold_imbalance": _untold_imbalance,
    "phase.thread_imbalance": _thread_imbalance,
    "phase.dynamic_ratio": _dynamic_ratio,
    "phase.slowest_rank_persistence": _slowest_persistence,
    "phase.slowest_differs": _slowest_differs,
    "phase.iterations": _most_iterations,
    "phase.share": _phase_share,
    "phase.shareable_s": _shareable_seconds,
    "phase.divisible_s": _divisible_seconds,
    "phase.closed_by": _closed_by,
    "phase.is_serial": _is_serial,
    "phase.phases": _parallel_phases,
    "phase.alone_share": _alone_share,
    "phase.work_s": _largest_work,
    "wait.share": partial(_share_of_wall, "wait_s"),
    "comm.share": partial(_share_of_wall, "transfer_s"),
    "comm.whole_share": _whole_communication,
    "sync.share": partial(_share_of_wall, "sync_s"),
    "sync.work_between_s": _work_between_syncs,
    "sync.empty_phases": _is_empty_phase,
    "io.share": partial(_share_of_wall, "io_s"),
    "io.untold_share": _untold_io,
    "os.share": _os_share,
    "os.untold_share": _untold_os,
    "os.sleep_share": _sleep_share,
}
