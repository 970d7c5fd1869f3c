"""Programs by hand as they are recorded, in rows that changes are tried on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from replay_programs import Do, program

from advisor.trace.events import Role
from advisor_simulation.replay import outcome
from advisor_simulation.replay.collectives import TODAY
from advisor_simulation.replay.network import Network
from advisor_simulation.replay.program import Collectives, Op
from advisor_simulation.whatif.traced import row_replay, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor_simulation.whatif.traced.rows import ReplayRows

#: A message takes 1 s on both processors and as long again for each byte of 1 B/s.
NETWORK = Network(latency_s=1.0, bandwidth=1.0, eager_bytes=1e9, collectives=TODAY)
ROOTED = (Role.ONE_TO_ALL, Role.ALL_TO_ONE)


def recorded(
    ranks: Sequence[Sequence[Do]],
    pairs: Sequence[tuple[int, int]] = (),
    meet: Sequence[Role] = (),
    eager: float = 1e9,
    name: str = "op",
) -> ReplayRows:
    """Return the rows of a program as it was recorded on ``NETWORK``; rank 0 is the root of what it ``meet``s in."""
    count, everybody = len(meet), tuple(range(len(ranks)))
    joint_ones = Collectives(
        np.zeros(count, dtype=np.int64), np.array(meet, dtype=np.int64),
        np.array([0 if role in ROOTED else -1 for role in meet], dtype=np.int64), np.zeros(count),
        (name,) * count,
    )  # fmt: skip
    made = program(ranks, pairs, joint_ones, (everybody,))
    found = outcome.replay_program(made, replace(NETWORK, eager_bytes=eager))
    return rows.build_rows(replace(made, end_s=found.end_s, start_s=np.zeros(len(ranks))))


def everywhere(these: ReplayRows) -> np.ndarray:
    return np.ones(len(these), dtype=bool)


def time_of(these: ReplayRows | None) -> float:
    assert these is not None
    return row_replay.replay_rows(these).time_s


def burst(seconds: float) -> Do:
    return Do(Op.BURST, seconds)
