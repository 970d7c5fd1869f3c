"""What Caliper's attributes measure: their names say how values were summed up, and mostly in which unit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.caliper.hardware_names import is_hardware_metric

if TYPE_CHECKING:
    from advisor.model.records import FloatArray

#: Titles of columns that Caliper's recipes give; all are seconds.
_EXCLUSIVE_TITLES: Final = ("time", "Time", "Time (E)", "time (exc)", "Total time (exc)", "Total time (E)")
_INCLUSIVE_TITLES: Final = ("time (inc)", "Time (I)", "Total time", "Total time (inc)", "Total time (I)")
_MEAN_TITLES: Final = ("Avg time/rank", "Avg time/rank (inc)", "Avg time/rank (I)")
_MEAN_EXCLUSIVE_TITLES: Final = ("Avg time/rank (exc)", "Avg time/rank (E)")
_LEAST_TITLES: Final = ("Min time/rank", "Min time/rank (inc)", "Min time/rank (I)")
_MOST_TITLES: Final = ("Max time/rank", "Max time/rank (inc)", "Max time/rank (I)")
_CALLS: Final = ("Calls", "sum#sum#region.count", "sum#region.count", "region.count")

#: The host's time is the time of a region; activities of devices record it under a name of their own.
_DURATION: Final = re.compile(r"((?:[a-z_]+#)*)(?:time|(cupti\.host|rocm\.host))\.(inclusive\.)?duration(\.ns)?")
#: Three cycles of a clock: nothing that is measured is over sooner.
_SHORTEST_S: Final = 1e-9
_SUMS: Final = frozenset({"sum", "scale", "iscale", "inclusive", "inclusive_scale"})
_UNITS: Final = {
    "sec": 1.0, "s": 1.0, "seconds": 1.0, "msec": 1e-3, "ms": 1e-3,
    "usec": 1e-6, "us": 1e-6, "microseconds": 1e-6, "nsec": 1e-9, "ns": 1e-9, "nanoseconds": 1e-9,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class MetricMeaning:
    """One attribute with a time: how it was summed up, in which unit (seconds), and whether the file says the unit.

    ``kind`` is ``sum``, ``avg``, ``min`` or ``max``; ``depth`` counts how often it was summed up.
    """

    name: str
    kind: str
    inclusive: bool
    depth: int
    unit_s: float
    unit_stated: bool = True


@dataclass(frozen=True, slots=True)
class MetricChoice:
    """The attributes to use of those that a file has, None where it has none that fits.

    ``wall`` is time without what was called, ``inclusive`` with it, ``mean`` an average over ranks. ``average`` and
    ``shortest`` belong to the same attribute as ``wall``, ``shortest_call`` to a whole call. ``least`` and ``most``
    over ranks belong to ``mean``, all three with what was called.
    """

    wall: MetricMeaning | None
    inclusive: MetricMeaning | None
    mean: MetricMeaning | None
    average: MetricMeaning | None
    shortest: MetricMeaning | None
    shortest_call: MetricMeaning | None
    calls: str | None
    least: MetricMeaning | None = None
    most: MetricMeaning | None = None

    @property
    def time_metric(self) -> MetricMeaning | None:
        """The attribute that times come from: the time without what was called, where there is one."""
        return self.wall or self.inclusive or self.mean


def is_wanted_metric(name: str) -> bool:
    """Return whether an attribute's values can matter."""
    found = parse_meaning(name)
    return (
        (found is not None and (found.kind != "max" or found.depth > 1))
        or name in _CALLS
        or name in ("count", "aggregate.slot")
        or is_hardware_metric(name)
    )


def parse_meaning(name: str, unit: str | None = None) -> MetricMeaning | None:
    """Return what the attribute ``name`` measures, None when it is no time; ``unit`` is what the file says."""
    for titles, kind, inclusive in (
        (_EXCLUSIVE_TITLES, "sum", False),
        (_INCLUSIVE_TITLES, "sum", True),
        (_MEAN_TITLES, "avg", True),
        (_MEAN_EXCLUSIVE_TITLES, "avg", False),
        (_LEAST_TITLES, "min", True),
        (_MOST_TITLES, "max", True),
    ):
        if name in titles:
            return MetricMeaning(name, kind, inclusive, 2, _UNITS.get(unit or "sec", 1.0))
    found = _DURATION.fullmatch(name)
    if found is None:
        return None
    steps = [step for step in found[1].split("#") if step]
    kind = steps[0] if steps and steps[0] in ("avg", "min", "max") else "sum"
    rest = steps[1:] if kind != "sum" else steps
    if not set(rest) <= _SUMS:
        return None
    inclusive = bool(found[3]) or any(step.startswith(("inclusive", "iscale")) for step in rest)
    stated = _UNITS.get(unit or "")
    scaled = any(step.endswith("scale") for step in steps)
    nanoseconds = found[2] or found[4]
    unit_s = stated or (1.0 if scaled else 1e-9 if nanoseconds else 1e-6)
    return MetricMeaning(name, kind, inclusive, len(steps), unit_s, bool(stated or scaled or nanoseconds))


def units_of(values: Mapping[str, FloatArray], units: Mapping[str, str]) -> dict[str, str]:
    """Return the units of the attributes with ``values``: those that the file states, and those that values tell.

    Before 2.10 Caliper wrote ``time.duration`` in whole microseconds or in seconds, and did not say which. Nothing that
    is measured takes less than ``_SHORTEST_S``, so values below that many microseconds are seconds.
    """
    unstated = {
        name: column
        for name, column in values.items()
        if (found := parse_meaning(name, units.get(name))) is not None and not found.unit_stated and name not in units
    }
    some = [column[column > 0] for column in unstated.values()]
    least = min((float(column.min()) for column in some if len(column)), default=np.inf)
    return {**units, **(dict.fromkeys(unstated, "sec") if least * 1e-6 < _SHORTEST_S else {})}


def select_metrics(names: Iterable[str], units: Mapping[str, str]) -> MetricChoice:
    """Return which of the attributes ``names`` to use; of several the one that was summed up most often."""
    known = sorted(names)
    found = [each for each in (parse_meaning(name, units.get(name)) for name in known) if each is not None]

    def find_deepest(kind: str, inclusive: bool, depth: int | None = None) -> MetricMeaning | None:
        fitting = [each for each in found if each.kind == kind and each.inclusive == inclusive]
        fitting = [each for each in fitting if depth is None or each.depth == depth]
        return max(fitting, key=lambda each: each.depth, default=None)

    wall, inclusive = find_deepest("sum", False), find_deepest("sum", True)
    depth = wall.depth if wall else 0
    mean = next((each for each in found if each.kind == "avg" and each.depth > 1), None)
    over_ranks = mean.depth if mean is not None and mean.inclusive else -1
    return MetricChoice(
        wall=wall,
        inclusive=inclusive,
        mean=mean,
        average=find_deepest("avg", False, depth),
        shortest=find_deepest("min", False, depth),
        shortest_call=find_deepest("min", True, inclusive.depth if inclusive else 0),
        calls=next((name for name in _CALLS if name in known), None),
        least=find_deepest("min", True, over_ranks),
        most=find_deepest("max", True, over_ranks),
    )
