"""What fixing one phase can win of a gap, by the formula of ``docs/concepts.md``: what ceilings are checked against."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.analysis.gaps import compute_phase_shares
from advisor.analysis.loads import summarize_loads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.model.records import Gap, Profile


def compute_gap_ceiling(profile: Profile, gaps: Sequence[Gap], gap_name: str, phase_index: int) -> float:
    """The most that fixing one phase can win of a gap, in seconds.

    For L, M' and D that is B_r + D_r of the phase, as making it even removes both, else what the gap holds there; never
    more than the gap, never negative.
    """
    gap = next((gap for gap in gaps if gap.name == gap_name), None)
    if gap is None:
        return 0.0
    if gap_name in ("L", "M'", "D"):
        phase = summarize_loads(profile).phases[phase_index]
        most = phase.steady_s + phase.dynamic_s
    else:
        most = float(compute_phase_shares(profile, gap)[phase_index])
    return min(max(most, 0.0), max(gap.seconds, 0.0))
