"""Which further passes over a program are worth their time, the one that would change the advice most first."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from advisor.model.records import Advice

#: The passes, in the order in which equally useful ones are made.
AGAIN, MACHINE, INSTRUCTIONS, SOURCE, ONE = PASSES = ("again", "machine", "instructions", "source", "one")
#: callgrind with caches takes so many times as long, and so long to begin.
_SLOWER: Final = 70.0
_BEGIN_S: Final = 3.0
#: A build with counters, and how much slower it runs.
_BUILD_S: Final = 5.0
_COUNTING: Final = 3.0
_PROBE_S: Final = 60.0
#: Gaps that noise makes as well as structure does.
_DISTURBED: Final = frozenset({"L", "M'", "D", "W", "S'"})
#: What would change less of the run than that is left out.
LEAST_WORTH: Final = 0.03
#: Passes that take longer are made only where somebody agrees.
LONGEST_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass: what it tells, the share of the run that this is about, what it takes (estimated), and what it lacks."""

    name: str
    tells: str
    worth: float
    seconds: float
    lacks: str | None = None


@dataclass(frozen=True, slots=True)
class PassNeeds:
    """Why passes can't be made here, by their names, and whether the machine is known already."""

    lacking: dict[str, str]
    machine_known: bool


def plan_passes(advice: Advice, needs: PassNeeds) -> tuple[Pass, ...]:
    """Return all passes over the program of ``advice``, those that tell of most seconds first."""
    profile = advice.profile
    wall_s = profile.actual_s
    processors = len(profile.processors)
    crowded = max(processors / len(os.sched_getaffinity(0)), 1.0)
    computing = next((bound.seconds or 0.0 for bound in advice.bounds if bound.name == "I"), 0.0) / wall_s
    disturbed = sum(max(gap.seconds, 0.0) for gap in advice.gaps if _DISTURBED & set(gap.members)) / wall_s
    others = sum(float(seconds.mean()) for name, seconds in profile.outside.items() if name == "other programs")
    parallel = processors > 1
    passes = (
        Pass(AGAIN, "what is noise, what structure", min(disturbed + others / wall_s, 1.0), wall_s),
        Pass(MACHINE, "what the machine can do (once)", 0.0 if needs.machine_known else computing, _PROBE_S),
        Pass(INSTRUCTIONS, "instructions, schedule, caches (MAC, MACS, $)", computing,
             _BEGIN_S + _SLOWER * wall_s * crowded),
        Pass(SOURCE, "operations of the source (M, MA)", 0.99 * computing, _BUILD_S + _COUNTING * wall_s),
        Pass(ONE, "what running side by side costs", 0.5 * computing if parallel else 0.0, wall_s * processors),
    )  # fmt: skip
    found = [Pass(each.name, each.tells, each.worth, each.seconds, needs.lacking.get(each.name)) for each in passes]
    return tuple(sorted(found, key=lambda each: -each.worth))


def select_passes(passes: Sequence[Pass], skipped: Sequence[str], *, agreed: bool) -> tuple[Pass, ...]:
    """Return the passes to make, the machine's before those that need it.

    That are those that can be made, are about enough of the run, were not refused, and, unless all were ``agreed`` to,
    don't take too long.
    """
    chosen = [each for each in passes if explain_skipped_pass(each, skipped, agreed=agreed) is None]
    return tuple(sorted(chosen, key=lambda each: PASSES.index(each.name)))


def explain_skipped_pass(one: Pass, skipped: Sequence[str], *, agreed: bool) -> str | None:
    """Return why a pass is not made, None for one that is."""
    if one.lacks:
        return one.lacks
    if one.name in skipped:
        return "refused"
    if one.worth < LEAST_WORTH:
        return "would change nothing"
    if not agreed and one.seconds > LONGEST_S:
        return "takes long: --yes agrees to it"
    return None
