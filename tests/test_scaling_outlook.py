"""What advice says about the scale a program is meant for, and models for other plugins."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scaling_runs import run

from advisor import bounds, gaps
from advisor.errors import UsageError
from advisor.model import Advice, Grade, Total
from advisor_scaling import advisor_facts, advisor_findings, advisor_services, outlook

if TYPE_CHECKING:
    from advisor.model import Gap, Profile


def gaps_of(profile: Profile) -> tuple[Gap, ...]:
    return gaps.attribute(profile, bounds.compute(profile, None))


def advice(profile: Profile) -> Advice:
    grade = Grade("A", 1.0, ())
    bare = replace(profile, phases=(), counts={})
    return Advice(bare, grade, (), gaps_of(profile), (), (), (), Total(0.0), (), (), "nothing significant")


HISTORY = [advice(run(512, p, repeat)) for p in (1, 2, 4) for repeat in range(2)]


def test_a_gap_that_is_small_today_and_large_at_the_target_is_told() -> None:
    now = run(512, 8)
    found = {each.subject: each for each in advisor_findings(now, gaps_of(now), HISTORY)}
    assert found["C'"].measures["share_today"] < 0.12
    assert found["C'"].measures["share"] > 0.3
    assert "win little here and much there" in found["C'"].text
    assert "P=64" in found["C'"].text
    whole = 1.2 * 2e-9 * 512**3 / 64 + 6e-3
    assert found["run"].measures["seconds"] == pytest.approx(whole, rel=0.3)


def test_the_target_is_stated_beside_the_profile() -> None:
    now = replace(run(512, 8), parameters={"N": 512.0, "target": "P=256"})
    found = advisor_findings(now, gaps_of(now), HISTORY)
    assert "P=256" in found[0].text
    assert "32 times beyond" in found[0].text


def test_without_runs_at_several_sizes_nothing_is_said() -> None:
    now = run(512, 8)
    assert not advisor_findings(now, gaps_of(now), [])
    assert not advisor_findings(now, gaps_of(now), HISTORY[:1])
    assert not advisor_findings(now, gaps_of(now), [replace(HISTORY[0], profile=replace(now, program="other"))])


def test_the_fact_knows_how_far_the_target_is() -> None:
    (fact,) = advisor_facts()
    assert fact.compute is not None
    stated = replace(run(512, 8), parameters={"target": "P=1024 N=8192"})
    assert fact.compute(stated, None) == 128.0
    assert fact.compute(run(512, 8), None) is None
    assert fact.compute(replace(stated, parameters={"target": "soon"}), None) is None


def test_models_of_kernels() -> None:
    maker = advisor_services()["kernel_model"]
    points = [[n, p] for n in (16.0, 32.0, 64.0) for p in (1.0, 2.0, 4.0)]
    draw = np.random.default_rng(1)
    values = [list(1e-7 * n**3 / p * (1 + draw.uniform(-0.02, 0.02, 3))) for n, p in points]
    values[0] = values[0][:2]
    predict = maker(("N", "P"), points, values)
    assert callable(predict)
    value, low, high = predict([128.0, 8.0])
    assert low <= value <= high
    assert value == pytest.approx(1e-7 * 128**3 / 8, rel=0.05)
    two = outlook.kernel_model(("N",), [[1.0], [2.0]], [[1.0], [2.0]])([4.0])
    assert two[0] > 0.0
    with pytest.raises(UsageError, match="two points"):
        outlook.kernel_model(("N",), [[1.0]], [[1.0]])
