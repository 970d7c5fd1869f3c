"""One sweep that carries the time and its components: computation, latencies and bytes on its path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from advisor_simulation.replay.engine import OrderedSteps, point_speeds
from advisor_simulation.replay.kernels import (
    ACCEPT,
    ANNOUNCE,
    ARRIVE,
    BURST,
    FIXED,
    LEAVE,
    NOTE,
    READY,
    RECEIVE,
    RELEASE,
    SEND,
    ArrangedSteps,
    Speeds,
)
from advisor_simulation.replay.numba_compiler import choose_compiled

if TYPE_CHECKING:
    from advisor.model.records import FloatArray
    from advisor_simulation.replay.network import Network

#: Columns of what is carried: seconds, of them fixed, latencies, bytes.
_T, _ALPHA, _BETA, _GAMMA = range(4)


def compute_coefficients(plan: OrderedSteps, network: Network, replays: int = 1) -> tuple[float, float, float, float]:
    """Return T, alpha, beta and gamma at a point: T = alpha + beta L + gamma / BW on its critical path.

    The same numbers as ``path.critical`` gives, where several paths are critical those of one of them. ``replays`` is
    how many times this will be asked.
    """
    clock = np.zeros((plan.steps.ranks, 4))
    clock[:, _T] = clock[:, _ALPHA] = plan.steps.start_s
    made = np.where(plan.steps.inner_shape[:, None], 0.0, plan.steps.costs)
    choose_compiled(carry_coefficients, len(plan.arranged.kind) * replays)(
        plan.arranged, point_speeds(plan.steps, network), made, clock, np.zeros((plan.slots, 4)),
        float(network.startup == "processor"),
    )  # fmt: skip
    last = clock[int(clock[:, _T].argmax())]
    return float(last[_T]), float(last[_ALPHA]), float(last[_BETA]), float(last[_GAMMA])


def carry_coefficients(
    steps: ArrangedSteps, speeds: Speeds, made: FloatArray, clock: FloatArray, slots: FloatArray, on_processor: float
) -> None:
    """Move ``clock`` (ranks, 4) through all steps; ``made`` (shapes, 2) are latencies and bytes of collectives."""
    rank, _, end, kind, value, slot = steps
    ratio, latency, flight, gap, cost = speeds
    begin = 0
    for s in range(len(rank)):
        t, alpha, beta, gamma = clock[rank[s]]
        first, begin = begin, end[s]
        for i in range(first, begin):
            k, inner, v, own = kind[i] & 15, kind[i] >> 4, value[i], slots[slot[i]]
            outer = 1.0 - inner
            if k <= FIXED:
                step = v * (ratio[0] if k == BURST else 1.0)
                t, alpha = t + step, alpha + step
                continue
            if k in (SEND, ANNOUNCE, RECEIVE, ACCEPT):
                t += latency[inner]
                alpha += inner * latency[inner]
                beta += outer * on_processor
            if k < RECEIVE:
                if k != ARRIVE or t > own[0]:
                    own[0], own[1], own[2], own[3] = t, alpha, beta, gamma
                if k == READY:
                    own[0] += latency[inner]
                    own[1] += inner * latency[inner]
                    own[2] += outer * on_processor
                elif k == SEND:
                    ride = flight[inner] + v * gap[inner]
                    own[0] += ride
                    own[1] += inner * ride
                    own[2] += outer * (1.0 - on_processor)
                    own[3] += outer * v
                continue
            more, fixed, latencies, sizes = 0.0, 0.0, 0.0, 0.0
            if k == ACCEPT:
                ready = slots[slot[i] + 1]
                if ready[0] > own[0]:
                    own = ready
                more = flight[inner] + v * gap[inner]
                fixed, latencies, sizes = inner * more, outer * (1.0 - on_processor), outer * v
            elif k == LEAVE:
                more = cost[int(v)]
                latencies, sizes = made[int(v)]
                fixed = more if latencies == 0.0 and sizes == 0.0 else 0.0
            elif k not in (RECEIVE, RELEASE, NOTE):
                more = fixed = v
            if own[0] + more >= t:
                t, alpha = own[0] + more, own[1] + fixed
                beta, gamma = own[2] + latencies, own[3] + sizes
        carried = clock[rank[s]]
        carried[0], carried[1], carried[2], carried[3] = t, alpha, beta, gamma
