"""Facts about the work of the processors and how it is shared out, from one pass over the arrays."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.advice.facts.places import is_significant
from advisor.advice.facts.source import UNOBSERVED, share_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.advice.facts.source import Compute, Source
    from advisor.model.records import FloatArray

#: By how much a processor must be faster than the slowest to be told from it.
NOTICEABLE: Final = 0.02
#: A site whose slowest processor works less than this share of its time is empty.
EMPTY: Final = 0.01


def _rank_work(source: Source, statistic: Callable[[FloatArray], float]) -> FloatArray:
    """Return a statistic of the loads of each rank's threads (ranks,)."""
    master, work = source.loads.team.master, source.work
    order = np.argsort(master, kind="stable")
    teams = np.split(work[order], np.flatnonzero(np.diff(master[order])) + 1)
    return np.array([statistic(team) for team in teams])


def _ratio(values: FloatArray) -> float | None:
    mean = float(values.mean())
    return float(values.max()) / mean if mean > 0 else None


def _median(values: FloatArray) -> float:
    """Return the median; numpy's own loads masked arrays, which takes longer than many a run's whole analysis."""
    ordered, count = np.sort(values, axis=None), values.size
    return float(ordered[(count - 1) // 2 : count // 2 + 1].mean())


def _imbalance(source: Source) -> float | None:
    return _ratio(source.work) if source.known else None


def _rank_imbalance(source: Source) -> float | None:
    return _ratio(_rank_work(source, np.mean)) if source.known else None


def _thread_imbalance(source: Source) -> float | None:
    if not source.known or any(note.name == UNOBSERVED for note in source.profile.notes):
        return None
    most, mean = _rank_work(source, np.max), _rank_work(source, np.mean)
    worst = int((most - mean).argmax())
    return float(most[worst] / mean[worst]) if mean[worst] > 0 else None


def _dynamic_ratio(source: Source) -> float | None:
    if not source.known or source.work.max() <= 0:
        return None
    return float(source.peaks.sum() / source.work.max())


def _slowest_stays(source: Source) -> float | None:
    if not source.known:
        return None
    deciders = np.concatenate([source.loads.phases[p].decider for p in source.phases])
    master = source.loads.team.master
    if (master == master[0]).all():
        master = np.arange(len(master))
    return float((master[deciders] == master[int(source.work.argmax())]).mean())


def _slowest_differs(source: Source) -> bool | None:
    kinds = {source.profile.phases[p].kind for p in source.phases}
    if not source.known or kinds != {"parallel"}:
        return None
    work, everywhere = source.work, source.loads.parallel_work
    return bool(work[int(everywhere.argmax())] < (1 - NOTICEABLE) * work.max())


def _heaviest(source: Source) -> float | None:
    return share_of(float(source.work.max()), float(source.work.sum())) if source.known else None


def _work(source: Source) -> float | None:
    return float(source.work.max()) if source.known else None


def _work_between(source: Source) -> float | None:
    divided = source.known and source.profile.has_phases
    return _median(source.peaks) if divided else None


def _iterations(source: Source) -> float | None:
    return max((source.profile.phases[p].iterations for p in source.phases), default=None)


def _phase_share(source: Source) -> float | None:
    return share_of(float(source.seconds[list(source.phases)].sum()), source.profile.actual_s)


def _closed_by(source: Source) -> str | None:
    return source.profile.phases[source.phases[0]].closed_by


def _is_serial(source: Source) -> bool | None:
    return source.profile.phases[source.phases[0]].kind == "serial" if source.profile.has_phases else None


def _parallel_phases(source: Source) -> float | None:
    if not source.profile.has_phases:
        return None
    pairs = zip(source.profile.phases, source.seconds, strict=True)
    return sum(phase.kind == "parallel" and is_significant(float(s), source.profile.actual_s) for phase, s in pairs)


def _empty(source: Source) -> bool | None:
    timed = all(source.profile.phases[p].duration_s is not None for p in source.phases)
    if not source.known or not timed:
        return None
    return float(source.peaks.sum()) < EMPTY * float(source.seconds[list(source.phases)].sum())


def _of_wall(measure: str, source: Source) -> float | None:
    return share_of(source.total(measure), source.total("wall_s"))


def _os_share(source: Source) -> float | None:
    wall, taken = source.total("wall_s"), source.total("os_s")
    others = [source.total(name) for name in ("cpu_s", "transfer_s", "wait_s", "sync_s", "io_s")]
    if taken is None and wall is not None and None not in others:
        taken = wall - sum(seconds for seconds in others if seconds is not None)
    return share_of(taken, wall)


VALUES: Final[dict[str, Compute]] = {
    "phase.imbalance": _imbalance,
    "phase.rank_imbalance": _rank_imbalance,
    "phase.thread_imbalance": _thread_imbalance,
    "phase.dynamic_ratio": _dynamic_ratio,
    "phase.slowest_stays": _slowest_stays,
    "phase.slowest_differs": _slowest_differs,
    "phase.iterations": _iterations,
    "phase.share": _phase_share,
    "phase.closed_by": _closed_by,
    "phase.is_serial": _is_serial,
    "phase.phases": _parallel_phases,
    "phase.heaviest_share": _heaviest,
    "phase.work_s": _work,
    "wait.share": partial(_of_wall, "wait_s"),
    "comm.share": partial(_of_wall, "transfer_s"),
    "sync.share": partial(_of_wall, "sync_s"),
    "sync.work_between_s": _work_between,
    "sync.empty_phases": _empty,
    "io.share": partial(_of_wall, "io_s"),
    "os.share": _os_share,
}
