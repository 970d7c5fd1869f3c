"""What a table says nothing about is absent from its profile: balance and waiting, where it holds means alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.records import RANKS_ADDED_UP

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, Profile, Status

_LIBRARY: Final = ("wait_s", "transfer_s", "sync_s")

#: What the note costs that says that nothing is known of the ranks.
NOTHING_KNOWN: Final = 0.4


def drop_unknown_times(profile: Profile, *, hides_waiting: bool) -> Profile:
    """Return ``profile`` with nothing but the wall times of its regions where the ranks are not known apart.

    Waiting and work of the ranks would be zero and equal without having been seen. Where rows do not hide waiting,
    what computes and what reads and writes is known in the mean, and stays.
    """
    if not any(note.name == RANKS_ADDED_UP and note.penalty >= NOTHING_KNOWN for note in profile.notes):
        return profile
    kept: list[dict[str, FloatArray]] = []
    for phase in profile.phases:
        arrays = {"wall_s": phase.arrays["wall_s"]}
        if not hides_waiting and "io_s" in phase.arrays:
            library_s = sum((phase.arrays[name] for name in _LIBRARY), phase.arrays["io_s"])
            arrays |= {"cpu_s": np.maximum(arrays["wall_s"] - library_s, 0.0), "io_s": phase.arrays["io_s"]}
        kept.append(arrays)
    phases = tuple(replace(phase, arrays=arrays) for phase, arrays in zip(profile.phases, kept, strict=True))
    status: dict[str, Status] = dict.fromkeys(kept[0], "estimated")
    status["wall_s"] = profile.status["wall_s"]
    return replace(profile, phases=phases, causes=None, status=status, paradigms=("mpi",))
