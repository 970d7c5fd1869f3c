"""What a table says nothing about is absent from its profile: balance and waiting, where it holds means alone."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from advisor.analysis.measures import COMMUNICATION_S, IDLE_S
from advisor.model.records import RANKS_ADDED_UP, FloatArray, Profile, Status

_LIBRARY: Final = ("wait_s", "transfer_s", "sync_s")

#: What the note costs that says that nothing is known of the ranks.
NOTHING_KNOWN: Final = 0.4
#: The same where it is known how much of the rank's time is communication, or whether it had a core.
SHARE_KNOWN: Final = 0.25


def drop_unknown_times(
    profile: Profile,
    *,
    hides_waiting: bool,
    first_rank: bool = False,
    communication_share: float = math.nan,
    off_core_share: float = math.nan,
    idle_share: float = math.nan,
) -> Profile:
    """Return ``profile`` with nothing but the wall times of its regions where the ranks are not known apart.

    Waiting and work of the ranks would be zero and equal without having been seen. Where rows do not hide waiting,
    what computes and what reads and writes is known in the mean, and stays; where they do, it is what is left of the
    rows of communication at the most. Where ``communication_share`` of the run is
    known to be communication below rows that are not told, the rest of each row is estimated to compute. Where the
    first rank alone tells of reading and writing, that is known, and all but that is not told apart. The same holds for
    the ``off_core_share`` of the run, which is shared by its rows as they are long, less what they read and write.
    Where the threads of the first rank were on no core for the ``idle_share`` of the run, each row computes for the
    rest of its time at most.
    """
    if not any(note.name == RANKS_ADDED_UP and note.penalty >= SHARE_KNOWN for note in profile.notes):
        return profile
    kept: list[dict[str, FloatArray]] = []
    communicated_s = np.zeros((len(profile.regions), len(profile.processors)))
    for phase in profile.phases:
        arrays = {"wall_s": phase.arrays["wall_s"]}
        calls_s = sum((phase.arrays[name] for name in _LIBRARY if name in phase.arrays), np.zeros(1))
        if "io_s" in phase.arrays and (not hides_waiting or (calls_s.any() and math.isnan(off_core_share))):
            library_s = calls_s + phase.arrays["io_s"]
            arrays |= {"cpu_s": np.maximum(arrays["wall_s"] - library_s, 0.0), "io_s": phase.arrays["io_s"]}
            communicated_s[phase.regions] += calls_s.sum(axis=-1)
        elif first_rank and phase.arrays.get("io_s", np.zeros(1)).any():
            arrays |= {"io_s": phase.arrays["io_s"]}
        elif not math.isnan(communication_share):
            off_core = 0.0 if math.isnan(off_core_share) else off_core_share
            arrays |= {"cpu_s": arrays["wall_s"] * max(1 - communication_share - off_core, 0.0)}
            communicated_s[phase.regions] += communication_share * arrays["wall_s"].sum(axis=2)
        if not math.isnan(idle_share):
            used_s = arrays["wall_s"] * (1 - idle_share)
            arrays["cpu_s"] = np.minimum(arrays.get("cpu_s", used_s), used_s)
        if not math.isnan(off_core_share):  # what is read and written has no core either
            seen = arrays["io_s"].sum() / arrays["wall_s"].sum() if "io_s" in arrays else 0.0
            arrays |= {"os_s": arrays["wall_s"] * max(off_core_share - seen, 0.0)}
        kept.append(arrays)
    phases = tuple(replace(phase, arrays=arrays) for phase, arrays in zip(profile.phases, kept, strict=True))
    status: dict[str, Status] = dict.fromkeys(kept[0], "estimated")
    status["wall_s"] = profile.status["wall_s"]
    counted = not first_rank or profile.ranks_expected is not None  # a command may run threads, or processes
    if not math.isnan(idle_share):
        idle_s = idle_share * np.ones((len(profile.regions), len(profile.processors)))
        idle_s *= profile.actual_s / len(profile.regions)
        profile = replace(profile, counts={**profile.counts, IDLE_S: idle_s})
    counts = {**profile.counts} | ({COMMUNICATION_S: communicated_s} if communicated_s.any() else {})
    kinds = ("mpi" if counted else "pthreads",)
    return replace(profile, phases=phases, counts=counts, causes=None, status=status, paradigms=kinds)
