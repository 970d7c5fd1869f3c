import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.support.documents import scalars


@pytest.mark.parametrize(
    ("text", "value"), [("3", 3), ("-4", -4), ("+0", 0), ("1_000", 1000), ("1e3", 1000), ("2E+2", 200)]
)
def test_whole_numbers_as_authors_write_them(text: str, value: int) -> None:
    assert scalars.parse_whole_number(text) == value


@pytest.mark.parametrize("text", ["", "1.0", "010", "1e-3", "0x1F", "1__0", "٣", "1,000", "yes", "9" * 50])
def test_what_is_no_whole_number(text: str) -> None:
    with pytest.raises(ValueError, match="expected a whole number"):
        scalars.parse_whole_number(text)


@given(st.integers(-(10**30), 10**30))
def test_every_whole_number_reads_back(value: int) -> None:
    assert scalars.parse_whole_number(str(value)) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_reads_back(value: float) -> None:
    assert scalars.parse_number(repr(value)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("False", False),
        ("3", 3),
        ("1.10", 1.1),
        ("1e3", 1000),
        ("12:30:45", "12:30:45"),
        ("007", "007"),
    ],
)
def test_anything_is_the_plainest_reading(text: str, value: object) -> None:
    found = scalars.parse_scalar(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", ["yes", "No", "on", "OFF"])
def test_words_of_two_meanings_are_asked_about(text: str) -> None:
    with pytest.raises(ValueError, match="or the word in quotes"):
        scalars.parse_scalar(text)
    assert scalars.parse_truth(text) is (text in ("yes", "on"))


def test_a_suggestion_names_the_nearest_known_word() -> None:
    known = ["title", "targets", "helps"]
    assert scalars.suggest_word("titel", known) == " (did you mean 'title'?)"
    assert scalars.suggest_word("TARGETS", known) == " (did you mean 'targets'?)"
    assert scalars.suggest_word("quux", known) == ""
    assert scalars.suggest_word("x" * 1_000_000, known) == ""
