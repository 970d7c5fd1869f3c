from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from native_documents import FULL, written
from profile_strategies import profiles

from advisor.analysis import soundness
from advisor.formats import native
from advisor.model.records import Note, Phase, Processor, Profile
from advisor.support.contract import ContractError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def full(tmp_path: Path) -> Profile:
    return native.advisor_read(written(tmp_path, FULL))


@settings(max_examples=30, deadline=None)
@given(profiles())
def test_consistent_profiles_are_sound(profile: Profile) -> None:
    soundness.check_profile(profile)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"actual_s": 0.0}, "actual_s"),
        ({"actual_s": -1.0}, "actual_s"),
        ({"processors": ()}, "processors"),
        ({"processors": (Processor(0), Processor(0))}, "processors"),
        ({"processors": (Processor(0), Processor(-1))}, "processors"),
        ({"processors": (Processor(0),)}, "phases[0].arrays.wall_s"),
        ({"phases": ()}, "phases"),
        ({"regions": ()}, "phases[0].regions"),
        ({"cores": 0}, "cores"),
        ({"ranks_expected": 0}, "ranks_expected"),
        ({"clock_uncertainty_s": -1.0}, "clock_uncertainty_s"),
        ({"notes": (Note("n", "t", 1.5),)}, "notes"),
        ({"status": {"os_s": "measured"}}, "status.wall_s"),
        ({"outside": {"idle": np.zeros(3)}}, "outside.idle"),
        ({"counts": {"calls": np.zeros((2, 3))}}, "counts.calls"),
    ],
)
def test_a_contradiction_is_named(full: Profile, changes: dict[str, Any], place: str) -> None:
    with pytest.raises(ContractError) as caught:
        soundness.check_profile(replace(full, **changes))
    assert caught.value.place == place


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"kind": "whole"}, "phases"),
        ({"arrays": {}}, "phases[0].arrays"),
        ({"arrays": {"wal_s": np.zeros((2, 2, 1))}}, "phases[0].arrays.wal_s"),
        ({"arrays": {"wall_s": np.zeros((2, 2, 0))}}, "phases[0].arrays"),
        ({"regions": np.zeros((1, 1), np.int64)}, "phases[0].regions"),
        ({"regions": np.array([], np.int64)}, "phases[0].regions"),
        ({"regions": np.array([0, -1])}, "phases[0].regions"),
        ({"regions": np.array([1, 1])}, "phases[0].regions"),
        ({"start_s": np.zeros(3)}, "phases[0].start_s"),
        ({"duration_s": np.array([1.0, -1.0])}, "phases[0].duration_s"),
    ],
)
def test_a_contradiction_in_a_phase_is_named(full: Profile, changes: dict[str, Any], place: str) -> None:
    first: Phase = replace(full.phases[0], **changes)
    with pytest.raises(ContractError) as caught:
        soundness.check_profile(replace(full, phases=(first, *full.phases[1:])))
    assert caught.value.place == place


@pytest.mark.parametrize(
    ("column", "value"),
    [("category", 99), ("kind", -1), ("phase", 2), ("caller", 2), ("partner", -2), ("target", 0), ("size_class", 65)],
)
def test_an_index_of_a_cause_that_points_nowhere_is_named(full: Profile, column: str, value: int) -> None:
    assert full.causes is not None
    stated: dict[str, Any] = {column: np.array([value])}
    with pytest.raises(ContractError, match=f"causes.{column}"):
        soundness.check_profile(replace(full, causes=replace(full.causes, **stated)))
