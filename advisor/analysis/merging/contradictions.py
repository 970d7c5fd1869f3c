"""Where two recordings of one run disagree: reported, not averaged away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.model.records import Note
from advisor.model.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from advisor.model.records import Profile

#: Run times differ by this share and by this many seconds because tools begin and end at different points.
SHARE: Final = 0.1
SECONDS: Final = 0.1
PENALTY: Final = 0.1
_STATED: Final = {"cores": "cores", "language": "language", "machine": "machine", "ranks_expected": "ranks started"}


def find_contradictions(leader: Profile, other: Profile) -> tuple[Note, ...]:
    """Return a note for everything that two recordings both know and do not agree on."""
    return tuple(Note("contradiction", text, PENALTY) for text in _iterate_contradictions(leader, other))


def _iterate_contradictions(leader: Profile, other: Profile) -> Iterator[str]:
    for name, words in _STATED.items():
        first, second = getattr(leader, name), getattr(other, name)
        if first is not None and second is not None and first != second:
            yield f"{words}: {leader.reader} says {first}, {other.reader} {second}"
    if not (leader.has_run_time and other.has_run_time):
        return
    if abs(leader.actual_s - other.actual_s) > SECONDS + SHARE * leader.actual_s:
        first, second = format_seconds(leader.actual_s), format_seconds(other.actual_s)
        yield f"the run took {first} for {leader.reader}, {second} for {other.reader}; they may be different runs"
