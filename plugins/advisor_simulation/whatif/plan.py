"""The search for a sequence of changes over the tuning steps of the source's figure 6, with its backward arrows.

In each step the change that wins most is made, and again, until none wins enough; then the next step is looked at.
After a change in a step, its backward arrows say which earlier steps may pay once more (section 3.2.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

State = TypeVar("State")

#: A change has to win this share of the run's first time.
WORTH: Final = 0.005
#: Changes in one plan, at most.
LONGEST: Final = 12


@dataclass(frozen=True, slots=True)
class Candidate(Generic[State]):
    """An action and what it does; ``make`` returns None where it can't be carried out.

    ``excludes`` are actions that can't be carried out beside it.
    """

    action: str
    title: str
    step: int
    make: Callable[[State], State | None]
    excludes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanStep(Generic[State]):
    """One entry of a plan: what was changed, the time after it, and the state it leads to."""

    candidate: Candidate[State]
    before_s: float
    after_s: float
    state: State


def search_plan(
    start: State,
    total: Callable[[State], float],
    candidates: Sequence[Candidate[State]],
    back: Iterable[tuple[int, int]],
    progress: Callable[[int], None],
) -> tuple[PlanStep[State], ...]:
    """Return the changes in the order in which they are made; ``back`` lists arrows (from step, to earlier step)."""
    arrows = list(back)
    steps = sorted({candidate.step for candidate in candidates})
    taken: list[PlanStep[State]] = []
    first = now = total(start)
    state, at = start, 0
    while at < len(steps) and len(taken) < LONGEST:
        best = _find_best(state, now, total, [c for c in candidates if c.step == steps[at]], taken)
        progress(len(taken))
        if best is None or now - best.after_s < WORTH * first:
            at += 1
            continue
        taken.append(best)
        state, now = best.state, best.after_s
        earlier = [steps.index(to) for from_, to in arrows if from_ == steps[at] and to in steps and to < from_]
        at = min((at, *earlier))
    return tuple(taken)


def _find_best(
    state: State,
    now: float,
    total: Callable[[State], float],
    candidates: Sequence[Candidate[State]],
    taken: Sequence[PlanStep[State]],
) -> PlanStep[State] | None:
    """Return the change that wins most; none that was made before, or that one made before excludes."""
    made_before = {one.candidate.action for one in taken}
    excluded = {name for one in taken for name in one.candidate.excludes}
    found = []
    for candidate in candidates:
        if candidate.action in made_before | excluded or made_before & set(candidate.excludes):
            continue
        made = candidate.make(state)
        if made is not None:
            found.append(PlanStep(candidate, now, total(made), made))
    return min(found, key=lambda one: one.after_s, default=None)
