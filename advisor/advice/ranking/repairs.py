"""Intervals of gains for what people do: a repair changes more, or less, than the change that was calculated."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from advisor.advice.ranking.ceilings import compute_ceiling
from advisor.model import policy

if TYPE_CHECKING:
    from advisor.advice.ranking.ceilings import GapBudget
    from advisor.advice.ranking.drafts import Draft
    from advisor.model.records import Profile

#: What only recordings of programs that ran have: their code was sampled.
_CODE: Final = "code.all_s"


def allow_for_repairs(draft: Draft, profile: Profile, budget: GapBudget) -> Draft:
    """Return the draft with the interval of a repair, where a program was recorded whose code can be changed.

    A repair of code takes other work at its place away as well, at most all that its place costs, which differs from
    run to run; one that shares work among threads takes none away: the cores are the limit. That of what was simulated
    is never quite the change that was replayed.
    """
    made = draft.recommendation
    if made.interval_s is None or made.expected_s is None or _CODE not in profile.counts:
        return draft
    low_s, high_s = made.interval_s
    if made.basis == "calibration" and "threads" not in draft.match.action.change:
        place_s = max(compute_ceiling(budget, draft.claims), made.ceiling_s)
        most_s = min((1 + policy.REPAIR_SPREAD) * place_s, profile.actual_s)
        high_s = max(high_s, min(policy.REPAIR_REACH * high_s, most_s))
    elif made.basis == "simulation":
        low_s = min(low_s, (1 - policy.REPAIR_SPREAD) * made.expected_s)
        high_s = max(high_s, min((1 + policy.REPAIR_SPREAD) * made.expected_s, profile.actual_s))
    else:
        return draft
    most_s = max(made.ceiling_s, high_s)
    return replace(draft, recommendation=replace(made, interval_s=(low_s, high_s), ceiling_s=most_s))
