"""Does this machine deliver what its model promises? The recorded run against its replay on the model's network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model import units
from advisor.model.errors import UsageError
from advisor.model.reports import Column, Report, Table, Text
from advisor_simulation.replay import calibration, engine, outcome, waits
from advisor_simulation.replay.diagnosis import BELIEVED, CALIBRATED_AT_MOST
from advisor_simulation.replay.outcome_report import describe_network
from advisor_simulation.replay.waits import operation_starts

if TYPE_CHECKING:
    from advisor.model.records import FloatArray
    from advisor_simulation.replay.calibration import Calibration
    from advisor_simulation.replay.network import Network
    from advisor_simulation.replay.program import Program

#: By what share a run may take longer than the model promises.
TOLERANCE: Final = 0.1
#: Calls that are listed.
_ROWS: Final = 8


@dataclass(frozen=True, slots=True)
class AcceptanceTest:
    """Seconds between start-up and shutdown, recorded and as the model's ``network`` promises, by call too.

    ``calls`` hold recorded and promised seconds of each call, means over the ranks. ``behaves`` is the network that the
    run behaves like, None where none does.
    """

    network: Network
    recorded_s: float
    promised_s: float
    calls: dict[str, tuple[float, float]]
    behaves: Calibration | None
    tolerance: float

    @property
    def shortfall(self) -> float:
        """By what share the run takes longer than promised; below zero where it is quicker."""
        return self.recorded_s / self.promised_s - 1.0

    @property
    def is_delivered(self) -> bool:
        """Whether the machine is at most the tolerance slower than its model."""
        return self.shortfall <= self.tolerance


def judge_machine(program: Program, network: Network, tolerance: float) -> AcceptanceTest:
    """Return the recorded run against its replay; raises ``UsageError`` for a recording without times of calls.

    Computation counts as recorded: what is judged is the network, and what its software makes of it.
    """
    if program.end_s is None or outcome.recorded_time_s(program) is None:
        raise UsageError("--accept needs recorded times of calls; this recording holds none")
    plan = engine.prepare_program(program, network)
    ends = engine.operation_ends(plan, engine.replay_steps(plan, network), program)
    span = waits.find_computing_span(program)
    recorded, promised = (waits.longest_span_s(program, each, span) for each in (program.end_s, ends))
    behaves = None
    if len(program.op) <= CALIBRATED_AT_MOST and not network.is_contended:
        found = calibration.calibrate_network(program, network)
        behaves = found if found.worst_error <= BELIEVED else None
    spent = (_sum_call_seconds(program, each) for each in (program.end_s, ends))
    mine, other = (each / program.ranks for each in spent)
    calls = {
        name: (float(mine[at]), float(other[at])) for at, name in enumerate(program.names) if mine[at] or other[at]
    }
    return AcceptanceTest(network, recorded, max(promised, 1e-300), calls, behaves, tolerance)


def _sum_call_seconds(program: Program, end_s: FloatArray) -> FloatArray:
    """Return the seconds in each call of the program (names,), over all ranks."""
    known = program.call >= 0
    spent = (end_s - operation_starts(program, end_s))[known]
    return np.bincount(program.call[known], weights=spent, minlength=len(program.names)).astype(np.float64)


def build_report(found: AcceptanceTest, title: str) -> Report:
    """Return the verdict with what it rests on; a machine that falls short makes the command end with status 1."""
    took = f"the run takes {units.format_seconds(found.recorded_s)}, the model promises"
    times = f"{took} {units.format_seconds(found.promised_s)} ({describe_network(found.network)})"
    allowed = units.format_share(found.tolerance)
    if found.is_delivered:
        verdict = f"The machine delivers what its model promises, within {allowed}: {times}."
    else:
        verdict = f"The machine falls short of its model by {units.format_share(found.shortfall)}: {times}."
    lost = sorted(found.calls.items(), key=lambda one: one[1][1] - one[1][0])[:_ROWS]
    heads = (Column("call"), Column("recorded", "s"), Column("promised", "s"), Column("more", "s"))
    rows = tuple((name, recorded, promised, recorded - promised) for name, (recorded, promised) in lost)
    gate = None if found.is_delivered else verdict.rstrip(".")
    parts = (Text(verdict), Text(_describe_behaviour(found.behaves)), Table("Calls, means over the ranks", heads, rows))
    return Report(title, parts, gate)


def _describe_behaviour(found: Calibration | None) -> str:
    """Return the network that a run behaves like, in words."""
    if found is None:
        return "No latency and bandwidth explain the times of its calls: something else than the network decides them."
    if not (found.known_latency or found.known_bandwidth):
        return "The run hardly depends on latency and bandwidth: it is a weak test of the network."
    unknown = [
        name for name, known in (("latency", found.known_latency), ("bandwidth", found.known_bandwidth)) if not known
    ]
    doubt = f", on whose {unknown[0]} it hardly depends" if unknown else ""
    return f"The run behaves as on a network of {describe_network(found.network)}{doubt}."
