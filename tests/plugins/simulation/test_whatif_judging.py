"""What a gain counts in the order where threads and ranks share cores."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from advisor.analysis.disturbance import BUSY
from advisor_simulation.whatif import evidence, judging


@pytest.mark.parametrize(
    ("words", "cores", "busy_s", "counts"),
    [
        ({"receive": "early"}, 2, 20.0, evidence.HARDLY),
        ({"regions": "merged"}, 2, 20.0, evidence.HARDLY),
        ({"ranks": "cores"}, 2, 20.0, 1.0),
        ({"schedule": "dynamic"}, 2, 20.0, 1.0),
        ({"receive": "early"}, 4, 20.0, 1.0),
        ({"receive": "early"}, 2, 1.0, 1.0),
        ({"receive": "early"}, None, 20.0, 1.0),
    ],
)
def test_who_waits_for_a_core_waits_for_no_message(
    words: dict[str, str], cores: int | None, busy_s: float, counts: float
) -> None:
    """Four processors on two cores in 10 s; where a core was seen free, or there are enough, a wait is a wait."""
    profile = SimpleNamespace(cores=cores, processors=(None,) * 4, actual_s=10.0, counts={BUSY: np.array([[busy_s]])})
    trial: Any = SimpleNamespace(traced=None, run=SimpleNamespace(profile=profile))
    key = (tuple(words.items()), ())
    alone = judging._AloneGain(2.0, 1.0, 3.0, (), False)
    search = judging._Search(trial, (), (key,), 0.0, alone={key: alone}, assumed={key: ""})
    assert search.weigh_gain(key, 2.0) == pytest.approx(2.0 * counts)


def test_a_queue_for_a_file_may_be_gone_altogether() -> None:
    """Equal parts written one after the other: what is above their mean is half of what the last one waits."""
    assert evidence.raise_high((("io", "balanced"),), 2.0) == pytest.approx(4.0)
    assert evidence.raise_high((("io", "parallel"),), 2.0) == pytest.approx(2.0)
    assert "as fast as the mean" in evidence.describe_assumption(Any, (("io", "balanced"),), set())
