"""A simulation is no run: no threshold of noise is asked of it, and it says what it is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import command_line as cli
from native_documents import PROFILES

from advisor.advice.earlier_runs import EarlierRuns
from advisor.advice.facts.places import is_significant
from advisor.analysis.comparison import compare_builds
from advisor.extension import host as hosts
from advisor.formats import native
from advisor.pipeline import Options, study_run

if TYPE_CHECKING:
    from advisor.model.records import Advice, Profile

TRACE = Path(__file__).parents[1] / "profiles" / "faults" / "imbalance-15"
FIGURE = native.advisor_read(PROFILES / "fig4.json")


def shorten(profile: Profile, factor: float, status: str) -> Profile:
    """The profile with all seconds times ``factor``."""
    phases = tuple(
        replace(
            phase,
            arrays={name: array * factor for name, array in phase.arrays.items()},
            duration_s=None if phase.duration_s is None else phase.duration_s * factor,
        )
        for phase in profile.phases
    )
    outside = {name: seconds * factor for name, seconds in profile.outside.items()}
    return replace(
        profile, phases=phases, outside=outside, actual_s=profile.actual_s * factor,
        status=dict.fromkeys(profile.phases[0].arrays, status),
    )  # fmt: skip


def advise(profile: Profile) -> Advice:
    return study_run(profile, Options(), hosts.load_plugins()).advice


def test_a_short_simulation_is_judged_and_a_short_run_is_not() -> None:
    measured = advise(shorten(FIGURE, 1e-4, "measured"))
    assert measured.grade.letter == "F"
    assert measured.recommendations == ()
    simulated = advise(shorten(FIGURE, 1e-4, "modelled"))
    assert simulated.grade.letter in "AB"
    assert "simulated" in [note.name for note in simulated.grade.notes]
    long = advise(shorten(FIGURE, 1.0, "modelled"))
    assert [one.action for one in simulated.recommendations] == [one.action for one in long.recommendations]
    assert is_significant(2e-4, 1e-2, simulated=True)
    assert not is_significant(2e-4, 1e-2)


def test_simulated_runs_are_compared_without_noise() -> None:
    before, after = (replace(advise(shorten(FIGURE, factor, "modelled"))) for factor in (1e-4, 1.1e-4))
    found = compare_builds([before], [after])
    assert found.actual.noise_s == 0.0
    assert found.actual.beyond_noise
    assert compare_builds([before], [before]).significant_increases == ()


def test_measured_and_simulated_runs_are_no_history_of_each_other() -> None:
    measured, simulated = advise(FIGURE), advise(shorten(FIGURE, 2.0, "modelled"))
    assert EarlierRuns(replace(FIGURE, run="x"), [measured, simulated], None).earlier_advice() == (measured,)
    other = shorten(FIGURE, 3.0, "modelled")
    assert EarlierRuns(replace(other, run="x"), [measured, simulated], None).earlier_advice() == (simulated,)


def test_a_replayed_run_says_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "replayed.json"
    made = cli.run(
        "replay", str(TRACE), "--latency", "1 us", "--bandwidth", "10 GB/s", "--export", str(path), home=tmp_path
    )
    assert made.returncode == 0, made.stderr
    assert set(json.loads(path.read_text())["status"].values()) == {"modelled"}
    told = cli.run("advise", str(path), home=tmp_path)
    assert b" on 4 MPI ranks, simulated\n" in told.stdout
    full = cli.run("advise", str(path), "--verbose", home=tmp_path)
    assert b"these are the times of a simulation, not of a run" in full.stdout
