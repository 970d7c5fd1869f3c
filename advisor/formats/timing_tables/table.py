"""What the timing tables of all libraries and applications come down to."""

from __future__ import annotations

import math
from dataclasses import field
from typing import TYPE_CHECKING

from advisor.model.record_class import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.model.records import Note
    from advisor.trace.events import Role


@dataclass(frozen=True, slots=True)
class TimingRow:
    """A line of a timing table: seconds of a rank with everything below the row.

    ``mean_s`` is the mean over the ranks; ``least_s`` and ``most_s`` are NaN where the table lacks them, ``least_at``
    and ``most_at`` the ranks that take them (-1: not known). ``parent`` is the index of the row that contains this one
    (-1: the run). ``role`` says what the row does where the library says so; without it the name tells. ``calls`` is
    the number of calls of a rank, NaN where it is not known; ``counts`` holds other counts of all ranks together, by
    the names of ``Profile.counts``. ``ranks_s`` are the seconds of each rank where the table holds them. ``only_waits``
    is whether the library measured the row as waiting for other ranks and nothing else.
    """

    name: str
    mean_s: float
    least_s: float = math.nan
    most_s: float = math.nan
    least_at: int = -1
    most_at: int = -1
    parent: int = -1
    role: Role | None = None
    calls: float = math.nan
    counts: Mapping[str, float] = field(default_factory=dict)
    ranks_s: tuple[float, ...] = ()
    only_waits: bool = False

    @property
    def is_spread_known(self) -> bool:
        """Whether the table says how the ranks differ."""
        return bool(self.ranks_s) or not (math.isnan(self.least_s) and math.isnan(self.most_s))


@dataclass(frozen=True, slots=True)
class TimingTable:
    """The timing table of one run. ``tool`` names the library, ``program`` the program (empty: not known).

    ``ranks`` is None where the table does not tell how many there were. ``wall_s`` is the wall time of the run, or of
    the part that the table is about, ``shortest_s`` that of the shortest rank where it differs. ``hides_waiting`` is
    whether rows that are not communication by name may wait in calls of MPI all the same; ``averages_ranks`` whether
    seconds of single ranks are means over ranks of a kind. ``counts`` are those of all ranks and rows together.
    """

    tool: str
    program: str
    wall_s: float
    rows: tuple[TimingRow, ...]
    ranks: int | None = 1
    shortest_s: float = math.nan
    threads: int = 1
    hides_waiting: bool = False
    averages_ranks: bool = False
    run: str = ""
    started: str | None = None
    language: str | None = None
    parameters: Mapping[str, str | float] = field(default_factory=dict)
    counts: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
