"""The lines on a batch job: what a user at its end can act on."""

from __future__ import annotations

from dataclasses import replace

import advice_samples as samples

from advisor.model.recommendations import Need
from advisor.output.job_lines import render_action_line, render_run_line


def test_behind_what_lies_outside_of_the_phases_stands_what_is_lost_within_them() -> None:
    advice = samples.full()
    rest = replace(advice.gaps[-1], name="X", members=(), seconds=30.0, share=0.6, regions=())
    inner = max(advice.gaps[:-1], key=lambda gap: gap.seconds)
    said = render_run_line(replace(advice, gaps=(*advice.gaps[:-1], rest)), 1).split("; ")
    assert said[2] == "most is lost to start-up, shutdown and the rest: 30.0 s (60.0 % of the run)"
    assert said[3].startswith("then to ")
    assert f"{inner.seconds:.1f}"[:2] in said[3]
    only = render_run_line(replace(advice, gaps=(inner,)), 1)
    assert "then to" not in only


def test_the_region_that_holds_most_of_the_largest_gap_is_named() -> None:
    advice = samples.full()
    largest = max(advice.gaps[:-1], key=lambda gap: gap.seconds)
    region = next(share for gap in advice.gaps for share in gap.regions)
    mine = replace(largest, seconds=9.0, regions=(replace(region, name="solve", seconds=5.0),))
    spread = replace(largest, seconds=9.0, regions=(replace(region, name="solve", seconds=4.0),))
    assert "mostly in solve" in render_run_line(replace(advice, gaps=(mine,)), 1)
    assert "mostly in" not in render_run_line(replace(advice, gaps=(spread,)), 1)


def test_without_an_item_the_line_says_what_to_measure() -> None:
    advice = samples.insufficient()
    doubts = tuple(replace(note, collect=None) for note in advice.grade.notes)
    asked = replace(
        advice, needs=(Need("memory.share", "perf stat ./heat"),), grade=replace(advice.grade, notes=doubts), bounds=()
    )
    assert (
        render_action_line(asked, "gapwatch advise run")
        == "no advice: not enough evidence; measure more: perf stat ./heat; gapwatch advise run"
    )
    nothing = render_action_line(samples.nothing(), "gapwatch advise run")
    assert nothing == "nothing to do: no gap is large enough to act on; gapwatch advise run"
    full = samples.full()
    silent = replace(full, recommendations=tuple(replace(one, state="suppressed") for one in full.recommendations))
    assert render_action_line(silent, "x") == "no advice but what is suppressed; x"
