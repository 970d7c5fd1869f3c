"""Findings: what measured coupling means for the advice on a run, with the parts of gaps that it explains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from advisor.model import units
from advisor.model.gap_parts import GapPart
from advisor.model.records import Bound, Finding, Profile
from advisor_coupling import report, sentences

if TYPE_CHECKING:
    from advisor_coupling.arrangements import Arrangement
    from advisor_coupling.intervals import Estimate
    from advisor_coupling.losses import ChainLoss, CouplingLosses
    from advisor_coupling.results import Reason

#: Reasons that a metric puts seconds down to: the gap that these lie in, and the action against them.
_REASONS: Final[tuple[tuple[Reason, str, str], ...]] = (("messages", "C'", "K-5"), ("imbalance", "L", "K-7"))


def build_findings(profile: Profile, bounds: Sequence[Bound], known: CouplingLosses) -> list[Finding]:
    """Return what an experiment with this program found."""
    found = [_build_loop_finding(known)]
    left, run_s = 1.0, _find_run_seconds(profile, bounds, known)
    if known.better_order is not None and run_s is not None:
        found.append(_build_arrangement_finding(run_s, known, known.better_order))
        lost = sum(loss.excess.value for loss in known.chains)
        left = max(1.0 - known.better_order.saved.value / lost, 0.0) if lost > 0 else 1.0
    losing = {loss.coupling.chain: loss for loss in known.chains}
    for one in dict.fromkeys((*known.model.couplings, *(loss.coupling for loss in known.chains))):
        loss = losing.get(one.chain)
        if loss is None and not (sentences.is_claimed(one) and len(one.chain) == 2):
            continue
        subject = known.model.case.chain_label(one.chain)
        measures = {
            "coupling": one.value.value, "low": one.value.low, "high": one.value.high,
            "lost_s": one.excess.value, "lost_low_s": one.excess.low, "lost_high_s": one.excess.high,
        }  # fmt: skip
        text = f"{sentences.describe_coupling(known.model, one)} ({one.verdict}, {_describe_case(known)})"
        parts = tuple(_explain_gaps(run_s, known, loss, left)) if loss and run_s and left > 0 else ()
        found.append(Finding("", "coupling", subject, text, measures, explains=parts))
    if known.lost:
        subject = known.model.case.chain_label(known.lost.coupling.chain)
        saved = units.format_seconds(known.lost.seconds)
        text = (
            f"{subject} helped each other at {known.lost.elsewhere} and do not here: {saved} a run "
            f"({_describe_case(known)})."
        )
        found.append(Finding("", "lost coupling", subject, text, {"lost_s": known.lost.seconds}))
    return found


def _find_run_seconds(profile: Profile, bounds: Sequence[Bound], known: CouplingLosses) -> float | None:
    """Return the seconds of the run that are like those of the experiment; None for a run without times.

    Of one processor its computation, else with its communication: what other programs took, and starting, is no part of
    a loop of kernels.
    """
    if not profile.has_run_time:
        return None
    values = {bound.name: bound.seconds for bound in bounds}
    names = ("I", "IPCO") if known.model.case.processors == 1 else ("IPCO",)
    return next((seconds for name in names if (seconds := values.get(name)) is not None), profile.actual_s)


def _build_arrangement_finding(run_s: float, known: CouplingLosses, better: Arrangement) -> Finding:
    """Return which order of the kernels wins, and the seconds that the present one costs."""
    kernels = tuple(known.model.case.kernels[index] for index in better.order)
    share = units.format_share(known.order_share)
    pairs = ", ".join(known.model.case.chain_label(pair) for pair in better.estimated)
    doubt = f"; {pairs} estimated from the other pairs" if pairs else ""
    text = f"The order {', '.join(kernels)} wins {share} of the run by the couplings of its neighbours{doubt}."
    part = _build_part(run_s, known, kernels, better.saved, "$", ("K-8",))
    basis = "estimated" if better.estimated else part.basis
    part = replace(part, cause="order", basis=basis, source=f"{part.source}, pairs composed in the order named")
    measures = {"saved_s": better.saved.value, "low_s": better.saved.low, "high_s": better.saved.high}
    return Finding("", "better order", ",".join(kernels), text, measures, explains=(part,))


def _explain_gaps(run_s: float, known: CouplingLosses, loss: ChainLoss, left: float) -> Iterator[GapPart]:
    """Yield the parts of gaps that a chain's loss explains: measured messages, measured imbalance, and the rest.

    ``left`` is the share of it that no better order of the kernels removes.

    A loss of kernels that do not communicate lies in $: they take longer than their schedule, whatever the reason. Of a
    run of another size the same share of its time, with an interval twice as wide.
    """
    kernels = tuple(known.model.case.kernels[index] for index in loss.coupling.chain)
    rest = loss.excess.scale_by(left)
    for reason, gap, action in _REASONS:
        measured = loss.reasons.get(reason)
        if measured is not None and measured.low > 0:
            yield _build_part(run_s, known, kernels, measured.scale_by(left), gap, (action,))
            rest = rest.reduce_by(measured.scale_by(left))
    if rest.value > 0 and rest.high > 0:
        actions = _list_actions(known, loss)
        gap = "C'" if actions[:1] == ("K-5",) else "$"
        yield _build_part(run_s, known, kernels, rest, gap, actions)


def _list_actions(known: CouplingLosses, loss: ChainLoss) -> tuple[str, ...]:
    """Return the actions that remove the loss of a chain, by the reasons that are known for it."""
    found = []
    if loss.cache is not None:
        found += ["K-1", "K-2"] if loss.shared else ["K-2"]
    elif loss.shared:
        found.append("K-4")
    if loss.communicates and "messages" not in loss.reasons:
        found.append("K-5")
    if known.apart is not None and loss is known.worst:
        found.append("K-3")
    return tuple(found) if found or not loss.has_no_reason else ("K-6",)


def _build_part(
    run_s: float, known: CouplingLosses, kernels: tuple[str, ...], seconds: Estimate, gap: str, actions: tuple[str, ...]
) -> GapPart:
    scale, wide = run_s / known.run_s, 1.0 if known.exact else 2.0
    value = seconds.value * scale
    low, high = (max(value + wide * (end * scale - value), 0.0) for end in (seconds.low, seconds.high))
    case = known.model.case
    return GapPart(
        gap, "coupling", value, f"gapwatch couple at {case.name}{_describe_distance(known)}",
        "measured" if known.exact else "estimated", (low, high), kernels, actions, removable=True,
    )  # fmt: skip


def _describe_case(known: CouplingLosses) -> str:
    return f"measured at {known.model.case.name}{_describe_distance(known)}"


def _describe_distance(known: CouplingLosses) -> str:
    return "" if known.exact else ", the measured case nearest to this run"


def _build_loop_finding(known: CouplingLosses) -> Finding:
    """Return what the application takes by measurement, summation and couplings."""
    model = known.model
    parts = [f"measured {units.format_seconds(model.application.value)}"] if model.application else []
    parts += [f"{one.method} {units.format_seconds(one.value.value)}" for one in model.predictions]
    measures = {f"predicted_{one.length}_s": one.value.value for one in model.predictions}
    if model.application:
        measures["measured_s"] = model.application.value
    text = f"{sentences.describe_verdict(model)} A run: {', '.join(parts)} ({_describe_case(known)})."
    return Finding(
        "",
        "coupling of the loop",
        ",".join(model.case.kernels),
        text,
        measures,
        tuple(report.build_coupling_maps([model])),
    )
