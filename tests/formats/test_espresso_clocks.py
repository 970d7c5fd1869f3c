"""Clocks of Quantum ESPRESSO's programs: their order differs from program to program and version to version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from advisor.formats import timing_tables
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.model.records import Profile

SUITE = "     This program is part of the open-source Quantum ESPRESSO suite\n"


def clock(name: str, wall_s: float, calls: int | None = 1) -> str:
    behind = f" ({calls:8} calls)" if calls is not None else ""
    return f"     {name:12} :{wall_s / 2:10.2f}s CPU{wall_s:10.2f}s WALL{behind}\n"


def read_output(tmp_path: Path, opening: str, body: str) -> Profile:
    output = tmp_path / "ph.out"
    output.write_text(f"\n     Program {opening}\n\n{SUITE}\n{body}\n   JOB DONE.\n")
    assert timing_tables.advisor_sniff(output)
    return timing_tables.advisor_read(output)


def seconds(profile: Profile) -> dict[str, float]:
    wall = profile.phases[0].arrays["wall_s"][:, :, 0].mean(axis=1)
    return {region.name: round(float(value), 2) for region, value in zip(profile.regions, wall, strict=True) if value}


@pytest.mark.parametrize(
    "opening",
    [
        "PHONON v.6.0 (svn rev. 13286) starts on  7Feb2017 at 14:36:14 ",
        "PHONON v.7.2 starts on 12Jan2024 at  9:21:46 ",
        "PHONON    v.4.2CVS       starts on  3May2010 at 10: 1: 5 ",
    ],
)
def test_groups_name_their_caller_first(tmp_path: Path, opening: str) -> None:
    body = (
        "     INITIALIZATION: \n"
        + clock("phq_setup", 1) + clock("phq_init", 2) + "\n"
        + clock("phq_init", 2) + clock("init_vloc", 0.5) + "\n"
        + "     DYNAMICAL MATRIX:\n"
        + clock("phqscf", 6) + "\n"
        + clock("phqscf", 6) + clock("solve_linter", 5) + "\n"
        + "      General routines\n" + clock("fft", 4) + "\n\n"
        + clock("PHONON", 10, None)
    )  # fmt: skip
    profile = read_output(tmp_path, opening, body)
    assert profile.actual_s == 10
    assert profile.started is not None
    assert seconds(profile) == {
        "phonon": 1, "phq_setup": 1, "phq_init": 1.5, "init_vloc": 0.5, "phqscf": 1, "solve_linter": 5
    }  # fmt: skip


def test_the_clock_of_the_run_comes_first_and_results_in_between(tmp_path: Path) -> None:
    body = (
        clock("KCW", 3, None) + "\n     a result of the run  =   1.5\n\n" + clock("KCW", 9, None)
        + "     INITIALIZATION: \n\n" + clock("init_vloc", 1) + "\n" + clock("solve_linter", 6)
    )  # fmt: skip
    profile = read_output(tmp_path, "KCW v.7.3.1 starts on 12Jan2024 at  9:21:46 ", body)
    assert profile.actual_s == 9
    assert seconds(profile) == {"kcw": 2, "init_vloc": 1, "solve_linter": 6}


def test_what_others_call_too_is_not_in_its_caller(tmp_path: Path) -> None:
    body = (
        clock("electrons", 8) + "\n     Called by electrons:\n" + clock("c_bands", 3) + clock("h_psi", 6)
        + "                                        0.00s GPU  (      16 calls)\n" + clock("sum_band:bec", 1) + "\n"
        + clock("PWSCF", 10, None)
    )  # fmt: skip
    profile = read_output(tmp_path, "PWSCF v.7.2 starts on 12Jan2024 at  9:21:46 ", body)
    assert profile.actual_s == 10
    assert seconds(profile) == {"pwscf": 2, "electrons": 4, "c_bands": 3, "sum_band:bec": 1}


def test_the_words_of_older_versions(tmp_path: Path) -> None:
    body = clock("electrons", 8) + "\n     PWSCF        :  2m35.69s CPU time,     2m37.34s WALL time\n"
    profile = read_output(tmp_path, "PWSCF     v.4.2.1  starts on  3May2010 at 10: 1: 5 ", body)
    assert profile.actual_s == 157.34
    assert seconds(profile) == {"pwscf": 149.34, "electrons": 8}


def test_a_damaged_clock_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no line of the clocks"):
        read_output(tmp_path, "CP v.6.5 starts on 12Jan2024 at  9:21:46 ",
                    "     CP           :      1.00s CPU      2.0 s WALL\n")  # fmt: skip
    with pytest.raises(InputError, match="ends before the clock of the whole run"):
        read_output(tmp_path, "CP v.6.5 starts on 12Jan2024 at  9:21:46 ", clock("formf", 1))
