"""Compare two builds of a program: the change of each gap in seconds, where, and whether beyond noise.

Repeated runs of one build are the noise. With a single run of each nothing is ever called more than noise. What
disturbs a run, other work on the machine, only makes it longer: repeats that took far longer than the fastest of their
build are left out, and that is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Final

import numpy as np

from advisor.analysis.distributions import student_t_quantile
from advisor.analysis.network_demands import CountChange, compare_network_demands
from advisor.model import policy
from advisor.model.devices import DEVICE_BOUNDS
from advisor.model.errors import UsageError
from advisor.model.records import ALL_LEVELS, BOUND_NAMES, LEVELS, Advice, FloatArray, Gap

#: Regions that are named with the change of a gap.
_SHOWN_REGIONS: Final = 3


@dataclass(frozen=True, slots=True)
class Change:
    """Seconds before and after (means over the runs), and the noise of their difference.

    ``noise_s`` is None without repeated runs; then ``beyond_noise`` is None as well: unknown. ``places`` name the
    regions that moved most, with their seconds, largest first.
    """

    name: str
    before_s: float
    after_s: float
    noise_s: float | None
    beyond_noise: bool | None
    places: tuple[tuple[str, float], ...] = ()

    @property
    def delta_s(self) -> float:
        """How many seconds more there are after than before."""
        return self.after_s - self.before_s


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed from one build to another: the first bound and the gaps, which add up to the run time ``actual``.

    Of the ``runs`` of each build so many were ``disturbed`` and left out. ``network`` is what changed in what the
    builds ask of a network; those counts are of all runs, since nothing disturbs them. ``repeats`` says that both sides
    are runs of one build, started alike: nothing was changed, and no difference is more than noise. ``processors`` are
    the numbers of processors that the runs of each build had.
    """

    program: str
    before: str
    after: str
    runs: tuple[int, int]
    actual: Change
    changes: tuple[Change, ...]
    disturbed: tuple[int, int] = (0, 0)
    network: tuple[CountChange, ...] = ()
    repeats: bool = False
    processors: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    def as_repeats(self) -> Comparison:
        """Return the comparison of runs between which nothing was changed."""
        actual, *changes = (replace(one, beyond_noise=False) for one in (self.actual, *self.changes))
        return replace(self, actual=actual, changes=tuple(changes), repeats=True)

    @property
    def significant_increases(self) -> tuple[Change, ...]:
        """The gaps, and the first bound, that grew by more than noise; the run time where none of them did."""
        grown = tuple(change for change in self.changes if change.beyond_noise and change.delta_s > 0)
        return grown or ((self.actual,) if self.actual.beyond_noise and self.actual.delta_s > 0 else ())

    def is_undecided(self, change: Change) -> bool:
        """Return whether a change is no more than noise only because too few repeats tell what the noise is."""
        if change.beyond_noise is not False or change.noise_s is None or self.repeats:
            return False
        return abs(change.delta_s) > max(
            policy.UNDECIDED_CHANGE * change.noise_s, policy.CHANGE_SHARE * self.actual.before_s
        )

    @property
    def added_traffic(self) -> tuple[CountChange, ...]:
        """The latencies, bytes and messages that increased by more than repeats differ."""
        return tuple(change for change in self.network if change.beyond_noise and change.delta > 0)

    @property
    def largest_increase(self) -> Change | None:
        """The largest increase beyond noise, None where there is none."""
        return max(self.significant_increases, key=lambda change: change.delta_s, default=None)


def check_comparable(groups: Sequence[Sequence[Advice]]) -> None:
    """Raise ``UsageError`` unless all groups hold runs of one program, with run times."""
    if not all(groups):
        raise UsageError("nothing to compare: each side needs at least one run")
    if any(not advice.profile.has_run_time for group in groups for advice in group):
        raise UsageError("a run without a run time cannot be compared")
    programs = sorted({advice.profile.program for group in groups for advice in group})
    if len(programs) > 1:
        raise UsageError(f"these are runs of different programs: {', '.join(programs)}")


def compare_builds(
    before: Sequence[Advice], after: Sequence[Advice], earlier: Sequence[Sequence[Advice]] = ()
) -> Comparison:
    """Return what changed from the runs of one build to those of another, each at least one.

    ``earlier`` holds the runs of further builds, which tell more of the noise. Runs that were disturbed are left out
    (``select_undisturbed``). Gaps are those between the bounds that all runs know; the noise of a difference is the
    pooled standard deviation of repeats, times sqrt(1/n_before + 1/n_after); it is exceeded where Student's t says that
    ``CHANGE_PROBABILITY`` is less likely, Bonferroni's correction for the number of gaps included, and the change is at
    least ``CHANGE_SHARE`` of the run. Simulated runs have no noise.
    """
    all_runs = len(before), len(after)
    network = compare_network_demands(before, after, earlier)
    before, after, *earlier = select_undisturbed((before, after, *earlier))
    known = _known_bounds((*before, *after))
    names = ("actual", *_gap_names(known))
    groups = [_seconds_table(group, known) for group in (before, after)]
    noise = [*groups, *(_seconds_table(group, known) for group in earlier if _has_bounds(group, known))]
    spread, freedom = _pool_deviations(noise)
    if all(one.profile.is_simulated for one in (*before, *after)):
        spread = np.zeros(len(names))
    error = None if spread is None else spread * np.sqrt(1 / len(before) + 1 / len(after))
    means = [group.mean(axis=0) for group in groups]
    least = policy.CHANGE_SHARE * float(means[0][0])
    limit = _significance_limit(freedom, len(names)) if freedom else 0.0
    places = _largest_changes(before, after, names)
    changes = tuple(
        Change(
            name,
            float(first),
            float(second),
            None if error is None else float(error[n]),
            None if error is None else bool(abs(second - first) > max(limit * error[n], least)),
            places.get(name, ()),
        )
        for n, (name, first, second) in enumerate(zip(names, *means, strict=True))
    )
    return Comparison(
        after[-1].profile.program,
        _build_name(before),
        _build_name(after),
        all_runs,
        changes[0],
        changes[1:],
        (all_runs[0] - len(before), all_runs[1] - len(after)),
        network,
        processors=(_count_processors(before), _count_processors(after)),
    )


