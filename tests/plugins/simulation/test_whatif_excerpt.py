"""Excerpts of long runs: what changes win in them, times what they stand for, is what they win in the whole run."""

from __future__ import annotations

import gc
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))
from lab.archive import write_archive
from lab.shapes import build
from lab.world import run

from advisor.advice.counterfactuals import Candidate, Counterfactual
from advisor.formats.otf2.hooks import read_trace
from advisor.trace import nesting
from advisor.trace.events import Kind
from advisor.trace.profile import from_trace
from advisor_simulation.whatif import excerpt, judging, trial
from advisor_simulation.whatif.disturbances import build_findings
from advisor_simulation.whatif.expected_gain import find_best_gain
from advisor_simulation.whatif.gains import try_change
from advisor_simulation.whatif.judging import simulate_candidates
from advisor_simulation.whatif.measured_run import build_run
from advisor_simulation.whatif.traced.rows import ReplayRows

if TYPE_CHECKING:
    from advisor.model.records import Profile
    from advisor.trace.events import Trace
    from advisor_simulation.whatif.measured_run import MeasuredRun

#: Exchanges and a pipeline whose ranks have unequal work, both with reductions that others could compute behind.
PROGRAMS = ((9105, "two_phases"), (9599, "transport_sweep"))
CHANGES = (
    {"rebalance": "ranks"}, {"schedule": "dynamic"}, {"collectives": "nonblocking"}, {"pipeline": "finer"},
    {"messages": "overlapped"},
)  # fmt: skip


class Recorded(NamedTuple):
    profile: Profile
    trace: Trace
    excerpt: excerpt.Excerpt


