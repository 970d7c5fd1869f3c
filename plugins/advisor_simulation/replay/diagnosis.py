"""The diagnosis of a recorded run by replay, computed once for its findings and facts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from advisor.model.errors import AdvisorError
from advisor_simulation.replay import calibration, conversion, costs, engine
from advisor_simulation.replay.network import Network, from_machine
from advisor_simulation.replay.network_demand import NetworkDemand, compute_network_demand

if TYPE_CHECKING:
    from advisor.analysis.machines import Machine
    from advisor.trace.events import Trace
    from advisor_simulation.replay.costs import NetworkCosts, PathShare
    from advisor_simulation.replay.program import Program

#: Events of a trace that advice replays, and operations on which a network is looked for, at most.
EVENTS_AT_MOST: Final = 2_000_000
CALIBRATED_AT_MOST: Final = 200_000
#: A network that was found on half of the run is believed if it meets both halves so well.
BELIEVED: Final = 0.25


@dataclass(frozen=True, slots=True)
class NetworkDiagnosis:
    """Where a network matters: shares of the critical path, and from when on latency and bandwidth would not.

    ``eager_s`` is what the run would be shorter if every message were sent at once, ``fitted`` whether the network is
    the one that fits the recorded run instead of a machine's.
    """

    network: Network
    shares: tuple[PathShare, ...]
    enough_latency_s: float
    enough_bandwidth: float
    eager_s: float
    fitted: bool


@dataclass(frozen=True, slots=True)
class ReplayDiagnosis:
    """What network and imbalance cost, and where; ``network`` is None where no network is known.

    ``network_demand`` is what the build asks of any network.
    """

    costs: NetworkCosts
    network: NetworkDiagnosis | None
    network_demand: NetworkDemand | None = None


class _Latest:
    """The latest run: findings and facts need its diagnosis one after the other."""

    trace: Trace | None = None
    machine: str | None = None
    diagnosis: ReplayDiagnosis | None = None


def diagnose_replay(trace: Trace, machine: Machine | None = None) -> ReplayDiagnosis | None:
    """Return the diagnosis; None if the run can't be replayed or holds no times of calls.

    The network is the machine's, else the one that fits the recorded run.
    """
    if not 0 < len(trace.time_s) <= EVENTS_AT_MOST or trace.ranks < 2:
        return None
    known = machine if machine is not None and machine.network is not None else None
    name = known.name if known else None
    if _Latest.trace is not trace or _Latest.machine != name:
        _Latest.diagnosis = _compute_diagnosis(trace, known)
        _Latest.trace, _Latest.machine = trace, name
    return _Latest.diagnosis


def _compute_diagnosis(trace: Trace, machine: Machine | None) -> ReplayDiagnosis | None:
    try:
        program = conversion.find_program(trace)
        found = costs.compute_costs(program)
    except AdvisorError:
        return None
    if found is None or found.recorded_s <= 0:
        return None
    try:
        asked = compute_network_demand(program, None if machine is None else from_machine(machine))
    except AdvisorError:
        asked = None
    try:
        return ReplayDiagnosis(found, _diagnose_network(program, machine), asked)
    except AdvisorError:
        return ReplayDiagnosis(found, None, asked)


def _diagnose_network(program: Program, machine: Machine | None) -> NetworkDiagnosis | None:
    if machine is not None:
        network = from_machine(machine)
    elif len(program.op) <= CALIBRATED_AT_MOST:
        fitted = calibration.calibrate_network(program, Network())
        if fitted.worst_error > BELIEVED:
            return None
        network = fitted.network
    else:
        return None
    eager = 0.0
    if (program.sizes > network.eager_bytes).any():
        at_once = replace(network, eager_bytes=math.inf)
        eager = _replay_time_s(program, network) - _replay_time_s(program, at_once)
    return NetworkDiagnosis(
        network, tuple(costs.find_path_shares(program, network)), costs.find_enough_latency(program, network),
        costs.find_enough_bandwidth(program, network), max(eager, 0.0), machine is None,
    )  # fmt: skip


def _replay_time_s(program: Program, network: Network) -> float:
    return engine.replay_steps(engine.prepare_program(program, network), network, keep=False).time_s
