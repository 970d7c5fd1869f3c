"""What a build asks of any network, latencies and bytes that nothing hides, and how that grows with its ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from advisor.analysis.network_demands import KIND, RUN
from advisor.model import units
from advisor.model.errors import UsageError
from advisor.model.records import Advice, Finding, Profile
from advisor_simulation.replay import engine, fitting, slopes
from advisor_simulation.replay.fitting import Coefficient, CoefficientLine, Plane
from advisor_simulation.replay.network import Network
from advisor_simulation.replay.program import Program, sum_burst_s

#: The network on which builds are compared where no machine model states one: what a good cluster has.
REFERENCE: Final = Network(latency_s=2e-6, bandwidth=1e10)
#: A latency (s), and seconds per byte, beside which computation is nothing, without computation at all.
_SLOW_S: Final = 1e6
_REPLAYS: Final = 3
#: The subject of the finding, and from how many numbers of ranks on there is one.
RANKS: Final = "ranks"
FEWEST: Final = 3


@dataclass(frozen=True, slots=True)
class NetworkDemand:
    """T = ``alpha_s`` + ``beta`` L + ``gamma_B`` / BW on ``network``; the longest chains; all messages and their bytes.

    ``chain_latencies`` and ``chain_bytes`` follow one another whatever is computed beside them. A collective operation
    counts as its model says; ``cpu_s`` is all computation.
    """

    network: Network
    alpha_s: float
    beta: float
    gamma_B: float
    chain_latencies: float
    chain_bytes: float
    messages: float
    bytes: float
    cpu_s: float


def compute_network_demand(program: Program, network: Network | None = None) -> NetworkDemand:
    """Return the network demand of a program; raises ``DeadlockError``, and ``UsageError`` for links and buses."""
    on = network or REFERENCE
    plan = engine.prepare_program(program, on)
    _, alpha, beta, gamma = slopes.compute_coefficients(plan, on, _REPLAYS)
    slow = replace(on, cpu_ratio=0.0)
    late = replace(slow, latency_s=_SLOW_S, bandwidth=engine.to_bandwidth(0.0))
    narrow = replace(slow, latency_s=0.0, bandwidth=1.0 / _SLOW_S)
    return NetworkDemand(
        on, alpha, beta, gamma,
        slopes.compute_coefficients(plan, late, _REPLAYS)[2],
        slopes.compute_coefficients(plan, narrow, _REPLAYS)[3],
        float(len(program.source) + len(program.collectives)),
        float(program.sizes.sum()) + float(np.sum(program.collectives.size)),
        float(sum_burst_s(program)),
    )  # fmt: skip


def build_finding(profile: Profile, found: NetworkDemand) -> Finding:
    """Return the network demand as a finding, by which builds are compared."""
    on = found.network
    text = (
        f"On a network of {units.format_seconds(on.latency_s)} and {units.format_quantity(on.bandwidth, 'bandwidth')} "
        f"the run is {units.format_seconds(found.alpha_s)} + {found.beta:.6g} latencies + "
        f"{units.format_bytes(found.gamma_B)} that nothing hides; {found.chain_latencies:.6g} latencies and "
        f"{units.format_bytes(found.chain_bytes)} follow one another on any network"
    )
    measures = {
        "alpha_s": found.alpha_s, "beta": found.beta, "gamma_B": found.gamma_B,
        "chain_latencies": found.chain_latencies, "chain_bytes": found.chain_bytes, "messages": found.messages,
        "bytes": found.bytes, "cpu_s": found.cpu_s, "ranks": float(profile.ranks), "steps": _count_steps(profile),
        "latency_s": on.latency_s, "bandwidth_Bps": on.bandwidth,
    }  # fmt: skip
    return Finding("simulation", KIND, RUN, text, measures)


def _count_steps(profile: Profile) -> float:
    """Return how often the phase came that took most of the time: the steps of the program; 1 where that is unknown."""
    timed = [phase.duration_s for phase in profile.phases if phase.duration_s is not None]
    return float(len(max(timed, key=np.sum))) if timed else 1.0


def build_rank_finding(profile: Profile, found: Finding, history: Sequence[Advice]) -> tuple[Finding, ...]:
    """Return the model over ranks, fitted to the network demand ``found`` of this run and those of earlier ones.

    Those of other inputs and sizes, and on other networks, are left out; nothing below three numbers of ranks.
    """
    by_ranks = _select_network_demands(profile, found.measures, history)
    if len(by_ranks) < FEWEST:
        return ()
    try:
        factors = fitting.compute_locality({ranks: each["cpu_s"] for ranks, each in by_ranks.items()})
    except UsageError:
        return ()
    planes = {ranks: _make_plane(each, factors[ranks]) for ranks, each in by_ranks.items()}
    model = fitting.fit_model(planes, factors)
    lines = {"beta": model.beta, "gamma": model.gamma}
    most = max(by_ranks)
    text = (
        f"Over {', '.join(map(str, sorted(by_ranks)))} ranks the latencies that nothing hides are "
        f"{_describe_line(model.beta)}, the bytes {_describe_line(model.gamma)}; the locality factor is "
        f"{factors[most]:.3g} at {most} ranks"
    )
    measures = {"locality factor": factors[most], "ranks": float(most)}
    for name, line in lines.items():
        for part, coefficient in (("constant", line.constant), ("slope", line.slope)):
            if coefficient.is_significant:
                measures[f"{name} {part}"] = coefficient.value
    return (Finding("simulation", KIND, RANKS, text, measures),)


def _select_network_demands(
    profile: Profile, mine: Mapping[str, float], history: Sequence[Advice]
) -> dict[int, Mapping[str, float]]:
    """Return the newest network demand at each number of ranks of runs like this one."""
    found: dict[int, Mapping[str, float]] = {}
    stated = _stated_parameters(profile)
    for run in history:
        if run.profile.program != profile.program or _stated_parameters(run.profile) != stated:
            continue
        for one in run.findings:
            same = all(one.measures.get(name) == mine[name] for name in ("latency_s", "bandwidth_Bps"))
            if (one.kind, one.subject) == (KIND, RUN) and same:
                found[int(one.measures["ranks"])] = one.measures
    return {**found, int(mine["ranks"]): mine}


def _stated_parameters(profile: Profile) -> dict[str, str | float]:
    return {name: value for name, value in profile.parameters.items() if name != "target"}


def _make_plane(found: Mapping[str, float], factor: float) -> Plane:
    """Return T of one number of ranks, its computation divided by the locality factor (section 2.2)."""
    values = found["alpha_s"] / factor, found["beta"], found["gamma_B"]
    return Plane(*(Coefficient(value, math.nan, math.nan) for value in values))


def _describe_line(line: CoefficientLine) -> str:
    """Return a line over P in words, N.S. for what does not differ from 0."""
    constant = f"{line.constant.value:.4g}" if line.constant.is_significant else "N.S."
    slope = f"{line.slope.value:.4g} P" if line.slope.is_significant else "N.S. in P"
    return f"{constant} + {slope}" if line.slope.is_significant else f"{constant}, {slope}"
