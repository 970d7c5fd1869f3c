"""All changes that could be made to a run, simulated on it: each alone, then behind the better ones.

What wins most is made first, and the others are tried again on the changed run. A change that then wins little is one
for the same seconds; it is named in the place of the one that took them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.advice.counterfactuals import Candidate, Counterfactual
from advisor.advice.facts.places import is_significant
from advisor.analysis.disturbance import disturbance_seconds, has_free_cores, undisturbed_seconds
from advisor.analysis.proven_imbalance import prove_imbalance, prove_transfer
from advisor.trace.counts import UNDISTURBED_TRANSFER
from advisor.trace.regions import is_sleep
from advisor_simulation.whatif.changes import HIDDEN
from advisor_simulation.whatif.evidence import (
    HARDLY,
    describe_assumption,
    find_regions,
    is_hiding,
    raise_high,
    weigh_doubt,
)
from advisor_simulation.whatif.gains import MOVING, compare_trials, noise_s
from advisor_simulation.whatif.placing import is_well_placed
from advisor_simulation.whatif.reasons import OF_RUNS
from advisor_simulation.whatif.traced.operations import REWRITES
from advisor_simulation.whatif.trial import Trial, WorkBudget, apply_change, find_trial

if TYPE_CHECKING:
    from advisor.model.records import Profile
    from advisor.trace.events import Trace
    from advisor_simulation.whatif.excerpt import Excerpt

    Key = tuple[tuple[tuple[str, str], ...], tuple[int, ...]]

#: The share of all work that is left for trying changes behind better ones.
RESERVED_SHARE: Final = 0.25
#: Changes that win so much of what the best one wins are equally good: typical fraction and effort decide. So are those
#: that win a little less and are this many times as sure.
NEARLY: Final = 0.95
NEARLY_SURE: Final = 0.9
SURER: Final = 3.0
#: A change that wins less than this part of what it wins alone, is one for seconds that better ones win.
REPETITION: Final = 0.25
#: Changes that some recordings tell.
FEWER: Final = ("ranks", "cores")
SLEEP: Final = ("sleep", "removed")
MAPPING: Final = ("mapping", "neighbours")
#: A change that no recording tells at all: which bytes their receivers use.
BYTES: Final = ("bytes", "fewer")
#: Changes of messages and meetings: none of them gives a waiting thread a core.
OF_WAITS: Final = frozenset({*(word[0] for word in REWRITES), "regions"} - {"sleep"})
#: Items at most.
MOST: Final = 6


@dataclass(frozen=True, slots=True)
class _AloneGain:
    """What a change wins alone (``ChangeGain``), in which ``regions``, and whether operations were replayed.

    The changed run itself is not kept: of many changes these would be most of the memory.
    """

    expected_s: float
    low_s: float
    high_s: float
    regions: tuple[str, ...]
    is_replayed: bool


@dataclass(slots=True)
class _Search:
    """Changes by key, what each wins alone, and how much work is left; keys that are missing were not tried.

    ``steady`` is the part of what a change wins that is not the wait for whom noise has delayed, where that was asked.
    Hiding communication wins ``proven_s`` at most: where others held the cores, what equal calls and CPU clocks prove.
    """

    trial: Trial
    candidates: Sequence[Candidate]
    keys: Sequence[Key]
    least_s: float
    alone: dict[Key, _AloneGain | None] = field(default_factory=dict)
    assumed: dict[Key, str] = field(default_factory=dict)
    budget: WorkBudget = field(default_factory=WorkBudget)
    well_placed: bool = False
    steady: dict[Key, float] = field(default_factory=dict)
    proven_s: float = math.inf

    def is_worth_making(self, key: Key, gain_s: float) -> bool:
        """Return whether a change that wins so much behind better ones is worth its effort, and no repetition.

        One that wins nothing alone is for when the better ones have been made.
        """
        alone = self.alone[key]
        if alone is None or gain_s <= max(self.least_s, REPETITION * alone.expected_s):
            return False
        sure_s = min(gain_s, alone.expected_s) - (alone.expected_s - alone.low_s)
        actual_s = undisturbed_seconds(self.trial.run.profile)
        return is_significant(sure_s, actual_s) and is_significant(self.weigh_gain(key, gain_s), actual_s)

    def weigh_gain(self, key: Key, gain_s: float) -> float:
        """Return what a gain counts: less where it depends on what the recording does not show.

        And no more than alone: what others make of an assumption is no evidence for it.
        """
        alone = self.alone[key]
        if alone is None:
            return gain_s
        traced = self.trial.traced
        if traced is None and _takes_turns(self.trial.run.profile) and not OF_WAITS.isdisjoint(dict(key[0])):
            return min(gain_s, alone.expected_s) * HARDLY  # what is waited for is a core
        if not self.assumed[key]:
            return gain_s
        if traced is not None and traced.shared_cores and FEWER not in key[0]:
            return min(gain_s, alone.expected_s) * HARDLY  # what else is waited for is a core
        steady = self.steady.get(key, 1.0)
        return min(gain_s, alone.expected_s) * (steady * weigh_doubt(key[0]) + (1.0 - steady) * HARDLY)


def _takes_turns(profile: Profile) -> bool:
    """Return whether threads and ranks share cores, none of which was seen free."""
    return bool(profile.cores) and len(profile.processors) > (profile.cores or 0) and not has_free_cores(profile)


def simulate_candidates(
    profile: Profile, candidates: Sequence[Candidate], trace: Trace
) -> list[Counterfactual | None] | None:
    """Return what each candidate wins; None where operations of the trace can't be replayed.

    Threads meet in barriers, not in messages: runs with threads are tried by phases.
    """
    trial = find_trial(profile, trace)
    if trial is None or not (trial.is_replayed or trial.run.processors > profile.ranks):
        return None
    return _judge_run(trial, candidates) if trial.excerpt is None else _judge_excerpt(trial, trial.excerpt, candidates)


def _judge_run(trial: Trial, candidates: Sequence[Candidate]) -> list[Counterfactual | None]:
    keys = [(tuple(candidate.change.items()), candidate.phases) for candidate in candidates]
    search = _Search(trial, candidates, keys, noise_s(trial), well_placed=_are_well_placed(trial, candidates))
    profile = trial.run.profile
    if disturbance_seconds(profile) and UNDISTURBED_TRANSFER in profile.counts:
        search.proven_s = HIDDEN * (sum(prove_imbalance(profile).values()) + prove_transfer(profile))
    _try_each_alone(search)
    chosen = _choose_changes(search)
    return [_build_counterfactual(search, number, chosen) for number in range(len(candidates))]


def _judge_excerpt(trial: Trial, excerpt: Excerpt, candidates: Sequence[Candidate]) -> list[Counterfactual | None]:
    """Return what candidates win by what they win in an excerpt; None for those about phases that it does not have."""
    phases = [excerpt.find_phases(set(candidate.phases)) for candidate in candidates]
    inside = [number for number, chosen in enumerate(phases) if chosen is not None]
    tried = [replace(candidates[number], phases=tuple(sorted(phases[number] or ()))) for number in inside]
    found: list[Counterfactual | None] = [None] * len(candidates)
    for number, one in zip(inside, _judge_run(trial, tried), strict=True):
        if one is not None:
            whole = one.scale_seconds(excerpt.scale_gain(phases[number] or set()))
            found[number] = replace(whole, instead_of=inside[one.instead_of] if one.instead_of >= 0 else -1)
    return found


def _are_well_placed(trial: Trial, candidates: Sequence[Candidate]) -> bool:
    """Return whether ranks share hosts as they should; False where no candidate is about that."""
    asked = any(MAPPING in candidate.change.items() for candidate in candidates)
    return asked and trial.traced is not None and is_well_placed(trial.traced.rows.program)


def _is_beyond_recording(search: _Search, change: Mapping[str, str]) -> bool:
    """Return whether the recording can't show the gain of a change."""
    profile = search.trial.run.profile
    if MAPPING in change.items() and search.well_placed:
        return False  # ranks that exchange much share hosts already
    if FEWER in change.items() and search.trial.traced is not None and search.trial.traced.turns is not None:
        return False
    if FEWER in change.items():  # without CPU times, what looks like computation holds the turns of others
        return not all("cpu_s" in phase.arrays for phase in profile.phases)
    if SLEEP in change.items():  # what was not a call to sleep may be a page fault, a lock, a pipe
        return not any(is_sleep(region.name) for region in profile.regions)
    return BYTES in change.items() or any(word in OF_RUNS for word in change.items())


