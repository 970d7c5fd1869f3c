"""What a gain depends on that the recording does not show: whether later work needs a message, a result, an order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.model import policy
from advisor_simulation.whatif.traced.operations import EARLY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor_simulation.whatif.trial import Trial

    Words = tuple[tuple[str, str], ...]

#: What a gain counts that depends on something unseen; results of collectives are mostly needed at once.
ASSUMED: Final = 0.6
RARELY: Final = 0.3
_OVERLAP: Final = (
    "The recording does not show which of the work that follows needs these messages; the gain assumes that four fifths"
    " of it can be done before they are there."
)
_RESULT: Final = (
    "The recording does not show what needs the result of these calls; the gain assumes that four fifths of the work"
    " that follows do not."
)
_BYTES: Final = (
    "The recording does not show which of the bytes the receivers use; the gain assumes three quarters of them."
)
_SLEEPING: Final = (
    "The recording does not show what the program sleeps for; the gain assumes that nothing outside of it takes that"
    " long."
)
_FEWER: Final = (
    "No run with as many processors as cores was recorded; the gain assumes that they share the computation evenly, and"
    " that nothing else takes longer."
)
_UNSEEN: Final = (
    "No other rank shows that these messages can be sent before the work that comes first now; the gain assumes it."
)
ASSUMPTIONS: Final[Mapping[tuple[str, str], str]] = {
    ("messages", "overlapped"): _OVERLAP,
    ("remote", "prefetched"): _OVERLAP,
    ("bytes", "fewer"): _BYTES,
    ("collectives", "nonblocking"): _RESULT,
    ("barriers", "fuzzy"): _RESULT,
    ("sleep", "removed"): _SLEEPING,
    ("ranks", "cores"): _FEWER,
}


def find_region(words: Words, before: Trial, after: Trial) -> str | None:
    """Return the region that a change of who computes what is about, None for several; nothing for other changes."""
    kinds = {word[0] for word in words}
    if before.traced is not None and after.traced is not None and not kinds.isdisjoint(("rebalance", "schedule")):
        return before.traced.changed_region(after.traced)
    if "threads" not in kinds:
        return ""
    new = {phase.number: phase for phase in after.run.phases}
    won: dict[str, float] = {}
    for phase in before.run.phases:
        if phase.number in new and new[phase.number] is not phase:
            name = before.run.find_main_region(phase.number)
            won[name] = won.get(name, 0.0) + float((phase.durations() - new[phase.number].durations()).sum())
    most = max(won, key=lambda name: won[name], default="")
    return most if not won or won[most] >= policy.NEAR_EQUAL * sum(won.values()) else None


def weigh_doubt(words: Words) -> float:
    """Return what a gain counts in the order (0 to 1) that depends on what the recording does not show."""
    return RARELY if any(ASSUMPTIONS.get(word) is _RESULT for word in words) else ASSUMED


def describe_assumption(trial: Trial, words: Words, phases: set[int]) -> str:
    """Return what the gain of a change depends on and the recording does not show; nothing where it shows all."""
    if EARLY in words and trial.traced is not None and not trial.traced.shows_order(trial.run, phases):
        return _UNSEEN
    return " ".join(ASSUMPTIONS[word] for word in words if word in ASSUMPTIONS)