@pytest.fixture(scope="module", params=PROGRAMS, ids=str)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """A program of the laboratory with many more iterations than usual, and an excerpt of a third of it."""
    code = build(*request.param)
    code = replace(code, iterations=max(code.iterations, 70))
    made = run(code, record=True)
    path = write_archive(
        tmp_path_factory.mktemp("long") / "run", made.log, ranks=code.ranks, threads=code.threads,
        ranks_per_host=code.machine.ranks_per_host, sources=code.sources(),
    )  # fmt: skip
    trace = read_trace(path)
    profile = from_trace(trace)
    taken = excerpt.take_excerpt(profile, trace, len(trace.kind) // 3)
    assert taken is not None
    return Recorded(profile, trace, taken)


def test_calls_are_whole_and_times_go_on(recorded: Recorded) -> None:
    trace = recorded.excerpt.trace
    assert 0.2 * len(recorded.trace.kind) < len(trace.kind) < 0.5 * len(recorded.trace.kind)
    for first, stop in zip(trace.first[:-1], trace.first[1:], strict=True):
        kind = trace.kind[first:stop]
        depth = np.cumsum((kind == Kind.ENTER).astype(int) - (kind == Kind.LEAVE))
        assert depth.min() >= 0
        assert depth[-1] == 0
        assert (np.diff(trace.time_s[first:stop]) >= 0).all()
    calls = nesting.pair_calls(trace)
    assert (trace.region[calls.leave] == calls.region).all()
    sends, receives = (np.count_nonzero(np.isin(trace.kind, kinds)) for kinds in
                       ((Kind.SEND, Kind.ISEND), (Kind.RECV, Kind.IRECV)))  # fmt: skip
    assert sends == receives > 0


def test_phases_are_those_of_the_run_with_fewer_instances(recorded: Recorded) -> None:
    whole, part = recorded.profile, recorded.excerpt
    again = from_trace(part.trace)
    assert again.actual_s == pytest.approx(part.profile.actual_s, rel=0.01)
    for number, place in part.phase.items():
        long, short = whole.phases[number], part.profile.phases[place]
        assert long.name == short.name
        assert 1 < short.iterations < long.iterations
        assert short.duration_s is not None
        assert part.seconds[1, place] == pytest.approx(short.duration_s.sum())
    shares = part.seconds[0] / part.seconds[1]
    assert part.scale_gain(set()) == pytest.approx(part.seconds[0].sum() / part.seconds[1].sum())
    assert shares.min() <= part.scale_gain(set()) <= shares.max()


def test_gains_are_those_of_the_whole_run(recorded: Recorded) -> None:
    whole = trial.build_trial(_build_run(recorded.profile), recorded.trace)
    part = trial.build_trial(_build_run(recorded.excerpt.profile), recorded.excerpt.trace)
    assert whole.is_replayed
    assert part.is_replayed
    least, compared = 0.01 * recorded.profile.actual_s, 0
    for words in CHANGES:
        found = [try_change(each, words) for each in (whole, part)]
        times = (1.0, recorded.excerpt.scale_gain(set()))
        gains = [each.expected_s * by if each is not None else 0.0 for each, by in zip(found, times, strict=True)]
        if max(gains) > least:
            compared += 1
            assert gains[1] == pytest.approx(gains[0], rel=0.1, abs=0.4 * least)
            assert found[1] is not None
            assert times[1] * found[1].low_s <= gains[0] <= times[1] * found[1].high_s
    assert compared >= 2


def test_candidates_are_judged_by_the_excerpt(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "WHOLE_EVENTS", 10)
    monkeypatch.setattr(excerpt.take_excerpt, "__defaults__", (len(recorded.trace.kind) // 3,))
    monkeypatch.setattr(trial._Latest, "profile", None)
    seldom = next(n for n, phase in enumerate(recorded.profile.phases) if phase.iterations < excerpt.OFTEN)
    candidates = [Candidate(str(number), words, (), 2, 0.5, 1.0) for number, words in enumerate(CHANGES)]
    candidates.insert(1, Candidate("seldom", {"rebalance": "ranks"}, (seldom,), 2, 0.5, 1.0))
    found = simulate_candidates(recorded.profile, candidates, recorded.trace)
    assert found is not None
    assert found[1] is None, "no excerpt tells of what comes once"
    made = trial.find_trial(recorded.profile, recorded.trace)
    assert made is not None
    assert made.excerpt is not None
    best = found[0]
    expected = find_best_gain(made, CHANGES[0], set())
    assert best is not None
    assert expected is not None
    assert best.gain_s == pytest.approx(expected[0])
    by_phases = try_change(trial.Trial(_build_run(recorded.profile)), {"schedule": "dynamic"}, {seldom})
    assert by_phases is not None
    assert find_best_gain(made, {"schedule": "dynamic"}, {seldom}) == pytest.approx(
        (by_phases.expected_s, by_phases.low_s, by_phases.high_s)
    )
    assert all(one is None or one.instead_of != 1 for one in found)
    told = build_findings(recorded.profile, recorded.trace)[0]
    assert told.kind == "excerpt"
    assert told.measures["events"] == len(made.excerpt.trace.kind)
    assert f"{len(recorded.trace.kind):,} events" in told.text


def test_no_changed_run_is_kept_for_each_change_that_was_tried(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive: list[int] = []

    def count_rows(search: judging._Search) -> judging._ChosenChanges:
        gc.collect()
        alive.append(sum(isinstance(each, ReplayRows) for each in gc.get_objects()))
        return judging._ChosenChanges((), {})

    monkeypatch.setattr(judging, "_choose_changes", count_rows)
    tried = []
    for changes in (CHANGES[:1], CHANGES):
        candidates = [Candidate(str(number), words, (), 2, 0.5, 1.0) for number, words in enumerate(changes)]
        found = simulate_candidates(recorded.profile, candidates, recorded.trace)
        assert found is not None
        tried.append(sum(one is not None and one.gain_s > 0 for one in found))
    assert tried[1] > tried[0]
    assert alive[1] == alive[0]


def test_all_seconds_are_those_of_the_whole_run() -> None:
    seconds = [each.name for each in fields(Counterfactual) if each.name.endswith("_s")]
    made = replace(Counterfactual(1.0, 0.5, 2.0), further_s=0.7, most_s=3.0)
    assert all(getattr(made.scale_seconds(4.0), name) == 4.0 * getattr(made, name) > 0 for name in seconds)


def test_what_comes_too_seldom_makes_no_excerpt(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = excerpt.take_excerpt(recorded.profile, recorded.trace, 100)
    assert tiny is not None
    assert len(tiny.trace.kind) < len(recorded.excerpt.trace.kind), "as few instances as tell anything"
    monkeypatch.setattr(excerpt, "MOST_EVENTS", 100)
    assert excerpt.take_excerpt(recorded.profile, recorded.trace, 100) is None
    few = tuple(replace(phase, start_s=None) for phase in recorded.profile.phases)
    assert excerpt.take_excerpt(replace(recorded.profile, phases=few), recorded.trace, 10_000) is None
    assert excerpt.take_excerpt(replace(recorded.profile, actual_s=1e9), recorded.trace, 10_000) is None


def _build_run(profile: Profile) -> MeasuredRun:
    found = build_run(profile)
    assert found is not None
    return found
