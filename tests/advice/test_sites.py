"""Sites: which phases are worth a look, each by itself or together."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import strategies
from fact_sheets import build_run, collect_sheet

from advisor.advice.facts.places import compute_durations, family_name, find_places, is_significant
from advisor.advice.rules.case_profiles import build_profile
from advisor.advice.rules.cases import load_cases
from advisor.analysis.loads import summarize_loads
from advisor.model import policy
from advisor.model.records import OTHER_PROGRAMS, Phase, Processor, Profile, Region


def named_phases(durations: dict[str, float]) -> Profile:
    phases = [
        strategies.phase([[s], [s]], name=name, regions=[0], duration_s=np.array([s]), closed_by=name.split(" (")[0])
        for name, s in durations.items()
    ]
    return strategies.build(phases, actual_s=100.0)


def test_small_phases_of_a_name_are_one_site() -> None:
    profile = named_phases({"solve": 90.0, **{f"reduce ({n})": 0.5 for n in range(2, 12)}, "rare": 0.1})
    names_of_sites = [site.place.name for site in collect_sheet(profile).sites if site.place]
    assert names_of_sites == ["solve", "reduce (10 phases)"]


def test_a_site_is_worth_a_look_from_one_per_cent_on() -> None:
    profile = named_phases({"solve": 90.0, "write": 100 * policy.PLACE_SHARE, "read": 99 * policy.PLACE_SHARE})
    assert [site.place.name for site in collect_sheet(profile).sites if site.place] == ["solve", "write"]


def test_runs_of_microseconds_have_no_sites() -> None:
    profile = replace(named_phases({"solve": 0.0009}), actual_s=0.001)
    assert collect_sheet(profile).sites == ()


def test_runs_in_simulated_time_have_sites_however_short() -> None:
    assert is_significant(1e-9, 1e-8, simulated=True)
    assert not is_significant(1e-9, 1e-8)


def test_phases_of_unknown_length_last_as_long_as_the_busiest_processor() -> None:
    """Two regions, two processors, three instances, and no work known: 6 ms and 12 ms."""
    phase = Phase("solve", "parallel", np.array([0, 1]), {"wall_s": np.full((2, 2, 3), 1e-6) * [[[1.0], [2.0]]]})
    bare = replace(build_run([[1.0], [1.0]]), phases=(phase,))
    loads: object = SimpleNamespace(phases=[SimpleNamespace(has_work=False)])
    assert compute_durations(bare, loads).tolist() == pytest.approx([12e-6])  # type: ignore[arg-type]


def test_family_name_drops_the_number_only() -> None:
    assert family_name("to MPI_Allreduce (12)") == "to MPI_Allreduce"
    assert family_name("region (a)") == "region (a)"
    assert family_name("region 12") == "region 12"


def test_many_small_phases_of_different_names_are_one_place() -> None:
    phases = tuple(
        Phase(f"region {n}", "parallel", np.array([0]), {"work_s": np.array([[[0.004], [0.001 * (n % 4)]]])})
        for n in range(500)
    )
    profile = Profile(
        program="many", run="1", reader="test", actual_s=2.0, processors=(Processor(0), Processor(1)),
        regions=(Region("all"),), phases=phases, status={"work_s": "measured"},
    )  # fmt: skip
    found = find_places(profile, compute_durations(profile, summarize_loads(profile)))
    assert [(place.name, len(place.phases)) for place in found] == [("500 small phases", 500)]
    assert found[0].seconds == pytest.approx(2.0)


def test_places_matter_by_what_other_programs_left_of_the_run() -> None:
    profile = build_profile(load_cases()["skewed-load"])
    longer = replace(profile, actual_s=1000 * profile.actual_s)
    seconds = compute_durations(profile, summarize_loads(profile))
    assert not find_places(longer, seconds)
    others = np.full(len(profile.processors), 999 * profile.actual_s)
    busy = replace(longer, outside={**profile.outside, OTHER_PROGRAMS: others})
    assert find_places(busy, seconds) == find_places(profile, seconds)
