"""What is said in words about an experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from advisor.model import units
from advisor_coupling.cases import SECONDS
from advisor_coupling.intervals import FEWEST, LEVEL

if TYPE_CHECKING:
    from advisor_coupling.length_selection import LengthChoice
    from advisor_coupling.model import CaseModel, Coupling
    from advisor_coupling.noise import Drift, Outlier
    from advisor_coupling.results import ExperimentDocument
    from advisor_coupling.transitions import Transition


#: What the choice of a length is tried on, by what was left out.
_LEFT_OUT: Final = {"cases": "a case", "rounds": "a round"}


def is_claimed(coupling: Coupling) -> bool:
    """Whether something is claimed about the chain."""
    return coupling.verdict in ("destructive", "constructive")


def describe_experiment(
    document: ExperimentDocument, models: Sequence[CaseModel], choice: LengthChoice | None, moves: Sequence[Transition]
) -> Iterator[str]:
    """Yield what matters most, a line each."""
    runs = sum(run.kind != "calibration" for run in document.runs)
    where = f" on {document.machine}" if document.machine else ""
    yield (
        f"{len(document.kernels)} kernels, {len(models)} cases, {runs} runs{where}. "
        f"Intervals have a confidence of {LEVEL:.0%}; nothing is claimed if one contains 1, or within 2 % of 1."
    )
    yield from (f"{one.case.name}: {describe_verdict(one)}" for one in models)
    if choice:
        chosen = "plain summation" if choice.length == 1 else f"chains of {choice.length} kernels"
        unseen = units.format_share(choice.cross_validated_error)
        yield f"Best: {chosen}. Chosen without {_LEFT_OUT[choice.left_out]}, it errs there by {unseen} on average."
    if moves:
        pairs = sum(len(move.chain) == 2 for move in moves)
        yield f"{len(moves)} changes of couplings beyond noise, {pairs} of them of pairs."


def describe_verdict(model: CaseModel) -> str:
    """Return what is to be said about one case."""
    counts = Counter(coupling.verdict for coupling in model.couplings)
    beyond = [coupling for coupling in model.couplings if is_claimed(coupling)]
    if not model.couplings:
        return "no chain was measured"
    if not any(coupling.value.has_interval for coupling in model.couplings):
        return f"fewer than {FEWEST} repetitions, so noise is not known and nothing is claimed."
    if not beyond:
        unclear = counts["too noisy to tell"]
        if unclear == len(model.couplings):
            return "too noisy to tell."
        some = f" ({unclear} of {len(model.couplings)} chains are too noisy to tell)" if unclear else ""
        return f"no coupling beyond noise{some}."
    worst = max(beyond, key=lambda one: (len(one.chain) == 2, abs(one.excess.value)))
    kinds = ", ".join(f"{counts[kind]} {kind}" for kind in ("destructive", "constructive") if counts[kind])
    return f"{kinds} of {len(model.couplings)} chains. {describe_coupling(model, worst)}{_describe_summation(model)}"


def describe_coupling(model: CaseModel, one: Coupling) -> str:
    """Return what one coupling costs or gains."""
    chain = ",".join(model.case.kernels[index] for index in one.chain)
    value = f"{one.value.value:.3f} ({one.value.low:.3f} to {one.value.high:.3f})"
    amount, ends = abs(one.excess.value), sorted((abs(one.excess.low), abs(one.excess.high)))
    if model.metric.name != SECONDS:
        return f"{chain} couples by {value}."
    verb = "costs" if one.excess.value > 0 else "saves"
    span = f"{units.format_seconds(ends[0])} to {units.format_seconds(ends[1])}"
    return f"{chain} couples by {value} and {verb} {units.format_seconds(amount)} a run ({span})."


def _describe_summation(model: CaseModel) -> str:
    error = model.predictions[0].error
    if error is None:
        return ""
    if not model.summation_fails:
        return " Summation is right within the noise."
    return f" Summation is off by {units.format_share(error.value)}."


def describe_disturbances(off: Sequence[Outlier], drifts: Sequence[Drift], series: int) -> list[str]:
    """Return what is said about single runs that are far off and about a machine that changed its speed."""
    lines = []
    if off:
        one = off[0]
        times = f"{one.factor:.2g} times the median"
        worst = f"the worst {times}: {one.case.chain_label(one.chain)}, {one.case.name}, round {one.round + 1}"
        lines.append(f"{len(off)} runs of {series} series are far off, {worst}. Medians bear that, intervals widen.")
    for drift in drifts:
        way = "slower" if drift.factor > 1 else "faster"
        change = units.format_share(abs(drift.factor - 1))
        lines.append(
            f"{drift.case.name}: the machine became {way} by {change} while it was measured (chance alone: "
            f"{drift.chance:.2g}). Rounds are interleaved, so that this touches all chains alike."
        )
    return lines
