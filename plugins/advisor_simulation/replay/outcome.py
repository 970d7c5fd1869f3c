"""One replay with everything that is said about it, on whichever engine the network needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor_simulation.replay import contention, engine, path, recording
from advisor_simulation.replay.waits import computed_s, waits

if TYPE_CHECKING:
    from advisor.model.records import FloatArray
    from advisor_simulation.replay.network import Network
    from advisor_simulation.replay.path import Path
    from advisor_simulation.replay.program import Program
    from advisor_simulation.replay.waits import Waits


@dataclass(frozen=True, slots=True)
class Outcome:
    """A replayed run: ``time_s``, the end of each operation, waits by cause, the critical path where one is known.

    With links or buses there is no path: who waits for whom is then not told by the program alone. ``compute_s``
    (ranks,) are the seconds each rank computes.
    """

    program: Program
    network: Network
    time_s: float
    end_s: FloatArray
    waits: Waits
    path: Path | None
    compute_s: FloatArray


def replay(program: Program, network: Network) -> Outcome:
    """Return the replay of ``program`` on ``network``; raises ``DeadlockError``."""
    if network.contended:
        found = contention.replay(program, network)
        lost = waits(program, found.end_s, found.resource_s)
        return Outcome(program, network, found.time_s, found.end_s, lost, None, computed_s(program, found.end_s))
    return _followed(program, network, engine.prepared(program, network))


def recorded(program: Program, network: Network) -> Outcome:
    """Return the replay with the recorded times of calls, computation as ``network`` says; raises ``UsageError``."""
    return _followed(program, network, engine.ordered(recording.as_recorded(program, network), program))


def _followed(program: Program, network: Network, plan: engine.Ordered) -> Outcome:
    found = engine.run(plan, network)
    ends = engine.op_ends(plan, found, program)
    critical = path.critical(plan, found, network, program)
    return Outcome(program, network, found.time_s, ends, waits(program, ends), critical, computed_s(program, ends))


def measured_s(program: Program) -> float | None:
    """Return how long the recorded run took, seconds; None where the recording holds no times of calls."""
    if program.end_s is None or not len(program.end_s):
        return None
    timed = float(np.asarray(program.end_s).max())
    calls = program.call >= 0
    spent = np.diff(program.end_s, prepend=0.0)[calls]
    return timed if (spent > 0).any() else None
