"""What a simulation writes down: spans between full synchronizations, each with what every processor did in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from advisor_simulation.mds.coherence import COHERENCE, KINDS

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class RegionEntry:
    """One region within a span, in the model's unit by processor (P,): ``work`` without anything that follows it.

    ``memory`` is cold and capacity misses, ``traffic`` (P, kinds) what coherence costs by kind and ``counts`` how many
    transactions that were, ``moved`` other data movement.
    """

    region: str
    serial: bool
    work: FloatArray
    memory: FloatArray
    traffic: FloatArray
    counts: IntArray
    moved: FloatArray
    io: FloatArray
    sync: FloatArray
    wait: FloatArray

    @property
    def transfer(self) -> FloatArray:
        """All data movement between processors (P,)."""
        total: FloatArray = self.traffic.sum(axis=1) + self.moved
        return total

    @property
    def wall(self) -> FloatArray:
        """All the time that the processors spend in the region (P,)."""
        return self.work + self.memory + self.transfer + self.io + self.sync + self.wait


def make_entry(region: str, processors: int, serial: bool = False, **parts: npt.NDArray[Any]) -> RegionEntry:
    """Return an entry with the ``parts`` given, and zeros for the others."""
    nothing = np.zeros(processors)
    names = ("work", "memory", "moved", "io", "sync", "wait")
    columns: dict[str, FloatArray] = {name: parts.get(name, nothing) for name in names}
    return RegionEntry(
        region=region,
        serial=serial,
        traffic=np.asarray(parts.get("traffic", np.zeros((processors, COHERENCE))), dtype=np.float64),
        counts=np.asarray(parts.get("counts", np.zeros((processors, len(KINDS)))), dtype=np.int64),
        **columns,
    )


@dataclass(frozen=True, slots=True)
class SyncSpan:
    """What happened up to a full synchronization: ``closed_by`` it, after ``duration`` from ``start``, all together.

    ``arrived`` (P,) is when each processor came to the synchronization, ``departed`` when they went on.
    """

    entries: tuple[RegionEntry, ...]
    closed_by: str
    start: float
    arrived: FloatArray
    departed: float

    @property
    def kind(self) -> Literal["serial", "parallel"]:
        """Serial where nothing but serial parts was done."""
        made = self.entries[:-1]
        return "serial" if made and all(one.serial for one in made) else "parallel"

    @property
    def phase_key(self) -> tuple[str, ...]:
        """What makes two spans iterations of one phase."""
        return (*(entry.region for entry in self.entries), self.closed_by)


@dataclass(frozen=True, slots=True)
class DataFlow:
    """Data that flow through one region: ``words`` (P, P) that q reads and p wrote, working set in bytes (P,)."""

    region: str
    words: IntArray
    working_set: IntArray
    items: int


@dataclass(frozen=True, slots=True)
class MessageCount:
    """Messages of one step: how many each processor sends (P,), and their bytes together (P,)."""

    name: str
    count: IntArray
    size_B: IntArray
    collective: bool


@dataclass(slots=True)
class SimulationLog:
    """Everything that a simulation wrote down; times in the model's unit.

    ``transactions`` are those of the caches by array, processor and kind (A, P, kinds).
    """

    spans: list[SyncSpan] = field(default_factory=list)
    flows: dict[str, DataFlow] = field(default_factory=dict)
    references: int = 0
    transactions: IntArray | None = None
    messages: list[MessageCount] = field(default_factory=list)

    def add_transactions(self, counts: IntArray, arrays: int) -> None:
        """Add transactions of the caches by array, processor and kind (A, P, kinds)."""
        if self.transactions is None:
            self.transactions = np.zeros((arrays, *counts.shape[1:]), dtype=np.int64)
        self.transactions[: len(counts)] += counts

    def add_flow(self, region: str, words: IntArray, working_set: IntArray, items: int) -> None:
        """Add what one execution of a region read, wrote and passed on."""
        known = self.flows.get(region)
        if known is not None:
            words, working_set = words + known.words, np.maximum(working_set, known.working_set)
            items += known.items
        self.flows[region] = DataFlow(region, words, working_set, items)
