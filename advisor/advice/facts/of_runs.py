"""Facts about the run as a whole."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.advice.facts.source import UNOBSERVED, share_of

if TYPE_CHECKING:
    from advisor.advice.facts.source import Compute, Source


def _run_iterations(source: Source) -> float | None:
    if not len(source.seconds) or not source.profile.has_phases:
        return None
    return source.profile.phases[int(source.seconds.argmax())].iterations


def _outside(name: str, source: Source) -> float | None:
    outside = source.profile.outside
    if not outside:
        return None
    return float(outside[name].mean()) if name in outside else 0.0


def _idle_threads(source: Source) -> float | None:
    profile = source.profile
    if not profile.outside or any(note.name == UNOBSERVED for note in profile.notes):
        return None
    idle = float(profile.outside["idle"].sum()) if "idle" in profile.outside else 0.0
    return share_of(idle, len(profile.processors) * profile.actual_s)


def _threads(source: Source) -> float:
    ranks = np.array([processor.rank for processor in source.profile.processors])
    return int(np.unique(ranks, return_counts=True)[1].max())


def _oversubscription(source: Source) -> float | None:
    cores = source.profile.cores
    return len(source.profile.processors) / cores if cores else None


def _has(paradigm: str, source: Source) -> bool | None:
    used = {name.lower() for name in source.profile.paradigms}
    return paradigm in used if used else None


VALUES: Final[dict[str, Compute]] = {
    "run.wall_s": lambda source: source.profile.actual_s,
    "run.ranks": lambda source: len({processor.rank for processor in source.profile.processors}),
    "run.threads": _threads,
    "run.processors": lambda source: len(source.profile.processors),
    "run.cores": lambda source: source.profile.cores,
    "run.oversubscription": _oversubscription,
    "run.startup_s": partial(_outside, "start-up"),
    "run.shutdown_s": partial(_outside, "shutdown"),
    "run.iterations": _run_iterations,
    "run.has_mpi": partial(_has, "mpi"),
    "run.has_openmp": partial(_has, "openmp"),
    "run.idle_threads_share": _idle_threads,
}
