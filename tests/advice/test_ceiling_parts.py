"""What an action can win of a gap: the part that its calibration names, and less where other seconds are explained."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from advisor.advice.ranking.ceilings import GapBudget, restrict_ceiling


def match(unit: str, value: float | None) -> Any:  # noqa: ANN401
    site = SimpleNamespace(
        values={} if value is None else {"code.part": value}, vocabulary={"code.part": SimpleNamespace(unit=unit)}
    )
    calibrated = SimpleNamespace(gain=SimpleNamespace(of="code.part"))
    return SimpleNamespace(action=calibrated, site=site, other_system_s=0.0)


@pytest.mark.parametrize(
    ("unit", "value", "ceiling_s"),
    [
        ("share", 0.25, 2.0), ("share", -0.1, 0.0), ("share", 1.5, 8.0), ("share", None, 8.0),
        ("s", 3.0, 3.0), ("s", -1.0, 0.0), ("s", 9.0, 8.0),
    ],
)  # fmt: skip
def test_a_ceiling_is_the_part_that_the_calibration_names(unit: str, value: float | None, ceiling_s: float) -> None:
    assert restrict_ceiling(match(unit, value), 8.0) == ceiling_s


def budget(explained_s: float) -> GapBudget:
    """A gap L of 8 s, of which 2 s and 4 s lie at two sites and 2 s outside of both."""
    sites = [SimpleNamespace(gap_span=lambda _, high=high: SimpleNamespace(high=high)) for high in (2.0, 4.0)]
    sheet: Any = SimpleNamespace(sites=sites)
    gaps: Any = {"L": SimpleNamespace(name="L", seconds=8.0, members=("L",))}
    return GapBudget(sheet, gaps, None, 0.0, {"L": explained_s})


@pytest.mark.parametrize(("explained_s", "left"), [(0.0, 1.0), (2.0, 0.75), (8.0, 0.0), (9.0, 0.0)])
def test_explained_seconds_are_taken_from_all_sites_in_proportion(explained_s: float, left: float) -> None:
    parts = [budget(explained_s).part_seconds("L", site) for site in (0, 1, -1)]
    assert parts == [2.0 * left, 4.0 * left, 2.0 * left]
