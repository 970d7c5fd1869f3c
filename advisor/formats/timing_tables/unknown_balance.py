"""What a table says nothing about is absent from its profile: balance and waiting, where it holds means alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from advisor.model.records import RANKS_ADDED_UP

if TYPE_CHECKING:
    from advisor.model.records import Profile

#: What the note costs that says that nothing is known of the ranks.
NOTHING_KNOWN: Final = 0.4


def drop_unknown_times(profile: Profile) -> Profile:
    """Return ``profile`` with nothing but the wall times of its regions where the ranks are not known apart.

    Waiting and work of the ranks would be zero and equal without having been seen.
    """
    if not any(note.name == RANKS_ADDED_UP and note.penalty >= NOTHING_KNOWN for note in profile.notes):
        return profile
    phases = tuple(replace(phase, arrays={"wall_s": phase.arrays["wall_s"]}) for phase in profile.phases)
    status = {"wall_s": profile.status["wall_s"]}
    return replace(profile, phases=phases, causes=None, status=status, paradigms=("mpi",))