def _try_each_alone(search: _Search) -> None:
    """Simulate each change alone, the most promising first, as far as the budget goes."""
    promised = [candidate.ceiling_s * candidate.typical_fraction for candidate in search.candidates]
    for number in sorted(range(len(promised)), key=lambda number: -promised[number]):
        key = search.keys[number]
        if key in search.alone or _is_beyond_recording(search, search.candidates[number].change):
            continue
        if not search.budget.can_afford(search.trial, RESERVED_SHARE):
            return
        search.alone[key] = _try_alone(search, key)
        search.assumed[key] = describe_assumption(search.trial, key[0], set(key[1]))
    _find_steady_parts(search)


def _try_alone(search: _Search, key: Key) -> _AloneGain | None:
    after = _make_change(search, search.trial, key)
    if after is None:
        return None
    gain = compare_trials(search.trial, after, dict(key[0]))
    regions = find_regions(key[0], search.trial, after)
    most_s = search.proven_s if is_hiding(key[0]) else math.inf
    expected_s, low_s, high_s = (min(each, most_s) for each in (gain.expected_s, gain.low_s, gain.high_s))
    return _AloneGain(expected_s, low_s, high_s, regions, after.is_replayed)


def _find_steady_parts(search: _Search) -> None:
    """Note how much of what changes win that depend on an assumption they win as well where nothing is noise."""
    traced, actual_s = search.trial.traced, undisturbed_seconds(search.trial.run.profile)
    wins = {key: one.expected_s for key, one in search.alone.items() if one is not None and search.assumed[key]}
    keys = [
        key
        for key, gain_s in wins.items()
        if FEWER not in key[0] and is_significant(search.weigh_gain(key, gain_s), actual_s)
    ]
    quiet = traced.without_noise() if traced is not None and keys else None
    if quiet is None:
        return
    without = replace(search.trial, traced=quiet)
    for key in keys:
        if search.budget.can_afford(without):
            after = _make_change(search, without, key)
            won_s = 0.0 if after is None else without.total_seconds() - after.total_seconds()
            search.steady[key] = min(max(won_s / wins[key], 0.0), 1.0)


