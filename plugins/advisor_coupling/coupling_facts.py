"""Facts on coupling for the rules, from an experiment with the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from advisor.advice.facts import Fact
from advisor_coupling import result_files

if TYPE_CHECKING:
    from advisor.advice.facts.fact_records import Unit, Value
    from advisor.model.records import Profile
    from advisor_coupling.losses import ChainLoss, CouplingLosses

COMMAND: Final = "gapwatch couple MANIFEST"


def build_facts() -> list[Fact]:
    """Return the words of the rules about coupling; all of the run, from an experiment with the program."""
    return [
        _make_fact("run.coupling_measured", "yes/no", "whether an experiment with this program was found",
        lambda _: True),
        _make_fact(
            "run.coupling_lost_share", "share", "(P_S - sum of P_k) * passes / run time of the chain that costs most",
            lambda known: known.share,
        ),
        _make_fact("run.coupling_worst", "ratio", "C_S of that chain", _worst_coupling),
        _make_fact("run.coupling_kernels", "name", "the kernels of that chain", lambda known: known.kernels or None),
        _make_fact(
            "run.coupling_evicts", "yes/no", "a cache holds the data of some of its kernels, but not of all",
            _of_worst(lambda worst: worst.cache is not None),
        ),
        _make_fact("run.coupling_shares", "yes/no", "two of them use one array",
        _of_worst(lambda worst: bool(worst.shared))),
        _make_fact("run.coupling_communicates", "yes/no", "one of them communicates, or lost time in messages",
        _of_worst(lambda worst: worst.communicates or worst.is_mainly("messages"))),
        _make_fact("run.coupling_imbalance", "yes/no", "they lose most by waiting for others, according to a metric",
        _of_worst(lambda worst: worst.is_mainly("imbalance"))),
        _make_fact("run.coupling_unexplained", "yes/no", "no known reason why they lose",
        _of_worst(lambda worst: worst.has_no_reason)),
        _make_fact(
            "run.coupling_apart", "yes/no", "kernels that share arrays have others in between",
            lambda known: known.apart is not None,
        ),
        _make_fact(
            "run.coupling_order_share", "share", "what the best order of the kernels saves, by their pairs / run time",
            lambda known: known.order_share,
        ),
        _make_fact(
            "run.coupling_lost_constructive_share", "share", "what coupling saves elsewhere and not here / run time",
            lambda known: known.lost.seconds / known.run_s if known.lost else 0.0,
        ),
    ]  # fmt: skip


def _worst_coupling(known: CouplingLosses) -> float | None:
    return known.worst.coupling.value.value if known.worst else None


def _of_worst(holds: Callable[[ChainLoss], bool]) -> Callable[[CouplingLosses], bool]:
    """Return a function of all losses that asks about the worst chain; no where none loses."""
    return lambda known: known.worst is not None and holds(known.worst)


class _LatestLosses:
    """The losses of the latest run: each of the facts needs them."""

    profile: Profile | None = None
    losses: CouplingLosses | None = None


def find_known_losses(profile: Profile) -> CouplingLosses | None:
    """Return what the newest experiment with this program says about a run, looked for once; None without one."""
    if _LatestLosses.profile is not profile:
        _LatestLosses.losses = _find_losses(profile) if result_files.find_result_files() else None
        _LatestLosses.profile = profile
    return _LatestLosses.losses


def _find_losses(profile: Profile) -> CouplingLosses | None:
    from advisor_coupling import losses

    return losses.find_losses(profile)


def _make_fact(name: str, unit: Unit, formula: str, value: Callable[[CouplingLosses], Value | None]) -> Fact:
    """Return a fact of the run; without an experiment, the only known fact is that there is none."""

    def compute_fact(profile: Profile, _phase: int | None) -> Value | None:
        found = find_known_losses(profile)
        if found is None:
            return False if name == "run.coupling_measured" else None
        return value(found)

    return Fact(name, unit, "run", ("wall_s",), COMMAND, formula, compute_fact)
