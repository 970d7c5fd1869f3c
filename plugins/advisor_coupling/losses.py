"""What an experiment says about a run of the same program: which kernels hurt each other there, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from advisor_coupling import newest, transitions
from advisor_coupling.arrangements import Arrangement, find_best_order
from advisor_coupling.cases import Chain, Metric
from advisor_coupling.intervals import Estimate
from advisor_coupling.model import TOLERANCE, CaseModel, Coupling, build_case_model, judge_coupling

if TYPE_CHECKING:
    from advisor.model.records import Profile
    from advisor_coupling.results import ExperimentDocument, Reason
    from advisor_coupling.transitions import CacheLevel

#: Numbers of parameters in a profile and in an experiment are the same within this.
_SAME: Final = 1e-9
#: A cache serves most accesses of a kernel whose data exceed it by that much: replacement is not perfect either way.
NEARLY_FITS: Final = 1.25
#: Kernels that fit into a cache by themselves work on this part of a chain's data at least, if it is the reason.
LOSING_PART: Final = 0.25
#: Shorter chains that explain so much of a longer one's loss stand for it.
MOST_OF_LOSS: Final = 0.8
#: A reason that explains this part of a loss is its main one.
MAIN_REASON: Final = 0.5


@dataclass(frozen=True, slots=True)
class LostCoupling:
    """Constructive coupling that another case showed and this one does not: what it would save here, seconds a run."""

    coupling: Coupling
    elsewhere: str
    seconds: float


@dataclass(frozen=True, slots=True)
class ChainLoss:
    """A chain whose kernels hurt each other in the loop, and why: ``excess`` is what that costs, seconds a run.

    ``cache`` names the cache that holds the data of each of its kernels, and not those of all. ``shared`` are arrays
    that two of them use; ``communicates`` is whether one of them does. ``reasons`` are the seconds that metrics of the
    experiment put down to messages or imbalance.
    """

    coupling: Coupling
    excess: Estimate
    cache: str | None
    shared: tuple[str, ...]
    communicates: bool
    reasons: Mapping[Reason, Estimate]

    def is_mainly(self, reason: Reason) -> bool:
        """Return whether a metric puts most of the loss down to one reason."""
        known = self.reasons.get(reason)
        return known is not None and known.low > 0 and known.value >= MAIN_REASON * self.excess.value

    @property
    def has_no_reason(self) -> bool:
        """Whether no known reason explains the loss of the chain."""
        stated = self.cache is not None or bool(self.shared) or self.communicates
        return not stated and not any(self.is_mainly(reason) for reason in self.reasons)


@dataclass(frozen=True, slots=True)
class CouplingLosses:
    """The case of an experiment that is nearest to a run; ``exact`` if sizes and processors are the same.

    ``chains`` lose in the loop beyond noise, the costliest first. ``apart`` are kernels that share arrays with others
    in between; ``better_order`` is one that wins beyond noise, where the order is free.
    """

    model: CaseModel
    exact: bool
    chains: tuple[ChainLoss, ...]
    apart: tuple[str, str] | None
    lost: LostCoupling | None
    better_order: Arrangement | None = None

    @property
    def worst(self) -> ChainLoss | None:
        """The chain that costs most beyond noise."""
        return self.chains[0] if self.chains else None

    @property
    def run_s(self) -> float:
        """The seconds of the run in the experiment, as measured or else as predicted."""
        whole = self.model.application or self.model.predictions[-1].value
        return whole.value

    @property
    def share(self) -> float:
        """What the worst chain costs of the run."""
        return self.worst.excess.value / self.run_s if self.worst else 0.0

    @property
    def order_share(self) -> float:
        """What the better order wins of the run."""
        return self.better_order.saved.value / self.run_s if self.better_order else 0.0

    @property
    def kernels(self) -> str:
        """The names of the worst chain."""
        return self.model.case.chain_label(self.worst.coupling.chain) if self.worst else ""


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
    caches = transitions.build_cache_levels(document.caches, nearest.case.processors)
    # the models of the nearest case for the metrics that tell reasons, by the metric's name
    reasons = {
        name: (reason, build_case_model(nearest.case, Metric(name)))
        for name, reason in document.reasons.items()
        if all((index,) in nearest.case.samples.get(name, {}) for index in range(nearest.case.size))
    }
    chains = [
        ChainLoss(
            one, excess, _find_evicting_cache(nearest, one, caches) or _find_missing_cache(one, reasons),
            _find_shared_arrays(nearest, one),
            any(nearest.case.kernels[index] in document.communicating for index in one.chain),
            _measure_reasons(one, reasons),
        )
        for one, excess in select_losses(nearest)
    ]  # fmt: skip
    apart, lost = _find_separated_kernels(nearest), _find_lost_coupling(nearest, models)
    order = find_best_order(nearest.case, document.after) if document.free_order else None
    return CouplingLosses(nearest, exact, tuple(chains), apart, lost, order)


def select_losses(model: CaseModel) -> list[tuple[Coupling, Estimate]]:
    """Return the chains that lose time in the loop, the costliest first, none of which shares a kernel with another.

    A chain stands for its loss unless shorter ones inside it, side by side, explain most of it. What the loop of all
    kernels loses is the most that there is: where that was measured, and its kernels do not lose beyond noise, no part
    of it does.
    """
    size = model.case.size
    whole = _find_whole_loop(model)
    if whole is not None and whole.verdict in ("constructive", "no coupling beyond noise"):
        return []
    losing = {frozenset(coupling.chain): coupling for coupling in model.couplings if coupling.verdict == "destructive"}
    if whole is not None and whole.verdict == "destructive":
        losing.setdefault(frozenset(whole.chain), whole)
    loops = [_split_chain(tuple((start + step) % size for step in range(size)), losing, {}) for start in range(size)]
    best = max(loops, key=lambda chains: (_sum_excess(chains), -len(chains)))
    share = 1.0
    if whole is not None and whole.value.has_interval and best:
        share = min(1.0, whole.excess.high / _sum_excess(best))
    return [(one, one.excess.scale_by(share)) for one in sorted(best, key=lambda one: -one.excess.value)]


def _find_whole_loop(model: CaseModel) -> Coupling | None:
    """Return the coupling of all kernels: as measured, else of the program itself against the sum of its kernels."""
    measured = next(iter(model.couplings_of_length(model.case.size)), None)
    error = model.predictions[0].error
    if measured is not None or model.application is None or error is None or not error.has_interval:
        return measured
    whole = model.application.value
    value = Estimate(*(1 / (1 + end) for end in (error.value, error.high, error.low)))
    excess = Estimate(*(-end * whole for end in (error.value, error.high, error.low)))
    spread = max((coupling.spread for coupling in model.couplings), default=0.0)
    return Coupling(tuple(range(model.case.size)), value, excess, spread, judge_coupling(value, spread, model.metric))


def _split_chain(
    chain: Chain, losing: Mapping[frozenset[int], Coupling], known: dict[Chain, list[Coupling]]
) -> list[Coupling]:
    """Return the chains, side by side in one chain, that explain what it loses; itself where shorter ones do not."""
    if chain not in known:
        splits = [
            [*_split_chain(chain[:place], losing, known), *_split_chain(chain[place:], losing, known)]
            for place in range(1, len(chain))
        ]
        parts = max(splits, key=_sum_excess, default=[])
        own = losing.get(frozenset(chain)) if len(chain) > 1 else None
        known[chain] = [own] if own is not None and _sum_excess(parts) < MOST_OF_LOSS * own.excess.value else parts
    return known[chain]


def _sum_excess(chains: Sequence[Coupling]) -> float:
    return sum(chain.excess.value for chain in chains)


def _count_matches(one: CaseModel, wanted: Mapping[str, float]) -> int:
    """Return how many parameters are those wanted; one that differs makes it worse than none."""
    both = [(value, wanted[name]) for name, value in one.case.parameters.items() if name in wanted]
    same = sum(abs(mine - other) <= _SAME * abs(other) for mine, other in both)
    return same if same == len(both) else -1


def _case_size(one: CaseModel) -> float:
    return one.case.working_set(tuple(range(one.case.size))) or one.case.loop_count


def _find_evicting_cache(one: CaseModel, loss: Coupling, caches: Sequence[CacheLevel]) -> str | None:
    """Return the first cache that holds most of the data of some kernels of a chain, and not those of all.

    These kernels find their data gone; they have to work on a good part of all that the chain touches.
    """
    sizes = [one.case.working_set(part) for part in ((index,) for index in loss.chain)]
    together = one.case.working_set(loss.chain)
    known = [size for size in sizes if size is not None]
    if together is None or len(known) < len(sizes):
        return None
    for level in caches:
        fitting = sum(size for size in known if size <= NEARLY_FITS * level.bytes)
        if fitting >= LOSING_PART * sum(known) and together > max(transitions.USABLE * level.bytes, max(known)):
            return level.name
    return None


def _find_shared_arrays(one: CaseModel, loss: Coupling) -> tuple[str, ...]:
    used = [name for index in loss.chain for name in one.case.uses.get(one.case.kernels[index], ())]
    return tuple(name for name in dict.fromkeys(used) if used.count(name) > 1)


def _find_missing_cache(loss: Coupling, reasons: Mapping[str, tuple[Reason, CaseModel]]) -> str | None:
    """Return the metric of cache misses of which the chain has more than its kernels, beyond noise."""
    for name, (reason, model) in reasons.items():
        alike = next((coupling for coupling in model.couplings if coupling.chain == loss.chain), None)
        if reason == "cache" and alike is not None and alike.verdict == "destructive":
            return name
    return None


def _measure_reasons(loss: Coupling, reasons: Mapping[str, tuple[Reason, CaseModel]]) -> dict[Reason, Estimate]:
    """Return how many seconds of a chain's loss metrics put down to messages and to imbalance."""
    found: dict[Reason, Estimate] = {}
    for reason, model in reasons.values():
        alike = next((coupling for coupling in model.couplings if coupling.chain == loss.chain), None)
        if reason != "cache" and alike is not None and alike.excess.has_interval:
            found[reason] = alike.excess
    return found


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
        there = {coupling.chain: coupling for coupling in other.couplings if coupling.verdict == "constructive"}
        for one in here.couplings:
            better = there.get(one.chain)
            if better and one.value.has_interval and one.value.low > better.value.high + TOLERANCE:
                plain = sum(here.alone[index].value for index in one.chain) * here.case.loop_count
                found.append(LostCoupling(one, other.case.name, (one.value.value - better.value.value) * plain))
    return max(found, key=lambda one: one.seconds, default=None)
