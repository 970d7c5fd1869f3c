"""What the timing tables of all libraries and applications come down to."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from advisor.trace.regions import OFF_CORE_NAME

if TYPE_CHECKING:
    from advisor.model.records import Note
    from advisor.trace.events import Role


#: CPU clocks and wall clocks are read at different places: less than this share of the run may be none.
OFF_CORE: Final = 0.05
#: The row, of the role OS, of what the CPU times of a program leave of its wall times.
NOT_ON_CORE: Final = OFF_CORE_NAME


@dataclass(frozen=True, slots=True)
class TimingRow:
    """A line of a timing table: seconds of a rank with everything below the row.

    ``mean_s`` is the mean over the ranks; ``least_s`` and ``most_s`` are NaN where the table lacks them, ``least_at``
    and ``most_at`` the ranks that take them (-1: not known). ``parent`` is the index of the row that contains this one
    (-1: the run). ``role`` says what the row does where the library says so; without it the name tells. ``calls`` is
    the number of calls of a rank, NaN where it is not known; ``counts`` holds other counts of all ranks together, by
    the names of ``Profile.counts``. ``ranks_s`` are the seconds of each rank where the table holds them. ``only_waits``
    is whether the library measured the row as waiting for other ranks and nothing else, ``for_device`` whether for a
    device of the rank's own.
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
    for_device: bool = False

    @property
    def is_spread_known(self) -> bool:
        """Whether the table says how the ranks differ."""
        return bool(self.ranks_s) or not (math.isnan(self.least_s) and math.isnan(self.most_s))


@dataclass(frozen=True, slots=True)
class TimingTable:
    """The timing table of one run.

    ``tool`` names the library, ``program`` the program (empty: not known). ``ranks`` is None where the table does not
    tell how many there were, or whether they are ranks at all. ``wall_s`` is the wall time of the run, or of the part
    that the table is about, ``shortest_s`` that of the shortest rank where it differs. ``hides_waiting`` is whether
    rows that are not communication by name may wait in calls of MPI all the same; ``averages_ranks`` whether seconds of
    single ranks are means over ranks of a kind. ``first_rank`` is whether the times are those of the first rank alone,
    ``communication_s`` what it (else: the mean rank) communicates or waits below the rows, NaN where that is not known.
    ``cpu_s`` is how long that rank was on a core in all, all of its ``threads`` added up; NaN where that is not known.
    ``counts`` are those of all ranks and rows together. ``command`` is the command line that was timed as a whole.
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
    first_rank: bool = False
    communication_s: float = math.nan
    cpu_s: float = math.nan
    run: str = ""
    started: str | None = None
    language: str | None = None
    command: str | None = None
    parameters: Mapping[str, str | float] = field(default_factory=dict)
    counts: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    @property
    def record_command(self) -> str:
        """The command that records the run, with the words of the command that was timed quoted for a shell."""
        return f"gapwatch run -- {shlex.join(self.command.split()) if self.command else 'COMMAND'}"

    @property
    def off_core_share(self) -> float:
        """The share of the run for which the first of several ranks had no core; NaN where that is not known.

        MPI polls while it waits, so this is time for disks, for other programs, or for ranks on the same core. Where
        nobody knows how many processes there were, their CPU times add up: that one had a core does not show.
        """
        if not self.first_rank or self.ranks == 1 or self.threads > 1 or math.isnan(self.cpu_s):
            return math.nan
        share = max(1.0 - self.cpu_s / self.wall_s, 0.0)
        return share if self.ranks is not None or share >= OFF_CORE else math.nan

    @property
    def idle_share(self) -> float:
        """The share of the run for which the threads of the first rank were on no core; NaN where that is not known."""
        if self.threads == 1 or math.isnan(self.cpu_s):
            return math.nan
        return max(1.0 - self.cpu_s / (self.threads * self.wall_s), 0.0)
