"""One replay with everything that is said about it, on whichever engine the network needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor_simulation.replay import contended_replay, critical_path, engine, recording
from advisor_simulation.replay.waits import WaitTimes, compute_waits, rank_computing_s

if TYPE_CHECKING:
    from advisor.model.records import FloatArray
    from advisor_simulation.replay.critical_path import CriticalPath
    from advisor_simulation.replay.network import Network
    from advisor_simulation.replay.program import Program


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """A replayed run: ``time_s``, the end of each operation, waits by cause, the critical path where one is known.

    With links or buses there is no path: who waits for whom is then not told by the program alone. ``compute_s``
    (ranks,) are the seconds each rank computes.
    """

    program: Program
    network: Network
    time_s: float
    end_s: FloatArray
    waits: WaitTimes
    path: CriticalPath | None
    compute_s: FloatArray


def replay_program(program: Program, network: Network) -> ReplayOutcome:
    """Return the replay of ``program`` on ``network``; raises ``DeadlockError``."""
    if network.is_contended:
        found = contended_replay.replay_contended(program, network)
        lost = compute_waits(program, found.end_s, found.resource_s)
        return ReplayOutcome(
            program, network, found.time_s, found.end_s, lost, None, rank_computing_s(program, found.end_s)
        )
    return _replay_with_path(program, network, engine.prepare_program(program, network))


def replay_recorded(program: Program, network: Network) -> ReplayOutcome:
    """Return the replay with the recorded times of calls, computation as ``network`` says; raises ``UsageError``."""
    return _replay_with_path(
        program, network, engine.order_steps(recording.build_recorded_steps(program, network), program)
    )


def _replay_with_path(program: Program, network: Network, plan: engine.OrderedSteps) -> ReplayOutcome:
    found = engine.replay_steps(plan, network)
    ends = engine.operation_ends(plan, found, program)
    critical = critical_path.find_critical_path(plan, found, network, program)
    return ReplayOutcome(
        program, network, found.time_s, ends, compute_waits(program, ends), critical, rank_computing_s(program, ends)
    )


def recorded_time_s(program: Program) -> float | None:
    """Return how long the recorded run took, seconds; None where the recording holds no times of calls."""
    if program.end_s is None or not len(program.end_s):
        return None
    timed = float(np.asarray(program.end_s).max())
    calls = program.call >= 0
    spent = np.diff(program.end_s, prepend=0.0)[calls]
    return timed if (spent > 0).any() else None