def _count_processors(runs: Sequence[Advice]) -> tuple[int, ...]:
    return tuple(sorted({len(run.profile.processors) for run in runs}))


def select_undisturbed(groups: Sequence[Sequence[Advice]]) -> list[list[Advice]]:
    """Return the runs of each build without those that the machine disturbed.

    Such a run took longer than the fastest of its build by more than ``CHANGE_SHARE``, and by more than
    ``DISTURBED_RUN`` times the median of what repeats took longer than the fastest of theirs, over all builds. Of
    normally distributed times that are fewer than one in a hundred; where more than half of all repeats were disturbed,
    the median is large and nothing is left out. Equal times, of coarse clocks, do not count in the median.
    """
    fastest = [min((one.profile.actual_s for one in group), default=0.0) for group in groups]
    pairs = list(zip(groups, fastest, strict=True))
    longer = [one.profile.actual_s - least for group, least in pairs for one in group if one.profile.actual_s > least]
    most = policy.DISTURBED_RUN * float(np.median(longer)) if longer else 0.0
    return [
        [one for one in group if one.profile.actual_s - least <= max(most, policy.CHANGE_SHARE * least)]
        for group, least in pairs
    ]


def _build_name(group: Sequence[Advice]) -> str:
    profile = group[-1].profile
    return profile.build or f"run {profile.run}"


def _known_bounds(group: Sequence[Advice]) -> tuple[str, ...]:
    """Return the bounds that all runs know, lowest first."""
    known = [{bound.name for bound in advice.bounds if bound.seconds is not None} for advice in group]
    of_devices = any(advice.profile.devices is not None for advice in group)
    return tuple(name for name in (DEVICE_BOUNDS if of_devices else BOUND_NAMES) if all(name in each for each in known))


def _has_bounds(group: Sequence[Advice], known: Sequence[str]) -> bool:
    return bool(group) and set(known) <= set(_known_bounds(group))


def _gap_names(known: Sequence[str]) -> tuple[str, ...]:
    """Return the first bound and the gaps between the known ones, merged ones joined by ``+``."""
    levels = LEVELS if known[0] in BOUND_NAMES[:-1] else ALL_LEVELS[len(LEVELS) :]
    order = {level.bound: number for number, level in enumerate(levels)}
    gaps = (
        "+".join(str(level.gap) for level in levels[order[low] + 1 : order[high] + 1]) for low, high in pairwise(known)
    )
    return (known[0], *gaps)


def _seconds_table(group: Sequence[Advice], known: Sequence[str]) -> FloatArray:
    """Return run time, first bound and gaps of each run (runs, 2 + gaps), seconds."""
    seconds = ({bound.name: bound.seconds or 0.0 for bound in advice.bounds} for advice in group)
    levels = np.array([[each[name] for name in known] for each in seconds])
    return np.column_stack((levels[:, -1], levels[:, 0], np.diff(levels)))


def _pool_deviations(tables: Sequence[FloatArray]) -> tuple[FloatArray | None, int]:
    """Return the standard deviation of runs of one build, over all builds, and its degrees of freedom."""
    repeats = [table for table in tables if len(table) > 1]
    freedom = sum(len(table) - 1 for table in repeats)
    if not freedom:
        return None, 0
    squares = sum(((table - table.mean(axis=0)) ** 2).sum(axis=0) for table in repeats)
    return np.sqrt(np.asarray(squares) / freedom), freedom


@lru_cache(64)
def _significance_limit(freedom: int, tests: int) -> float:
    return student_t_quantile(1 - policy.CHANGE_PROBABILITY / tests / 2, freedom)


def _largest_changes(
    before: Sequence[Advice], after: Sequence[Advice], names: Sequence[str]
) -> dict[str, tuple[tuple[str, float], ...]]:
    """Return by gap the regions whose seconds changed most."""
    found = {}
    for name in names:
        first, second = _mean_by_region(before, name), _mean_by_region(after, name)
        moved = {
            region: second.get(region, 0.0) - first.get(region, 0.0) for region in dict.fromkeys((*first, *second))
        }
        largest = sorted(moved.items(), key=lambda each: -abs(each[1]))[:_SHOWN_REGIONS]
        found[name] = tuple((region, seconds) for region, seconds in largest if seconds)
    return found


def _mean_by_region(group: Sequence[Advice], name: str) -> dict[str, float]:
    """Return the mean seconds of a gap by region."""
    found: dict[str, float] = {}
    for advice in group:
        gap: Gap | None = next((gap for gap in advice.gaps if gap.name == name), None)
        for share in gap.regions if gap else ():
            found[share.name] = found.get(share.name, 0.0) + share.seconds / len(group)
    return found
