"""Intervals far from the measured points: what a study shows of its own predictions counts."""

from __future__ import annotations

import numpy as np
import pytest
from scaling_parts import make_study

from advisor_scaling import forecasts, joint_forecasts, rehearsals, study
from advisor_scaling.collect import RUN

#: The seeds of docs/validation.md, used for nothing when the mechanism was chosen (that were 1000 to 1099).
SEEDS = range(5000, 5080)


def test_intervals_at_the_target_hold_at_least_as_often_as_they_say() -> None:
    held = []
    for one in map(make_study, SEEDS):
        each = one.study
        said = joint_forecasts.forecast_jointly(each, study.fit_study(each), np.array([[one.target]]))
        shown = [at for at, series in enumerate(each.series) if series.kind == "gap" or series == RUN]
        true = np.array([one.truth[each.series[at].name] for at in shown])
        held += ((said.low[shown, 0] <= true) & (true <= said.high[shown, 0])).tolist()
    assert np.mean(held) >= 0.8


def test_drift_is_the_addition_that_explains_the_errors() -> None:
    """Recomputed: with it the squares are as large as their number says, the usual drift counting as one."""
    errors, spreads, ways = np.array([[0.3, -0.5, 0.4]]), np.array([[0.05, 0.1, 0.1]]), np.array([[1.0, 2.0, 1.0]])
    drift = rehearsals.estimate_drift(errors, spreads, ways)[0]
    squares = sum(e**2 / (s**2 + (drift * w) ** 2) for e, s, w in zip(errors[0], spreads[0], ways[0], strict=True))
    assert squares + rehearsals.WORTH * (rehearsals.USUAL_DRIFT / drift) ** 2 == pytest.approx(3 + rehearsals.WORTH)


def test_without_rehearsals_the_usual_drift_is_taken() -> None:
    points = np.array([[1.0], [2.0], [4.0]])
    fits = rehearsals.fit_rehearsed_models(("P",), points, np.array([[[4.0], [2.0], [1.0]]]))
    assert fits.drift == pytest.approx([rehearsals.USUAL_DRIFT])


def test_a_study_whose_own_end_was_badly_predicted_has_wide_intervals() -> None:
    """A course that bends at the last point: its models fit, and yet each would have missed that point."""
    p = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    smooth = 8.0 / p + 0.1
    bent = smooth * np.array([1.0, 1.0, 1.0, 1.0, 1.6])
    fits = rehearsals.fit_rehearsed_models(("P",), p[:, None], np.stack([smooth, bent])[:, :, None])
    said = forecasts.compute_forecast(fits, np.array([[64.0]]))
    width = np.log(said.high[:, 0] / said.low[:, 0])
    assert fits.drift[1] > 3 * fits.drift[0]
    assert width[1] > width[0]


def test_ways_are_doublings_from_the_nearest_point() -> None:
    points = np.array([[1.0, 64.0], [8.0, 64.0], [8.0, 128.0]])
    ways = forecasts.measure_ways(points, np.array([[32.0, 128.0], [8.0, 64.0], [16.0, 32.0]]))
    assert ways.tolist() == pytest.approx([2.0, 0.0, 2.0])
