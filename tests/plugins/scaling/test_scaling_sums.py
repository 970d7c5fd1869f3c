"""Parts of a prediction sum to the whole, at every point, and the order of gaps at a target is the true one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scaling_parts import KnownStudy, make_study
from scaling_runs import run, runs

from advisor_scaling import collect, joint_forecasts, study
from advisor_scaling.collect import REST, RUN

STUDIES = 30


def test_gaps_regions_and_run_agree_at_every_point() -> None:
    each = collect.from_profiles(runs())
    fits = study.fit_study(each)
    points = np.array([[p, n] for p in (1.0, 16.0, 64.0, 256.0, 4096.0) for n in (128.0, 512.0, 2048.0)])
    points = points if each.parameters == ("P", "N") else points[:, ::-1].copy()
    said = joint_forecasts.forecast_jointly(each, fits, points)
    found = joint_forecasts.find_partitions(each)
    assert [each.series[one.whole] for one in found] == [RUN, RUN]
    for one in found:
        parts = list(one.parts)
        assert said.value[parts].sum(axis=0) == pytest.approx(said.value[one.whole], rel=1e-9)
        assert (said.high[parts] <= np.maximum(said.high[one.whole], said.value[parts]) * (1 + 1e-9)).all()
    assert ((said.low <= said.value * (1 + 1e-9)) & (said.value <= said.high * (1 + 1e-9))).all()


def test_gaps_of_the_machine_sum_to_the_computation() -> None:
    observations = [
        ({"P": p}, {RUN: 8 / p + 0.1, **{study.MeasuredSeries(name, "gap"): s / p for name, s in
         (("$", 3.0), ("A", 1.0))}, study.MeasuredSeries("C'", "gap"): 0.1})
        for p in (1.0, 2.0, 4.0, 8.0)
    ]  # fmt: skip
    each = collect.build_study("x", observations, (), collect.NOISE_SHARE)
    said = joint_forecasts.forecast_jointly(each, study.fit_study(each), np.array([[64.0]])).value[:, 0]
    value = {one.name: float(said[at]) for at, one in enumerate(each.series)}
    assert value["run"] == pytest.approx(value["C'"] + value[REST.name])
    assert value[REST.name] == pytest.approx(value["$"] + value["A"] + value[collect.BELOW.name])


def judge(one: KnownStudy) -> tuple[bool, bool, int, int]:
    """Whether the sum holds within its interval, whether the first gap is the true one, and pairs in order, of all."""
    each = one.study
    said = joint_forecasts.forecast_jointly(each, study.fit_study(each), np.array([[one.target]]))
    value, low, high = (end[:, 0] for end in (said.value, said.low, said.high))
    true = np.array([one.truth[series.name] for series in each.series])
    whole = each.series.index(RUN)
    together = float(np.delete(value, whole).sum())
    gaps = [at for at, series in enumerate(each.series) if series.kind == "gap"]
    first = max(gaps, key=lambda at: value[at])
    pairs = [value[a] > value[b] for a in gaps for b in gaps if true[a] > max(1.2 * true[b], 0.01 * true[whole])]
    sums = low[whole] <= together <= high[whole] and together == pytest.approx(value[whole], rel=1e-9)
    return bool(sums), bool(true[first] >= 0.9 * true[gaps].max()), sum(pairs), len(pairs)


def test_thirty_studies_of_known_truth() -> None:
    sums, first, right, pairs = zip(*(judge(make_study(seed)) for seed in range(STUDIES)), strict=True)
    assert all(sums)
    assert sum(first) >= 0.95 * STUDIES
    assert sum(right) >= 0.95 * sum(pairs)


def test_intervals_hold_the_truth() -> None:
    inside = []
    for one in map(make_study, range(STUDIES)):
        each = one.study
        said = joint_forecasts.forecast_jointly(each, study.fit_study(each), np.array([[one.target]]))
        true = np.array([[series.name in one.truth and one.truth[series.name]] for series in each.series], dtype=float)
        inside += ((said.low <= true) & (true <= said.high)).ravel().tolist()
    assert 0.7 <= np.mean(inside) <= 0.95


def test_shown_series_are_predicted_as_among_all() -> None:
    each = collect.from_profiles([run(512, p, repeat) for p in (1, 2, 4, 8) for repeat in range(2)])
    point = np.array([[64.0]])
    whole = joint_forecasts.forecast_jointly(each, study.fit_study(each), point)
    keep = [each.series.index(RUN)]
    some = replace(study.select_series(each, keep), selected_from=each)
    alone = joint_forecasts.forecast_jointly(some, study.fit_study(some), point)
    assert alone.value[0, 0] == whole.value[keep[0], 0]
