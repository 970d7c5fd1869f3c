"""Runs of which processor time was counted, and no wall time: what they compute, with CPU seconds for seconds.

Who takes a second of computation out of a processor shortens the run by a second at most. So what changes of the
computation win at most is known without the length of the run; what is waited for, communicated or read is not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from advisor.model import policy

if TYPE_CHECKING:
    from advisor.model.records import Profile


def sum_cpu_time(profile: Profile) -> float:
    """Return the CPU seconds of the busiest processor; 0 where none were counted."""
    return float(profile.sum_by_region("cpu_s").sum(axis=0).max(initial=0.0))


def has_cpu_time_alone(profile: Profile) -> bool:
    """Return whether enough CPU time is known of a run without a run time."""
    known = profile.devices is None and not profile.has_run_time and bool(profile.processors)
    return known and sum_cpu_time(profile) >= policy.SHORTEST_CPU_TIME_S


def count_as_times(profile: Profile) -> Profile:
    """Return the profile with its CPU times as times, and the busiest processor's as the run's."""
    phases = tuple(
        replace(phase, arrays={**phase.arrays, "wall_s": phase.arrays["cpu_s"]}) if "cpu_s" in phase.arrays else phase
        for phase in profile.phases
    )
    status = {**profile.status, "wall_s": profile.status.get("cpu_s", "estimated")}
    return replace(profile, actual_s=sum_cpu_time(profile), phases=phases, status=status)
