"""POP efficiencies beside the gaps: shares between 0 and 1, as other tools report them.

Definitions of the POP Centre of Excellence: load balance = mean / max of computation over the processors;
communication efficiency = max of computation / elapsed time; parallel efficiency = mean of computation / elapsed time,
the product of the two. Elapsed time is that of all phases, without start-up and shutdown, where phases are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from advisor.analysis.bounds import are_durations_known, instance_durations
from advisor.analysis.loads import ProfileLoads, summarize_loads
from advisor.analysis.measures import MISSING
from advisor.model.records import Efficiency, Finding, Profile

NEEDS_REPLAY: Final = "needs a replay of the trace on a network without latency and of infinite bandwidth"
OF_WORK: Final = "of work in parallel phases, as computation is not known"
TOO_LONG: Final = "a processor computes longer than the time that elapses"
IDLE: Final = "no processor computes in any phase"
#: Those that a plugin may tell: a finding of this kind, about the efficiency, with this measure.
MODELLED_EFFICIENCIES: Final = ("serialization", "transfer")
KIND: Final = "efficiency"
MEASURE: Final = "value"
#: The clocks of CPU and wall time may differ by this share.
SLACK: Final = 0.01


def compute_efficiencies(profile: Profile, loads: ProfileLoads | None = None) -> tuple[Efficiency, ...]:
    """Return load balance, communication, parallel, serialization and transfer efficiency, each with its status."""
    loads = loads or summarize_loads(profile)
    return (
        _compute_load_balance(loads),
        *_compute_elapsed_efficiencies(profile, loads),
        Efficiency("serialization", None, "unavailable", NEEDS_REPLAY),
        Efficiency("transfer", None, "unavailable", NEEDS_REPLAY),
    )


def add_modelled_efficiencies(known: Sequence[Efficiency], findings: Sequence[Finding]) -> tuple[Efficiency, ...]:
    """Return the efficiencies with what findings say of those that need a replay, the first finding on each.

    Only values from 0 to 1 are taken; an efficiency that is known stays.
    """
    told: dict[str, Finding] = {}
    for finding in findings:
        value = finding.measures.get(MEASURE)
        is_modelled = finding.kind == KIND and finding.subject in MODELLED_EFFICIENCIES
        if is_modelled and value is not None and 0.0 <= value <= 1.0:
            told.setdefault(finding.subject, finding)
    return tuple(
        replace(one, value=told[one.name].measures[MEASURE], status="modelled", reason=told[one.name].text)
        if one.value is None and one.name in told
        else one
        for one in known
    )


def _compute_load_balance(loads: ProfileLoads) -> Efficiency:
    kinds = loads.quantities
    status, reason = kinds.computation.status, kinds.computation.reason
    if kinds.computation.is_known:
        each = loads.spreads["I"].processors
    elif kinds.work.is_known:
        each, status, reason = loads.parallel_work, "estimated", OF_WORK
    else:
        return Efficiency("load_balance", None, "unavailable", reason)
    largest = float(each.max())
    if largest <= 0.0:
        return Efficiency("load_balance", None, "unavailable", IDLE)
    return Efficiency("load_balance", float(each.mean()) / largest, status, reason)


def _compute_elapsed_efficiencies(profile: Profile, loads: ProfileLoads) -> tuple[Efficiency, Efficiency]:
    """Return communication and parallel efficiency."""
    computation = loads.quantities.computation
    elapsed = profile.actual_s
    if are_durations_known(profile):
        elapsed = float(instance_durations(profile).sum())
    if not computation.is_known:
        return _make_unavailable(computation.reason)
    if not profile.has_run_time:
        return _make_unavailable(MISSING["actual_s"].what)
    if elapsed <= 0.0:
        return _make_unavailable(IDLE)
    each = loads.spreads["I"].processors * loads.processors / elapsed
    if each.max() > 1.0 + SLACK:
        return _make_unavailable(TOO_LONG)
    status, reason = computation.status, computation.reason
    return (
        Efficiency("communication", float(each.max()), status, reason),
        Efficiency("parallel", float(each.mean()), status, reason),
    )


def _make_unavailable(reason: str | None) -> tuple[Efficiency, Efficiency]:
    """Return communication and parallel efficiency without values."""
    return (
        Efficiency("communication", None, "unavailable", reason),
        Efficiency("parallel", None, "unavailable", reason),
    )
