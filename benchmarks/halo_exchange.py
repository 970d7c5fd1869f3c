"""The program that replays are timed with: a two-dimensional halo exchange with an allreduce in each step."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from advisor.trace.events import Role
from advisor_simulation.replay.network import Network
from advisor_simulation.replay.program import Collectives, Op, Program

#: Operations of a rank in a step: computation, four sends, four receives, an allreduce.
PER_STEP: Final = 10
#: The network of the figures.
NETWORK: Final = Network(latency_s=5e-6, bandwidth=1e9)


def halo(ranks: int, steps: int, seed: int = 1, size: float = 8192.0, work_s: float = 1e-3) -> Program:
    """Return the exchange of ``size`` bytes with four neighbours, and an allreduce of 8 bytes, in each step.

    Computation is ``work_s`` and 5 % more or less; the ranks lie on a torus that is as square as it can be.
    """
    rows = max(each for each in range(1, math.isqrt(ranks) + 1) if ranks % each == 0)
    place = np.arange(ranks).reshape(rows, -1)
    shifts = ((1, 0), (-1, 0), (0, 1), (0, -1))
    to = np.stack([np.roll(place, shift, axis=(0, 1)).ravel() for shift in shifts])
    back = np.stack([np.roll(place, (-a, -b), axis=(0, 1)).ravel() for a, b in shifts])
    row = np.array([Op.BURST, *[Op.SEND] * 4, *[Op.RECV] * 4, Op.JOIN], dtype=np.uint8)
    value = np.zeros((ranks, steps, len(row)))
    value[:, :, 0] = work_s * np.random.default_rng(seed).uniform(0.95, 1.05, (ranks, steps))
    value[:, :, 1:5] = size
    value[:, :, 9] = 8.0
    link = np.full((ranks, steps, len(row)), -1, dtype=np.int32)
    number = (np.arange(steps)[None, :, None] * ranks + np.arange(ranks)[:, None, None]) * 4 + np.arange(4)
    link[:, :, 1:5] = number
    for direction in range(4):
        link[:, :, 5 + direction] = number[to[direction], :, direction]
    link[:, :, 9] = np.arange(steps)
    joint = Collectives(
        np.zeros(steps, dtype=np.int64), np.full(steps, int(Role.ALL_TO_ALL), dtype=np.int64),
        np.full(steps, -1, dtype=np.int64), np.full(steps, 8.0), ("allreduce",) * steps,
    )  # fmt: skip
    nothing = np.full(ranks * steps * len(row), -1, dtype=np.int32)
    return Program(
        first=np.arange(ranks + 1, dtype=np.int64) * steps * len(row), op=np.tile(row, ranks * steps),
        value=value.ravel(), link=link.ravel(), call=nothing, region=nothing,
        source=np.tile(np.repeat(np.arange(ranks, dtype=np.int32), 4), steps),
        target=np.tile(back.T.ravel().astype(np.int32), steps), collectives=joint,
        communicators=(tuple(range(ranks)),), names=(), title="halo",
    )  # fmt: skip
