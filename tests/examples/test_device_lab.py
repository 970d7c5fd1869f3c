"""The first item of the advice on programs with devices whose faults, and what their repair wins, are known exactly."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

from device_lab.faults import REPAIRS, make_case
from device_lab.judge import judge_case


@pytest.mark.parametrize("seed", range(1, 2 * len(REPAIRS), 2))
def test_first_item_is_right_and_wins_what_it_promises(seed: int) -> None:
    found = judge_case(make_case(seed))
    assert found["right"], found
    if found["promised_s"] is not None:
        assert found["promised_s"] == pytest.approx(found["true_s"], rel=0.2)
