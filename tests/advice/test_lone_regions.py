"""Profiles without phases: what one rank does alone is serial work, and a machine with idle cores is not overloaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import strategies

from advisor.advice import facts, ranking, rules
from advisor.analysis import bounds, gaps

if TYPE_CHECKING:
    from advisor.model.records import Profile

BOOK = rules.load_default((), examples=False)


def whole_run(alone_s: float, shared_s: list[float], **more: object) -> Profile:
    """A run of four ranks without phases: one region that all pass through, and one of the first rank's alone."""
    work = np.array([shared_s, [alone_s, 0.0, 0.0, 0.0]])[:, :, None]
    return strategies.build([strategies.phase(work, name="run", kind="whole")], actual_s=12.0, **more)


def advised(profile: Profile) -> tuple[list[str], float]:
    """The actions of the advice, and the share of the imbalance in regions of one rank."""
    found = bounds.compute_bounds(profile)
    split = gaps.attribute_gaps(profile, found)
    sheet = facts.collect_facts(profile, found, split)
    made = ranking.rank_matches(rules.match_rules(BOOK, sheet), profile, split)
    actions = [one.action for one in made.recommendations]
    return actions, float(sheet.sites[0].values["phase.alone_share"])


def test_a_region_of_one_rank_is_parallelized_not_balanced() -> None:
    actions, share = advised(whole_run(2.0, [8.0, 8.0, 8.0, 8.0], paradigms=("MPI",)))
    assert share == pytest.approx(1.0)
    assert actions == ["G-1"]


def test_a_region_of_all_is_no_serial_work() -> None:
    actions, share = advised(whole_run(0.0, [10.0, 8.0, 8.0, 8.0], paradigms=("MPI",)))
    assert share == 0.0
    assert "G-1" not in actions


def test_cores_that_idle_are_told_by_cpu_times() -> None:
    """Four ranks compute 6 s in phases of 10 s on two cores; without CPU times all cores may have been busy."""
    asleep = np.full((1, 4, 1), 1.5)
    phase = strategies.phase(np.full((1, 4, 1), 10.0), name="run", kind="whole", arrays={"cpu_s": asleep})
    for phases, busy in (([phase], 0.3), ([strategies.phase(np.full((1, 4, 1), 10.0), kind="whole")], 1.0)):
        profile = strategies.build(phases, actual_s=12.0, cores=2)
        found = bounds.compute_bounds(profile)
        sheet = facts.collect_facts(profile, found, gaps.attribute_gaps(profile, found))
        assert sheet.run.values["run.busy_cores"] == pytest.approx(busy)
