"""What a build asks of any network: latencies and bytes that nothing hides, and those that follow one another anyway.

T = alpha + beta L + gamma / BW (Rodriguez, Badia, Labarta, Euro-Par 2004, formula 0), on the critical path of one
network that is the same for all builds. Times vary from run to run; the calls of a program do not. So beta and gamma
tell two builds apart where their times are too noisy to: the longest chains of latencies and of bytes, which are on
the critical path of a slow enough network, do not depend on times at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from advisor.analysis.network_demands import KIND, RUN
from advisor.model import units
from advisor.model.records import Finding, Profile
from advisor_simulation.replay import engine, slopes
from advisor_simulation.replay.network import Network
from advisor_simulation.replay.program import Program, sum_burst_s

#: The network on which builds are compared where no machine model states one: what a good cluster has.
REFERENCE: Final = Network(latency_s=2e-6, bandwidth=1e10)
#: A latency (s), and seconds per byte, beside which computation is nothing, without computation at all.
_SLOW_S: Final = 1e6
_REPLAYS: Final = 3


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
