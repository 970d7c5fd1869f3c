"""Small profiles and advice for the tests of similarity."""

from __future__ import annotations

import numpy as np

from advisor.analysis import bounds, gaps, quality
from advisor.model.recommendations import Recommendation, Total
from advisor.model.records import Advice, Phase, Processor, Profile, Region


def profile(
    work: list[list[float]],
    *,
    program: str = "app",
    build: str | None = None,
    started: str | None = None,
    scale: float = 1,
) -> Profile:
    """Return a run whose regions take ``work`` (regions, processors) seconds, times ``scale``, in one phase."""
    seconds = np.array(work)[:, :, None] * scale
    longest = float(seconds.sum(axis=0).max())
    phase = Phase(
        "compute", "parallel", np.arange(len(work)), {"wall_s": seconds, "work_s": seconds},
        closed_by="MPI_Barrier", start_s=np.array([0.0]), duration_s=np.array([longest]),
    )  # fmt: skip
    processors = tuple(Processor(rank) for rank in range(seconds.shape[1]))
    regions = tuple(Region(f"region {number}") for number in range(len(work)))
    return Profile(
        program, build or "", "test", longest, processors, regions, (phase,),
        {"wall_s": "measured", "work_s": "measured"}, build=build, started=started,
    )  # fmt: skip


def item(action: str, ceiling_s: float) -> Recommendation:
    return Recommendation(
        rank=1, action=action, title=action, step=1, issue="I-1", gaps=("L",), phase=None, region=None, file=None,
        line=None, processors=(), ceiling_s=ceiling_s, expected_s=None, interval_s=None, basis=None, confidence=0.5,
        effort=1, may_help=(), may_hurt=(), conflicts=(), alternatives=(), how=(), why="", evidence=(),
        fingerprint=action, rule_place="",
    )  # fmt: skip


def advice(run: Profile, *items: Recommendation) -> Advice:
    levels = bounds.compute_bounds(run, None)
    found = gaps.attribute_gaps(run, levels)
    grade = quality.grade_profile(run, levels, found)
    return Advice(run, grade, levels, found, (), (), items, Total(0.0), (), (), "advice")
