"""What a Paraver trace holds: its calls, and the rows of its events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from advisor.trace import nesting
from advisor.trace.events import Kind

if TYPE_CHECKING:
    from advisor.trace.events import Trace


def called(trace: Trace) -> dict[tuple[str, int], tuple[int, float]]:
    """Count and seconds of all calls by name and rank, those inside included."""
    calls = nesting.pair_calls(trace)
    found: dict[tuple[str, int], tuple[int, float]] = {}
    for number, region in enumerate(trace.regions):
        for place, location in enumerate(trace.locations):
            mine = (calls.region == number) & (calls.location == place)
            before = found.get((region.name, location.rank), (0, 0.0))
            seconds = float((calls.end_s - calls.start_s)[mine].sum())
            found[region.name, location.rank] = (before[0] + int(mine.sum()), before[1] + seconds)
    return found


def rows(trace: Trace, location: int) -> list[tuple[Any, ...]]:
    part = slice(int(trace.first[location]), int(trace.first[location + 1]))
    names = [trace.regions[region].name if region >= 0 else "" for region in trace.region[part]]
    columns = (
        [Kind(kind).name for kind in trace.kind[part]],
        names,
        (trace.time_s[part] * 1e9).round().astype(int).tolist(),
    )
    return list(zip(*columns, strict=True))
