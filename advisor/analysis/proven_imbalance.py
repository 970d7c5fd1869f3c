"""How much of an imbalance the CPU clocks prove: computation that no other program can have made.

On a busy machine a thread's calls last longer, and so do phases, but not its CPU time. A processor that computes less
than the slowest one and waits for it has less to do. One that computes less and hardly waits was given less, as
others held its core and work is handed out on demand: that proves nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.bounds import compute_bound_seconds
from advisor.analysis.disturbance import SPEED_SHARE
from advisor.analysis.loads import summarize_loads
from advisor.analysis.locks import prove_lock_waiting
from advisor.model.records import find_adjacent_bounds

if TYPE_CHECKING:
    from advisor.model.records import Phase, Profile

#: The bounds below and above each gap of uneven work.
_GAPS: Final = {letter: find_adjacent_bounds(letter) for letter in ("L", "M'", "D")}


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


def _compute_only(phase: Phase) -> Phase:
    """Return a phase in which nothing but computation takes time."""
    if "cpu_s" not in phase.arrays:
        return phase
    cpu_s = phase.arrays["cpu_s"]
    arrays = dict.fromkeys(phase.arrays, np.zeros_like(cpu_s))
    return replace(phase, arrays=arrays | {"wall_s": cpu_s, "cpu_s": cpu_s})


def _waited_imbalance(profile: Profile) -> float:
    """Return what processors compute less than the slowest one of a phase, and wait, a mean over the processors."""
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
        seconds += float(np.minimum(missing.sum(axis=1), waited.sum(axis=1)).sum())
    return seconds / len(profile.processors)
