"""What ``advise`` asks for: the gain that simulation expects of each recommendation, within a budget of work."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from advisor.advice import rules
from advisor_simulation.whatif.gains import MOVING, try_change
from advisor_simulation.whatif.trial import Trial, WorkBudget, find_trial

if TYPE_CHECKING:
    from advisor.analysis.machines import Machine
    from advisor.model.recommendations import Recommendation
    from advisor.model.records import Profile
    from advisor.trace.events import Trace
    from advisor_simulation.whatif.named_model import NamedModel

#: Keys of changes that are about many phases alike.
REPEATED: Final = frozenset({"barriers", "reductions", "collectives"})
#: Values of all arrays that are simulated at once.
LARGEST: Final = 50_000_000


class _Latest:
    """The latest run, prepared once for all its recommendations."""

    profile: Profile | None = None
    trial: Trial | None = None
    model: NamedModel | None = None
    budget: WorkBudget = WorkBudget()


@lru_cache(maxsize=1)
def load_changes() -> Mapping[str, Mapping[str, str]]:
    """Return what the bundled rules' actions change, by action."""
    return {action.id: action.change for action in rules.load_default((), examples=False).actions}


def estimate_gain(
    profile: Profile, recommendation: Recommendation, machine: Machine | None, trace: Trace | None
) -> tuple[float, float, float] | None:
    """Return expected, lowest and highest gain in seconds (80 %); None where the change can't be simulated.

    By the model that the run names, else by the run itself. That a change of who computes what wins nothing is known as
    well; of other changes phases may not hold what they are about.
    """
    words = load_changes().get(recommendation.action)
    if words is None or not profile.has_run_time:
        return None
    if _Latest.profile is not profile:
        size = sum(array.size for phase in profile.phases for array in phase.arrays.values())
        _Latest.profile, _Latest.budget = profile, WorkBudget()
        _Latest.trial = find_trial(profile, trace) if size <= LARGEST else None
        _Latest.model = _find_named_model(profile, machine)
    trial = _Latest.trial
    found = _Latest.model.estimate_gain(recommendation.action) if _Latest.model is not None else None
    if found is None and trial is not None and _Latest.budget.can_afford(trial):
        _Latest.budget.spend_on(trial)
        found = find_best_gain(trial, words, find_phases(profile, recommendation.phase, words))
    if found is None or (found[0] <= 0.0 and MOVING.isdisjoint(words)):
        return None
    return max(found[0], 0.0), max(found[1], 0.0), max(found[2], 0.0)


def _find_named_model(profile: Profile, machine: Machine | None) -> NamedModel | None:
    if "model" not in profile.parameters:
        return None  # and nothing that simulates models is loaded
    from advisor_simulation.whatif import named_model

    return named_model.find_named_model(profile, machine)


def find_best_gain(trial: Trial, words: Mapping[str, str], chosen: set[int]) -> tuple[float, float, float] | None:
    """Return what a change wins in the ``chosen`` phases, seconds; a new decomposition is also tried on the whole run.

    Of a long run an excerpt tells it; phases that it does not have are tried by themselves.
    """
    found = []
    for phases in [chosen, set[int]()] if chosen and "rebalance" in words else [chosen]:
        now, inside = trial, phases
        if trial.excerpt is not None and trial.whole is not None:
            known = trial.excerpt.find_phases(phases)
            now, inside = (Trial(trial.whole), phases) if known is None else (trial, known)
        gain = try_change(now, words, inside)
        if gain is not None:
            times = now.scale_gain(inside)
            found.append((times * gain.expected_s, times * gain.low_s, times * gain.high_s))
    return max(found, default=None)


def find_phases(profile: Profile, name: str | None, words: Mapping[str, str]) -> set[int]:
    """Return the numbers of the phases that a recommendation is about; none for the whole run.

    Names such as ``to MPI_Barrier (18 phases)`` and, where calls in a row become one, ``to MPI_Barrier`` stand for a
    family of phases that differ in a number only.
    """
    if name is None:
        return set()
    exact = {number for number, phase in enumerate(profile.phases) if phase.name == name}
    family = re.sub(r" \(\d+( phases)?\)$", "", name)
    if exact and not REPEATED & words.keys():
        return exact
    return {n for n, phase in enumerate(profile.phases) if re.sub(r" \(\d+\)$", "", phase.name) == family}
