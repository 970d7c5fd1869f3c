"""Commands that files name for their runs: said again, without how they were recorded, and never with secrets."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.model.run_points import CIRCUMSTANCES, STATED
from advisor.support.stated_commands import state_command, state_recorded


@pytest.mark.parametrize(
    ("command", "ranks", "said"),
    [
        ("./um  sandmark.umz ", 1, "./um sandmark.umz"),
        ("simpleFoam -parallel", 4, "mpirun -n 4 simpleFoam -parallel"),
        ("./app 'two words'", 1, "./app 'two words'"),
    ],
)
def test_commands_are_said_as_a_shell_takes_them(command: str, ranks: int, said: str) -> None:
    assert state_command(command, ranks) == {STATED: said}


@pytest.mark.parametrize(
    "command",
    [
        "",
        "  ",
        "./app --password=x",
        "./app --api-key x",
        "load https://me:x@host/",
        "./app 'open",
        "./a\x1b[2J",
        "a" * 501,
    ],
)
def test_what_may_hold_a_secret_or_is_no_command_is_not_said(command: str) -> None:
    assert state_command(command) == {}


@pytest.mark.parametrize(
    ("command", "program", "said"),
    [
        ("/usr/bin/perf record -F 99 -g -o out.data ./solver -n 4", "solver", "./solver -n 4"),
        ("perf record -- /opt/a_program_of_a_long_name x", "a_program_of_a_", "/opt/a_program_of_a_long_name x"),
        ("perf record -a sleep 5", "solver", None),
        ("solver", "solver", None),
        ("perf record ./solver", "", None),
    ],
)
def test_how_a_recording_began_is_left_out(command: str, program: str, said: str | None) -> None:
    assert state_recorded(command, program) == ({} if said is None else {STATED: said})


@given(
    st.lists(
        st.text(st.characters(codec="ascii", exclude_categories=("C",)), min_size=1, max_size=9), min_size=1, max_size=6
    )
)
def test_words_stay_the_same(words: list[str]) -> None:
    said = state_command(shlex.join(words))
    assert all(isinstance(text, str) and shlex.split(text) == words for text in said.values())


def test_two_commands_of_one_program_are_comparable() -> None:
    assert STATED in CIRCUMSTANCES
