"""Which runs repeat each other, and which are other points of a study."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import advice_samples
import pytest

import gapwatch
from advisor.model.run_points import find_differences, is_same_point

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.model.records import Profile


def run(executable: str | None = None, program: str = "heat", **stated: str | float) -> Profile:
    parameters = {name.replace("_", " "): value for name, value in stated.items()}
    return replace(advice_samples.profile(program), executable=executable, parameters=parameters)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (run(directory="/builds/1"), run(directory="/builds/2")),
        (run(MPI_library="Open MPI v4.1.4"), run(MPI_library="Open MPI v5.0.1")),
        (run(samples=17, exit_status=0), run(samples=18, exit_status=0)),
        (run(target="N=9"), run(target="N=8")),
        (run(N=3), run(M=4)),
        (run(command="./heat 8"), run(command="/builds/2/heat 8")),
        (run(command="mpirun -n 2 'a b/heat' 8"), run(command="mpirun -n 2 c/heat 8")),
        (run("/a/x", "heat", command="/a/x 8"), run("/b/x", "heat", command="/b/x 8")),
    ],
)
def test_where_and_with_what_a_run_was_made_makes_no_other_point(one: Profile, other: Profile) -> None:
    assert is_same_point(one, other)
    assert is_same_point(other, one)


@pytest.mark.parametrize(
    ("one", "other", "difference"),
    [
        (run(N=3), run(N=4), "N: 3, not 4"),
        (run(command="./heat 8"), run(command="./heat 9"), "command: heat 8, not heat 9"),
        (run(command="./heat a/in"), run(command="./heat b/in"), "command: heat a/in, not heat b/in"),
        (run(command="./heat 'cut sho…"), run(command="./heat 'cut off…"), "command: "),
    ],
)
def test_what_a_run_computes_makes_another_point(one: Profile, other: Profile, difference: str) -> None:
    assert not is_same_point(one, other)
    [found] = find_differences(one, other)
    assert found.startswith(difference)


def test_another_number_of_ranks_is_another_point() -> None:
    one = run()
    assert find_differences(one, replace(one, processors=one.processors[:1])) == (f"ranks: {one.ranks}, not 1",)


def test_runs_that_were_only_sampled_repeat_each_other(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "sum(range(3_000_000))"]
    runs = [gapwatch.record(command, folder=tmp_path / name, from_outside=True) for name in "ab"]
    assert is_same_point(*(one.profile for one in runs))
