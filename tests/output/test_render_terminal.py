from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from typing import TYPE_CHECKING

import advice_samples as samples
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from advisor.model.recommendations import Dismissed
from advisor.model.records import SHARED_CORES, UNANSWERED, Finding, Grade, Note
from advisor.output.clean import clean_text
from advisor.output.page import Page
from advisor.output.terminal import render_screen

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.model.records import Advice, Gap

SGR = re.compile(r"\x1b\[[0-9;]*m")
SAMPLES = (
    samples.full, samples.expected, samples.without_phases, samples.nothing, samples.insufficient,
)  # fmt: skip

#: Anything a profile may hold, with what hurts terminals and markup more often than chance would bring it.
hostile_text = st.lists(
    st.one_of(
        st.text(max_size=8),
        st.sampled_from(["\x1b[2J", "\x9b1m", "\r", "\n", "\u202e", "\u200b", "[/]", "[red]", "日本", "e\u0301", "\\"]),
    ),
    min_size=1,
    max_size=4,
).map("".join)


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_screen(width: int, golden: Callable[[str, str], None]) -> None:
    golden(render_screen(samples.full(), Page(width)), f"screen-{width}.txt")


def test_items_on_computation_are_pointed_at_from_the_bar_that_holds_it() -> None:
    advice = samples.full()
    first, *rest = advice.recommendations
    on_code = replace(first, gaps=("A", "C", "S", "$"))
    together = replace(advice.gaps[0], name="A+C+S+$", members=on_code.gaps)

    def pointed_at(*gaps: Gap) -> list[str]:
        text = render_screen(replace(advice, recommendations=(on_code, *rest), gaps=gaps), Page(120))
        rows = text[: text.index("to do next")].split("\n")
        return [row.split()[0] for row in rows if row.endswith(f"◂ {on_code.rank}")]

    assert pointed_at(*advice.gaps) == ["I"]
    assert pointed_at(together, *advice.gaps) == ["A+C+S+$"]


def test_screen_in_ascii(golden: Callable[[str, str], None]) -> None:
    text = render_screen(samples.full(), Page(100, "ascii"))
    assert text.isascii()
    golden(text, "screen-ascii.txt")


def test_screen_in_colour(golden: Callable[[str, str], None]) -> None:
    text = render_screen(samples.full(), Page(80, color=True))
    assert [part.rstrip() for part in SGR.sub("", text).split("\n")] == render_screen(samples.full(), Page(80)).split(
        "\n"
    )
    golden(text, "screen-color.txt")


@pytest.mark.parametrize("width", [20, 45])
def test_narrow_screen_is_a_list(width: int, golden: Callable[[str, str], None]) -> None:
    golden(render_screen(samples.full(), Page(width)), f"screen-{width}.txt")


def test_verbose_screen(golden: Callable[[str, str], None]) -> None:
    golden(render_screen(samples.full(), Page(120, verbose=True)), "screen-verbose.txt")


@pytest.mark.parametrize("sample", SAMPLES[1:], ids=lambda sample: sample.__name__)
def test_verdicts_and_merged_levels(sample: Callable[[], Advice], golden: Callable[[str, str], None]) -> None:
    golden(render_screen(sample(), Page(80)), f"screen-{sample.__name__}.txt")


def test_the_first_screen_says_it_all() -> None:
    text = render_screen(samples.expected(), Page(120))
    for words in ("jacobi", "47.0 s", "4 MPI ranks", "B (good, minor doubts)", "overall load imbalance", "8.00 s",
                  "17.0 %", "Self-scheduling", "at most 4.00 s",
                  "3.10 s (2.50 s to 3.60 s, by simulating the measured run)",
                  "src/solver.cpp:120", "rank 3", "phase.imbalance = 1.42", "Keep a queue",
                  "may increase communication (C',", "next: valgrind --tool=cachegrind ./jacobi"):  # fmt: skip
        assert words in text


def test_only_three_are_shown_until_asked_for_more() -> None:
    brief, long = (render_screen(samples.full(), Page(120, verbose=verbose)) for verbose in (False, True))
    assert "1 more with --verbose" in brief
    assert brief.count("Self-scheduling") == 3
    assert long.count("Self-scheduling") == 4
    assert "while (next_block" not in brief
    assert "while (next_block" in long


def test_a_negative_gap_is_shown_and_explained() -> None:
    text = render_screen(samples.full(), Page(120))
    assert re.search(r"X .* -0\.02 s", text)
    assert "the clocks are known to 20 ms" in text


def test_estimated_seconds_are_marked() -> None:
    text = render_screen(samples.full(), Page(120))
    assert "~2.50 s" in text
    assert "~ estimated" in text
    assert "~8.00 s" not in text


