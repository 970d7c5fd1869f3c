from __future__ import annotations

import argparse

import pytest

from advisor.cli.option_types import whole_number


@pytest.mark.parametrize(("text", "value"), [("3", 3), ("007", 7), ("9", 9)])
def test_digits_are_a_number(text: str, value: int) -> None:
    assert whole_number("a digit", least=3, most=9)(text) == value


@pytest.mark.parametrize("text", ["2", "10", "-3", "+3", "3.0", "", " 3", "٣", "1e1", "9" * 5000])
def test_what_is_none_or_beyond_the_limits_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="expected a digit, found"):
        whole_number("a digit", least=3, most=9)(text)
