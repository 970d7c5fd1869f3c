"""Traces whose clocks were put wrong, and what their alignment finds."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from command_line import ROOT

from advisor.trace import clocks, locations
from advisor.trace.clock_constraints import ClockConstraints, collect_constraints
from advisor.trace.matching import match_collectives, match_messages
from advisor.trace.nesting import pair_calls

sys.path.insert(0, str(ROOT / "benchmarks"))
from stencil_traces import stencil as stencil

if TYPE_CHECKING:
    from stencil_traces import NodeClocks as NodeClocks

    from advisor.trace.events import Trace


def solved(trace: Trace) -> tuple[clocks.ClockCorrection, Trace]:
    correction = clocks.align_clocks(constraints_of(trace), locations.hosts_of_processes(trace), trace.ticks_s)
    return correction, replace(trace, time_s=clocks.correct_times(trace, correction))


def constraints_of(trace: Trace) -> ClockConstraints:
    calls = pair_calls(trace)
    return collect_constraints(trace, calls, match_collectives(trace, calls), match_messages(trace, calls))


def disturbed(trace: Trace, offset: np.ndarray, drift: np.ndarray) -> Trace:
    rank = np.repeat([location.rank for location in trace.locations], np.diff(trace.first))
    return replace(trace, time_s=trace.time_s * (1 + drift[rank]) + offset[rank])


def error_s(trace: Trace, correction: clocks.ClockCorrection, off: NodeClocks) -> float:
    """Return by how much the corrected clocks differ at most at the beginning and at the end of the run."""
    length = float(np.ptp(trace.time_s[: trace.first[1]]))
    worst = 0.0
    for moment in (0.0, length):
        own = moment * (1 + off.drift) + off.offset_s + off.origin_s
        common = own + correction.offset_s + correction.drift * own
        worst = max(worst, float(np.abs(common - common[0]).max()))
    return worst
