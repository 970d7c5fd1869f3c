"""A large gap that the items leave is not met with silence."""

from __future__ import annotations

from dataclasses import replace

import advice_samples
import numpy as np
import pytest

from advisor.advice.verdict import describe_unanswered
from advisor.agents import advice_answers
from advisor.analysis.disturbance import LONGEST_DELAY
from advisor.model.records import UNANSWERED, Gap, Share
from advisor.output import job_lines
from advisor.output.page import Page
from advisor.output.terminal import render_screen
from advisor.output.wording import describe_unanswered_gap

RUN_S = 47.0
RUN = advice_samples.profile()


def a_gap(name: str, seconds: float) -> Gap:
    place = Share("exchange", 0.9 * seconds, file="halo.c", line=12)
    return Gap(name, (name,), "IP", "IPC", seconds, seconds / RUN_S, "measured", regions=(place,))


def test_a_large_gap_that_no_item_is_about_is_named_with_its_place() -> None:
    item = advice_samples.recommendation(gap="L")
    found = describe_unanswered(RUN, [a_gap("C'", 20.0), a_gap("L", 6.0)], [item])
    (told,) = found
    assert (told.kind, told.subject) == (UNANSWERED, "C'")
    assert told.text == (
        "How to reduce C' (20.0 s, 42.6 % of the run, most of it in exchange at halo.c:12): no item addresses it."
    )


@pytest.mark.parametrize(("expected_s", "is_left"), [(3.9, True), (4.1, False)])
def test_an_item_answers_a_gap_from_a_fifth_of_it_on(expected_s: float, *, is_left: bool) -> None:
    item = replace(advice_samples.recommendation(gap="C'"), expected_s=expected_s)
    found = describe_unanswered(RUN, [a_gap("C'", 20.0)], [item])
    assert bool(found) == is_left
    assert all("the items address 3.90 s of it" in told.text for told in found)


def test_what_an_item_wins_at_most_answers_where_no_more_is_known() -> None:
    item = replace(advice_samples.recommendation(gap="C'"), ceiling_s=20.0)
    assert describe_unanswered(RUN, [a_gap("C'", 20.0)], [item]) == ()


def test_one_remedy_answers_waiting_of_all_kinds() -> None:
    item = replace(advice_samples.recommendation(gap="L"), expected_s=9.0)
    assert describe_unanswered(RUN, [a_gap("L", 8.0), a_gap("W", 20.0)], [item]) == ()


@pytest.mark.parametrize(("seconds", "is_large"), [(0.099 * RUN_S, False), (0.101 * RUN_S, True)])
def test_a_gap_is_large_from_a_tenth_of_the_run_on(seconds: float, *, is_large: bool) -> None:
    found = describe_unanswered(RUN, [a_gap("C'", seconds)], [advice_samples.recommendation(gap="L")])
    assert bool(found) == is_large


def test_what_other_programs_may_have_made_needs_another_recording() -> None:
    counts = {LONGEST_DELAY: np.array([[19.0, 0.0, 0.0, 0.0], [0.0] * 4])}
    (found,) = describe_unanswered(replace(RUN, counts=counts), [a_gap("C'", 20.0)], [advice_samples.recommendation()])
    assert found.text.endswith("may be the doing of other programs: record it again when less else runs, or longer.")
    assert found.measures["certain_s"] == pytest.approx(1.0)


def test_what_lies_outside_the_phases_has_no_sentence() -> None:
    assert describe_unanswered(RUN, [a_gap("X", 20.0)], [advice_samples.recommendation()]) == ()


def test_a_large_gap_without_any_item_is_no_insignificant_one() -> None:
    found = describe_unanswered(RUN, [a_gap("C'", 20.0)], [])
    advice = replace(
        advice_samples.full(),
        verdict="nothing significant",
        recommendations=(),
        gaps=(a_gap("C'", 20.0),),
        findings=found,
    )
    text = render_screen(advice, Page(200))
    assert "No action fits what this run loses. The largest is C' (communication) with 20.0 s" in text
    assert "Nothing significant" not in text
    assert "no action fits the largest gap" in advice_answers._explain_verdict(advice)
    assert job_lines._describe_nothing(advice) == "no action fits what the run loses"
    assert describe_unanswered_gap(replace(advice, verdict="insufficient evidence")) == ""


def test_the_screen_shows_what_is_left_before_what_is_missing() -> None:
    advice = advice_samples.full()
    found = describe_unanswered(RUN, [a_gap("C'", 20.0)], [advice_samples.recommendation()])
    assert found
    text = render_screen(replace(advice, findings=found), Page(200))
    assert text.index("What this run cannot show") < text.index("How to reduce C'") < text.index("bounds M")
