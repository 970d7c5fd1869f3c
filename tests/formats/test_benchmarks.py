"""Suites of benchmarks: seconds of a call as the tools state them, in numbers of calls that builds share."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from advisor.analysis import soundness
from advisor.formats import benchmarks
from advisor.model.errors import InputError
from advisor.model.records import Profile
from advisor.support import contract

HERE = Path(__file__).parents[1] / "profiles" / "benchmarks"
CALLS = "calls of each benchmark"


def seconds(profile: Profile) -> dict[str, float]:
    """Seconds of a call of each benchmark."""
    calls = profile.parameters[CALLS]
    assert isinstance(calls, float)
    wall = profile.phases[0].arrays["wall_s"][:, 0, 0]
    return {region.name: value / calls for region, value in zip(profile.regions, wall.tolist(), strict=True)}


def document(name: str) -> Any:  # noqa: ANN401 # JSON as it is
    return json.loads((HERE / name).read_text())


@pytest.mark.parametrize("name", ["google.json", "pytest.json", "hyperfine.json"])
def test_suites_are_read(name: str) -> None:
    assert benchmarks.advisor_sniff(HERE / name) == 1.0
    profile = benchmarks.advisor_read(HERE / name)
    contract.check_value(profile, Profile)
    soundness.check_profile(profile)
    assert profile.actual_s >= 0.1
    assert "cpu_s" not in profile.phases[0].arrays


def test_google() -> None:
    profile = benchmarks.advisor_read(HERE / "google.json")
    stated: dict[str, list[float]] = {}
    for each in document("google.json")["benchmarks"]:
        if each["run_type"] == "iteration":
            stated.setdefault(each["run_name"], []).append(each["real_time"] * 1e-9)
    assert seconds(profile) == pytest.approx({name: median(values) for name, values in stated.items()})
    assert (profile.program, profile.cores, profile.processors[0].host) == ("heat_bench", 2, "node1")
    assert "benchmarks without a core" in {note.name for note in profile.notes}


def test_pytest() -> None:
    profile = benchmarks.advisor_read(HERE / "pytest.json")
    stated = {each["fullname"]: each["stats"]["median"] for each in document("pytest.json")["benchmarks"]}
    assert seconds(profile) == pytest.approx(stated)
    assert profile.build == "6f1c2a9d0b7e+dirty"


def test_hyperfine() -> None:
    profile = benchmarks.advisor_read(HERE / "hyperfine.json")
    stated = {each["command"]: each["median"] for each in document("hyperfine.json")["results"]}
    assert seconds(profile) == pytest.approx(stated)
    assert profile.parameters[CALLS] == 1.0


def test_builds_are_compared_over_the_same_calls(tmp_path: Path) -> None:
    """A faster build does not make more calls, and so does not hide that it is faster."""
    made = document("google.json")
    for each in made["benchmarks"]:
        each["real_time"] /= 2
        each["iterations"] *= 2
    (tmp_path / "faster.json").write_text(json.dumps(made))
    before, after = benchmarks.advisor_read(HERE / "google.json"), benchmarks.advisor_read(tmp_path / "faster.json")
    assert after.parameters == before.parameters
    assert after.actual_s == pytest.approx(before.actual_s / 2)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("google.json", {"time_unit": "weeks"}, "expected one of ns, us, ms, s"),
        ("google.json", {"real_time": -1}, "below 0"),
        ("google.json", {"name": None}, "'name' is missing"),
    ],
)
def test_mistakes(tmp_path: Path, name: str, change: dict[str, Any], message: str) -> None:
    made = document(name)
    made["benchmarks"][0] |= change
    (tmp_path / name).write_text(json.dumps(made))
    with pytest.raises(InputError, match=message):
        benchmarks.advisor_read(tmp_path / name)


def test_failed_benchmarks_are_named(tmp_path: Path) -> None:
    made = document("google.json")
    made["benchmarks"][-1] |= {"name": "Broken", "run_name": "Broken", "error_occurred": True, "error_message": "no"}
    (tmp_path / "a.json").write_text(json.dumps(made))
    notes = {note.name: note.text for note in benchmarks.advisor_read(tmp_path / "a.json").notes}
    assert "Broken" in notes["benchmarks failed"]
