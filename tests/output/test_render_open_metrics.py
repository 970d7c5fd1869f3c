"""OpenMetrics: read back by the parsers of Prometheus' own client."""

from __future__ import annotations

import math
import shutil
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import advice_samples as samples
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import parser as prometheus
from prometheus_client.openmetrics import parser as openmetrics

from advisor.output.clean import clean_text
from advisor.output.open_metrics import FAMILIES, render_open_metrics

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.model.records import Advice


def full() -> Advice:
    """Return advice whose items differ in their fingerprints, as those of a run do."""
    advice = samples.full()
    items = enumerate(advice.recommendations)
    return replace(advice, recommendations=tuple(replace(item, fingerprint=f"{number:012x}") for number, item in items))


ALL = (full, samples.nothing, samples.insufficient, samples.without_phases)


def read_samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Return what both parsers read alike."""
    found = [
        {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in parse(text)
            for sample in family.samples
        }
        for parse in (openmetrics.text_string_to_metric_families, prometheus.text_string_to_metric_families)
    ]
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize("sample", ALL)
def test_what_is_known_is_there_and_nothing_else(sample: Callable[[], Advice]) -> None:
    advice = sample()
    read = read_samples(render_open_metrics([advice]))
    count = dict.fromkeys((family.name for family in FAMILIES), 0)
    for name, _ in read:
        count[name] += 1
    assert count["gapwatch_gap_seconds"] == len(advice.gaps)
    assert count["gapwatch_bound_seconds"] == sum(bound.seconds is not None for bound in advice.bounds)
    assert count["gapwatch_efficiency_ratio"] == sum(each.value is not None for each in advice.efficiencies)
    assert count["gapwatch_saving_ceiling_seconds"] == len(advice.recommendations)
    assert count["gapwatch_run_seconds"] == advice.profile.has_run_time
    gaps = {dict(labels)["gap"]: value for (name, labels), value in read.items() if name == "gapwatch_gap_seconds"}
    assert gaps == {gap.name: gap.seconds for gap in advice.gaps}


def test_an_unknown_run_time_has_no_sample() -> None:
    advice = full()
    unknown = replace(advice, profile=replace(advice.profile, actual_s=math.nan))
    assert not [name for name, _ in read_samples(render_open_metrics([unknown])) if name == "gapwatch_run_seconds"]


@given(st.text(max_size=40))
@settings(deadline=None, max_examples=60)
def test_names_are_labels_and_nothing_else(name: str) -> None:
    advice = full()
    named = replace(advice, profile=replace(advice.profile, program=name, build=name))
    programs = {dict(labels)["program"] for _, labels in read_samples(render_open_metrics([named]))}
    assert programs == {clean_text(name)}


def test_several_runs_are_samples_of_the_same_families() -> None:
    first = full()
    second = replace(first, profile=replace(first.profile, build="other"))
    text = render_open_metrics([first, second])
    assert text.count("# TYPE") == len(FAMILIES)
    assert len(read_samples(text)) == 2 * len(read_samples(render_open_metrics([first])))


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool")
def test_promtool_finds_nothing_to_complain_about() -> None:
    text = "".join(line for line in render_open_metrics([full()]).splitlines(keepends=True) if line != "# EOF\n")
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
