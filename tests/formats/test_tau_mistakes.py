"""Profiles of TAU that lack parts, contradict themselves or are none: refused, or noted."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from tau_profiles import CALL_PATHS, IMBALANCE, PROFILES, RUNS, SAMPLES, copy_run, edit_copy, note_names, write_profile

from advisor.formats import tau
from advisor.formats.tau import checks, sheet
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def test_missing_and_damaged_ranks_are_counted(tmp_path: Path) -> None:
    run = copy_run(SAMPLES, tmp_path)
    (run / "profile.1.0.0").unlink()
    profile = tau.advisor_read(run)
    assert (profile.ranks, profile.ranks_expected) == (3, 4)
    (run / "profile.3.0.0").write_text("")
    profile = tau.advisor_read(run)
    assert (profile.ranks, profile.ranks_expected) == (2, 4)
    note = next(note for note in profile.notes if note.name == "damaged profiles")
    assert "profile.3.0.0:line 1: does not begin as a profile" in note.text


def test_a_metric_that_a_rank_lacks_leaves_the_rank_out(tmp_path: Path) -> None:
    run = copy_run(IMBALANCE, tmp_path)
    (run / "MULTI__CPU_TIME" / "profile.0.0.0").unlink()
    profile = tau.advisor_read(run)
    assert [processor.rank for processor in profile.processors] == [1]
    assert profile.ranks_expected == 2
    assert note_names(profile)["damaged profiles"] > 0.3


def test_a_thread_of_another_process_is_of_another_run(tmp_path: Path) -> None:
    run = copy_run(SAMPLES, tmp_path)
    for thread in (1, 2):
        shutil.copy(run / "profile.0.0.0", run / f"profile.0.0.{thread}")
    shutil.copy(run / "profile.3.0.0", run / "profile.0.0.1")
    profile = tau.advisor_read(run)
    assert [processor.thread for processor in profile.processors if processor.rank == 0] == [0, 2]
    note = next(note for note in profile.notes if note.name == "damaged profiles")
    assert "profile.0.0.1: is of process" in note.text


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (" 1 1 11014 441007 0 ", " 1 1 nan 441007 0 ", "profile.0.0.0:line 3: an impossible number"),
        (" 1 1 11014 441007 0 ", " 1 1 -inf 441007 0 ", "line 3: an impossible number"),
        (" 1 1 11014 441007 0 ", " 1 1 1e30 441007 0 ", "line 3: an impossible number"),
        (" 1 1 11014 441007 0 ", " -1 1 11014 441007 0 ", "line 3: a number below zero"),
        (" 1 1 11014 441007 0 ", " 1 1 -11014 441007 0 ", "line 3: a number below zero"),
        (" 1 1 11014 441007 0 ", " 1 1 1_1014 441007 0 ", "line 3: expected a function and five numbers"),
        (" 1 1 11014 441007 0 ", " 1 1 11014 441007 ", "line 3: expected a function and five numbers"),
        ("115 templated", "114 templated", "line 1: 114 functions were announced, 115 are there"),
        ("115 templated", "999999999 templated", "line 1: 999999999 functions do not fit"),
        ("2 userevents", "3 userevents", "line 119: 3 user events were announced, 2 are there"),
        ("Message size for broadcast\" 9", "Message size for broadcast\" x", "line 121: expected a user event"),
        ("0 aggregates", "1 aggregates", "ends before the last of 115 functions"),
        ("# Name Calls Subrs", "# Name Calls Subs", "does not begin as a profile of TAU"),
    ],
)  # fmt: skip
def test_damage_is_refused_with_its_place(tmp_path: Path, old: str, new: str, reason: str) -> None:
    path = tmp_path / "profile.0.0.0"
    shutil.copy(CALL_PATHS / "profile.0.0.0", path)
    edit_copy(path, lambda text: text.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        tau.read_call_paths(path)
    assert reason in str(caught.value)


def test_contradictions_are_noticed(tmp_path: Path) -> None:
    run = copy_run(IMBALANCE, tmp_path)
    edit_copy(run / "MULTI__TIME" / "profile.0.0.0", lambda text: text.replace(" 261029 261029 ", " 261028 261029 "))
    assert note_names(tau.advisor_read(run))["contradictions in the profile"] == 0.3
    shutil.rmtree(run)
    run = copy_run(IMBALANCE, tmp_path)
    edit_copy(run / "MULTI__TIME" / "profile.0.0.0", lambda text: text.replace('"phase1 [', '"phase3 ['))
    assert "contradictions in the profile" in note_names(tau.advisor_read(run))


def test_times_a_little_below_zero_are_nothing(tmp_path: Path) -> None:
    lines = ('".TAU application" 1 1 100000 100000 0 GROUP="TAU_UTILITY" ', '"f" 1 0 -3 0 0 GROUP="TAU_USER" ')
    profile = tau.advisor_read(write_profile(tmp_path, 0, *lines))
    assert note_names(profile) == {"times below zero": 0.02}
    assert profile.actual_s == pytest.approx(0.1)


def test_profiles_without_metadata_or_groups(tmp_path: Path) -> None:
    path = write_profile(tmp_path, 0, '"main()" 1 1 4 10 0', '"f" 1 0 6 6 0')
    edit_copy(path, lambda text: text.replace("_MULTI_TIME", "").replace("ProfileCalls # ", "ProfileCalls"))
    profile = tau.advisor_read(path)
    assert (profile.program, profile.run, profile.started, profile.cores) == ("", "profile.0.0.0", None, None)
    assert profile.actual_s == pytest.approx(1e-5)


def test_hostile_metadata_are_not_followed(tmp_path: Path) -> None:
    path = write_profile(tmp_path, 0, '".TAU application" 1 0 4 4 0 GROUP="TAU_UTILITY" ')
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa">]><metadata>&a;</metadata>'
    edit_copy(path, lambda text: text.replace("ProfileCalls # ", f"ProfileCalls # {bomb}"))
    assert tau.advisor_read(path).program == ""
    edit_copy(path, lambda text: text.replace("&a;</metadata>", "<attribute></metadata>"))
    assert note_names(tau.advisor_read(path)) == {"metadata not read": 0.02}


def test_recursion_beyond_the_recorded_depth_ends(tmp_path: Path) -> None:
    path = " => ".join
    lines = [
        '".TAU application" 1 1 0 60 0 GROUP="TAU_UTILITY" ',
        '"a" 30 30 30 60 0 GROUP="TAU_USER" ',
        '"b" 30 29 30 60 0 GROUP="TAU_USER" ',
        *(
            f'"{path(parts)}" 10 10 10 30 0 GROUP="TAU_CALLPATH" '
            for parts in ("abab", "baba", "bab", "aba", "ab", "ba")
        ),
    ]
    paths = tau.read_call_paths(write_profile(tmp_path, 0, *lines))
    assert paths.wall_s is not None
    assert paths.wall_s.sum() == pytest.approx(6e-5)


def test_traces_are_named_with_what_to_run() -> None:
    trace = PROFILES / "tau" / "trace"
    for path in (trace, *trace.iterdir()):
        assert tau.advisor_sniff(path) == 1
        with pytest.raises(InputError, match="tau2otf2"):
            tau.advisor_read(path)


def test_nothing_else_is_claimed(tmp_path: Path) -> None:
    for other in PROFILES.iterdir():
        for path in (other, *other.rglob("*")) if other.name != "tau" else ():
            assert tau.advisor_sniff(path) is None, path
    for run in RUNS:
        for path in run.rglob("*"):
            claimed = path.name.startswith(("profile.", "MULTI__"))
            assert (tau.advisor_sniff(path) == 1) is claimed, path
    (tmp_path / "profile.0.0.0").write_bytes(bytes(range(256)))
    assert tau.advisor_sniff(tmp_path) is None
    with pytest.raises(InputError, match="no profile of TAU here"):
        tau.read_call_paths(tmp_path)


def test_numbers_whose_squares_are_beyond_all_numbers_are_a_contradiction_and_no_error() -> None:
    assert not checks._is_possible(sheet.UserEvent(b"bytes", 2.0, 1e200, 1.0, 2.0, 1.0))
