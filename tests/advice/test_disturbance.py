"""Other programs beside a run: what they may have made is no fault of the program."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from strategies import build, phase

from advisor.advice import facts, rules, verdict
from advisor.advice.facts.sheet import SECOND_RUN, UNDISTURBED_RUN
from advisor.advice.rules import matching
from advisor.advice.rules.cases import build_case_sheet
from advisor.advice.rules.matching import find_possible
from advisor.analysis import bounds, gaps
from advisor.analysis.disturbance import (
    DISTURBED_GAPS,
    IO_DELAY,
    LONGEST_DELAY,
    QUEUE_DELAY,
    REPEATED,
    TAKEN,
    UNREPEATED,
    disturbance_seconds,
    doubtful_seconds,
    undisturbed_seconds,
)
from advisor.model.policy import MERGED_SHARE
from advisor.model.recommendations import Need
from advisor.model.records import OTHER_PROGRAMS, Gap, Note, Phase
from advisor.trace.counts import UNDISTURBED_TRANSFER

if TYPE_CHECKING:
    from advisor.advice.facts import FactSheet
    from advisor.model.records import Profile


def unbalanced(longest_s: float) -> Profile:
    """Two ranks, of which the second works twice as long in each of ten steps; 15 s in all."""
    work = np.array([[[0.5] * 10, [1.5] * 10]])
    arrays = {"wall_s": np.full_like(work, 1.5), "cpu_s": work, "wait_s": 1.5 - work}
    arrays |= dict.fromkeys(("transfer_s", "sync_s", "io_s", "os_s"), np.zeros_like(work))
    found = build([phase([[1.0], [1.0]])])
    step = Phase("step", "parallel", np.array([0]), arrays, "MPI_Barrier", np.arange(10) * 1.5, np.full(10, 1.5))
    counts = {name: np.zeros((1, 2)) for name in (LONGEST_DELAY, QUEUE_DELAY, TAKEN)}
    counts[LONGEST_DELAY][0, 0] = longest_s
    counts[QUEUE_DELAY][0] = longest_s / 2
    counts[TAKEN][0, 0] = 6.0
    status = {**dict.fromkeys(arrays, "measured"), "cpu_s": "estimated"}  # or it would prove the imbalance
    return replace(found, phases=(step,), actual_s=15.0, counts=counts, cores=2, status=status, paradigms=("mpi",))


def sheet_of(profile: Profile) -> FactSheet:
    levels = bounds.compute_bounds(profile, None)
    return facts.collect_facts(profile, levels, gaps.attribute_gaps(profile, levels))


def test_input_and_output_are_known_down_to_what_delayed_their_calls() -> None:
    profile = unbalanced(7.0)
    (step,) = profile.phases
    io_s = np.full_like(step.arrays["io_s"], 0.1)
    step = replace(step, arrays={**step.arrays, "io_s": io_s, "wait_s": step.arrays["wait_s"] - io_s})
    for delay_s, low in ((0.0, 1.0), (0.1, 1.0), (0.4, 0.6), (2.0, 0.0)):
        counts = {**profile.counts, IO_DELAY: np.full((1, 2), delay_s)}
        span = sheet_of(replace(profile, phases=(step,), counts=counts)).run.gap_span("O")
        assert (span.low, span.high) == pytest.approx((low, 1.0)), f"{delay_s} s: less than 1 % of the run is nothing"


def test_processors_that_were_seen_to_want_few_cores_share_none() -> None:
    """Two processors and one core, which is too little unless a recording told that others caused all delays."""
    profile = replace(unbalanced(2.0), cores=1)
    assert sheet_of(profile).run.values["run.oversubscription"] == 1
    assert bounds.explain_shared_cores(profile) is None
    profile = replace(profile, counts={})
    assert sheet_of(profile).run.values["run.oversubscription"] == 2
    assert bounds.explain_shared_cores(profile) is not None


def test_a_rank_that_only_hands_out_work_competes_for_no_core() -> None:
    profile = replace(unbalanced(2.0), cores=1, counts={})
    (step,) = profile.phases
    for share, ratio in ((0.0, 1), (0.5, 2)):
        cpu_s = step.arrays["cpu_s"].copy()
        cpu_s[:, 0] = share * cpu_s[:, 1]
        master = replace(profile, phases=(replace(step, arrays={**step.arrays, "cpu_s": cpu_s}),))
        assert sheet_of(master).run.values["run.contention"] == ratio
        assert sheet_of(master).run.values["run.oversubscription"] == 2


def test_where_others_hold_half_of_the_cores_own_ranks_do_not_matter() -> None:
    profile = unbalanced(2.0)
    for taken_s, known in ((14.9, True), (15.0, False)):
        held = replace(profile, counts={**profile.counts, TAKEN: np.array([[taken_s, 0.0]])})
        assert ("run.contention" in sheet_of(held).run.values) == known


def test_a_gap_is_known_down_to_what_others_cannot_have_made() -> None:
    for longest_s, low in ((0.0, 5.0), (2.0, 3.0), (7.0, 0.0)):
        span = sheet_of(unbalanced(longest_s)).run.gap_span("L")
        assert span.high == pytest.approx(5.0)
        assert span.low == pytest.approx(low)


def test_shares_of_gaps_are_shares_of_the_run_without_the_queue() -> None:
    profile = unbalanced(12.0)
    assert undisturbed_seconds(profile) == pytest.approx(9.0), "each rank queued for 6 of 15 s"
    assert sheet_of(profile).run.run_s == pytest.approx(9.0)
    starved = replace(profile, counts=profile.counts | {QUEUE_DELAY: np.array([[12.0, 12.0]])})
    assert undisturbed_seconds(starved) == pytest.approx(3.0), "no more than is left to each"
    polling = replace(profile, counts=profile.counts | {QUEUE_DELAY: np.array([[9.0, 1.5]])})
    assert undisturbed_seconds(polling) == pytest.approx(10.0), "what it computes, as both have a core for 5.4 s"
    assert undisturbed_seconds(unbalanced(0.1)) == 15.0, "less than 1 % of the run is nothing"


def test_transfer_is_known_down_to_what_equal_calls_took() -> None:
    profile = unbalanced(20.0)
    (step,) = profile.phases
    moved = np.full_like(step.arrays["transfer_s"], 0.2)
    arrays = {**step.arrays, "transfer_s": moved, "wait_s": np.maximum(step.arrays["wait_s"] - moved, 0.0)}
    profile = replace(profile, phases=(replace(step, arrays=arrays),))
    assert sheet_of(profile).run.gap_span("C'").low == 0.0
    counts = {**profile.counts, UNDISTURBED_TRANSFER: np.full((1, 2), 0.5)}
    assert sheet_of(replace(profile, counts=counts)).run.gap_span("C'").low == pytest.approx(0.5)


def test_after_a_second_run_one_without_other_programs_is_asked_for() -> None:
    once = unbalanced(7.0)
    again = replace(once, notes=(Note(REPEATED, "the load was balanced in both"),))
    for profile, lacking in ((once, SECOND_RUN), (again, UNDISTURBED_RUN)):
        need = sheet_of(profile).run.gap_span("L").need
        assert need is not None
        assert need.fact == lacking
        assert ("--deep" in need.command) == (lacking == SECOND_RUN)


def test_imbalance_that_need_not_come_back_is_no_gap() -> None:
    profile = unbalanced(0.0)
    profile = replace(profile, counts={**profile.counts, UNREPEATED: np.array([[1.0, 0.0]])})
    assert doubtful_seconds(profile, "L") == 1.0
    assert doubtful_seconds(profile, "C'") == doubtful_seconds(profile, "P") == 0.0
    assert sheet_of(profile).run.gap_span("L").low == pytest.approx(4.0)


def test_no_change_is_tried_on_what_may_be_noise() -> None:
    book = rules.load_default()
    for longest_s, fires in ((0.0, True), (7.0, False)):
        found = find_possible(rules.match_rules(book, sheet_of(unbalanced(longest_s))))
        about = {one.action.id for one in found if one.action.targets and set(one.action.targets) <= DISTURBED_GAPS}
        assert bool(about) == fires, about


def test_no_rule_fires_on_what_may_be_noise() -> None:
    """The case of a rule fires, and stays undecided where others may have made its gaps."""
    book = rules.load_default()
    action = next(one for one in book.actions if one.id == "A-28")
    fired = next(m for m in rules.match_rules(book, build_case_sheet("skewed-load")).fired if m.action is action)
    gap = str(action.targets[0])
    span = replace(fired.site.gap_span(gap), low=0.0, need=Need(SECOND_RUN, ""))
    site = replace(fired.site, spans={**fired.site.spans, gap: span})
    assert matching._doubt_outcome(fired.outcome, action, fired.site).truth
    assert matching._doubt_outcome(fired.outcome, action, site).truth is None


def test_barriers_that_add_up_certain_delays_may_go_though_their_own_cost_is_in_doubt() -> None:
    action = next(one for one in rules.load_default().actions if one.id == "G-13")
    fired = next(
        m for m in rules.match_rules(rules.load_default(), build_case_sheet("many-barriers")).fired
        if m.action.id == action.id
    )  # fmt: skip
    doubtful = replace(fired.site.gap_span("S'"), low=0.0, need=Need(SECOND_RUN, ""))
    for low, noise in ((0.0, True), (fired.site.run_s / 5, False)):
        delays = replace(fired.site.gap_span("D"), low=low, need=Need(SECOND_RUN, ""))
        site = replace(fired.site, spans={**fired.site.spans, "S'": doubtful, "D": delays})
        assert matching._may_be_noise(action, site) == noise


def test_the_share_of_others_is_a_fact() -> None:
    values = sheet_of(unbalanced(3.0)).run.values
    assert values["run.disturbance_share"] == pytest.approx(0.2)
    assert values["run.queue_share"] == pytest.approx(0.1)
    assert values["run.others_share"] == pytest.approx(0.2)


def test_runs_that_were_sampled_have_their_own_measure() -> None:
    quiet = replace(unbalanced(0.0), counts={})
    assert disturbance_seconds(quiet) == 0.0
    assert disturbance_seconds(replace(quiet, outside={OTHER_PROGRAMS: np.array([1.0, 2.0])})) == 2.0
    assert disturbance_seconds(replace(quiet, outside={OTHER_PROGRAMS: np.array([0.01, 0.02])})) == 0.0


def test_a_part_of_the_run_is_only_as_doubtful_as_its_computation_is_long() -> None:
    profile = unbalanced(0.0)
    (step,) = profile.phases
    other = replace(step, name="other")
    counts = {**profile.counts, UNREPEATED: np.array([[2.0, 0.0]])}
    halves = replace(profile, phases=(step, other), actual_s=30.0, counts=counts)
    for site in sheet_of(halves).sites:
        assert site.gap_span("L").low == pytest.approx(site.gap_span("L").high - 1.0)


def test_what_others_took_is_neither_start_up_nor_shutdown() -> None:
    """The run lasted 4 s longer than its phases, for 3 s of which other programs held the cores."""
    profile = replace(unbalanced(3.0), actual_s=19.0, outside={OTHER_PROGRAMS: np.array([3.0, 2.0])})
    levels = bounds.compute_bounds(profile, None)
    (gap,) = (one for one in gaps.attribute_gaps(profile, levels) if one.name == "X")
    assert {share.name: share.seconds for share in gap.iterations} == pytest.approx(
        {OTHER_PROGRAMS: 3.0, "shutdown": 1.0}
    )


@pytest.mark.parametrize(("io_s", "is_asked"), [(0.05, False), (4.0, True)])
def test_what_the_system_takes_needs_no_measurement_of_files(io_s: float, *, is_asked: bool) -> None:
    """Of 15 s, 5 s are O: files for ``io_s``, and the rest is time without a core."""
    work = np.full((1, 2, 10), 1.0)
    arrays = {"wall_s": np.full_like(work, 1.5), "cpu_s": work, "io_s": np.full_like(work, io_s / 10)}
    arrays |= {"os_s": 0.5 - arrays["io_s"]}
    arrays |= dict.fromkeys(("transfer_s", "sync_s", "wait_s"), np.zeros_like(work))
    step = Phase("step", "parallel", np.array([0]), arrays, "MPI_Barrier", np.arange(10) * 1.5, np.full(10, 1.5))
    found = replace(
        build([phase([[1.0], [1.0]])]), phases=(step,), actual_s=15.0, cores=2, paradigms=("mpi",),
        status=dict.fromkeys(arrays, "measured"),
    )  # fmt: skip
    matches = rules.match_rules(rules.load_default(()), sheet_of(found))
    asked = {need.fact for need in matches.needs}
    assert ("io.bursts" in asked) == is_asked
    files = [match for match in matches.undecided if match.action.issue == "I-27" and match.site.place]
    assert files
    assert all(match.other_system_s == pytest.approx(5.0 - io_s) for match in files)
    assert all(match.stake_s <= io_s + 1e-9 for match in files if tuple(match.action.targets) == ("O",))


@pytest.mark.parametrize("named", [True, False])
def test_time_without_shared_cores_is_not_insignificant_where_others_took_some(*, named: bool) -> None:
    gap = Gap("O", ("O",), "IPC", "IPCO", 13.0, 13.0 / 15.0, "measured")
    taken = np.zeros((1, 2))
    taken[0, 0] = 20.0
    notes = (Note(OTHER_PROGRAMS, "other programs had 66.7 % of the cores", 0.3),) if named else ()
    crowded = replace(unbalanced(0.0), counts={TAKEN: taken}, notes=notes)
    assert (verdict._waiting_share(crowded, [gap]) > MERGED_SHARE) == named
    queued = {**crowded.counts, LONGEST_DELAY: np.zeros((1, 2))}
    assert verdict._waiting_share(replace(crowded, counts=queued), [gap]) == 0.0, "set aside already"
