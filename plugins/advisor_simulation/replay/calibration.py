"""Latency and bandwidth with which a replay takes as long as the recorded run, found on every other piece of it.

The operations of each rank between start-up and shutdown are cut into as many in each piece, so that of a program of
equal iterations each holds as many of them. What is compared is how long the ranks take from mark to mark: the sum of
the absolute differences is made least, so that a single call that was held up does not move the network. The other
pieces are then predicted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.errors import UsageError
from advisor_simulation.replay import engine, waits
from advisor_simulation.replay.simplex import minimize_simplex

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor_simulation.replay.network import Network
    from advisor_simulation.replay.program import Program

#: Pieces of a run; as many are fitted as are predicted.
PIECES: Final = 20
#: Between which powers of ten latency (s) and bandwidth (B/s) are looked for.
LATENCIES: Final = (-8.0, -3.0)
BANDWIDTHS: Final = (7.0, 11.5)
#: Replays of the search after its start is known.
_STEPS: Final = 60
#: Latencies, and bandwidths, on the first grid; what misses less of the run than this has met it.
_GRID: Final = 6
_MET: Final = 0.05
#: Bandwidths from which the search starts again, and halvings of the range of latencies at each.
_STARTS: Final = 10
_HALVINGS: Final = 6


@dataclass(frozen=True, slots=True)
class Calibration:
    """The network found, and seconds of both halves as recorded and as replayed on it: fitted and predicted ones.

    ``known_latency`` and ``known_bandwidth`` say whether half as much again changes the fitted half by 0.1 % at least;
    otherwise this run does not tell it.
    """

    network: Network
    fitted_s: tuple[float, float]
    predicted_s: tuple[float, float]
    known_latency: bool
    known_bandwidth: bool

    @property
    def prediction_error(self) -> float:
        """The error of the prediction of the other half, as share of it."""
        return self.predicted_s[1] / self.predicted_s[0] - 1.0

    @property
    def worst_error(self) -> float:
        """The larger of the errors of both halves, 0 or more: the fit follows most pieces, not the odd ones."""
        return max(abs(self.prediction_error), abs(self.fitted_s[1] / self.fitted_s[0] - 1.0))


def calibrate_network(program: Program, base: Network, done: Callable[[int], None] | None = None) -> Calibration:
    """Return the network that fits half of the run; raises ``UsageError`` where nothing was timed."""
    if base.is_contended:
        raise UsageError("--calibrate looks for latency and bandwidth without links and buses")
    if program.end_s is None or not len(program.source) + len(program.collectives):
        raise UsageError("--calibrate needs a trace with times, messages or collective operations")
    marks = _find_marks(program)
    recorded = _piece_seconds(program.end_s, marks)
    plan = engine.prepare_program(program, base)
    tried = 0

    def compute_excess(logs: tuple[float, float]) -> FloatArray:
        """Return by what share of the fitted half each piece of it takes longer than recorded."""
        nonlocal tried
        tried += 1
        if done:
            done(tried)
        found = _piece_seconds(_replay_ends(plan, program, _network_at(base, logs)), marks)
        return np.asarray((found - recorded)[::2] / float(recorded[::2].sum()))

    best = _find_network(compute_excess)
    network = _network_at(base, best)
    found = _piece_seconds(_replay_ends(plan, program, network), marks)
    whole = max(float(found[::2].sum()), 1e-300)

    def is_sensitive(logs: tuple[float, float]) -> bool:
        other = _piece_seconds(_replay_ends(plan, program, _network_at(base, logs)), marks)
        return abs(float(other[::2].sum()) / whole - 1.0) >= 1e-3

    shift = math.log10(1.5)
    return Calibration(
        network,
        (float(recorded[::2].sum()), float(found[::2].sum())),
        (float(recorded[1::2].sum()), float(found[1::2].sum())),
        is_sensitive((best[0] + shift, best[1])),
        is_sensitive((best[0], best[1] - shift)),
    )


def _network_at(base: Network, logs: tuple[float, float]) -> Network:
    return replace(base, latency_s=10.0 ** logs[0], bandwidth=10.0 ** logs[1])


def _replay_ends(plan: engine.OrderedSteps, program: Program, network: Network) -> FloatArray:
    return engine.operation_ends(plan, engine.replay_steps(plan, network, replays=_STEPS), program)


def _find_marks(program: Program) -> IntArray:
    """Return (marks, ranks): operations of each rank that cut its span into pieces of as many operations each."""
    span = waits.find_computing_span(program)
    shares = np.linspace(0.0, 1.0, PIECES + 1)[:, None]
    result: IntArray = (span.first + np.rint(shares * (span.last - span.first))).astype(np.int64)
    return result


def _piece_seconds(end_s: FloatArray, marks: IntArray) -> FloatArray:
    """Return how long the ranks take from mark to mark on average (moments - 1,)."""
    result: FloatArray = np.diff(end_s[marks].mean(axis=1))
    return result


def _find_network(excess: Callable[[tuple[float, float]], FloatArray]) -> tuple[float, float]:
    """Return the logarithms of latency and bandwidth where the absolute ``excess`` of all pieces is least.

    A slow network of little latency can look much like a quick one of much, and the valley between them is narrow.
    Where the best point of a grid leads to none that meets the run, the search begins again at the best of several
    bandwidths, each with the latency with which the run takes as long.
    """

    def compute_misfit(logs: tuple[float, float]) -> float:
        return float(np.abs(excess(logs)).sum())

    def find_minimum(start: tuple[float, float]) -> tuple[float, tuple[float, float]]:
        found = minimize_simplex(
            lambda x: compute_misfit((float(x[0]), float(x[1]))), np.array(start), np.array([LATENCIES, BANDWIDTHS]),
            evaluations=_STEPS, precision=1e-3,
        )  # fmt: skip
        point = float(found[0]), float(found[1])
        return compute_misfit(point), point

    grid = product(np.linspace(*LATENCIES, _GRID).tolist(), np.linspace(*BANDWIDTHS, _GRID).tolist())
    best = find_minimum(min(grid, key=compute_misfit))
    if best[0] > _MET:
        starts = [_find_latency(excess, bandwidth) for bandwidth in np.linspace(*BANDWIDTHS, _STARTS).tolist()]
        best = min(best, find_minimum(min(starts)[1]))
    return best[1]


def _find_latency(
    excess: Callable[[tuple[float, float]], FloatArray], bandwidth: float
) -> tuple[float, tuple[float, float]]:
    """Return the point of a bandwidth at which the run takes as long as recorded, behind its absolute excess there.

    The run time grows with the latency, so halving its range finds it.
    """
    low, high = LATENCIES
    tried = []
    for _ in range(_HALVINGS):
        point = (low + high) / 2, bandwidth
        off = excess(point)
        tried.append((float(np.abs(off).sum()), point))
        low, high = (low, point[0]) if off.sum() > 0.0 else (point[0], high)
    return min(tried)
