"""What an experiment says about a run of the same program: which kernels hurt each other there, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from advisor_coupling import newest, transitions
from advisor_coupling.model import TOLERANCE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from advisor.model.records import Profile
    from advisor_coupling.model import CaseModel, Coupling
    from advisor_coupling.results import ExperimentDocument
    from advisor_coupling.transitions import CacheLevel

#: Numbers of parameters in a profile and in an experiment are the same within this.
_SAME: Final = 1e-9


@dataclass(frozen=True, slots=True)
class LostCoupling:
    """Constructive coupling that another case showed and this one does not: what it would save here, seconds a run."""

    coupling: Coupling
    elsewhere: str
    seconds: float


@dataclass(frozen=True, slots=True)
class CouplingLosses:
    """The case of an experiment that is nearest to a run; ``exact`` if sizes and processors are the same.

    ``worst`` is the pair that costs most beyond noise, None if there is none. ``evicted`` names the cache that holds
    the data of each of its two kernels, and not those of both. ``shared`` are arrays that both use; ``communicates`` is
    whether one of them does. ``apart`` are kernels that share arrays with others in between.
    """

    model: CaseModel
    exact: bool
    worst: Coupling | None
    evicted: str | None
    shared: tuple[str, ...]
    communicates: bool
    apart: tuple[str, str] | None
    lost: LostCoupling | None

    @property
    def run_s(self) -> float:
        """The seconds of the run in the experiment, as measured or else as predicted."""
        whole = self.model.application or self.model.predictions[-1].value
        return whole.value

    @property
    def share(self) -> float:
        """What the worst pair costs of the run."""
        return self.worst.excess.value / self.run_s if self.worst else 0.0

    @property
    def kernels(self) -> str:
        """The names of the worst pair."""
        return self.model.case.chain_label(self.worst.chain) if self.worst else ""


def find_losses(profile: Profile) -> CouplingLosses | None:
    """Return what the newest experiment with this program says about the run; None if there is none."""
    place = newest.find_newest_result(profile.program)
    document = newest.read_document(place) if place else None
    if place is None or document is None:
        return None
    wanted = {name: float(value) for name, value in profile.parameters.items() if isinstance(value, float | int)}
    return compute_losses(document, newest.build_models(place), wanted, len(profile.processors))


def compute_losses(
    document: ExperimentDocument, models: Sequence[CaseModel], wanted: Mapping[str, float], processors: int
) -> CouplingLosses | None:
    """Return what an experiment says about a run with these parameters; None if it says nothing yet."""
    if not models:
        return None
    nearest = max(
        models, key=lambda one: (_count_matches(one, wanted), one.case.processors == processors, _case_size(one))
    )
    exact = _count_matches(nearest, wanted) == len(nearest.case.parameters) and nearest.case.processors == processors
    costly = [one for one in nearest.couplings_of_length(2) if one.verdict == "destructive"]
    worst = max(costly, key=lambda one: one.excess.value, default=None)
    caches = transitions.build_cache_levels(document.caches, nearest.case.processors)
    talks = worst is not None and any(nearest.case.kernels[index] in document.communicating for index in worst.chain)
    return CouplingLosses(
        nearest, exact, worst, _find_evicting_cache(nearest, worst, caches), _find_shared_arrays(nearest, worst),
        talks, _find_separated_kernels(nearest),
        _find_lost_coupling(nearest, models),
    )  # fmt: skip


def _count_matches(one: CaseModel, wanted: Mapping[str, float]) -> int:
    """Return how many parameters are those wanted; one that differs makes it worse than none."""
    both = [(value, wanted[name]) for name, value in one.case.parameters.items() if name in wanted]
    same = sum(abs(mine - other) <= _SAME * abs(other) for mine, other in both)
    return same if same == len(both) else -1


def _case_size(one: CaseModel) -> float:
    return one.case.working_set(tuple(range(one.case.size))) or one.case.loop_count


def _find_evicting_cache(one: CaseModel, worst: Coupling | None, caches: Sequence[CacheLevel]) -> str | None:
    found = transitions.find_homes(one.case, worst.chain, caches) if worst else None
    if not found or not caches:
        return None
    order = [level.name for level in caches] + [transitions.MEMORY]
    inner = max(found[1:], key=order.index)
    return inner if order.index(found[0]) > order.index(inner) else None


def _find_shared_arrays(one: CaseModel, worst: Coupling | None) -> tuple[str, ...]:
    if worst is None:
        return ()
    first, second = (one.case.uses.get(one.case.kernels[index], ()) for index in worst.chain)
    return tuple(name for name in first if name in second)


def _find_separated_kernels(one: CaseModel) -> tuple[str, str] | None:
    """Return two kernels that share more than either shares with the kernel beside it; None if there are none."""
    case = one.case
    used = [frozenset(case.uses.get(name, ())) for name in case.kernels]

    def common_bytes(first: int, second: int) -> float:
        return sum(case.data_bytes.get(name, 0.0) for name in used[first] & used[second])

    found: list[tuple[float, int, int]] = []
    for first in range(case.size):
        for step in range(2, case.size - 1):
            second = (first + step) % case.size
            beside = max(common_bytes(first, (first + 1) % case.size), common_bytes(second, (second - 1) % case.size))
            if common_bytes(first, second) > beside:
                found.append((common_bytes(first, second), first, second))
    if not found:
        return None
    _, first, second = max(found)
    return case.kernels[first], case.kernels[second]


def _find_lost_coupling(here: CaseModel, models: Sequence[CaseModel]) -> LostCoupling | None:
    """Return the largest constructive coupling that another case shows and this one, beyond noise, does not."""
    found = []
    for other in models:
        there = {one.chain: one for one in other.couplings if one.verdict == "constructive"}
        for one in here.couplings:
            better = there.get(one.chain)
            if better and one.value.has_interval and one.value.low > better.value.high + TOLERANCE:
                plain = sum(here.alone[index].value for index in one.chain) * here.case.loop_count
                found.append(LostCoupling(one, other.case.name, (one.value.value - better.value.value) * plain))
    return max(found, key=lambda one: one.seconds, default=None)
