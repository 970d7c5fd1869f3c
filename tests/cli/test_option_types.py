from __future__ import annotations

import argparse

import pytest

from advisor.cli.option_types import make_quantity_parser, whole_number


@pytest.mark.parametrize(("text", "value"), [("3", 3), ("007", 7), ("9", 9)])
def test_digits_are_a_number(text: str, value: int) -> None:
    assert whole_number("a digit", least=3, most=9)(text) == value


@pytest.mark.parametrize("text", ["2", "10", "-3", "+3", "3.0", "", " 3", "٣", "1e1", "9" * 5000])
def test_what_is_none_or_beyond_the_limits_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="expected a digit, found"):
        whole_number("a digit", least=3, most=9)(text)


@pytest.mark.parametrize(("text", "value"), [("10 min", 600.0), ("1 ms", 1e-3), ("1 h", 3600.0)])
def test_a_quantity_is_read_in_its_base_unit(text: str, value: float) -> None:
    assert make_quantity_parser("time", "a time up to 1 h", 1e-3, 3600.0)(text) == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "words"),
    [("2 h", "expected a time up to 1 h, found '2 h'"), ("0 s", "up to 1 h"), ("5", "unit is missing")],
)
def test_a_quantity_beyond_its_limits_or_without_unit_is_refused(text: str, words: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=words):
        make_quantity_parser("time", "a time up to 1 h", 1e-3, 3600.0)(text)
