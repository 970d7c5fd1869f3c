"""Run time and gaps over the builds of a program, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from advisor.model.reports import Axis, Line, Series

if TYPE_CHECKING:
    from advisor.model.records import Advice

#: Builds and gaps in one picture: the newest, and those with the most seconds.
BUILDS: Final = 40
GAPS: Final = 6


def build_history_series(runs: Sequence[Advice]) -> Series | None:
    """Return run time and largest gaps by build, the oldest first; None where there are fewer than two builds.

    ``runs`` are the oldest first; those of the program of the newest, on as many ranks, count. Of repeats the mean is
    drawn, in a band from the least to the most.
    """
    builds: dict[str, list[dict[str, float]]] = {}
    for one in runs:
        newest = runs[-1].profile
        alike = (one.profile.program, one.profile.ranks) == (newest.program, newest.ranks)
        if one.profile.has_run_time and alike:
            seconds = {"run time": one.profile.actual_s} | {gap.name: gap.seconds for gap in one.gaps}
            builds.setdefault(one.profile.build or "unknown build", []).append(seconds)
    names = tuple(builds)[-BUILDS:]
    if len(names) < 2:
        return None
    largest: dict[str, float] = {}
    for each in (each for name in names for each in builds[name]):
        for gap, value in each.items():
            largest[gap] = max(largest.get(gap, 0.0), abs(value))
    gaps = sorted((gap for gap in largest if gap != "run time"), key=lambda gap: -largest[gap])[:GAPS]
    lines = tuple(_build_gap_line(gap, [builds[name] for name in names]) for gap in ("run time", *gaps))
    return Series("Run time and gaps over builds", Axis("build", names=names), Axis("seconds", "s"), lines)


def _build_gap_line(gap: str, builds: Sequence[Sequence[dict[str, float]]]) -> Line:
    """Return the mean of a gap in each build that knows it, from the least to the most."""
    known = [[each[gap] for each in build if gap in each] for build in builds]
    places = [(float(at), values) for at, values in enumerate(known) if values]
    return Line(
        gap,
        tuple(at for at, _ in places),
        tuple(sum(values) / len(values) for _, values in places),
        tuple(min(values) for _, values in places),
        tuple(max(values) for _, values in places),
    )
