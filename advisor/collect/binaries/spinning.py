"""Time in loops that spin, which clocks of processors hold for computation, as the waiting that it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.records import FloatArray, Note, Phase, Profile
from advisor.model.units import format_seconds, format_share
from advisor.trace.counts import SPIN_SECONDS

if TYPE_CHECKING:
    from advisor.collect.binaries.elf_files import ElfImage
    from advisor.collect.binaries.hot_functions import FunctionCode
    from advisor.collect.binaries.located_samples import SampledFunction

NOTE: Final = "spinning"
#: Below this share of the computation nothing is said and moved: brief waiting for a lock is part of taking it.
_LEAST: Final = 0.01


def reclassify_spinning(
    profile: Profile, image: ElfImage, sampled: Mapping[int, SampledFunction], codes: Mapping[int, FunctionCode]
) -> Profile:
    """Return the profile with the time in loops that spin as ``wait_s`` instead of ``cpu_s``, and as a count.

    Of what a processor computes in a region it is the share of its samples there. Where samples are not known by
    processor nothing changes.
    """
    if "samples" not in profile.counts or not len(profile.sampled_processors) or "cpu_s" not in profile.status:
        return profile
    computed = profile.sum_by_region("cpu_s")
    shares = _find_shares(profile, image, sampled, codes)
    spun = shares * computed
    if spun.sum() < _LEAST * computed.sum():
        return replace(profile, counts={**profile.counts, SPIN_SECONDS: np.zeros_like(spun)})
    busiest = profile.regions[int(np.argmax(spun.sum(axis=1)))].name
    seconds, share = format_seconds(float(spun.sum())), format_share(float(spun.sum() / computed.sum()))
    text = (
        f"{seconds} of CPU time, {share}, passed in loops that only wait until another thread writes to memory, "
        f"mostly in {busiest}: it counts as waiting"
    )
    return replace(
        profile,
        phases=tuple(_move_spinning(phase, shares) for phase in profile.phases),
        status={**profile.status, "wait_s": "estimated"},
        counts={**profile.counts, SPIN_SECONDS: spun},
        notes=(*profile.notes, Note(NOTE, text)),
    )


def _find_shares(
    profile: Profile, image: ElfImage, sampled: Mapping[int, SampledFunction], codes: Mapping[int, FunctionCode]
) -> FloatArray:
    """Return the share of its samples in each region in which a processor spins (R, Q)."""
    samples, rows = profile.counts["samples"], profile.sampled_processors
    shares = np.zeros(samples.shape)
    address = np.array([-1 if (at := image.to_address(place)) is None else at for place in rows[:, 0].tolist()])
    for number, code in codes.items():
        spins = np.zeros(len(rows), dtype=bool)
        for loop in code.loops:
            if loop.spins:
                spins |= (loop.begin <= address) & (address < loop.end)
        mine = spins & np.isin(address, list(sampled[number].samples))
        if mine.any():
            spun = np.bincount(rows[mine, 1], weights=rows[mine, 2], minlength=len(profile.processors))
            np.divide(spun, samples[number], out=shares[number], where=samples[number] > 0)
    return np.minimum(shares, 1.0)


def _move_spinning(phase: Phase, shares: FloatArray) -> Phase:
    if "cpu_s" not in phase.arrays:
        return phase
    computed = phase.arrays["cpu_s"]
    spun = shares[phase.regions][:, :, None] * computed
    waited = phase.arrays.get("wait_s", np.zeros_like(computed))
    return replace(phase, arrays={**phase.arrays, "cpu_s": computed - spun, "wait_s": waited + spun})
