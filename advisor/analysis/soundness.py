"""Check the consistency of a Profile: shapes, indices and ranges as ``model.Profile`` documents them.

Types and finite numbers are the matter of ``contract``; whether what is recorded can be believed is that of
``quality``. This check reads no arrays of seconds, only their shapes.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Final

import numpy as np

from advisor.model.records import CAUSE_CATEGORIES, MEASURES, Causes, IntArray, Phase, Profile
from advisor.support.contract import ContractError

REGION_LIMIT: Final = 100_000


def check_profile(profile: Profile) -> None:
    """Raise ``ContractError`` with the path of the first part that contradicts the rest."""
    _check_run(profile)
    for i, phase in enumerate(profile.phases):
        _check_phase(profile, phase, f"phases[{i}]")
    each = (len(profile.processors),)
    for name, array in profile.outside.items():
        _require_condition(array.shape == each, f"outside.{name}", f"has shape {array.shape}, expected {each}")
    table = (len(profile.regions), len(profile.processors))
    for name, array in profile.counts.items():
        _require_condition(array.shape == table, f"counts.{name}", f"has shape {array.shape}, expected {table}")
    if profile.causes is not None:
        _check_causes(profile, profile.causes)


def _require_condition(condition: bool, place: str, reason: str) -> None:
    if not condition:
        raise ContractError(place, reason)


def _check_run(profile: Profile) -> None:
    places = {(processor.rank, processor.thread) for processor in profile.processors}
    kinds = {phase.kind for phase in profile.phases}
    _require_condition(profile.actual_s > 0 or not profile.has_run_time, "actual_s", "the run took no time, or less")
    _require_condition(bool(profile.processors), "processors", "there are none")
    _require_condition(len(places) == len(profile.processors), "processors", "the same rank and thread stand twice")
    _require_condition(min(min(place) for place in places) >= 0, "processors", "a rank or thread is negative")
    _require_condition(len(profile.regions) <= REGION_LIMIT, "regions", f"more than {REGION_LIMIT:,}")
    _require_condition(all(r.line is None or r.line >= 0 for r in profile.regions), "regions", "a line is negative")
    _require_condition(bool(profile.phases), "phases", "there are none; a run without phases is one of kind 'whole'")
    _require_condition(
        "whole" not in kinds or len(profile.phases) == 1, "phases", "there are others beside one of kind 'whole'"
    )
    for name in ("cores", "ranks_expected"):
        value = getattr(profile, name)
        _require_condition(value is None or value >= 1, name, f"{value} is impossible")
    uncertainty = profile.clock_uncertainty_s
    _require_condition(uncertainty is None or uncertainty >= 0, "clock_uncertainty_s", "is negative")
    _require_condition(
        all(0 <= note.penalty <= 1 for note in profile.notes), "notes", "a penalty is not between 0 and 1"
    )


def _check_phase(profile: Profile, phase: Phase, place: str) -> None:
    _require_condition(
        phase.regions.ndim == 1 and len(phase.regions) > 0, f"{place}.regions", "expected a list of regions"
    )
    _require_condition(_is_within(phase.regions, 0, len(profile.regions)), f"{place}.regions", "an index of no region")
    _require_condition(
        len(set(phase.regions.tolist())) == len(phase.regions), f"{place}.regions", "the same region occurs twice"
    )
    _require_condition(
        bool(phase.arrays) or not profile.has_run_time, f"{place}.arrays", "there are none: nothing was measured"
    )
    expected = (len(phase.regions), len(profile.processors), phase.iterations)
    for name, array in phase.arrays.items():
        here = f"{place}.arrays.{name}"
        _require_condition(name in MEASURES, here, f"is not a measure; known are {', '.join(MEASURES)}")
        _require_condition(array.shape == expected, here, f"has shape {array.shape}, expected {expected}")
        _require_condition(name in profile.status, f"status.{name}", "is missing: was this measured or estimated?")
    _require_condition(phase.iterations > 0 or not phase.arrays, f"{place}.arrays", "there is no iteration")
    for name in ("start_s", "duration_s"):
        series = getattr(phase, name)
        _require_condition(
            series is None or series.shape == expected[2:], f"{place}.{name}", "expected one value per iteration"
        )
    _require_condition(
        phase.duration_s is None or bool(phase.duration_s.min() >= 0), f"{place}.duration_s", "is negative"
    )


def _is_within(indices: IntArray, least: int, end: int) -> bool:
    return not len(indices) or (int(indices.min()) >= least and int(indices.max()) < end)


def _check_causes(profile: Profile, causes: Causes) -> None:
    ranges = {
        "category": (0, len(CAUSE_CATEGORIES)),
        "kind": (0, len(causes.kinds)),
        "phase": (-1, len(profile.phases)),
        "call": (0, len(profile.regions)),
        "caller": (-1, len(profile.regions)),
        "processor": (-1, len(profile.processors)),
        "partner": (-1, len(profile.processors)),
        "target": (-1, len(causes.targets)),
        "size_class": (-1, 65),
        "count": (0, 2**63 - 1),
        "bytes": (-1, 2**63 - 1),
    }
    for field in fields(causes):
        column = getattr(causes, field.name)
        if isinstance(column, np.ndarray):
            _require_condition(column.shape == causes.category.shape[:1], f"causes.{field.name}", "has another length")
        if field.name in ranges:
            _require_condition(_is_within(column, *ranges[field.name]), f"causes.{field.name}", "an index of nothing")
