"""The facts of profiles that are built, and of the cases of the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import strategies

from advisor.advice import facts
from advisor.advice.rules.cases import build_case_sheet
from advisor.analysis import bounds, gaps

if TYPE_CHECKING:
    from advisor.advice.facts.sheet import FactSheet
    from advisor.model.records import Profile


def collect_sheet(profile: Profile, **more: object) -> FactSheet:
    found = bounds.compute_bounds(profile)
    return facts.collect_facts(profile, found, gaps.attribute_gaps(profile, found), **more)


def site_values(profile: Profile, site: int = 0) -> dict[str, object]:
    return dict(collect_sheet(profile).sites[site].values)


def build_run(*rows: list[list[float]], **more: object) -> Profile:
    """A profile of one phase for each array of work (processors, iterations)."""
    phases = [
        strategies.phase(work, name=f"phase {n}", regions=[n], duration_s=np.array(work).max(axis=0))
        for n, work in enumerate(rows)
    ]
    return strategies.build(phases, **more)


# ---- events


def case_values(case: str, site: int = 0) -> dict[str, object]:
    return dict(build_case_sheet(case).sites[site].values)


def build_case(case: object) -> Profile:
    from advisor.advice.rules import case_profiles

    return case_profiles.build_profile(case)
