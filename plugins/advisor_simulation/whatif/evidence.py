"""What a gain depends on that the recording does not show: whether later work needs a message, a result, an order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from advisor_simulation.whatif.changes import HIDDEN
from advisor_simulation.whatif.traced.operations import EARLY, FUSED, TracedOperations

if TYPE_CHECKING:
    from advisor_simulation.whatif.trial import Trial

    Words = tuple[tuple[str, str], ...]

#: What a gain counts that depends on something unseen, which is as likely as not; results of collectives are mostly
#: needed at once. Where nothing but noise is waited for, neither is worth a promise.
ASSUMED: Final = 0.5
RARELY: Final = 0.3
HARDLY: Final = 0.05
#: Who waits in a queue for a file waits for half of it in the mean; at best all are served at once.
EVEN_FILES: Final = ("io", "balanced")
QUEUE_MEAN: Final = 0.5
#: A region that has this part of a change, or more, has to be changed as well; smaller ones until this part is left.
PART: Final = 0.05
REST: Final = 0.1
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
_BETWEEN: Final = (
    "The recording does not show whether the work between these reductions needs their results; the gain assumes that"
    " it does not."
)
_SERVED: Final = (
    "The recording of one writer does not show what storage does for several; the gain assumes that they write side by"
    " side."
)
_EVEN: Final = (
    "The recording does not show why some ranks take longer in files; the gain assumes that each can be as fast as the"
    " mean."
)
ASSUMPTIONS: Final[Mapping[tuple[str, str], str]] = {
    ("messages", "overlapped"): _OVERLAP,
    ("remote", "prefetched"): _OVERLAP,
    ("bytes", "fewer"): _BYTES,
    ("collectives", "nonblocking"): _RESULT,
    ("barriers", "fuzzy"): _RESULT,
    ("io", "parallel"): _SERVED,
    EVEN_FILES: _EVEN,
    ("turns", "together"): _SERVED,
    ("sleep", "removed"): _SLEEPING,
    ("ranks", "cores"): _FEWER,
}


def find_regions(words: Words, before: Trial, after: Trial) -> tuple[str, ...]:
    """Return the regions that a change of who computes what is about, most seconds first; none for other changes."""
    kinds = {word[0] for word in words}
    won: dict[str, float] = {}
    if not kinds.isdisjoint(("rebalance", "schedule", "serial")):
        traced = after.traced
        won = before.run.moved_seconds(after.run) if traced is None else _moved_by_rows(before, traced)
    elif "threads" in kinds:
        new = {phase.number: phase for phase in after.run.phases}
        for phase in before.run.phases:
            if phase.number in new and new[phase.number] is not phase:
                name = before.run.find_main_region(phase.number)
                gain_s = float((phase.durations() - new[phase.number].durations()).sum())
                won[name] = won.get(name, 0.0) + gain_s
    return select_regions(won)


def select_regions(won: Mapping[str, float]) -> tuple[str, ...]:
    """Return the regions that hold ``PART`` of the seconds each, and as many more as make all but ``REST`` of them.

    A loop that was cut into fifty parallel regions is fifty regions, of which none holds much.
    """
    total, before, found = sum(won.values()), 0.0, list[str]()
    for name in sorted(won, key=lambda name: -won[name]):
        if won[name] > 0.0 and (won[name] >= PART * total or before < (1.0 - REST) * total):
            found.append(name)
        before += won[name]
    return tuple(found)


def _moved_by_rows(before: Trial, after: TracedOperations) -> dict[str, float]:
    return {} if before.traced is None else before.traced.moved_seconds(after)


def weigh_doubt(words: Words) -> float:
    """Return what a gain counts in the order (0 to 1) that depends on what the recording does not show."""
    return RARELY if any(ASSUMPTIONS.get(word) is _RESULT for word in words) else ASSUMED


def raise_high(words: Words, gain_s: float) -> float:
    """Return what a change wins at most: where all of the work that follows hides it, or no queue is left."""
    if EVEN_FILES in words:
        return gain_s / QUEUE_MEAN
    return gain_s / HIDDEN if is_hiding(words) else gain_s


def is_hiding(words: Words) -> bool:
    """Return whether a change hides communication behind work."""
    return any(ASSUMPTIONS.get(word) in (_OVERLAP, _RESULT) for word in words)


def describe_assumption(trial: Trial, words: Words, phases: set[int]) -> str:
    """Return what the gain of a change depends on and the recording does not show; nothing where it shows all."""
    if EARLY in words and trial.traced is not None and not trial.traced.shows_order(trial.run, phases):
        return _UNSEEN
    if FUSED in words and trial.traced is not None and trial.traced.reduces_in_pieces():
        return _BETWEEN
    return " ".join(ASSUMPTIONS[word] for word in words if word in ASSUMPTIONS)
