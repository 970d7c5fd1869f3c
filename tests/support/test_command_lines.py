from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.support.launchers import split_line, split_settings


@pytest.mark.parametrize(
    ("line", "settings", "words"),
    [
        ("OMP_NUM_THREADS=4 NAME='a b' mpirun -n 2 ./cg A=1", ["OMP_NUM_THREADS=4", "NAME=a b"],
         ["mpirun", "-n", "2", "./cg", "A=1"]),
        ("./cg", [], ["./cg"]), ("A=1", ["A=1"], []), ("", [], []), ("'cut sh", [], []), (2.0, [], []), (None, [], []),
    ],
)  # fmt: skip
def test_variables_in_front_of_a_command_are_told_from_its_words(
    line: object, settings: list[str], words: list[str]
) -> None:
    assert split_line(line) == (settings, words)


@given(st.lists(st.text("aA=1_ .'", max_size=5), max_size=5))
def test_no_word_is_lost(words: list[str]) -> None:
    settings, rest = split_settings(words)
    assert settings + rest == words
    assert split_line(shlex.join(words)) == (settings, rest)