def test_verdicts_are_sentences() -> None:
    assert "Nothing significant" in render_screen(samples.nothing(), Page(120))
    text = render_screen(samples.insufficient(), Page(120))
    assert "Not enough evidence for advice" in text
    assert "2 of 4 ranks are missing" in text
    assert "next: ./jacobi -steps 1000" in text
    assert "things to do" not in text


def test_start_up_is_named_where_it_is_the_largest_gap() -> None:
    quiet = samples.nothing()
    largest = max(quiet.gaps, key=lambda gap: gap.seconds)
    edges = {"start-up": np.full(len(quiet.profile.processors), 0.9 * largest.seconds)}
    merged = replace(largest, name="W+X", members=("W", "X"))
    for outside, told in (({}, False), (edges, True)):
        advice = replace(quiet, gaps=(merged,), profile=replace(quiet.profile, outside=outside))
        assert ("which a longer run makes up for" in " ".join(render_screen(advice, Page(120)).split())) == told


def test_what_is_not_decided_is_said_with_the_largest_gap_and_what_would_decide() -> None:
    undecided = replace(samples.nothing(), verdict="insufficient evidence", needs=samples.full().needs)
    text = " ".join(render_screen(undecided, Page(120)).split())
    largest = max(undecided.gaps, key=lambda gap: gap.seconds)
    assert f"the facts that would decide were not measured. The largest is {largest.name} (" in text
    assert f"next: {undecided.needs[0].command}" in text


def test_where_ranks_took_turns_on_cores_the_run_with_fewer_comes_first() -> None:
    fewer = Note(SHARED_CORES, "4 processors share 2 cores", 0.3, "gapwatch run -- mpirun -n 2 ./app")
    undecided = replace(samples.nothing(), verdict="insufficient evidence", needs=samples.full().needs)
    advice = replace(undecided, grade=Grade("B", 0.7, (fewer,)))
    text = " ".join(render_screen(advice, Page(120)).split())
    assert "may have waited for a core. Start no more of them than there are cores." in text
    assert f"next: {fewer.collect}" in text
    advised = replace(samples.full(), grade=advice.grade)
    assert f"next: {fewer.collect}" not in " ".join(render_screen(advised, Page(120)).split())
    left = Finding("advice", UNANSWERED, "D", "How to reduce D (1.00 s): no item addresses it.")
    assert f"next: {fewer.collect}" in " ".join(render_screen(replace(advised, findings=(left,)), Page(120)).split())


def test_changes_that_the_run_does_not_prove_stand_apart_from_those_that_would_not_help() -> None:
    changes = (
        Dismissed("G-24", "Start fewer ranks", None, 6.5, (-0.7, 13.8)),
        Dismissed("A-28", "Balance", None, 1e-3),
    )
    text = render_screen(replace(samples.full(), dismissed=changes), Page(120, verbose=True))
    no_help, _, may_help = text.partition("Changes that may help")
    assert "this run does not prove it" in may_help
    assert "- Start fewer ranks [G-24]: 6.50 s (-700 ms to 13.8 s)" in may_help
    assert "- Balance [A-28]: 1.00 ms" in no_help.partition("Changes that would not help")[2]


def test_without_gaps_nothing_is_drawn() -> None:
    text = render_screen(replace(samples.insufficient(), gaps=()), Page(120))
    assert "Where the" not in text
    assert "Not enough evidence for advice" in text


def test_a_gap_without_time_is_not_called_the_largest() -> None:
    negative = tuple(replace(gap, seconds=-1.0, share=-0.02) for gap in samples.nothing().gaps)
    text = render_screen(replace(samples.nothing(), gaps=negative), Page(120))
    assert "Nothing significant" in text
    assert "The largest" not in text


def test_gaps_point_at_their_recommendations() -> None:
    lines = render_screen(samples.full(), Page(120)).split("\n")
    assert next(text for text in lines if text.startswith("L ")).endswith("◂ 1")
    assert next(text for text in lines if text.startswith("M' ")).endswith("◂ 2")
    assert "◂" not in next(text for text in lines if text.startswith("W "))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.__name__)
@pytest.mark.parametrize("width", range(20, 201, 9))
@pytest.mark.parametrize("verbose", [False, True])
def test_no_line_is_wider_than_the_page(sample: Callable[[], Advice], width: int, verbose: bool) -> None:
    text = render_screen(sample(), Page(width, verbose=verbose))
    copied = ("next: ", "to get", "  better with", "valgrind", "     ")  # commands and code are never broken
    wide = [part for part in text.split("\n") if cell_len(part) > width and not part.startswith(copied)]
    assert wide == []