def _make_change(search: _Search, trial: Trial, key: Key) -> Trial | None:
    """Return the run after a change; without operations, only what ends in a barrier can go on without it."""
    words, phases = dict(key[0]), set(key[1])
    if not trial.is_replayed and not {"barriers", "phases"}.isdisjoint(words):
        closed = [str(phase.closed_by).lower() for phase in trial.run.profile.phases]
        barriers = {number for number, call in enumerate(closed) if "barrier" in call and "implicit" not in call}
        phases = barriers & phases if phases else barriers
        if not phases:
            return None
    search.budget.spend_on(trial)
    return apply_change(trial, words, phases)


@dataclass(frozen=True, slots=True)
class _ChosenChanges:
    """Changes in the order in which they are made: number of the candidate and gain; who took whose seconds."""

    made: tuple[tuple[int, float], ...]
    instead_of: Mapping[Key, int]


def _choose_changes(search: _Search) -> _ChosenChanges:
    """Return the changes that are worth making one after the other."""
    now, made = search.trial, list[tuple[int, float]]()
    wins = {key: found.expected_s for key, found in search.alone.items() if found is not None}
    lost: dict[Key, tuple[float, int]] = {}
    while len(made) < MOST:
        best = _find_best(search, wins)
        if best is None:
            break
        key = search.keys[best]
        made.append((best, wins.pop(key)))
        lost[key] = made[-1][1], best
        if not search.budget.can_afford(now):
            break
        now = _make_change(search, now, key) or now
        for other in sorted(wins, key=lambda each: -wins[each]):
            further = 0.0
            if search.budget.can_afford(now):
                further = _win_behind(search, now, other)
            drop = wins[other] - further
            if drop > lost.get(other, (0.0, -1))[0]:
                lost[other] = drop, best
            wins[other] = further
    return _ChosenChanges(tuple(made), {key: number for key, (_, number) in lost.items()})


