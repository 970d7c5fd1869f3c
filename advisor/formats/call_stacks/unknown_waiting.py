"""What samples of threads do not tell: which of the time of a function its thread waits for another one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from advisor.model.records import Profile

_LIBRARY: Final = ("wait_s", "transfer_s", "sync_s")


def drop_unknown_waiting(profile: Profile) -> Profile:
    """Return ``profile`` without times of waiting where it has several threads: zero would be a claim.

    Threads of a process live as long as they please, and need not share work: that one is there for longer is no
    imbalance.
    """
    if len(profile.processors) < 2:
        return profile
    phases = tuple(
        replace(phase, arrays={name: values for name, values in phase.arrays.items() if name not in _LIBRARY})
        for phase in profile.phases
    )
    status = {name: value for name, value in profile.status.items() if name not in _LIBRARY}
    return replace(profile, phases=phases, causes=None, status=status)
