"""Changes to how threads and processes share work: jobs in a queue, turns in an interpreter, what is sent, cores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.advice.facts.collecting import has_hub
from advisor.analysis.disturbance import taken_share
from advisor.trace.regions import is_hand_over, is_interpreter_wait
from advisor_simulation.whatif.call_grouping import find_lock_waits

if TYPE_CHECKING:
    from advisor.model.records import FloatArray
    from advisor_simulation.whatif.measured_run import MeasuredRun

#: Who computes less than this share of the median of all takes no part, and of a hub that answers all others less than
#: this one: it packs and unpacks what others compute.
IDLE: Final = 0.1
HUB_IDLE: Final = 0.75
#: Others never take all that fewer ranks need: what they took of the cores counts up to this share.
MOST_TAKEN: Final = 0.9


def leave_interpreter(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Let no thread wait for its turn in the interpreter of Python."""
    return _without_turns(run, chosen, is_interpreter_wait, np.zeros(run.processors))


def hand_over_more(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Let threads and processes hand over so much work at a time that they hardly wait for it, lock, nor pack it."""
    saved = _computing_share(run, "pickled") + _computing_share(run, "lock")
    return _without_turns(run, chosen, is_hand_over, np.minimum(saved, 1.0))


def send_less(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Let processes of Python pack and unpack nothing, and not wait for who does."""
    share = _computing_share(run, "pickled")
    return _without_turns(run, chosen, is_hand_over, share) if share.any() else None


def _computing_share(run: MeasuredRun, kind: str) -> FloatArray:
    """Return the part of the computation of each processor (Q,) in code of a kind: packing what is sent, locks."""
    found, computed = (run.profile.counts.get(f"code.{name}_s") for name in (kind, "all"))
    share = np.zeros(run.processors)
    if found is not None and computed is not None:
        everything = computed.sum(axis=0)
        np.divide(found.sum(axis=0), everything, out=share, where=everything > 0)
    return np.minimum(share, 1.0)


def _without_turns(
    run: MeasuredRun, chosen: set[int], is_wanted: Callable[[str], bool], saved_share: FloatArray
) -> MeasuredRun | None:
    """Return the run without some waits of threads, as far as the cores have room for what all of them compute.

    ``saved_share`` (Q,) is the part of the computation of each processor that is saved, too.
    """
    cores = min(run.profile.cores or run.processors, run.processors)
    changed = []
    for phase in run.phases:
        measured = run.profile.phases[phase.number]
        if (chosen and phase.number not in chosen) or "cpu_s" not in measured.arrays:
            continue
        kept = 1.0 - saved_share[:, None]
        work, computed = phase.work * kept, (measured.arrays["cpu_s"].sum(axis=0) * kept).sum(axis=0) / cores
        least = np.maximum(computed - work.max(axis=0), 0.0)
        waited = np.minimum(find_lock_waits(run, phase, is_wanted), np.maximum(phase.inner - least, 0.0))
        if waited.any() or saved_share.any():
            changed.append(replace(phase, work=work, inner=phase.inner - waited))
    return run.with_phases(changed) if changed else None


def start_fewer(run: MeasuredRun, chosen: set[int]) -> MeasuredRun | None:
    """Start as many processors as there are cores: they share all computation, and none waits for a core.

    Who hardly computes, as one that hands out work, does not then either, and other programs take what they took.
    Communication takes what it takes for who is held up least. That needs CPU times: else what looks like computation
    holds the turns of others, and nothing is known.
    """
    cores = run.profile.cores
    timed = all("cpu_s" in phase.arrays for phase in run.profile.phases)
    if not cores or run.processors <= cores or not timed:
        return None
    workers = (cores - _count_idle(run, cores)) * (1.0 - min(taken_share(run.profile) or 0.0, MOST_TAKEN))
    changed = []
    for phase in run.phases:
        work, shape = phase.work.sum(axis=0) / workers, phase.work.shape
        moved = np.broadcast_to(phase.transfer.min(axis=0), shape).copy()
        even = replace(phase, work=np.broadcast_to(work, shape).copy(), alone=np.zeros(shape), transfer=moved)
        changed.append(replace(even, inner=np.minimum(phase.inner, 0.0)))
    return run.with_phases(changed)


def _count_idle(run: MeasuredRun, cores: int) -> int:
    """Return how many of as many processors as cores would hardly compute: the same share as now, but one at least."""
    computed = sum((phase.work.sum(axis=1) for phase in run.phases), np.zeros(run.processors))
    first = np.array([one.rank == 0 for one in run.profile.processors]) & has_hub(run.profile)
    idle = int(np.count_nonzero(computed < np.where(first, HUB_IDLE, IDLE) * np.median(computed)))
    return min(max(round(idle * cores / run.processors), 1), cores - 1) if idle else 0
