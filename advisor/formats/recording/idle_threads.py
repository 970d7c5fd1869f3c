"""Threads that only start others and wait for them: no processors of the run."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.recording.recorded_threads import map_processors

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.formats.recording.contents import Recording
    from advisor.model.records import Causes, Profile

    BoolArray = npt.NDArray[np.bool_]

#: A first thread that computes for less of its time only looks after the others.
_IDLE: Final = 0.02
#: Beside a single other thread, one that does so much of what that one does may be its peer, if a lazy one.
_SHARE_OF_ONE: Final = 0.05
#: What a thread does beside computing.
_OTHER_WORK: Final = ("io_s", "transfer_s", "sync_s")


def leave_out_idle_threads(profile: Profile, recording: Recording) -> Profile:
    """Return the profile without first threads that wait all the time for the threads that they started.

    They use no core, and would look like processors that have nothing to do.
    """
    used, done = np.zeros(len(profile.processors)), np.zeros(len(profile.processors))
    for phase in profile.phases:
        if "cpu_s" in phase.arrays:
            used += phase.arrays["cpu_s"].sum(axis=(0, 2))
        done += sum((phase.arrays[name].sum(axis=(0, 2)) for name in _OTHER_WORK if name in phase.arrays), 0.0)
    done += used
    kept = np.ones(len(profile.processors), dtype=np.bool_)
    for q, others in _find_started(profile, recording).items():
        idle = used[q] < _IDLE * profile.actual_s
        if not idle or not others or used[others].max() <= _IDLE * profile.actual_s:
            continue
        kept[q] = len(others) == 1 and done[q] >= _SHARE_OF_ONE * done[others].max()
    return profile if kept.all() else _select_processors(profile, kept)


def _find_started(profile: Profile, recording: Recording) -> dict[int, list[int]]:
    """Return the other processors of a rank by that of its first thread, and those of a child process by its own."""
    processors, columns = profile.processors, map_processors(profile)
    found = {
        q: [n for n, each in enumerate(processors) if each.rank == one.rank and each.thread > 0]
        for q, one in enumerate(processors)
        if one.thread == 0
    }
    for first in (one for one in recording.threads if one.leads_worker):
        mine = {
            columns[each.rank, each.processor]
            for each in recording.threads
            if each.process is first.process and (each.rank, each.processor) in columns
        }
        q = columns.get((first.rank, first.processor))
        if q is not None and q not in found:
            found[q] = sorted(mine - {q})
    return found


def _select_processors(profile: Profile, kept: BoolArray) -> Profile:
    phases = tuple(
        replace(phase, arrays={name: values[:, kept] for name, values in phase.arrays.items()})
        for phase in profile.phases
    )
    return replace(
        profile,
        processors=tuple(one for one, stays in zip(profile.processors, kept, strict=True) if stays),
        phases=phases,
        outside={name: seconds[kept] for name, seconds in profile.outside.items()},
        counts={name: table[:, kept] for name, table in profile.counts.items()},
        causes=_select_causes(profile.causes, kept) if profile.causes is not None else None,
    )


def _select_causes(causes: Causes, kept: BoolArray) -> Causes:
    """Return the causes of the processors that stay, with their new places; partners that left are unknown."""
    places = np.where(kept, np.cumsum(kept) - 1, -1)
    stays = (causes.processor < 0) | kept[np.maximum(causes.processor, 0)]
    chosen = {
        one.name: getattr(causes, one.name)[stays]
        for one in fields(causes)
        if isinstance(getattr(causes, one.name), np.ndarray)
    }
    for name in ("processor", "partner"):
        old = chosen[name]
        chosen[name] = np.where(old >= 0, places[np.maximum(old, 0)], -1).astype(old.dtype)
    return replace(causes, **chosen)
