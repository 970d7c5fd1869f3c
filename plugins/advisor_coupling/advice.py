"""Findings and expected gains: what coupling means for the advice on a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model import units
from advisor.model.records import Finding
from advisor_coupling import coupling_facts, orders, report, sentences

if TYPE_CHECKING:
    from advisor.model.records import Profile, Recommendation
    from advisor.trace.events import Trace
    from advisor_coupling.losses import CouplingLosses


def build_findings(profile: Profile, trace: Trace | None) -> list[Finding]:
    """Return what an experiment with this program found, or else what the order of kernels in the trace tells."""
    known = coupling_facts.find_known_losses(profile)
    if known is None:
        if trace is None or len(trace.kind) > orders.EVENTS_AT_MOST:
            return []
        return [_build_order_finding(one) for one in orders.estimate_orders(trace)]
    found = [_build_loop_finding(known)]
    for one in known.model.couplings:
        if sentences.is_claimed(one) and len(one.chain) == 2:
            subject = known.model.case.chain_label(one.chain)
            measures = {
                "coupling": one.value.value, "low": one.value.low, "high": one.value.high,
                "lost_s": one.excess.value, "lost_low_s": one.excess.low, "lost_high_s": one.excess.high,
            }  # fmt: skip
            text = f"{sentences.describe_coupling(known.model, one)} ({one.verdict}, {_describe_case(known)})"
            found.append(Finding("", "coupling", subject, text, measures))
    if known.lost:
        subject = known.model.case.chain_label(known.lost.coupling.chain)
        saved = units.format_seconds(known.lost.seconds)
        text = f"{subject} helped each other at {known.lost.elsewhere} and do not here: {saved} a run "
        f"({_describe_case(known)})."
        found.append(Finding("", "lost coupling", subject, text, {"lost_s": known.lost.seconds}))
    return found


def _describe_case(known: CouplingLosses) -> str:
    near = "" if known.exact else ", the measured case nearest to this run"
    return f"measured at {known.model.case.name}{near}"


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


def _build_order_finding(one: orders.KernelOrder) -> Finding:
    value = one.ratio
    text = (
        f"{one.kernel} takes {value.value:.3g} times as long ({value.low:.3g} to {value.high:.3g}) after {one.after} "
        f"as after {one.instead}: {units.format_seconds(abs(one.seconds))} in all, estimated from the order "
        f"in the trace. Whether they couple, {coupling_facts.COMMAND} tells."
    )
    measures = {"ratio": value.value, "low": value.low, "high": value.high, "lost_s": one.seconds}
    return Finding("", "order of kernels", f"{one.after},{one.kernel}", text, measures)


def compute_gain(profile: Profile, recommendation: Recommendation) -> tuple[float, float, float] | None:
    """Return what removing the loss of the worst pair wins in seconds: back to what both take by themselves.

    Of a run of another size the same share of its time, with an interval twice as wide.
    """
    known = coupling_facts.find_known_losses(profile)
    if known is None or known.worst is None or not profile.has_run_time:
        return None
    lost = known.worst.excess
    scale = profile.actual_s / known.run_s
    wide = 1.0 if known.exact else 2.0
    low, high = lost.value - wide * (lost.value - lost.low), lost.value + wide * (lost.high - lost.value)
    return max(lost.value, 0.0) * scale, max(low, 0.0) * scale, max(high, 0.0) * scale
