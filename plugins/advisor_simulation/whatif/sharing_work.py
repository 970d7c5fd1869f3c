"""Changes to how threads and processes share work: jobs in a queue, turns in an interpreter, what is sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from advisor.trace.regions import is_hand_over, is_interpreter_wait
from advisor_simulation.whatif.call_grouping import find_lock_waits

if TYPE_CHECKING:
    from advisor.model.records import FloatArray
    from advisor_simulation.whatif.measured_run import MeasuredRun


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
