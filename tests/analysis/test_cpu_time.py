"""Runs of which only CPU time was counted: seconds of the computation, and nothing else."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from advisor.analysis.cpu_time import count_as_times, has_cpu_time_alone, sum_cpu_time
from advisor.analysis.quality import grade_profile
from advisor.extension.host import load_plugins
from advisor.model import policy
from advisor.pipeline import Options, advise, study_newest

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.model.records import Profile

HOST = load_plugins()
HEAD = "Flat profile:\n\nEach sample counts as 0.01 seconds.\n"
HEAD += "  %   cumulative   self              self     total\n"
HEAD += " time   seconds   seconds    calls   s/call   s/call  name\n"
ACCESS = "std::vector<double, std::allocator<double> >::operator[](unsigned long)"


def write_report(folder: Path, access_s: float, rest_s: float) -> Path:
    total = access_s + rest_s
    rows = sorted(((access_s, ACCESS), (rest_s, "multiply(int)")), reverse=True)
    running, text = 0.0, HEAD
    for seconds, name in rows:
        running += seconds
        numbers = f"{100 * seconds / total:6.2f} {running:10.2f} {seconds:8.2f} {7:8d} {seconds / 7:8.2f} {0.1:8.2f}"
        text += f"{numbers}  {name}\n"
    path = folder / "gprof.txt"
    path.write_text(text + "\n", encoding="utf-8")
    return path


def read_profile(path: Path) -> Profile:
    return study_newest([path], Options(), HOST).advice.profile


def test_code_without_optimization_is_known_by_what_an_optimizing_compiler_removes(tmp_path: Path) -> None:
    advice = advise([write_report(tmp_path, 6.0, 4.0)], Options(), HOST)
    assert advice.verdict == "advice"
    assert advice.grade.letter == "D"
    assert [item.action for item in advice.recommendations] == ["G-29"]
    [(lowest, highest)] = [item.interval_s or (0.0, 0.0) for item in advice.recommendations]
    assert 0.0 <= lowest < highest == advice.recommendations[0].ceiling_s
    assert 6.0 * 0.5 < highest <= policy.REPAIR_REACH * 6.0
    assert math.isnan(advice.profile.actual_s)
    assert advice.gaps == ()
    assert all(bound.seconds is None for bound in advice.bounds if bound.name == "actual")


def test_little_of_such_code_is_no_advice_but_a_list_of_functions(tmp_path: Path) -> None:
    advice = advise([write_report(tmp_path, 1.0, 9.0)], Options(), HOST)
    assert (advice.verdict, advice.grade.letter) == ("insufficient evidence", "D")
    assert advice.recommendations == ()
    assert any("multiply(int) 90.0 %" in finding.text for finding in advice.findings)


@pytest.mark.parametrize(("seconds", "known"), [(0.18, False), (0.22, True)])
def test_a_few_samples_tell_no_shares(seconds: float, known: bool, tmp_path: Path) -> None:
    profile = read_profile(write_report(tmp_path, 0.0, seconds))
    assert has_cpu_time_alone(profile) is known
    assert {note.name for note in grade_profile(profile, (), ()).notes} & {"no run time", "CPU time alone"} == {
        "CPU time alone" if known else "no run time"
    }


def test_cpu_times_become_the_times_of_the_busiest_processor(tmp_path: Path) -> None:
    profile = read_profile(write_report(tmp_path, 6.0, 4.0))
    counted = count_as_times(profile)
    assert counted.actual_s == sum_cpu_time(profile) == pytest.approx(10.0)
    assert counted.sum_by_region("wall_s").tolist() == profile.sum_by_region("cpu_s").tolist()
    assert counted.status["wall_s"] == profile.status["cpu_s"]


def test_a_run_with_a_run_time_keeps_it(tmp_path: Path) -> None:
    profile = replace(read_profile(write_report(tmp_path, 6.0, 4.0)), actual_s=20.0)
    assert not has_cpu_time_alone(profile)


def test_twenty_samples_of_the_usual_length_are_enough() -> None:
    assert pytest.approx(20 * 0.01) == policy.SHORTEST_CPU_TIME_S
