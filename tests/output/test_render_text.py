from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from advisor.output.clean import clean_text
from advisor.output.text_cells import make_line, pad_text, shorten_all, shorten_text, wrap_text

HOSTILE = (
    "\x1b]0;title\x07", "\x1b[2J", "\x9b31m", "a\rb", "a\nb", "\u202egnp.exe", "\u2066x\u2069", "a\u2028b", "z\u200bw",
    "\udcff", "\x00", "\x7f", "\ufeff", "a\tb",
)  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_terminal_would_act_on_becomes_visible(text: str) -> None:
    shown = clean_text(text)
    assert "\\" in shown
    assert all(unicodedata.category(c) not in {"Cc", "Cf", "Cs", "Zl", "Zp"} for c in shown)


@pytest.mark.parametrize("text", ["foo[/]", "[bold]x[/bold]", "foo<int> [clone .cold]", "f() [with T = int]", ":smile:",
                                  "Grüße", "日本語", "e\u0301", r"C:\x"])  # fmt: skip
def test_what_is_harmless_stays_verbatim(text: str) -> None:
    assert clean_text(text) == text
    assert make_line(text).plain == text


def test_what_the_encoding_lacks_becomes_visible() -> None:
    assert clean_text("Größe 日", "ascii") == r"Gr\xf6\xdfe \u65e5"
    assert clean_text("Größe 日", "latin-1") == r"Größe \u65e5"


@given(st.text(), st.sampled_from(["utf-8", "ascii", "latin-1"]))
def test_cleaning_twice_changes_nothing(text: str, encoding: str) -> None:
    once = clean_text(text, encoding)
    assert clean_text(once, encoding) == once
    once.encode(encoding)


@given(st.text(), st.text())
def test_a_line_has_no_control_characters_whatever_goes_in(first: str, second: str) -> None:
    shown = make_line(first, (second, "bold"))
    assert shown.plain == clean_text(first) + clean_text(second)


def test_shortening_takes_the_middle() -> None:
    assert shorten_text("abcdefghij", 7) == "abc…hij"
    assert shorten_text("abcdefghij", 10) == "abcdefghij"
    assert shorten_text("abcdefghij", 7, "...") == "ab...ij"
    assert shorten_text("abcdefghij", 5, keep=1.0) == "abcd…"


def test_wide_characters_count_as_two_cells() -> None:
    assert pad_text("日本", 6) == "日本  "
    assert pad_text("日本", 6, "right") == "  日本"
    assert cell_len(shorten_text("日本語日本語日本語", 8)) <= 8


@pytest.mark.parametrize(
    "names",
    [
        ("kernel<double, 3>::apply(Grid const&)", "kernel<double, 4>::apply(Grid const&)"),
        ("a" * 60 + "1", "a" * 60 + "2"),
        ("1" + "a" * 60, "2" + "a" * 60),
        ("a" * 30 + "1" + "a" * 30, "a" * 30 + "2" + "a" * 30),
        ("a" * 30 + "12" + "b" * 30, "a" * 30 + "21" + "b" * 30, "a" * 30 + "22" + "b" * 30),
        tuple(f"std::vector<{'x' * 5000}, {number}>::push_back({'y' * 500})" for number in range(20)),
    ],
)
def test_different_names_stay_different(names: tuple[str, ...]) -> None:
    shown = shorten_all(names, 20)
    assert len(set(shown)) == len(names)
    assert all(cell_len(text) <= 20 for text in shown)


@given(st.lists(st.text("ab", min_size=15, max_size=60), max_size=12), st.integers(14, 30))
def test_shortening_keeps_names_apart(names: list[str], width: int) -> None:
    shown = shorten_all(names, width)
    assert len(set(shown)) == len(set(names))
    assert all(cell_len(text) <= width for text in shown)


@given(st.text(), st.integers(2, 80))
def test_wrapping_loses_nothing(text: str, width: int) -> None:
    lines = wrap_text(clean_text(text), width)
    assert "".join(lines).replace(" ", "") == clean_text(text).replace(" ", "")
    assert all(cell_len(part) <= width for part in lines)


def test_a_number_and_its_unit_stay_on_one_line() -> None:
    assert wrap_text("it takes 4.00 s in all", 13) == ["it takes", "4.00 s in all"]
    assert wrap_text("a share of 17.0 %, no more", 15) == ["a share of", "17.0 %, no more"]
