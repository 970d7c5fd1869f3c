"""Timing tables that programs printed, and what their profiles hold."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor.analysis import bounds, gaps, loads

if TYPE_CHECKING:
    from advisor.model.records import Gap, Profile

HERE = Path(__file__).parent / "profiles" / "timing_tables"


def seconds(profile: Profile) -> dict[str, float]:
    """The mean seconds of each region over the ranks."""
    wall = profile.phases[0].arrays["wall_s"][:, :, 0].mean(axis=1)
    return {region.name: float(value) for region, value in zip(profile.regions, wall, strict=True)}


def gap_of(profile: Profile, name: str) -> Gap:
    summary = loads.summarize_loads(profile)
    found = gaps.attribute_gaps(profile, bounds.compute_bounds(profile, None, summary), summary)
    return next(gap for gap in found if gap.name == name)
