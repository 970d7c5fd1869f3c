"""What was tried in a program and what it won, read off its history."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.advice.earlier_runs import AppliedAction
    from advisor.model.records import Advice

#: A run that is faster by less than this share is not faster.
_LEAST_SHARE: Final = 0.005


@dataclass(frozen=True, slots=True)
class TriedActions:
    """Actions that were carried out between two builds: the share of the run time that was won, and of the ceiling.

    More than one action were carried out together; what each of them won is not known then.
    """

    actions: tuple[str, ...]
    won: float
    of_ceiling: float

    @property
    def description(self) -> str:
        """``A-24 won 11 %``."""
        won = f"won {self.won:.0%}" if self.won >= 0 else f"lost {-self.won:.0%}"
        return f"{' and '.join(self.actions)} {won.replace('%', ' %')}"


def from_applied(one: AppliedAction) -> TriedActions:
    """Return what the daemon knows of an action that was applied."""
    return TriedActions((one.action,), one.won_s / one.before.profile.actual_s, one.won_s / one.ceiling_s)


def find_experience(history: Sequence[Advice]) -> tuple[TriedActions, ...]:
    """Return what was tried from build to build: advice that a later build no longer needs, and the time it won.

    ``history`` is oldest first. Runs of one build, runs on other numbers of processors and builds in which no advice
    went away teach nothing.
    """
    found = (_compare_builds(before, after) for before, after in pairwise(_select_last_runs(history)))
    return tuple(one for one in found if one is not None)


def _select_last_runs(history: Sequence[Advice]) -> list[Advice]:
    """Return the last run of every build, in the order of their first."""
    last: dict[str, Advice] = {}
    for advice in history:
        if advice.profile.build and advice.profile.has_run_time:
            last[advice.profile.build] = advice
    return list(last.values())


def _compare_builds(before: Advice, after: Advice) -> TriedActions | None:
    if len(before.profile.processors) != len(after.profile.processors):
        return None
    still = {item.fingerprint for item in after.recommendations}
    gone = {item.action: item for item in before.recommendations if item.fingerprint not in still}
    won_s = before.profile.actual_s - after.profile.actual_s
    if not gone or abs(won_s) < _LEAST_SHARE * before.profile.actual_s:
        return None
    ceiling_s = sum(item.ceiling_s for item in gone.values())
    return TriedActions(
        tuple(sorted(gone)), won_s / before.profile.actual_s, won_s / ceiling_s if ceiling_s > 0 else 0.0
    )
