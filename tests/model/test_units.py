import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.model import units


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("3.35 TB/s", "bandwidth", 3.35e12),
        ("200 Gbit/s", "bandwidth", 25e9),
        ("2 us", "time", 2e-6),
        ("2 µs", "time", 2e-6),
        ("1.5h", "time", 5400.0),
        ("64 KiB", "size", 65536.0),
        ("1_000 kB", "size", 1e6),
        ("2.5 GHz", "frequency", 2.5e9),
        ("3 %", "share", 0.03),
        ("0.03", "share", 0.03),
        ("-7 %", "share", -0.07),
        ("16 flop/cycle", "rate per cycle", 16.0),
        ("7.2 Tflop/s", "rate", 7.2e12),
        ("1e3 s", "time", 1000.0),
        ("  14 cycles ", "cycle count", 14.0),
    ],
)
def test_parse_reads_what_people_write(text: str, dimension: str, value: float) -> None:
    assert units.parse_quantity(text, dimension) == value


@pytest.mark.parametrize(
    ("text", "dimension", "said"),
    [
        ("3", "time", "the unit is missing"),
        ("3.35 TB", "bandwidth", "did you mean 'TB/s'"),
        ("64 KB", "size", "kB for 1000 or KiB for 1024"),
        ("3 GHZ", "frequency", "did you mean 'GHz'"),
        ("1.234,5 s", "time", "not a plain decimal number"),
        ("12:30:45", "time", "not a plain decimal number"),
        ("nan s", "time", "expected a time such as '2 us'"),
        ("inf s", "time", "expected a time such as '2 us'"),
        ("", "share", "expected a share such as '3 %'"),
        ("3", "share", "between 0 and 1"),
        ("1e999 s", "time", "too large"),
        ("1e9999 s", "time", "too large"),
        ("1e99999 s", "time", "expected a time"),
        ("٣ s", "time", "expected a time"),
        ("9" * 200 + " s", "time", "expected a time"),
    ],
)
def test_parse_says_what_it_expected(text: str, dimension: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"expected|too large") as caught:
        units.parse_quantity(text, dimension)
    assert said in str(caught.value)


@given(st.text(max_size=120), st.sampled_from(sorted(units.DIMENSIONS)))
def test_any_text_is_a_finite_number_or_a_value_error(text: str, dimension: str) -> None:
    with contextlib.suppress(ValueError):
        assert math.isfinite(units.parse_quantity(text, dimension))


@given(
    st.floats(min_value=1e-12, max_value=1e17) | st.floats(min_value=-1e17, max_value=-1e-12),
    st.sampled_from(sorted(units.DIMENSIONS)),
)
def test_what_is_shown_reads_back_to_three_digits(value: float, dimension: str) -> None:
    shown = units.format_quantity(value, dimension)
    share_tolerance = 0.05 if dimension == "share" else 0.0051
    assert units.parse_quantity(shown, dimension) == pytest.approx(value, rel=share_tolerance)
    assert shown.startswith("-") == (value < 0)


@pytest.mark.parametrize("dimension", units.DIMENSIONS.values(), ids=lambda dimension: dimension.name)
def test_examples_and_base_units_are_units(dimension: units.Dimension) -> None:
    assert units.parse_with_dimension(dimension.example, dimension) > 0
    assert dimension.units[dimension.base] == 1


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.0, "0 s"),
        (-0.0, "0 s"),
        (47.0, "47.0 s"),
        (0.9996, "1.00 s"),
        (0.0123, "12.3 ms"),
        (9.999e-7, "1.00 us"),
        (-4e-10, "-0.4 ns"),
        (99.96, "100 s"),
        (12345.6, "12346 s"),
    ],
)
def test_seconds_are_shown_in_the_unit_that_fits(seconds: float, shown: str) -> None:
    assert units.format_seconds(seconds) == shown


@pytest.mark.parametrize(
    ("size", "shown"), [(1, "1 B"), (65536, "64 KiB"), (1.5 * 2**20, "1.50 MiB"), (1023, "1023 B")]
)
def test_bytes_are_shown_with_binary_prefixes(size: float, shown: str) -> None:
    assert units.format_bytes(size) == shown


@pytest.mark.parametrize(
    ("share", "shown"),
    [(1.0, "100.0 %"), (0.0213, "2.1 %"), (-0.00012, "-0.012 %"), (0.0, "0.0 %"), (-2.7e290, "-2.7e+292 %")],
)
def test_small_shares_keep_two_digits(share: float, shown: str) -> None:
    assert units.format_share(share) == shown


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dimension", sorted(units.DIMENSIONS))
def test_what_is_no_number_is_not_shown(value: float, dimension: str) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        units.format_quantity(value, dimension)


def test_what_rounding_leaves_of_a_difference_is_shown_as_nothing() -> None:
    assert units.format_seconds(0.3 - 0.1 - 0.2) == "0 s"
    assert units.format_seconds(-2e-12) == "-0.002 ns"
