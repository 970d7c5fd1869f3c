"""All changes that could be made to a run, simulated on it: each alone, then behind the better ones.

What wins most is made first, and the others are tried again on the changed run. A change that then wins little is one
for the same seconds; it is named in the place of the one that took them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from advisor.advice.counterfactuals import Counterfactual
from advisor.advice.facts.places import is_significant
from advisor_simulation.whatif.evidence import assumption, doubt, place_of
from advisor_simulation.whatif.gains import ChangeGain, compare_trials, noise_s
from advisor_simulation.whatif.measured_run import build_run
from advisor_simulation.whatif.reasons import OF_RUNS
from advisor_simulation.whatif.trial import Trial, apply_change, build_trial

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from advisor.advice.counterfactuals import Candidate
    from advisor.model.records import Profile
    from advisor.trace.events import Trace

    Key = tuple[tuple[tuple[str, str], ...], tuple[int, ...]]

#: Seconds that all simulations of a run may take; what is left over then is not simulated, which is said.
LIMIT_S: Final = 15.0
#: Changes that win so much of what the best one wins are taken for equally good: prior and effort decide.
NEARLY: Final = 0.9
#: A change that wins less than this part of what it wins alone, is one for seconds that better ones win.
LEFT: Final = 0.25
#: Items at most.
MOST: Final = 6


@dataclass(slots=True)
class _Search:
    """Changes by key, what each wins alone, and how much time is left."""

    trial: Trial
    least_s: float
    alone: dict[Key, ChangeGain | None] = field(default_factory=dict)
    assumed: dict[Key, str] = field(default_factory=dict)
    begun: float = field(default_factory=time.monotonic)

    def alone_s(self, key: Key) -> float:
        """Return what a change wins alone, seconds."""
        found = self.alone[key]
        return 0.0 if found is None else found.expected_s

    @property
    def exhausted(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() - self.begun > LIMIT_S


def counterfactuals(
    profile: Profile, candidates: Sequence[Candidate], trace: Trace
) -> list[Counterfactual | None] | None:
    """Return what each candidate wins; None where operations of the trace can't be replayed.

    Threads meet in barriers, not in messages: runs with threads are tried by phases.
    """
    run = build_run(profile)
    trial = None if run is None else build_trial(run, trace)
    if run is None or trial is None or not (trial.is_replayed or run.processors > profile.ranks):
        return None
    search = _Search(trial, max(noise_s(trial.run), 0.0))
    keys = [_key(candidate) for candidate in candidates]
    for key, candidate in zip(keys, candidates, strict=True):
        if key not in search.alone and not _beyond(candidate.change) and not search.exhausted:
            search.alone[key] = _tried(search.trial, key)
            search.assumed[key] = assumption(search.trial, key[0], set(key[1]))
    taken = _taken(search, candidates, keys, profile.actual_s)
    return [
        _told(search, key, number, candidate, taken)
        for number, (key, candidate) in enumerate(zip(keys, candidates, strict=True))
    ]


def _key(candidate: Candidate) -> Key:
    return tuple(candidate.change.items()), candidate.phases


def _beyond(change: Mapping[str, str]) -> bool:
    """Return whether no recording tells what a change wins."""
    return any(word in OF_RUNS for word in change.items())


def _tried(trial: Trial, key: Key) -> ChangeGain | None:
    after = _changed(trial, key)
    return None if after is None else compare_trials(trial, after)


def _changed(trial: Trial, key: Key) -> Trial | None:
    """Return the run after a change; without operations, only what ends in a barrier can go on without it."""
    words, phases = dict(key[0]), set(key[1])
    if not trial.is_replayed and not {"barriers", "phases"}.isdisjoint(words):
        closed = [str(phase.closed_by).lower() for phase in trial.run.profile.phases]
        barriers = {number for number, call in enumerate(closed) if "barrier" in call}
        phases = barriers & phases if phases else barriers
        if not phases:
            return None
    return apply_change(trial, words, phases)


@dataclass(frozen=True, slots=True)
class _Taken:
    """Changes in the order in which they are made: number of the candidate and gain; who took whose seconds."""

    made: tuple[tuple[int, float], ...]
    instead_of: Mapping[Key, int]


def _taken(search: _Search, candidates: Sequence[Candidate], keys: Sequence[Key], actual_s: float) -> _Taken:
    """Return the changes that are worth making one after the other."""
    now, made = search.trial, list[tuple[int, float]]()
    wins = {key: found.expected_s for key, found in search.alone.items() if found is not None}
    lost: dict[Key, tuple[float, int]] = {}
    while len(made) < MOST and not search.exhausted:
        best = _best(search, candidates, keys, wins, actual_s)
        if best is None:
            break
        key = keys[best]
        after = _changed(now, key)
        if after is None:
            del wins[key]
            continue
        made.append((best, wins.pop(key)))
        lost[key] = made[-1][1], best
        now = after
        for other in list(wins):
            found = _changed(now, other)
            further = 0.0 if found is None else now.total_seconds() - found.total_seconds()
            drop = wins[other] - further
            if drop > lost.get(other, (0.0, -1))[0]:
                lost[other] = drop, best
            wins[other] = further
    return _Taken(tuple(made), {key: number for key, (_, number) in lost.items()})


def _best(
    search: _Search, candidates: Sequence[Candidate], keys: Sequence[Key], wins: Mapping[Key, float], actual_s: float
) -> int | None:
    """Return the candidate to make next: of those that win nearly most the one that is easiest and usually works."""

    def value(key: Key) -> float:
        return wins[key] * (doubt(key[0]) if search.assumed[key] else 1.0)

    worth = [
        key
        for key in wins
        if is_significant(value(key), actual_s) and wins[key] > max(search.least_s, LEFT * search.alone_s(key))
    ]
    if not worth:
        return None
    most = max(map(value, worth))
    near = {key for key in worth if value(key) >= NEARLY * most}
    fitting = [number for number, key in enumerate(keys) if key in near]
    return max(fitting, key=lambda number: (candidates[number].prior / candidates[number].effort, -number))


def _told(search: _Search, key: Key, number: int, candidate: Candidate, taken: _Taken) -> Counterfactual | None:
    if _beyond(candidate.change) or key not in search.alone:
        return None
    found = search.alone[key]
    if found is None:
        return Counterfactual(0.0, 0.0, 0.0)
    told = Counterfactual(
        found.expected_s, min(found.low_s, found.expected_s), found.high_s, assumed=search.assumed[key]
    )
    for place, (one, gain_s) in enumerate(taken.made):
        if one == number:
            region = place_of(key[0], found.unchanged, found.changed)
            return replace(told, order=place, further_s=gain_s, region=region)
    if is_significant(found.expected_s, search.trial.run.profile.actual_s):
        return replace(told, instead_of=taken.instead_of.get(key, -1))
    return told
