"""Earlier runs of a program: the advice on them, and the gains of applied actions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from advisor.model.errors import StoreError, UsageError
from advisor.model.run_points import find_differences, is_same_point

if TYPE_CHECKING:
    from advisor.analysis.comparison import Comparison
    from advisor.model.recommendations import Recommendation
    from advisor.model.records import Advice, Profile

T = TypeVar("T")
#: So many other builds of the program tell how noisy its runs are.
NOISE_BUILDS: Final = 20


@dataclass(frozen=True, slots=True)
class AppliedAction:
    """An action that was applied to a program, and its gain in seconds per run.

    ``before`` is the advice that it followed, its profile without arrays; ``ceiling_s`` what it promised at most there.
    """

    action: str
    before: Advice
    won_s: float
    ceiling_s: float


class RunHistory(Protocol):
    """The store of earlier runs; raises ``StoreError`` where that is damaged as a whole."""

    @property
    def problems(self) -> Sequence[str]:
        """What of it was damaged, and left out of what was told."""

    def load_advice(self, program: str) -> Sequence[Advice]:
        """Return the advice on the newest runs of a program, the oldest first."""

    def load_summaries(self, program: str) -> Sequence[Advice]:
        """Return of the same advice names, parameters, times, bounds, gaps by region, findings, and recommendations
        without their words and reasons.
        """

    def load_won_shares(self, program: str) -> Mapping[str, Sequence[float]]:
        """Return, for each action that was applied, the shares of its ceiling that it has won, each time it was."""

    def load_run_times(self, program: str, ranks: int) -> Sequence[tuple[str, float]]:
        """Return build and run time (s) of the newest runs of a program on so many ranks, those of known builds."""

    def find_applied_actions(self) -> Sequence[AppliedAction]:
        """Return the actions that were applied to any program and of which it is known what they won."""


class EarlierRuns:
    """The past of one run: what ``past`` remembers of its program, and ``beside`` it the older runs at hand.

    Looks into the past when it is asked, and once; a past that is damaged is a ``problem`` and tells nothing.
    """

    def __init__(self, profile: Profile, beside: Sequence[Advice], past: RunHistory | None) -> None:
        self._profile = profile
        self._beside = tuple(beside)
        self._past = past
        self._advice: tuple[Advice, ...] | None = None
        self._summaries: tuple[Advice, ...] | None = None
        self.problems: tuple[str, ...] = ()

    def earlier_advice(self) -> tuple[Advice, ...]:
        """Return the advice on earlier runs of the program, the oldest first: measured ones, or simulated as it is."""
        if self._advice is None:
            self._advice = self._join_runs(self._ask_past(lambda past: past.load_advice(self._profile.program)) or ())
        return self._advice

    def earlier_summaries(self) -> tuple[Advice, ...]:
        """Return what ``earlier_advice`` does, of remembered runs only what ``RunHistory.load_summaries`` tells."""
        if self._summaries is None:
            stored = self._ask_past(lambda past: past.load_summaries(self._profile.program))
            self._summaries = self._join_runs(stored or ())
        return self._summaries

    def _join_runs(self, stored: Sequence[Advice]) -> tuple[Advice, ...]:
        """Return what is remembered, without this run itself and those after it, and what is beside it.

        Of the runs after it those stay that are of the same study.
        """
        known = [self._profile, *(one.profile for one in self._beside)]
        others = [
            one
            for one in stored
            if not any(is_same_run(one.profile, other) for other in known)
            and (not _is_later(one.profile, self._profile) or is_of_same_study(one.profile, self._profile))
        ]
        simulated = self._profile.is_simulated
        # Runs by their start where all of them tell it, else as they are
        found = [one for one in (*others, *self._beside) if one.profile.is_simulated == simulated]
        if any(one.profile.started is None for one in found):
            return tuple(found)
        return tuple(sorted(found, key=lambda one: one.profile.started or ""))

    def won_shares(self) -> Mapping[str, Sequence[float]]:
        """Return what applied actions have won in this program."""
        return self._ask_past(lambda past: past.load_won_shares(self._profile.program)) or {}

    def noise_s(self) -> float:
        """Return how much runs of one build at this point differ, in seconds, with this run; 0 where none ran twice."""
        ranks = self._profile.ranks
        known = [one.profile for one in self._beside if one.profile.ranks == ranks and one.profile.has_run_time]
        runs = {(one.build, one.actual_s) for one in (*known, self._profile) if one.build is not None}
        stored = self._ask_past(lambda past: past.load_run_times(self._profile.program, ranks)) or ()
        same_ranks = [one.profile for one in self.earlier_summaries() if one.profile.ranks == ranks]
        elsewhere = {(one.build, one.actual_s) for one in same_ranks if not is_same_point(self._profile, one)}
        return pooled_deviation_s((runs | set(stored)) - elsewhere)

    def applied_actions(self) -> tuple[AppliedAction, ...]:
        """Return what was applied to other programs, and what it won there."""
        found = self._ask_past(lambda past: past.find_applied_actions()) or ()
        return tuple(one for one in found if one.before.profile.program != self._profile.program)

    def _ask_past(self, ask: Callable[[RunHistory], T]) -> T | None:
        """Return what the past says, None where there is none or it is damaged, which is then a problem."""
        if self._past is None:
            return None
        found = None
        try:
            found = ask(self._past)
            problems = self._past.problems
        except StoreError as error:
            problems = (f"the history tells nothing: {error}",)
        self.problems = tuple(dict.fromkeys((*self.problems, *problems)))
        return found


def pooled_deviation_s(runs: Iterable[tuple[str, float]]) -> float:
    """Return the standard deviation of run times of one build, pooled over all builds; 0 where none ran twice."""
    builds: dict[str, list[float]] = {}
    for build, seconds in runs:
        builds.setdefault(build, []).append(seconds)
    freedom = sum(len(times) - 1 for times in builds.values())
    if not freedom:
        return 0.0
    from statistics import fmean  # only a history asks for it

    squares = sum((time - fmean(times)) ** 2 for times in builds.values() for time in times)
    return math.sqrt(squares / freedom)


def is_same_run(one: Profile, other: Profile) -> bool:
    """Return whether two profiles are of one run."""
    if (one.program, one.run, one.started, one.build) != (other.program, other.run, other.started, other.build):
        return False
    return one.actual_s == other.actual_s or (math.isnan(one.actual_s) and math.isnan(other.actual_s))


def is_of_same_study(one: Profile, other: Profile) -> bool:
    """Return whether two runs are of one build at different points (ranks, parameters), whichever was first.

    Runs of unknown builds are taken to be of one, as in ``gapwatch scale``.
    """
    return one.program == other.program and one.build == other.build and not is_same_point(one, other)


def _is_later(one: Profile, other: Profile) -> bool:
    return one.started is not None and other.started is not None and one.started > other.started


@dataclass(frozen=True, slots=True)
class ComparisonBase:
    """The build that a run is compared with: its runs, and what changed from them to the run."""

    runs: tuple[Advice, ...]
    change: Comparison


def find_base(advice: Advice, earlier: Sequence[Advice], build: str | None = None) -> ComparisonBase | None:
    """Return the runs of ``build``, by default of the newest other one, and what changed since; None where none are.

    ``earlier`` are runs before this one, the oldest first; those of the program at the same point (ranks and
    parameters) count. Repeats of its
    own build count with it, and repeats of further builds tell more of the noise. Raises ``UsageError`` for a build
    that is not among them.
    """
    if not advice.profile.has_run_time:
        return None
    builds = _group_by_build(earlier, advice.profile)
    own = builds.pop(advice.profile.build or "", [])
    newest = next((one.profile.build for one in reversed(earlier) if one.profile.build in builds), None)
    before = builds.pop(build or newest or "", [])
    if not before:
        if build is None:
            return None
        raise UsageError(
            f"no earlier run of {advice.profile.program!r} is of the build {build!r}; "
            f"there are {', '.join(builds) or 'none'}"
        )
    from advisor.analysis.comparison import compare_builds  # only a history asks for it

    repeated = [runs for runs in builds.values() if len(runs) > 1][-NOISE_BUILDS:]
    return ComparisonBase(tuple(before), compare_builds(before, [*own, advice], repeated))


def require_base(advice: Advice, earlier: Sequence[Advice], build: str | None = None) -> ComparisonBase | None:
    """Return what ``find_base`` does; raises ``UsageError`` where the other builds ran otherwise than this run."""
    base = find_base(advice, earlier, build)
    own = advice.profile
    others = (one.profile for one in reversed(earlier) if one.profile.program == own.program)
    other = next((one for one in others if one.build not in (None, own.build) and one.has_run_time), None)
    if base is None and own.has_run_time and other is not None:
        raise UsageError(
            f"gates on changes cannot be judged: build {other.build} was not run like this one "
            f"({'; '.join(find_differences(other, own))})"
        )
    return base


def find_change(advice: Advice, earlier: Sequence[Advice], build: str | None = None) -> Comparison | None:
    """Return what changed since the build that ``find_base`` finds; None where it finds none."""
    base = find_base(advice, earlier, build)
    return base.change if base else None


def recall_summaries(past: RunHistory, advice: Advice) -> tuple[Advice, ...]:
    """Return summaries of the runs of the program that ``past`` remembers, the oldest first."""
    return EarlierRuns(advice.profile, (), past).earlier_summaries()


def compare_with_base(advice: Advice, past: RunHistory) -> Comparison | None:
    """Return what changed from the build before to that of a run; None where no other build is remembered."""
    return find_change(advice, recall_summaries(past, advice))


def _group_by_build(runs: Sequence[Advice], like: Profile) -> dict[str, list[Advice]]:
    """Return by build the runs of the program at the same point of which the wall time is known."""
    builds: dict[str, list[Advice]] = {}
    for one in runs:
        alike = one.profile.program == like.program and is_same_point(like, one.profile)
        if one.profile.build is not None and alike and one.profile.has_run_time:
            builds.setdefault(one.profile.build, []).append(one)
    return builds


def find_new_recommendations(advice: Advice, before: Sequence[Advice]) -> tuple[Recommendation, ...]:
    """Return what is recommended on a run and on none of those ``before``."""
    known = {item.fingerprint for one in before for item in one.recommendations}
    return tuple(item for item in advice.recommendations if item.fingerprint not in known)
