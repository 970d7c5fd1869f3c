from __future__ import annotations

import numpy as np
import pytest
from strategies import build, phase

from advisor.analysis import efficiencies
from advisor.model.records import Efficiency, Phase, Profile


def by_name(profile: Profile) -> dict[str, Efficiency]:
    return {found.name: found for found in efficiencies.compute_efficiencies(profile)}


def test_parallel_efficiency_is_the_product_of_the_others() -> None:
    arrays = {"cpu_s": np.array([[[6.0], [4.0]]]), "wall_s": np.full((1, 2, 1), 8.0)}
    profile = build([Phase("phase", "parallel", np.array([0]), arrays, duration_s=np.array([8.0]))], actual_s=10.0)
    found = by_name(profile)
    assert [found[name].value for name in ("load_balance", "communication", "parallel")] == pytest.approx(
        [5 / 6, 6 / 8, 5 / 8]
    )
    assert {found[name].status for name in ("load_balance", "communication", "parallel")} == {"measured"}


def test_without_durations_the_whole_run_elapses() -> None:
    arrays = {"cpu_s": np.array([[[6.0], [4.0]]]), "wall_s": np.full((1, 2, 1), 8.0)}
    assert by_name(build([Phase("run", "whole", np.array([0]), arrays)], actual_s=10.0))["parallel"].value == 0.5


def test_what_the_data_do_not_allow_is_unavailable_with_a_reason() -> None:
    found = by_name(build([phase([[6.0], [4.0]])], actual_s=8.0))
    assert (found["load_balance"].value, found["load_balance"].status) == (pytest.approx(5 / 6), "estimated")
    for name in ("communication", "parallel", "serialization", "transfer"):
        assert found[name].value is None
        assert found[name].reason
    nothing = by_name(build([Phase("run", "whole", np.array([0]), {"io_s": np.ones((1, 2, 1))})]))
    assert {each.status for each in nothing.values()} == {"unavailable"}


def test_processors_that_never_compute_have_no_balance() -> None:
    found = by_name(build([Phase("run", "whole", np.array([0]), {"cpu_s": np.zeros((1, 2, 1))})], actual_s=1.0))
    assert (found["load_balance"].value, found["load_balance"].status) == (None, "unavailable")


def test_computing_longer_than_the_run_is_no_efficiency() -> None:
    arrays = {"cpu_s": np.array([[[20.0], [8.0]]]), "wall_s": np.full((1, 2, 1), 9.0)}
    found = by_name(build([Phase("run", "whole", np.array([0]), arrays)], actual_s=10.0))
    for name in ("communication", "parallel"):
        assert (found[name].value, found[name].reason) == (None, efficiencies.TOO_LONG)
