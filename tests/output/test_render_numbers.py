from __future__ import annotations

import math

import pytest

from advisor.output import numbers


def test_a_column_has_one_unit_and_one_number_of_decimals() -> None:
    assert numbers.format_duration_column([47.0, 1.0, 0.02, -0.25]) == ["47.00 s", "1.00 s", "0.02 s", "-0.25 s"]
    assert numbers.format_duration_column([0.0123, 0.0001]) == ["12.30 ms", "0.10 ms"]
    assert numbers.format_duration_column([12345.6, 0.4]) == ["12346 s", "0 s"]
    assert numbers.format_duration_column([0.0, -0.0]) == ["0.000 s", "0.000 s"]
    assert numbers.format_duration_column([3e-9]) == ["3.000 ns"]
    assert numbers.format_duration_column([]) == []


def test_what_no_run_can_take_is_kept_short() -> None:
    assert numbers.format_duration_column([1.25e289, 1.0]) == ["1.25e+289 s", "1 s"]
    assert numbers.format_percentage_column([-2.7e290, 0.5]) == ["-2.7e+292 %", "50.0 %"]


def test_what_rounds_to_nothing_has_no_sign() -> None:
    assert numbers.format_duration_column([1.0, -1e-9]) == ["1.000 s", "0.000 s"]
    assert numbers.format_percentage_column([-1e-9, 0.0213, 1.0]) == ["0.0 %", "2.1 %", "100.0 %"]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_said(value: float) -> None:
    assert numbers.format_duration(value) == "not a number"
    assert numbers.format_percentage(value) == "not a number"
    assert numbers.format_value(value, "s") == "not a number"
    assert numbers.format_duration_column([value, 1.0]) == ["not a number", "1.000 s"]
    assert numbers.format_percentage_column([value]) == ["not a number"]


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [(True, "", "yes"), (False, "", "no"), ("MPI_Barrier", "", "MPI_Barrier"), (0.0851, "share", "8.5 %"),
     (65536.0, "B", "64 KiB"), (0.25, "s", "250 ms"), (1.4231, "", "1.42"), (120000, "count", "120,000"),
     (1.4231, "ratio", "1.42"),
     (3, "processors", "3 processors")],
)  # fmt: skip
def test_facts_are_shown_in_their_unit(value: float | str | bool, unit: str, shown: str) -> None:
    assert numbers.format_value(value, unit) == shown


def test_without_a_value_there_is_a_dash() -> None:
    assert numbers.format_duration(None) == "-"
    assert numbers.format_percentage(None) == "-"
