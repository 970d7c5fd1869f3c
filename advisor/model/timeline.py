"""A run over time: what each rank, or each row of devices, did in each span of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

#: What the seconds of a rank in an instance are told apart by, in the order in which they are drawn.
KINDS: Final = ("computation", "transfer", "input and output", "synchronization", "waiting")


@dataclass(frozen=True, slots=True)
class TimelineColumn:
    """A span of time (s): one instance of a phase, or several consecutive ``instances``."""

    start_s: float
    duration_s: float
    phase: str
    iteration: int
    instances: int


@dataclass(frozen=True, slots=True)
class WaitCause:
    """For whom or what a rank waits in a phase, and how long in all (s)."""

    row: int
    phase: str
    partner: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """Rows of ranks over columns of time; ``seconds`` (rows, columns, kinds) are means over the ranks of a row."""

    rows: tuple[str, ...]
    ranks_per_row: int
    columns: tuple[TimelineColumn, ...]
    seconds: npt.NDArray[np.float64]
    span_s: float
    causes: tuple[WaitCause, ...]
    kinds: tuple[str, ...] = KINDS