@pytest.mark.parametrize("width", [60, 100, 200])
def test_long_names_that_differ_stay_different(width: int) -> None:
    names = [f"solver<{'Field<double, ' * 300}{number}>::apply({'int, ' * 300})" for number in (1, 2, 3)]
    items = tuple(samples.recommendation(rank, name) for rank, name in enumerate(names, 1))
    text = render_screen(replace(samples.full(), recommendations=items), Page(width))
    places = re.findall(r"where +(.*?) at +src", text.replace("\n", " "))
    assert len(set(places)) == 3


@given(hostile_text, st.sampled_from([20, 60, 117, 200]), st.booleans(), st.sampled_from(["utf-8", "ascii"]))
@settings(max_examples=60, deadline=None)
def test_hostile_names_are_shown_and_do_nothing(text: str, width: int, color: bool, encoding: str) -> None:
    shown = render_screen(samples.hostile(text), Page(width, encoding, color, verbose=True))
    plain = SGR.sub("", shown) if color else shown
    bad = {c for c in plain if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}}
    assert bad <= {"\n"}
    plain.encode(encoding)
    assert _joined(clean_text(text, encoding)) in _joined(plain)


@given(st.text(st.characters(codec="utf-8"), max_size=20))
@settings(max_examples=60, deadline=None)
def test_each_place_shows_the_name(name: str) -> None:
    blank = replace(samples.nothing(), problems=())
    shown = clean_text(name)
    run = replace(blank.profile, program=name)
    assert render_screen(replace(blank, profile=run), Page(200)).startswith(f"{shown}: ")
    items = (replace(samples.recommendation(), region=name or None, file=None, phase=None),)
    advised = replace(samples.full(), recommendations=items)
    assert _joined(shown) in _joined(render_screen(advised, Page(200)))


def _joined(text: str) -> str:
    """The text without what line breaks may change."""
    return "".join(text.split())


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("verbose", [False, True])
def test_names_are_shown_whole(width: int, verbose: bool) -> None:
    merged = replace(samples.full().gaps[0], name="M'+D+S'+W+X", members=("M'", "D", "S'", "W", "X"), seconds=1.0)
    text = render_screen(replace(samples.full(), gaps=(*samples.full().gaps, merged)), Page(width, verbose=verbose))
    assert "…" not in text
    whole = _joined(text)
    assert _joined(samples.REGION) in whole or verbose  # in a table other columns stand between its lines
    for words in ("computation,", "evenly", "operating", "shutdown", "multiphase"):
        assert words in text


def test_an_item_about_several_phases_names_them() -> None:
    def where(*more: str) -> str:
        item = replace(samples.recommendation(), more_phases=more)
        return " ".join(render_screen(replace(samples.full(), recommendations=(item,)), Page(200)).split())

    assert 'phase "MPI_Barrier after smooth"; rank 3' in where()
    assert "(L in this phase = 8.5 %" in where()
    assert 'phases "MPI_Barrier after smooth" and "second"; rank 3' in where("second")
    assert "(L in the first phase = 8.5 %" in where("second")
    assert 'phase "MPI_Barrier after smooth" and 2 others; rank 3' in where("second", "third")


def test_an_item_about_several_regions_names_them() -> None:
    def where(*more: str) -> str:
        item = replace(samples.recommendation(), more_regions=more)
        return " ".join(render_screen(replace(samples.full(), recommendations=(item,)), Page(200)).split())

    name = samples.recommendation().region
    assert name is not None
    assert "and second" not in where()
    assert "and second; phase" in where("second")
    assert "and 2 other regions; phase" in where("second", "third")


def test_what_is_not_there_at_all_speaks_last() -> None:
    evidence = samples.recommendation().evidence
    absent = replace(evidence[1], fact="io.share", value=0.0, unit="share", condition="< 2 %")
    item = replace(samples.recommendation(), evidence=(evidence[0], absent, *evidence[1:]))
    text = render_screen(replace(samples.full(), recommendations=(item,)), Page(200))
    assert "phase.closed_by = MPI_Barrier)" in text
    assert "io.share" not in text


def test_what_is_suppressed_is_only_on_the_verbose_screen_and_no_gap_points_at_it() -> None:
    first, *others = samples.full().recommendations
    advice = replace(samples.full(), recommendations=(replace(first, state="suppressed"), *others))
    screen = render_screen(advice, Page(100))
    assert re.findall(r"(?m)◂ (\d)$", screen) == ["2", "3", "4"]
    assert re.findall(r"(?m)^(\d)  ", screen) == ["2", "3", "4"]
    assert "1 more with --verbose" in screen
    assert re.findall(r"(?m)^(\d)  ", render_screen(advice, Page(100, verbose=True))) == ["1", "2", "3", "4"]
    silent = replace(advice, recommendations=tuple(replace(one, state="suppressed") for one in advice.recommendations))
    assert "All recommendations are suppressed (--verbose lists them)." in render_screen(silent, Page(100))
