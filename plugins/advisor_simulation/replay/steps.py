"""A program cut into steps for the fast engine: each moves a rank's clock, or leaves or reads one number in a slot.

A step that reads waits until what it reads is written: its condition. Message m has the conditions 2 m (sent) and
2 m + 1 (the receiver is ready), collective operation c of M messages has 2 M + c.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray
    from advisor_simulation.replay.network import Network
    from advisor_simulation.replay.program import Program


INNER: Final = 16


class Step(IntEnum):
    """What a step does to the clock t and its slot; ``INNER`` is added for messages within a node."""

    BURST = 0  # t += value * ratio
    FIXED = 1  # t += value
    SEND = 2  # t += startup; slot = t + flight + value / BW
    ANNOUNCE = 3  # t += startup; slot = t
    READY = 4  # slot = t + startup
    NOTE = 5  # slot = t
    ARRIVE = 6  # slot = max(slot, t)
    RECEIVE = 7  # t = max(t + startup, slot); this and all that follow wait for their condition
    RELEASE = 8  # t = max(t, slot)
    ACCEPT = 9  # t = max(t + startup, max(both slots) + flight + value / BW)
    LEAVE = 10  # t = max(t, slot + cost[value])
    AFTER = 11  # t = max(t, slot + value)


#: Steps that wait for their condition; the others with one fulfil it.
WAITING: Final = (Step.RECEIVE, Step.RELEASE, Step.ACCEPT, Step.LEAVE, Step.AFTER)


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of all ranks; ``rank_starts`` (ranks + 1,), columns ``kind``, ``value``, ``condition`` (-1 none).

    ``last_steps`` (operations,) is the step with which each operation of the program ends (-1: it has none on its rank,
    and ends where the one before it does). ``arrivals`` (collectives,) counts the arrivals that fulfil the condition,
    ``costs`` (shapes, 2) holds latencies and bytes of collective operations, ``inner_shape`` (shapes,) whether they
    stay within a node. ``messages`` is M.
    """

    first: IntArray
    kind: npt.NDArray[np.uint8]
    value: FloatArray
    condition: npt.NDArray[np.int32]
    last: IntArray
    messages: int
    arrivals: npt.NDArray[np.int32]
    costs: FloatArray
    inner_shape: npt.NDArray[np.bool_]
    start_s: FloatArray

    @property
    def ranks(self) -> int:
        """The number of processes."""
        return len(self.first) - 1


@dataclass(slots=True)
class StepLayout:
    """Columns that are being filled: how many steps each operation has, and what they are."""

    program: Program
    count: IntArray
    end: IntArray

    @classmethod
    def from_counts(cls, program: Program, count: IntArray) -> StepLayout:
        """Room for ``count`` steps of each operation."""
        return cls(program, count, np.cumsum(count))

    def empty_columns(self) -> tuple[npt.NDArray[np.uint8], FloatArray, npt.NDArray[np.int32]]:
        """Return empty columns."""
        total = int(self.end[-1]) if len(self.end) else 0
        return np.zeros(total, dtype=np.uint8), np.zeros(total), np.full(total, -1, dtype=np.int32)

    def rank_starts(self) -> IntArray:
        """Return where the steps of each rank begin."""
        found: IntArray = np.r_[0, self.end][self.program.first].astype(np.int64)
        return found

    def last_steps(self) -> IntArray:
        """Return the last step of each operation, or of the latest before it on its rank; -1 for none."""
        last = self.end - 1
        return np.where(last >= np.repeat(self.rank_starts()[:-1], np.diff(self.program.first)), last, -1)


def computation_ratios(program: Program, network: Network, at: IntArray) -> FloatArray:
    """Return the factors on computation that are the same at all points: of ranks and regions."""
    of_rank = np.array([network.rank_ratios.get(rank, 1.0) for rank in range(program.ranks)])
    of_region = np.array([*(network.region_ratios.get(name, 1.0) for name in program.names), 1.0])
    if not network.rank_ratios and not network.region_ratios:
        return np.ones(1)
    result: FloatArray = of_rank[program.rank[at]] * of_region[program.region[at]]
    return result
