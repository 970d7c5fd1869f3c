"""Recordings that say the same: copies of a file, or a table that a program prints into its output and into its log.

Taken for two runs they would pass for repeats without any noise.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from advisor.model.records import Profile


def describe_content(profile: Profile, name: str) -> bytes:
    """Return what recordings that say the same have in common; ``name`` is that of the file, in which copies differ."""
    total = blake2b(digest_size=16)
    run = "" if profile.run == name else profile.run
    about = (profile.reader, profile.program, run, profile.build, profile.started, profile.actual_s, profile.machine)
    parts = (about, sorted(profile.parameters.items()), profile.processors, profile.regions, sorted(profile.status))
    total.update(repr(parts).encode("utf-8", "surrogateescape"))
    arrays = {f"{n} {key}": values for n, phase in enumerate(profile.phases) for key, values in phase.arrays.items()}
    for key, values in sorted({**arrays, **profile.outside, **profile.counts}.items()):
        total.update(f"{key} {values.shape}".encode())
        total.update(np.ascontiguousarray(values).tobytes())
    return total.digest()
