"""What the advice learns from a replay: transfer and serialization efficiency, and where the network matters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from advisor.model import units
from advisor.model.gap_parts import GapPart
from advisor.model.records import Advice, Finding, Profile
from advisor_simulation.replay import costs, diagnosis, network_demand

if TYPE_CHECKING:
    from advisor.analysis.machines import Machine
    from advisor.trace.events import Trace
    from advisor_simulation.replay.costs import NetworkCosts, PathShare
    from advisor_simulation.replay.diagnosis import NetworkDiagnosis, ReplayDiagnosis
    from advisor_simulation.replay.network_demand import NetworkDemand

_PLUGIN: Final = "simulation"
#: Shares of the run time from which on something is worth telling.
_TELLING: Final = 0.01
_SITES: Final = 3


def build_findings(
    trace: Trace | None, machine: Machine | None, profile: Profile | None = None, history: Sequence[Advice] = ()
) -> tuple[Finding, ...]:
    """Return the findings of a replay of ``trace``; none where it can't be replayed or holds no times of calls."""
    found = None if trace is None else diagnosis.diagnose_replay(trace, machine)
    if found is None:
        return ()
    asked = found.network_demand
    return (
        *_efficiency_findings(found.costs),
        *_saving_findings(found.costs),
        *_site_findings(found),
        *(() if profile is None or asked is None else _network_demand_findings(profile, asked, history)),
    )


def _network_demand_findings(profile: Profile, asked: NetworkDemand, history: Sequence[Advice]) -> tuple[Finding, ...]:
    """Return what the run asks of a network, and how that grows with the ranks."""
    mine = network_demand.build_finding(profile, asked)
    return (mine, *network_demand.build_rank_finding(profile, mine, history))


def _efficiency_findings(found: NetworkCosts) -> tuple[Finding, ...]:
    ideal = units.format_seconds(found.ideal_s)
    transfer = f"replayed without latency and with infinite bandwidth the run takes {ideal}"
    serialization = f"the longest computation is {units.format_seconds(found.longest_s)} of {ideal} on an ideal network"
    return (
        Finding(_PLUGIN, "efficiency", "transfer", transfer, {"value": found.transfer_efficiency}),
        Finding(_PLUGIN, "efficiency", "serialization", serialization, {"value": found.serialization_efficiency}),
    )


def _saving_findings(found: NetworkCosts) -> tuple[Finding, ...]:
    """Return what an ideal network, and balanced ranks on it, would save."""
    network = max(found.recorded_s - found.ideal_s, 0.0)
    balance = max(found.ideal_s - found.balanced_s, 0.0)
    results = []
    for subject, seconds, words in (
        ("ideal network", network, "an ideal network would save"),
        ("ideal balance", balance, "ranks that compute as long as each other would save, on an ideal network,"),
    ):
        if seconds >= _TELLING * found.recorded_s:
            share = seconds / found.recorded_s
            text = f"{words} {units.format_seconds(seconds)} ({units.format_share(share)})"
            results.append(Finding(_PLUGIN, "network", subject, text, {"seconds": seconds, "share": share}))
    return tuple(results)


def _site_findings(found: ReplayDiagnosis) -> tuple[Finding, ...]:
    """Return where on the critical path latencies and bytes take their time, and from when on they would not matter."""
    on = found.network
    if on is None:
        return ()
    telling = [share for share in on.shares if _path_seconds(share) >= _TELLING * found.costs.recorded_s]
    return tuple(_build_site_finding(share, on) for share in telling[:_SITES])


def _path_seconds(share: PathShare) -> float:
    return share.latency_s + share.transfer_s


def _build_site_finding(share: PathShare, on: NetworkDiagnosis) -> Finding:
    size = f"of {units.format_bytes(share.size)} to {units.format_bytes(2 * share.size)} " if share.size else ""
    limits = {
        "latency": f"up to a latency of {units.format_seconds(on.enough_latency_s)}",
        "bandwidth": f"from a bandwidth of {units.format_bytes(on.enough_bandwidth)}/s on",
    }
    text = (
        f"{share.call or 'communication'} {size}in {share.region or 'the program'} is bound by {share.bound_by}: "
        f"{units.format_seconds(_path_seconds(share))} on the critical path; {limits[share.bound_by]} "
        f"the run would take at "
        f"most {units.format_share(costs.ENOUGH)} longer than without it"
    )
    measures = {
        "seconds": _path_seconds(share), "latency_seconds": share.latency_s, "transfer_seconds": share.transfer_s,
        "size_B": float(share.size), "latency_s": on.network.latency_s, "bandwidth_Bps": on.network.bandwidth,
        "enough_latency_s": on.enough_latency_s, "enough_bandwidth_Bps": on.enough_bandwidth,
    }  # fmt: skip
    source = "replay of the recorded messages: seconds on the critical path, which no computation hides"
    regions = (share.region,) if share.region else ()
    cause = f"{share.bound_by} of {share.call or 'communication'}"
    part = GapPart("C'", cause, _path_seconds(share), source, "modelled", None, regions)
    subject = f"{share.call} in {share.region}".strip()
    return Finding(_PLUGIN, f"{share.bound_by} bound", subject, text, measures, explains=(part,))
