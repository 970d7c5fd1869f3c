"""Traces of devices, a file or several for each rank: the profile of all, once the files are seen to be of one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from advisor.formats.rank_files import note_copies, note_lengths
from advisor.trace.devices.profile import profile_devices

if TYPE_CHECKING:
    from advisor.model.records import Profile
    from advisor.trace.devices.events import DeviceTrace


def profile_device_ranks(trace: DeviceTrace, path: Path, reader: str, files: Sequence[Path]) -> Profile:
    """Return the profile of ``trace``, which ``files`` hold, with doubts about whether they are of one run."""
    profile = profile_devices(trace, path, reader)
    acts = trace.activities
    lengths_s: dict[str, float] = {}
    for rank in sorted({device.rank for device in trace.devices}):
        devices = [number for number, device in enumerate(trace.devices) if device.rank == rank]
        mine = np.isin(acts.device, devices)
        if mine.any():
            lengths_s[f"rank {rank}"] = float(acts.end_s[mine].max() - acts.start_s[mine].min())
    return replace(profile, notes=(*profile.notes, *note_copies(files), *note_lengths(lengths_s)))
