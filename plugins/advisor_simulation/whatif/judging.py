"""All changes that could be made to a run, simulated on it: each alone, then behind the better ones.

What wins most is made first, and the others are tried again on the changed run. A change that then wins little is one
for the same seconds; it is named in the place of the one that took them.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.advice.counterfactuals import Counterfactual
from advisor.advice.facts.places import is_significant
from advisor.model.record_class import dataclass
from advisor.trace.regions import is_sleep
from advisor_simulation.whatif.evidence import describe_assumption, find_regions, raise_high, weigh_doubt
from advisor_simulation.whatif.gains import ChangeGain, compare_trials, noise_s
from advisor_simulation.whatif.placing import is_well_placed
from advisor_simulation.whatif.reasons import OF_RUNS
from advisor_simulation.whatif.trial import Trial, apply_change, find_trial
from advisor_simulation.whatif.work_budget import WorkBudget

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from advisor.advice.counterfactuals import Candidate
    from advisor.model.records import Profile
    from advisor.trace.events import Trace

    Key = tuple[tuple[tuple[str, str], ...], tuple[int, ...]]

#: The share of all work that is left for trying changes behind better ones.
RESERVED_SHARE: Final = 0.25
#: Changes that win so much of what the best one wins are equally good: typical fraction and effort decide.
NEARLY: Final = 0.9
#: A change that wins less than this part of what it wins alone, is one for seconds that better ones win.
REPETITION: Final = 0.25
#: Changes that some recordings tell.
FEWER: Final = ("ranks", "cores")
SLEEP: Final = ("sleep", "removed")
MAPPING: Final = ("mapping", "neighbours")
#: A change that no recording tells at all: which bytes their receivers use.
BYTES: Final = ("bytes", "fewer")
#: Items at most.
MOST: Final = 6


@dataclass(slots=True)
class _Search:
    """Changes by key, what each wins alone, and how much work is left; keys that are missing were not tried."""

    trial: Trial
    candidates: Sequence[Candidate]
    keys: Sequence[Key]
    least_s: float
    alone: dict[Key, ChangeGain | None] = field(default_factory=dict)
    assumed: dict[Key, str] = field(default_factory=dict)
    budget: WorkBudget = field(default_factory=WorkBudget)
    well_placed: bool = False

    def is_worth_making(self, key: Key, gain_s: float) -> bool:
        """Return whether a change that wins so much behind better ones is worth its effort, and no repetition."""
        alone = self.alone[key]
        if alone is None or gain_s <= max(self.least_s, REPETITION * alone.expected_s):
            return False
        sure_s = gain_s - (alone.expected_s - alone.low_s)
        actual_s = self.trial.run.profile.actual_s
        return is_significant(sure_s, actual_s) and is_significant(self.weigh_gain(key, gain_s), actual_s)

    def weigh_gain(self, key: Key, gain_s: float) -> float:
        """Return what a gain counts: less where it depends on what the recording does not show.

        And no more than alone: what others make of an assumption is no evidence for it.
        """
        alone = self.alone[key]
        if not self.assumed[key] or alone is None:
            return gain_s
        return min(gain_s, alone.expected_s) * weigh_doubt(key[0])


def simulate_candidates(
    profile: Profile, candidates: Sequence[Candidate], trace: Trace
) -> list[Counterfactual | None] | None:
    """Return what each candidate wins; None where operations of the trace can't be replayed.

    Threads meet in barriers, not in messages: runs with threads are tried by phases.
    """
    trial = find_trial(profile, trace)
    if trial is None or not (trial.is_replayed or trial.run.processors > profile.ranks):
        return None
    keys = [(tuple(candidate.change.items()), candidate.phases) for candidate in candidates]
    search = _Search(trial, candidates, keys, noise_s(trial), well_placed=_are_well_placed(trial, candidates))
    _try_each_alone(search)
    chosen = _choose_changes(search)
    return [_build_counterfactual(search, number, chosen) for number in range(len(candidates))]


def _are_well_placed(trial: Trial, candidates: Sequence[Candidate]) -> bool:
    """Return whether ranks share hosts as they should; False where no candidate is about that."""
    asked = any(MAPPING in candidate.change.items() for candidate in candidates)
    return asked and trial.traced is not None and is_well_placed(trial.traced.rows.program)


def _is_beyond_recording(search: _Search, change: Mapping[str, str]) -> bool:
    """Return whether the recording can't tell what a change wins."""
    profile = search.trial.run.profile
    if MAPPING in change.items() and search.well_placed:
        return False  # ranks that exchange much share hosts already
    if FEWER in change.items():  # without CPU times, what looks like computation holds the turns of others
        return not all("cpu_s" in phase.arrays for phase in profile.phases)
    if SLEEP in change.items():  # what was not a call to sleep may be a page fault, a lock, a pipe
        return not any(is_sleep(region.name) for region in profile.regions)
    return BYTES in change.items() or any(word in OF_RUNS for word in change.items())


def _try_each_alone(search: _Search) -> None:
    """Simulate each change by itself, those that have most to win first, as far as the budget goes."""
    promised = [candidate.ceiling_s * candidate.typical_fraction for candidate in search.candidates]
    for number in sorted(range(len(promised)), key=lambda number: -promised[number]):
        key = search.keys[number]
        if key in search.alone or _is_beyond_recording(search, search.candidates[number].change):
            continue
        if not search.budget.can_afford(search.trial, RESERVED_SHARE):
            return
        after = _make_change(search, search.trial, key)
        search.alone[key] = None if after is None else compare_trials(search.trial, after, dict(key[0]))
        search.assumed[key] = describe_assumption(search.trial, key[0], set(key[1]))


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
                found = _make_change(search, now, other)
                further = 0.0 if found is None else now.total_seconds() - found.total_seconds()
            drop = wins[other] - further
            if drop > lost.get(other, (0.0, -1))[0]:
                lost[other] = drop, best
            wins[other] = further
    return _ChosenChanges(tuple(made), {key: number for key, (_, number) in lost.items()})


def _find_best(search: _Search, wins: Mapping[Key, float]) -> int | None:
    """Return the candidate to make next: of those that win nearly most the one that is easiest and usually works."""
    worth = {key: search.weigh_gain(key, gain_s) for key, gain_s in wins.items() if search.is_worth_making(key, gain_s)}
    if not worth:
        return None
    most = max(worth.values())
    near = {key for key, weight in worth.items() if weight >= NEARLY * most}
    fitting = [number for number, key in enumerate(search.keys) if key in near]
    ease = [candidate.typical_fraction / candidate.effort for candidate in search.candidates]
    return max(fitting, key=lambda number: (ease[number], -number))


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
            regions = find_regions(key[0], found.unchanged, found.changed)
            region = regions[0] if len(regions) == 1 else None if regions else ""
            return replace(alone, order=place, further_s=gain_s, region=region, regions=regions)
    if is_significant(found.expected_s, search.trial.run.profile.actual_s):
        return replace(alone, instead_of=chosen.instead_of.get(key, -1))
    return alone