def _win_behind(search: _Search, now: Trial, key: Key) -> float:
    """Return what a change wins on a run that was changed before, seconds.

    Where that run is known by phases only, a change that was replayed alone wins no more than then: phases know less.
    """
    found, alone = _make_change(search, now, key), search.alone[key]
    further = 0.0 if found is None else now.total_seconds() - found.total_seconds()
    if alone is not None and alone.is_replayed and not now.is_replayed:
        return min(further, alone.expected_s)
    return further


def _find_best(search: _Search, wins: Mapping[Key, float]) -> int | None:
    """Return the candidate to make next: of those that win nearly most the one that is easiest and usually works."""
    worth = {key: search.weigh_gain(key, gain_s) for key, gain_s in wins.items() if search.is_worth_making(key, gain_s)}
    if not worth:
        return None
    best = max(worth, key=lambda key: worth[key])
    near = {key for key in worth if worth[key] >= _nearly(search, key, best) * worth[best]}
    fitting = [number for number, key in enumerate(search.keys) if key in near]
    ease = [candidate.typical_fraction / candidate.effort for candidate in search.candidates]
    return max(fitting, key=lambda number: (ease[number], -number))


def _nearly(search: _Search, key: Key, best: Key) -> float:
    """Return how much of what the best change wins makes another one as good."""
    doubts = []
    for each in (key, best):
        alone = search.alone[each]
        doubts.append(0.0 if alone is None or alone.expected_s <= 0 else 1.0 - alone.low_s / alone.expected_s)
    return NEARLY_SURE if SURER * doubts[0] <= doubts[1] else NEARLY


def _build_counterfactual(search: _Search, number: int, chosen: _ChosenChanges) -> Counterfactual | None:
    key = search.keys[number]
    if _is_beyond_recording(search, search.candidates[number].change):
        return None
    if key not in search.alone:
        return Counterfactual(0.0, 0.0, 0.0, simulated=False)
    found = search.alone[key]
    if found is None:
        return Counterfactual(0.0, 0.0, 0.0)
    low_s = min(found.low_s, found.expected_s, 0.0 if search.assumed[key] else np.inf)
    high_s = max(found.high_s, raise_high(key[0], found.expected_s))
    alone = Counterfactual(found.expected_s, low_s, high_s, assumed=search.assumed[key])
    for place, (one, gain_s) in enumerate(chosen.made):
        if one == number:
            regions = found.regions
            region = regions[0] if len(regions) == 1 else None if regions else ""
            most_s = _find_most(search, key)
            return replace(alone, order=place, further_s=gain_s, region=region, regions=regions, most_s=most_s)
    if is_significant(found.expected_s, undisturbed_seconds(search.trial.run.profile)):
        return replace(alone, instead_of=chosen.instead_of.get(key, -1))
    return alone


def _find_most(search: _Search, key: Key) -> float:
    """Return the most that a change could gain, seconds; 0 if neither operations nor loads show it."""
    traced = search.trial.traced
    if traced is None:
        moved = not MOVING.isdisjoint(word[0] for word in key[0])
        return search.trial.run.most_seconds(set(key[1])) if moved else 0.0
    return max((traced.most_seconds(word, search.trial.run, set(key[1])) for word in key[0]), default=0.0)
