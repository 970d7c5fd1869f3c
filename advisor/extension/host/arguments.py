"""What plugins of others are given: a profile that nobody else sees, whatever they change in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from advisor.model.records import FloatArray, Phase, Profile


def protect_values(given: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments of a hook, a profile as a copy."""
    return {name: protect_profile(value) if isinstance(value, Profile) else value for name, value in given.items()}


def protect_profile(profile: Profile) -> Profile:
    """Return a profile with mappings of its own, which can lose an entry by mistake, and read-only arrays."""
    return replace(
        profile,
        phases=tuple(map(_protect_phase, profile.phases)),
        status=dict(profile.status),
        parameters=dict(profile.parameters),
        outside=_view_arrays(profile.outside),
        counts=_view_arrays(profile.counts),
    )


def _protect_phase(phase: Phase) -> Phase:
    return replace(phase, arrays=_view_arrays(phase.arrays))


def _view_arrays(arrays: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Return the same numbers as arrays that cannot be made writable, as a view of an array can."""
    return {name: np.asarray(memoryview(array.data).toreadonly()) for name, array in arrays.items()}
